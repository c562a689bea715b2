"""The audit of a user's table, for Python and the command line."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vfljax import plugins, store
from vfljax.auditing import sentences, suite
from vfljax.auditing.survey import PARTIES, argument, survey, written_frame
from vfljax.errors import Field, UserError, check, unknown, user_path
from vfljax.launching import running
from vfljax.launching.work import Outcome, Say
from vfljax.library.sweeps import Sweep, folder_of, load
from vfljax.report import lower_limits
from vfljax.store import Unit
from vfljax.sweep import train
from vfljax.sweep.grid import check_text, parse
from vfljax.sweep.plan import make_plan
from vfljax.sweep.progress import clock, heartbeat

# of a budget: seconds of each unit, and how it is written
UNITS = ((3600.0, "h|hrs?|hours?"), (60.0, "m|mins?|minutes?"), (1.0, "s|secs?|seconds?"))
NUMBER = r"\d+(?:\.\d*)?|\.\d+"
READING = "reading the table, and learning from each of its columns"
EXAMPLE = "'bank: LIMIT_BAL, AGE; telco: PAY_*, BILL_*'"


def audit(
    table: Any,
    label: str | int,
    parties: Mapping[str, Sequence[str]] | str,
    workdir: str | os.PathLike[str],
    *,
    label_party: str | None = None,
    federation: str = "split",
    attackers: Sequence[str] | str = (),
    known: int = 0,
    budget: float | str | None = "10m",
    max_leak: float | None = None,
    max_cost: float = 1.0,
    keep_gain: float = 0.5,
    seeds: int = 5,
    confirm: bool = False,
    canaries: bool = False,
    options: Mapping[str, Any] | None = None,
    command: str = "vfljax.audit",
    say: Say = print,
) -> Sweep:
    """Audits a table: what leaks of its labels, to which party, and which defense to switch on.

    An audit is one sweep, in this order: the undefended federation on all seeds, under all attacks that apply;
    every defense that applies at the middle strength of its row, on three seeds, those with a formal guarantee
    first; their first and last strengths; all of them on the other seeds. When the budget is spent, no more is
    begun, and tables and report are written of what there is. The same call goes on, also with more seeds or
    attackers, and nothing is trained twice.

    Args:
      table: the table's file (CSV or other delimited text, Parquet, .npz), a pandas ``DataFrame``, or a
        ``pyarrow.Table``. A frame is written to ``workdir/table.parquet``, without its index.
      label: the column that holds the labels.
      parties: who owns which columns, by name or glob, "*" being the rest: 'bank: AGE; telco: PAY_*', a
        mapping of names to lists, or the path of a .json file with such a mapping. Columns that no party owns
        are left out.
      workdir: the folder of the audit: new, or the one to continue.
      label_party: the party that has the labels; the first one by default.
      federation: with a top model ("split"), without one ("no_split"), or "both".
      attackers: the parties that attack, each alone; all but the label party by default.
      known: the labels that attackers know; 0 is 40, or two a class.
      budget: how long it may take, in seconds or as a text: 90s, 10m, 1h30m; 0 is without a limit. What is
        begun is finished. ``confirm`` and ``canaries`` come after it.
      max_leak: the most that may leak, on the report's scale, such as 0.6; any by default.
      max_cost: the most test accuracy or AUC that a defense may cost; 1 is any.
      keep_gain: the share to be kept of the federation's gain over the label party alone.
      seeds: the seeds of each configuration; verdicts need 3.
      confirm: whether what is recommended is judged again, on three fresh seeds.
      canaries: whether claimed epsilons are audited, on one more seed whose labels are partly coins.
      options: options of the table's loader, such as {"drop": ["ID"]}.
      command: the command that the report names as the audit's origin.
      say: is given each line of progress.

    Returns:
      The audit's sweep; ``workdir/report.html`` is its report, and ``workdir/config.py`` its config, for
      `vfljax sweep`.

    Raises:
      UserError: in one line, for bad arguments, a table that cannot be read, and a folder that holds something
        else.
    """
    end = time.monotonic()
    try:
        folder = folder_of(workdir)
        if folder.exists() and not folder.is_dir():
            remedy, place = "name a folder", argument("workdir")
            raise UserError("is a file", field=place, value=str(folder), remedy=remedy)
        owners = parties_of(parties)
        holder = _label_party(label_party, owners)
        attacking = _attackers(attackers, owners, holder)
        if federation not in suite.FEDERATIONS:
            raise unknown(argument("federation"), federation, suite.FEDERATIONS)
        check(argument("known"), known, 0, whole=True)
        check(argument("seeds"), seeds, 1, whole=True)
        goal = {"max_leak": 1.0 if max_leak is None else max_leak}
        goal |= {"max_cost": max_cost, "keep_gain": keep_gain}
        for name, share in goal.items():
            check(argument(name), share, 0.0, 1.0)
        end += seconds_of(budget)
        column, loader = _label(label), _options(options)
        header = store.header_of(folder)
        if header is not None:
            plugins.check_in_use(header, folder)
        say(READING)
        with heartbeat(say, lambda: READING):
            found = survey(_file(table, folder), column, owners, loader)
            of = {"federation": federation, "known": int(known), "seeds": int(seeds), "goal": goal}
            base = suite.config(found, holder, attacking, **of)
            plan = make_plan(parse(base))
            if header is not None:
                store.refuse_another(folder, header, train.header(plan, ""))
                _refuse_other_known(header["config"], base, folder)
            names, refused = suite.applicable(base, plan)
        notes = (*sentences.table_notes(found), *sentences.refused_note(refused))
        values = suite.defended({**base, "notes": notes}, names)
        for line in sentences.preamble(found, values):
            say(line)
        outcomes = [_within(end, values, folder, command, say)]
        text = _report(folder, say)
        if confirm:
            outcomes.append(running.confirm(folder, command, say))
        if canaries:
            outcomes.append(_with_canaries(values, folder, command, say))
        say(_report(folder, say) if confirm or canaries else text)
        for outcome in outcomes:
            outcome.check()
        return load(folder)
    except UserError as error:  # it may name fields of a config, and this function has none
        raise UserError(tuple(map(_as_argument, error.parts))) from error


def _within(
    end: float, values: Mapping[str, Any], folder: pathlib.Path, command: str, say: Say
) -> Outcome:
    """Trains and attacks what is not stored yet, and begins nothing after ``end`` of ``time.monotonic``."""

    def told(line: str) -> None:
        left = end - time.monotonic()
        say(f"{line} ({clock(left)} of the budget left)" if math.isfinite(left) else line)

    def may(unit: Unit) -> bool:
        del unit  # of all kinds alike
        return time.monotonic() < end

    stages = [parse(stage) for stage in suite.stages(values)]
    outcome = running.finish(parse(values), folder, command, told, may=may, stages=stages)
    store.write_text(folder / "config.py", suite.config_file(values))
    sweep = store.load(folder)
    if not sweep.results.num_rows:
        outcome.check()
        what = " ended before anything was trained"
        raise UserError(("the ", argument("budget"), what), remedy="give more, such as 10m")
    if sweep.unfinished:
        say("The budget is spent, and the report says what was not reached. The same call goes on.")
    return outcome


def _with_canaries(
    values: Mapping[str, Any], folder: pathlib.Path, command: str, say: Say
) -> Outcome:
    """Trains and attacks every defense that claims an epsilon with canaries, in a sweep of their own."""
    planted = suite.canaries(values, store.read_header(folder)["data"]["train"])
    if planted is None:
        say("no defense claims an epsilon, so there is none to audit")
        return Outcome({})
    return running.finish(parse(planted), folder / lower_limits.FOLDER, command, say)


def _report(folder: pathlib.Path, say: Say) -> str:
    """Writes the report, and returns it for a terminal."""
    with heartbeat(say, lambda: "writing the report"):
        return running.report(folder)


def _refuse_other_known(
    stored: Mapping[str, Any], config: Mapping[str, Any], folder: pathlib.Path
) -> None:
    """Raises UserError if the attackers of a stored audit's config know another number of labels."""
    before, known = (
        max((options.get("known", 0) for options in of["attacks"].values()), default=0)
        for of in (stored, config)
    )
    if before != known:
        what = f" is {known}, and {folder} holds an audit with {before}"
        remedy = ("give that, or choose another ", argument("workdir"))
        raise UserError((argument("known"), what), remedy=remedy)


