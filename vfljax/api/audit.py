"""``vfljax.audit`` and ``vfljax.audit_trees``: audits of a user's table, for Python and the command line."""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import msgspec

from vfljax.api.arguments import Path, Whole, checked, naming_arguments
from vfljax.api.partitioned_table import partitioned_table
from vfljax.errors import MOST_WHOLE, UserError, argument, unknown

if TYPE_CHECKING:
    from vfljax.api.loading import Sweep
    from vfljax.auditing.survey import AuditRequest, PartitionedTable
    from vfljax.config import Goal

P = ParamSpec("P")
T = TypeVar("T")
Seeds = Annotated[int, msgspec.Meta(ge=1, le=MOST_WHOLE)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
# the argument for each config field that an audit sets, and "" for fields that it fixes
FIELDS = {
    "attacks.*.known": "known",
    "data.dir": "data",
    "data.options": "option",
    "data.options.bins": "bins",
    "data.options.label": "label",
    "data.options.options": "options",
    "data.options.task": "task",
    "data.label_range": "label_range",
    "data.options.*": "option.*",
    "federations": "federation",
    "goal.*": "goal.*",
    "seeds": "seeds",
    "attackers": "attackers",
    "malicious.parties": "attackers",
    "parties.*": "parties",
    "beyond_limits": "",
    "data.shares": "",
}


@checked
def goal_of(max_leak: Share = 1.0, max_cost: Share = 1.0, keep_gain: Share = 0.5) -> Goal:
    """Returns what is required of a defense, as the flags of an audit say it.

    Args:
      max_leak: the leak that is accepted of a defense that does not protect, on the report's scale, such as
        0.6; 1: no such defense is accepted.
      max_cost: the most test accuracy or AUC that a defense may cost; 1: any.
      keep_gain: the share of the gain over the label party alone that is to be kept.
    """
    from vfljax.config import Goal

    return Goal(max_leak=max_leak, max_cost=max_cost, keep_gain=keep_gain)


RECORDS = {
    "partitioned_table": ("vfljax.partitioned_table", partitioned_table),
    "goal": ("vfljax.config.Goal", goal_of),
}


def _checked(function: Callable[P, T]) -> Callable[P, T]:
    return checked(function, RECORDS)


@_checked
def audit(
    partitioned_table: PartitionedTable,
    workdir: Path,
    *,
    goal: Goal | None = None,
    federation: str = "split",
    attackers: Sequence[str] = (),
    known: Whole = 0,
    budget: float | str | None = "10m",
    seeds: Seeds = 5,
    first_seed: Whole = 0,
    decide: bool = True,
    confirm: bool = False,
    canaries: bool = False,
    controls: bool = False,
    verbose: bool = False,
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

    Args:
      partitioned_table: the table, as ``vfljax.partitioned_table`` returns it.
      workdir: folder of the audit: new, or the one to continue.
      goal: what is required of a defense; by default ``vfljax.config.Goal()``.
      federation: with a top model (split), without one (no_split), or both.
      attackers: who attacks, each alone: telco,shop; all but the label party by default.
      known: labels that attackers know; 0 is 40, or two a class.
      budget: how long it may take: 90s, 10m, 1h30m; 0: without a limit. What is begun is finished; ``confirm``,
        ``canaries`` and ``controls`` come after it.
      seeds: seeds of each configuration; verdicts need 3.
      first_seed: the first of these seeds.
      decide: train and attack the leading points again on seeds of their own, 4 to 12 (of trees 8), to decide
        what to switch on; a third of the budget is kept for it.
      confirm: judge what is switched on, or nearest to be, again on fresh seeds.
      canaries: audit claimed epsilons with labels that are coins.
      controls: train and attack again on permuted labels, to see what comes from columns.
      verbose: say what the answers rest on too, as the report does.
      plugin: a Python file, or the name of a module, with defenses of your own, which are tried beside the
        others. `vfljax attack --unfinished` runs attacks of your own on the folder.
      command: the command that the report names as the audit's origin.
      say: is given each line of progress, and at the end what the report says.

    Returns:
      The audit's sweep; ``workdir/report.html`` is its report, and ``workdir/config.py`` its config, for
      `vfljax sweep`.

    Raises:
      UserError: in one line, for bad arguments, a table that cannot be read, and a folder that holds something
        else.
    """
    end, folder = time.monotonic() + seconds_of(budget), pathlib.Path(workdir)

    from vfljax import plugins
    from vfljax.api.loading import load
    from vfljax.auditing import deciding, run, suite
    from vfljax.scheduling import running

    if federation not in suite.FEDERATIONS:
        raise unknown(argument("federation"), federation, suite.FEDERATIONS)
    for source in plugin:
        plugins.use(source)
    with naming_arguments(FIELDS):
        request = _request(partitioned_table, folder, goal, attackers, known, seeds)
        values = run.config_of(request, federation, folder, say, first_seed)
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


@_checked
def audit_trees(
    partitioned_table: PartitionedTable,
    workdir: Path,
    *,
    goal: Goal | None = None,
    attackers: Sequence[str] = (),
    known: Whole = 0,
    budget: float | str | None = "10m",
    seeds: Seeds = 5,
    decide: bool = True,
    plain: bool = False,
    told: str = "own",
    trees_config: Path | None = None,
    verbose: bool = False,
    plugin: Sequence[str] = (),
    command: str = "vfljax.audit_trees",
    say: Callable[[str], None] = print,
) -> Sweep:
    """Audits boosted trees on a table, such as those of SecureBoost (extra trees).

    Federations that XGBoost grows on the joined columns, undefended and under the defenses of
    ``trees_config``, are put under all attacks that read trees. All trees are grown before the first attack.
    The same call goes on, also with more defenses; more seeds or other trees need another folder.

    Args:
      partitioned_table: the table, as ``vfljax.partitioned_table`` returns it.
      workdir: folder of the audit: new, or the one to continue.
      goal: what is required of a defense; by default ``vfljax.config.Goal()``.
      attackers: who attacks, each alone: telco,shop; all but the label party by default.
      known: labels that attackers know; 0 is 40, or two a class.
      budget: how long it may take: 90s, 10m, 1h30m; 0: without a limit. It ends attacks alone, and what is
        begun is finished.
      seeds: seeds of each configuration; verdicts need 3.
      decide: grow and attack the leading points again on 8 seeds of their own, to decide what to switch on; a
        third of the budget is kept for it.
      plain: of trees: gradients are sent without encryption; by default they are encrypted.
      told: of trees: which nodes passive parties are told: their own part in the protocol, as in SecureBoost
        (own), or those of all trees and levels, as in XGBoost's federated mode and NVFlare (all). With all the
        report has their own part beside it, as the method told_own.
      trees_config: of trees: a file with their rounds, levels, defenses and strengths; by default
        configs/trees.py.
      verbose: say what the answers rest on too, as the report does.
      plugin: a Python file, or the name of a module, with attacks of your own.
      command: the command that the report names as the audit's origin.
      say: is given each line of progress, and at the end what the report says.

    Returns:
      The audit's sweep; ``workdir/report.html`` is its report.

    Raises:
      UserError: in one line, for bad arguments, a table that cannot be read, a folder that holds something
        else, and if XGBoost is not installed.
    """
    end, folder = time.monotonic() + seconds_of(budget), pathlib.Path(workdir)

    from vfljax import plugins
    from vfljax.api.loading import load
    from vfljax.auditing import run, trees, trees_grid
    from vfljax.federation.trees import TOLD

    if told not in TOLD:
        raise unknown(argument("told"), told, TOLD)
    for source in plugin:
        plugins.use(source)
    with naming_arguments(FIELDS):
        request = _request(partitioned_table, folder, goal, attackers, known, seeds)
        grid = trees_grid.grid_of(str(trees_config or trees_grid.CONFIG), told)
        trees.audit(request, grid, folder, command, say, plain=plain, end=end, decide=decide)
        say(run.report(folder, say, verbose))
    return load(folder)


def _request(
    table: Any, folder: pathlib.Path, goal: Any, attackers: Sequence[str], known: int, seeds: int
) -> AuditRequest:
    """Returns the request to audit a table, with a data frame as a file of its folder."""
    from vfljax.auditing.survey import AuditRequest, PartitionedTable, written_frame
    from vfljax.config import Goal

    if folder.exists() and not folder.is_dir():
        remedy, place = "name a folder", argument("workdir")
        raise UserError("is a file", field=place, value=str(folder), remedy=remedy)
    if not isinstance(table, PartitionedTable):
        what = (argument("partitioned_table"), f" is of type {type(table).__name__}")
        raise UserError(what, remedy="give what vfljax.partitioned_table returns")
    if not isinstance(goal, Goal | None):
        what = (argument("goal"), f" is of type {type(goal).__name__}")
        raise UserError(what, remedy="give vfljax.config.Goal(max_leak=0.6) or the like")
    # a record that Python makes is not validated
    required = goal_of(**msgspec.structs.asdict(goal or Goal()))
    attacking = _attackers(attackers, table.parties, table.label_party)
    if not isinstance(table.data, str):
        table = table._replace(data=str(written_frame(table.data, folder)))
    return AuditRequest(table, attacking, known, seeds, required)


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
