"""Decides on a sweep: the candidates of each panel, on seeds of their own, under every attack that applies.

``report.decision`` has the rule. A panel's candidates and undefended are a sweep in ``WORKDIR/decided/PANEL``,
whose seeds follow those of the sweep and whose stages are the looks: it ends at the first look that closes the
answer. The same command again continues it. If all candidates are denied and others are left, these are added.
"""

from __future__ import annotations

import itertools
import math
import pathlib
import time
from collections.abc import Collection, Mapping
from typing import Any

from vfljax import attacks, store, tasks
from vfljax.auditing import suite
from vfljax.config import Config, as_axis, changed
from vfljax.errors import UserError, argument
from vfljax.report import decision, fresh
from vfljax.report.decision import EARLY, LOOKS, Answer, Reason
from vfljax.report.families import Applying
from vfljax.report.judged_sweep import Judged
from vfljax.report.looks import looks_left, progress
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling import running
from vfljax.scheduling.work import May, Outcome, Say
from vfljax.store import Unit
from vfljax.store.units import LOCAL_ONLY
from vfljax.types import NO_SPLIT, SPLIT, federation_of

DRAWS = 2  # of known labels over which figures are averaged, as costly attacks are run anyway
ROUNDS = 3  # of candidates that one call with a budget tries on a panel
READ_EPOCHS = (0, 1, -1)  # epochs that attacks of the suite read


def check(experiment: Config) -> None:
    """Raises UserError for a sweep on which nothing can be decided."""
    what = ""
    if experiment.reproduces:
        what = "reproduces a paper's table"
    elif experiment.data.name == "wire":
        what = "has recorded runs alone"
    if what:
        remedy = "leave it out"
        raise UserError(
            (argument("decide"), " trains on further seeds, and this sweep ", what), remedy=remedy
        )


def decide(
    workdir: pathlib.Path, command: str, say: Say = print, end: float = math.inf
) -> list[Outcome]:
    """Trains and attacks what the answers on a stored sweep need, until they are closed or all looks are taken.

    Args:
      workdir: the folder of a sweep that is trained and attacked.
      command: the command that makes the sweep, for headers.
      say: is given each line of progress.
      end: of ``time.monotonic``; no unit is begun after it.

    Returns:
      What each look did.
    """
    found, outcomes = judge_sweep(workdir), []
    rounds = ROUNDS if math.isfinite(end) else 1
    for _, panel in itertools.product(range(rounds), panels(found)):
        experiment = experiment_of_panel(found, panel)
        if experiment is None or _nothing_left(found, panel):
            continue
        folder = fresh.stage2_folder(workdir, panel)
        stages = [changed(experiment, {"seeds": look}) for look in LOOKS[:-1]]
        for look in LOOKS:
            if time.monotonic() >= end:
                break
            names = [name for name in experiment.grid if name != suite.UNDEFENDED]
            say(
                f"deciding ({panel}): {', '.join(names) or 'undefended'} on {look} seeds of their own"
            )
            may = _until(folder, experiment.first_seed, look, end)
            outcome = running.finish(experiment, folder, command, say, may, stages)
            outcomes.append(outcome)
            found = judge_sweep(workdir)
            if _nothing_left(found, panel) or found.decisions[panel].reason is Reason.NEXT:
                break
    return outcomes


def panels(found: Judged) -> list[str]:
    """Returns the panels on which more seeds may decide something."""
    lost = Reason.NO_DEFENSE, Reason.NO_DEFENSE_LEFT, Reason.CONTRADICTED
    hopeless = (*EARLY, Reason.DIVERGED, Reason.NO_BASELINE, *lost)
    return [
        panel
        for panel, of in found.decisions.items()
        if of.answer is Answer.OPEN and of.reason not in hopeless
    ]


def _nothing_left(found: Judged, panel: str) -> bool:
    """Returns whether no more could be decided: the answer is closed, or all looks at its candidates are
    taken."""
    of = found.decisions[panel]
    if of.answer is not Answer.OPEN:
        return True
    folder = fresh.stage2_folder(found.sweep.workdir, panel)
    if store.header_of(folder) is None or of.reason in (Reason.NEXT, Reason.FAMILIES):
        return False
    if of.reason is Reason.FAILED and progress(folder).failed:  # they are tried again
        return False
    return not looks_left(folder)