# --- arguments ---


def _as_argument(part: str | Field) -> str | Field:
    """Returns the argument that sets a field of the config, for a part of a message that names one.

    >>> str(_as_argument(Field("attacks.probe.known"))), str(_as_argument(Field("data.options.drop")))
    ('known', 'drop')
    """
    if isinstance(part, str):
        return part
    group, _, name = part.path.rpartition(".")
    if part.path == "data.options.label" or re.fullmatch(r"attacks\.\w+\.known", part.path):
        return argument(name)
    if group == "data.options":
        return Field(f"audit.options.{name}", name)
    named = {"data.dir": "table", "data.options": "options", "malicious.parties": "attackers"}
    named |= {"federations": "federation", "seeds": "seeds", "attackers": "attackers"}
    if part.path in named or group == "parties":
        return argument(named.get(part.path, "parties"))
    return "" if part.path in ("beyond_limits", "data.shares") else part


def _label(label: Any) -> str:
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    if not (whole or isinstance(label, str)) or label == "":
        remedy = "give the name of the column that holds the labels"
        raise UserError(field=argument("label"), value=label, remedy=remedy)
    return str(label)


def _label_party(name: Any, parties: Mapping[str, Any]) -> str:
    if name is not None and name not in parties:
        raise unknown(("party in ", argument("label_party")), name, parties)
    holder = next(iter(parties)) if name is None else name
    for party, columns in parties.items():
        if not columns and party != holder:
            what = f" gives {party!r} no columns"
            raise UserError((PARTIES, what), remedy="name some, or leave the party out")
    return holder


