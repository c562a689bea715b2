"""``vfljax.audit``: the audit of a user's table, for Python and the command line."""

from __future__ import annotations

import json
import math
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from vfljax.api.arguments import Options, Path, Whole, checked, naming_arguments
from vfljax.api.data import of_loader
from vfljax.errors import MOST_WHOLE, Field, UserError, argument, unknown, user_path

if TYPE_CHECKING:
    from vfljax.api.loading import Sweep

Seeds = Annotated[int, msgspec.Meta(ge=1, le=MOST_WHOLE)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
PARTIES = argument("parties")
# the argument for each config field that an audit sets, and "" for fields that it fixes
FIELDS = {
    "attacks.*.known": "known",
    "data.dir": "table",
    "data.options": "option",
    "data.options.bins": "bins",
    "data.options.label": "label",
    "data.options.options": "options",
    "data.options.task": "task",
    "data.label_range": "label_range",
    "data.options.*": "option.*",
    "federations": "federation",
    "seeds": "seeds",
    "attackers": "attackers",
    "malicious.parties": "attackers",
    "parties.*": "parties",
    "beyond_limits": "",
    "data.shares": "",
}
EXAMPLE = "'bank: LIMIT_BAL, AGE; telco: PAY_*, BILL_*'"


@checked
def audit(
    table: Any,
    label: str | int,
    parties: Mapping[str, Any] | str,
    workdir: Path,
    *,
    label_party: str | None = None,
    federation: str = "split",
    attackers: Sequence[str] = (),
    known: Whole = 0,
    bins: Whole = 0,
    task: str = "classification",
    label_range: Sequence[float] = (),
    budget: float | str | None = "10m",
    max_leak: Share | None = None,
    max_cost: Share = 1.0,
    keep_gain: Share = 0.5,
    seeds: Seeds = 5,
    first_seed: Whole = 0,
    decide: bool = True,
    confirm: bool = False,
    canaries: bool = False,
    controls: bool = False,
    verbose: bool = False,
    trees: bool = False,
    plain: bool = False,
    told: str = "own",
    trees_config: Path | None = None,
    option: Options | None = None,
    options: Options | None = None,
    plugin: Sequence[str] = (),
    command: str = "vfljax.audit",
    say: Callable[[str], None] = print,
) -> Sweep:
    """Audits a table: what leaks of its labels, to which party, and which defense to switch on.

    An audit is one sweep, in this order: the undefended federation on all seeds, under all attacks that
    apply; every defense that applies at the middle strength of its row, on three seeds, those with a formal
    guarantee first; their first and last strengths; all of them on the other seeds. Cheap attacks run first,
    dear ones only on what these have not rejected. When the budget is spent, no more is begun, and tables and
    report are written of what there is. The same call goes on, also with more seeds or attackers, and nothing
    is trained twice.

    With ``trees`` it audits boosted trees in place of networks: federations that XGBoost grows on the joined
    columns, and the defenses of ``trees_config``, under all attacks that read trees. All trees are grown before
    the first attack. More seeds or other trees need another folder.

    Args:
      table: the table's file: CSV or other delimited text, Parquet, .npz. In Python also a pandas ``DataFrame``
        or a ``pyarrow.Table``, which is written to ``workdir/table.parquet`` without its index.
      label: the column that holds the labels.
      parties: who owns which columns, by name or glob, "*" being the rest: 'bank: AGE; telco: PAY_*', or the
        path of a .json file of names and lists; in Python also such a mapping. Columns that no party owns are
        left out.
      workdir: folder of the audit: new, or the one to continue.
      label_party: who has the labels; the first party by default.
      federation: with a top model (split), without one (no_split), or both.
      attackers: who attacks, each alone: telco,shop; all but the label party by default.
      known: labels that attackers know; 0 is 40, or two a class.
      bins: of a label of numbers: how many classes its quantiles make of it; 2: above the median or not.
      task: what the label is: classes (classification), or numbers as they are (regression).
      label_range: of a label of numbers: low,high, the bounds to which it is clipped. Label differential
        privacy needs them, and they must come from what is known of the label, not from the table.
      budget: how long it may take: 90s, 10m, 1h30m; 0: without a limit. What is begun is finished; ``confirm``,
        ``canaries`` and ``controls`` come after it.
      max_leak: the leak that is accepted of a defense that does not protect, on the report's scale, such as
        0.6; none by default.
      max_cost: the most test accuracy or AUC that a defense may cost; 1: any.
      keep_gain: the share of the gain over the label party alone that is to be kept.
      seeds: seeds of each configuration; verdicts need 3.
      first_seed: the first of these seeds.
      decide: train and attack the leading points again on 4 to 12 seeds of their own, to decide what to switch
        on; a third of the budget is kept for it.
      confirm: judge what is switched on, or nearest to be, again on fresh seeds.
      canaries: audit claimed epsilons with labels that are coins.
      controls: train and attack again on permuted labels, to see what comes from columns.
      verbose: say what the answers rest on too, as the report does.
      trees: audit boosted trees in place of networks, such as those of SecureBoost (extra trees).
      plain: of trees: gradients are sent without encryption; by default they are encrypted.
      told: of trees: which nodes passive parties are told: their own part in the protocol, as in SecureBoost
        (own), or those of all trees and levels, as in XGBoost's federated mode and NVFlare (all). With all the
        report has their own part beside it, as the method told_own.
      trees_config: of trees: a file with their rounds, levels, defenses and strengths; by default
        configs/trees.py.
      option: name=value of the table's loader, such as drop=ID; see vfljax data.
      options: options of pandas.read_csv or read_parquet, as JSON: {"sep": ";", "decimal": ","}.
      plugin: a Python file, or the name of a module, with defenses or attacks of your own.
      command: the command that the report names as the audit's origin.
      say: is given each line of progress, and at the end what the report says.

    Returns:
      The audit's sweep; ``workdir/report.html`` is its report, and of networks ``workdir/config.py`` its
      config, for `vfljax sweep`.

    Raises:
      UserError: in one line, for bad arguments, a table that cannot be read, and a folder that holds something
        else.
    """
    end, folder = time.monotonic() + seconds_of(budget), pathlib.Path(workdir)
    if folder.exists() and not folder.is_dir():
        remedy, place = "name a folder", argument("workdir")
        raise UserError("is a file", field=place, value=str(folder), remedy=remedy)
    if label == "":
        remedy = "give the name of the column that holds the labels"
        raise UserError("is empty", field=argument("label"), remedy=remedy)
    owners = parties_of(parties)
    holder = _label_party(label_party, owners)
    attacking = _attackers(attackers, owners, holder)
    if "label" in (option or {}):
        remedy = ("name the column by ", argument("label"))
        raise UserError((argument("option"), " names a label"), remedy=remedy)
    given = {"federation": federation != "split", "confirm": confirm, "canaries": canaries}
    given |= {"controls": controls, "first_seed": first_seed > 0}
    for name in (name for name in given if trees and given[name]):
        what = argument(name), " is of networks"
        raise UserError(what, remedy=("leave it out, or leave ", argument("trees"), " out"))
    of_trees = {"plain": plain, "told": told != "own", "trees_config": trees_config is not None}
    for name in (name for name in of_trees if not trees and of_trees[name]):
        what = argument(name), " is of trees"
        raise UserError(what, remedy=("leave it out, or give ", argument("trees")))
    if table is None or (isinstance(table, str) and not table):
        remedy = "give a file (CSV, Parquet or .npz) or a data frame"
        raise UserError("is needed", field=argument("table"), remedy=remedy)

    from vfljax import plugins, tasks
    from vfljax.api.loading import load
    from vfljax.auditing import deciding, run, suite, trees_grid
    from vfljax.auditing import trees as boosted
    from vfljax.auditing.survey import AuditRequest, written_frame
    from vfljax.federation.trees import TOLD
    from vfljax.launching import running

    if federation not in suite.FEDERATIONS:
        raise unknown(argument("federation"), federation, suite.FEDERATIONS)
    if told not in TOLD:
        raise unknown(argument("told"), told, TOLD)
    for source in plugin:
        plugins.use(source)
    if task not in tasks.TABLE:
        raise unknown(argument("task"), task, tasks.TABLE)
    own = {name: of for name, of in {"options": options, "bins": bins}.items() if of}
    own |= {"task": task} if task != "classification" else {}
    loader = of_loader("table", {**(option or {}), **own})
    goal = {"max_leak": 1.0 if max_leak is None else max_leak}
    goal |= {"max_cost": max_cost, "keep_gain": keep_gain}
    with naming_arguments(FIELDS):
        is_file = isinstance(table, str | os.PathLike)
        path = user_path(table, argument("table")) if is_file else written_frame(table, folder)
        asked = AuditRequest(
            data=str(path),
            label=str(label),
            parties=owners,
            options=loader,
            label_party=holder,
            attackers=attacking,
            known=known,
            seeds=seeds,
            goal=goal,
            label_range=tuple(label_range),
        )
        if trees:
            grid = trees_grid.grid_of(str(trees_config or trees_grid.CONFIG), told)
            how = {"plain": plain, "end": end, "decide": decide}
            boosted.audit(asked, grid, folder, command, say, **how)
            say(run.report(folder, say, verbose))
            return load(folder)
        values = run.config_of(asked, federation, folder, say, first_seed)
        kept = (end - time.monotonic()) / 3 if decide and math.isfinite(end) else 0.0
        outcomes = [run.within(end - kept, values, folder, command, say)]
        if decide:
            decided = deciding.decide(folder, command, say, end=end)
            if kept and not decided:  # nothing that was reached could be decided on
                outcomes.append(run.within(end, values, folder, command, say))
            outcomes += decided
        text = run.report(folder, say, verbose)
        if confirm:
            outcomes.append(running.confirm(folder, command, say))
        if canaries:
            outcomes.append(run.with_canaries(values, folder, command, say))
        if controls:
            outcomes += running.control(folder, command, say)
        again = confirm or canaries or controls
        say(run.report(folder, say, verbose) if again else text)
        for outcome in outcomes:
            outcome.check()
    return load(folder)


def _label_party(name: Any, parties: Mapping[str, Any]) -> str:
    if name is not None and name not in parties:
        raise unknown(("party in ", argument("label_party")), name, parties)
    holder = next(iter(parties)) if name is None else name
    for party, columns in parties.items():
        if not columns and party != holder:
            what = f" gives {party!r} no columns"
            raise UserError((PARTIES, what), remedy="name some, or leave the party out")
    return holder


def _attackers(given: Sequence[str], parties: Mapping[str, Any], holder: str) -> tuple[str, ...]:
    """Returns who attacks: the parties that are given, or all but the label party."""
    field, passive = argument("attackers"), tuple(name for name in parties if name != holder)
    for name in given:
        if name == holder:
            what = f" names {holder!r}, who has the labels"
            raise UserError((field, what), remedy="name parties that lack them")
        if name not in passive:
            raise unknown(("party in ", field), name, passive)
    return tuple(dict.fromkeys(given)) or passive


def seconds_of(budget: Any) -> float:
    """Returns the seconds of a budget: a number, or a text such as "90s", "10 min", "1h30m" or "600", which
    pandas reads. 0 and None are without a limit.

    >>> seconds_of("1h30m"), seconds_of("10 min"), seconds_of(0)
    (5400.0, 600.0, inf)
    """
    import pandas as pd

    try:
        seconds = float(budget or 0)
    except ValueError:
        try:
            seconds = pd.Timedelta(budget).total_seconds()
        except ValueError:
            seconds = math.nan
    if budget == "" or not seconds >= 0:
        remedy = "write 90s, 10m or 1h30m"
        raise UserError("is no time", field=argument("budget"), value=budget, remedy=remedy)
    return seconds or math.inf


def parties_of(parties: Any) -> dict[str, tuple[str, ...]]:
    """Returns the columns of each party, from a mapping, a text, or the path of a JSON file.

    >>> parties_of("bank: LIMIT_BAL, AGE; telco: PAY_*")
    {'bank': ('LIMIT_BAL', 'AGE'), 'telco': ('PAY_*',)}
    """
    from vfljax.sweep.grid import check_text

    if isinstance(parties, Mapping):
        entries = [*parties.items()]
    elif isinstance(parties, str) and parties.strip().lower().endswith(".json"):
        entries = _read_parties(user_path(parties.strip(), PARTIES))
    elif isinstance(parties, str) and parties.strip():
        entries = [_entry(part) for part in parties.split(";") if part.strip()]
    else:
        remedy = f"say who owns which columns, such as {EXAMPLE}"
        raise UserError(field=PARTIES, value=parties, remedy=remedy)
    owners: dict[str, tuple[str, ...]] = {}
    for name, columns in entries:
        try:
            check_text(Field("parties", "the party's name"), name)
        except UserError as error:
            raise UserError((PARTIES, ": ", *error.parts)) from error
        if name in owners:
            remedy = "give each party one entry"
            raise UserError((PARTIES, f" names {name!r} twice"), remedy=remedy)
        listed = isinstance(columns, Iterable) and not isinstance(columns, str | bytes | Mapping)
        columns = [*columns] if listed else [None]
        if not all(isinstance(column, str | int | np.integer) for column in columns):
            remedy = "give each party a list of names or globs"
            raise UserError((PARTIES, f" has no list of columns of {name!r}"), remedy=remedy)
        owners[name] = tuple(map(str, columns))
    if len(owners) < 2:
        what = f" names {len(owners)} party"
        remedy = f"give two or more, parted by semicolons, such as {EXAMPLE}"
        raise UserError((PARTIES, what), remedy=remedy)
    return owners


def _entry(text: str) -> tuple[str, tuple[str, ...]]:
    name, colon, columns = text.partition(":")
    if not colon:
        what = f": {text.strip()!r} has no colon after the party's name"
        raise UserError((PARTIES, what), remedy=f"write {EXAMPLE}")
    return name.strip(), tuple(filter(None, map(str.strip, columns.split(","))))


def _read_parties(path: pathlib.Path) -> list[tuple[Any, Any]]:
    """Returns the entries of a JSON file of parties, those of one name too."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_Pairs)
    except (OSError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:160]
        what = f"={path} cannot be read ({why})"
        raise UserError((PARTIES, what), remedy="give a JSON file") from error
    if not isinstance(value, _Pairs):
        remedy = 'give an object {"bank": ["AGE"], "telco": ["PAY_*"]}'
        raise UserError((PARTIES, f"={path} is no object"), remedy=remedy)
    return [*value]


class _Pairs(list):
    """The pairs of a JSON object, of which several may have one name."""