def _until(folder: pathlib.Path, first: int, look: int, end: float) -> May:
    """Returns which units may be begun: those of the seeds of a look, before ``end``."""
    seeds: list[int] = []  # of each stage, once the header is written

    def may(unit: Unit) -> bool:
        if not seeds:
            header = store.read_header(folder)
            seeds.extend(of["seeds"] for of in (*header["earlier"], header["config"]))
        local_only = unit.kind == LOCAL_ONLY
        begins = min(unit.of["seeds"]) - first < look if local_only else seeds[unit.stage] <= look
        return begins and time.monotonic() < end

    return may


def experiment_of_panel(found: Judged, panel: str) -> Config | None:
    """Returns what is trained to decide on a panel: undefended and its candidates, those of an earlier call
    too; None if there is nothing that could be decided.

    Args:
      found: the sweep.
      panel: of the federations.

    Raises:
      UserError: if the sweep has come to explore the seeds of its own decision.
    """
    of, goal = found.decisions[panel], found.facts.goal
    points = decision.of_panel(found.verdicts, found.facts.known, panel)
    if of.reason is Reason.NEXT:  # those that competed are denied
        joining = decision.next_candidates(of, goal)
    else:
        joining = [] if of.stage2 else decision.next_candidates(of, goal, points)
    chosen = [v["configuration"] for v in joining]
    grid, first = fresh.grid_of(found, chosen), found.experiment.trained_seeds.stop
    stored = store.header_of(fresh.stage2_folder(found.sweep.workdir, panel))
    if stored is not None:
        if stored["config"]["first_seed"] < first:  # the sweep has been extended since
            folder = fresh.stage2_folder(found.sweep.workdir, panel)
            raise UserError(
                f"{folder} has seeds of a decision that the sweep explores too",
                remedy="remove that folder, and the same command makes it anew",
            )
        grid, first = {**stored["config"]["grid"], **grid}, stored["config"]["first_seed"]
    elif not chosen and (found.sweep.unfinished or not of.untried):
        return None
    trained = [federation_of(name).kind for name in found.trials["federation"].unique()]
    kinds = [kind for kind in dict.fromkeys(trained) if (kind == NO_SPLIT) == (panel == NO_SPLIT)]
    record = dict.fromkeys((*found.experiment.training.record, *READ_EPOCHS))
    epochs = found.experiment.training.epochs
    return changed(
        found.experiment,
        {
            "name": f"{found.experiment.name}: decision",
            "seeds": LOOKS[-1],
            "first_seed": first,
            "grid": grid,
            "federations": kinds,
            "attacks": attacks_of(found, kinds),
            "training.record": [epoch for epoch in record if epoch < epochs],
            "known_draws": min(found.experiment.known_draws, DRAWS),
            "skip_settled": True,
            "decide": False,
        },
    )


def attacks_of(found: Judged, kinds: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
    """Returns the attacks of a decision: the sweep's own, and of every other family that applies the first
    variant of an audit's suite.

    Args:
      found: the sweep.
      kinds: of the federations.
    """
    facts, stored = found.facts, found.experiment.stored["attacks"]
    names = [*found.trials["federation"].unique()]
    names = [name for name in names if federation_of(name).kind in kinds]
    applying = Applying(found.experiment, found.sweep.header, names, {})
    panel = SPLIT if SPLIT in kinds else NO_SPLIT
    applied = {
        name
        for chain in found.trials["defenses"].unique()
        for name in applying.families(panel, chain)
    }
    of_task = suite.SUITES[tasks.of(facts.classes).name]
    others = {
        name: {option: as_axis(axis)[0] for option, axis in of_task.get(name, {}).items()}
        for name in attacks.TABLE
        if name in applied and name not in stored
    }
    known = facts.known or suite.KNOWN
    return suite.suited({**stored, **others}, [*kinds], known, facts.classes)