def _attackers(given: Any, parties: Mapping[str, Any], holder: str) -> tuple[str, ...]:
    """Returns who attacks: the parties that are given, in a sequence or a text, or all but the label party."""
    field, passive = argument("attackers"), tuple(name for name in parties if name != holder)
    if isinstance(given, str):
        given = [name for name in map(str.strip, given.split(",")) if name]
    if not isinstance(given, Sequence):
        raise UserError(field=field, value=given, remedy="give a list of names of parties")
    for name in given:
        if name == holder:
            what = f" names {holder!r}, who has the labels"
            raise UserError((field, what), remedy="name parties that lack them")
        if name not in passive:
            raise unknown(("party in ", field), name, passive)
    if len({*given}) < len(given):
        raise UserError("names a party twice", field=field, value=[*given], remedy="name it once")
    return tuple(given) or passive


def _options(options: Any) -> dict[str, Any]:
    if options is not None and not isinstance(options, Mapping):
        remedy = "give a mapping, such as {'drop': ['ID']}"
        raise UserError(field=argument("options"), value=options, remedy=remedy)
    if "label" in (options or {}):
        remedy = ("name the column by ", argument("label"))
        raise UserError((argument("options"), " names a label"), remedy=remedy)
    return dict(options or {})


def _file(table: Any, folder: pathlib.Path) -> str:
    """Returns the table's file, to which a data frame is written."""
    if table is None or (isinstance(table, str) and not table):
        remedy = "give a file (CSV, Parquet or .npz) or a data frame"
        raise UserError("is needed", field=argument("table"), remedy=remedy)
    if isinstance(table, str | os.PathLike):
        return str(user_path(table, argument("table")))
    return str(written_frame(table, folder))


def seconds_of(budget: Any) -> float:
    """Returns the seconds of a budget: a number, or a text such as "90s", "10 min", "1h30m" or "600". 0 and
    None are without a limit.

    >>> seconds_of("1h30m"), seconds_of("10 mins"), seconds_of(0)
    (5400.0, 600.0, inf)
    """
    field, total = argument("budget"), math.nan
    if budget is None:
        return math.inf
    if isinstance(budget, str):
        parts = (rf"(?:({NUMBER})\s*(?:{unit}))?" for _, unit in UNITS)
        alone = re.fullmatch(rf"\s*({NUMBER})\s*", budget)
        found = alone or re.fullmatch(r"\s*" + r"\s*".join(parts) + r"\s*", budget)
        counts = [float(count) if count else 0.0 for count in found.groups()] if found else []
        if alone:
            total = counts[0]
        elif found and any(found.groups()):
            total = sum(count * size for count, (size, _) in zip(counts, UNITS, strict=True))
    else:
        number = isinstance(budget, int | float | np.number) and not isinstance(budget, bool)
        total = float(budget) if number else math.nan
    if not total >= 0:
        raise UserError("is no time", field=field, value=budget, remedy="write 90s, 10m or 1h30m")
    return total or math.inf


def parties_of(parties: Any) -> dict[str, tuple[str, ...]]:
    """Returns the columns of each party, from a mapping, a text, or the path of a JSON file.

    >>> parties_of("bank: LIMIT_BAL, AGE; telco: PAY_*")
    {'bank': ('LIMIT_BAL', 'AGE'), 'telco': ('PAY_*',)}
    """
    if isinstance(parties, Mapping):
        entries = [*parties.items()]
    elif isinstance(parties, str) and parties.strip().lower().endswith(".json"):
        entries = _read_parties(user_path(parties.strip(), PARTIES))
    elif isinstance(parties, str) and parties.strip():
        if parties.lstrip().startswith(("{", "[")):
            remedy = "write that to a file, and give the path FILE.json"
            raise UserError("is given as JSON", field=PARTIES, remedy=remedy)
        entries = [_entry(part) for part in parties.split(";") if part.strip()]
        if len(entries) == 1 and parties.count(":") > 1:
            remedy = f"part them by semicolons, such as {EXAMPLE}"
            raise UserError("names one party", field=PARTIES, remedy=remedy)
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
        raise UserError((PARTIES, what), remedy=f"give two or more, such as {EXAMPLE}")
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
