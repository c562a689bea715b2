"""The answers of a stored sweep: it is read, judged and decided on, by what its folders of further seeds have.

``decision`` has the rule, ``looks`` says which seeds count, and ``judged_sweep`` is what comes out.
"""

from __future__ import annotations

import functools
import pathlib
from typing import NamedTuple

import numpy as np
import pandas as pd

from vfljax import store
from vfljax.config import Config
from vfljax.report import decision, looks
from vfljax.report.decision import DENYING, LOOKS, Evidence, Row
from vfljax.report.families import Applying
from vfljax.report.frames import Frames, read_frames
from vfljax.report.judged_sweep import CONFIRMED, STAGE2, Judged, judge_frames, of_same_points
from vfljax.report.limits import LEVEL
from vfljax.store import StoredSweep
from vfljax.sweep.grid import experiment_of


def judge_sweep(workdir: pathlib.Path) -> Judged:
    """Reads the sweep in ``workdir``, judges it and decides on it."""
    sweep = store.load(workdir)
    return judge_stored(sweep, experiment_of(sweep))


def judge_stored(sweep: StoredSweep, experiment: Config) -> Judged:
    """Returns a stored sweep with its verdicts, the decision on each panel, and what its folders of further
    seeds have."""
    found = judge_frames(sweep, experiment, read_frames(sweep, experiment))
    folder = sweep.workdir / CONFIRMED
    if (folder / "sweep.json").exists():
        fresh = store.load(folder)
        if not fresh.unfinished:
            again = experiment_of(fresh)
            found = found._replace(confirmed=judge_frames(fresh, again, read_frames(fresh, again)))
    stage2 = {}
    for panel in found.trials["panel"].unique():
        if of_panel := _stage2(sweep.workdir / STAGE2 / panel):
            stage2[panel] = of_panel
    return with_decisions(found._replace(stage2=stage2))


def _stage2(folder: pathlib.Path) -> Judged | None:
    """Returns the sweep of a decision, not judged yet, each point on the seeds of the last look that is taken
    at it; None before undefended's first."""
    header = store.header_of(folder)
    seeds = looks.seeds_at_last_look(folder, header) if header is not None else {}
    if not any(seeds.values()):
        return None
    sweep = store.load(folder)
    if not sweep.results.num_rows:  # all of its units failed
        return None
    experiment = experiment_of(sweep)
    frames = read_frames(sweep, experiment)
    frames = looks.without_later_seeds(frames, seeds, experiment.first_seed)
    if not (frames.trials["defenses"] == "").any():
        return None
    return Judged(sweep, experiment, *frames, pd.DataFrame())


class Limited(NamedTuple):
    """Points that compete for a decision on a panel, judged at its limits; see ``decision``."""

    choosing: Judged  # at the limits that choose
    denying: Judged  # at those that deny
    level: float  # of the former
    statements: int  # for which these are corrected


class Levels:
    """Frames of a sweep, judged at any level, at each once."""

    def __init__(self, of: Judged, frames: Frames) -> None:
        """``of`` is a sweep, judged already or not, and ``frames`` are its frames or a part of them."""
        self.experiment, self.facts = of.experiment, frames.facts
        whole = frames.rows is of.rows and frames.trials is of.trials and not of.verdicts.empty
        self._other = of if whole else None
        self._judge = functools.partial(
            judge_frames, of.sweep, of.experiment, frames, published=False
        )
        self.judged = functools.cache(self._judged)

    def _judged(self, level: float) -> Judged:
        self._other = self._judge(level, other=self._other)
        return self._other

    def limited(self, panel: str, number: int) -> Limited:
        """Returns the points of a panel at the limits of one of ``number`` looks."""
        denying = self.judged(decision.level(DENYING, number))
        rows = decision.of_panel(denying.verdicts, self.facts.known, panel)
        planned = looks.planned_points(self.experiment, panel)
        statements = decision.possible(rows, self.facts.goal, planned)
        level = decision.level(statements, number)
        return Limited(self.judged(level), denying, level, statements)


def with_decisions(found: Judged) -> Judged:
    """Returns a judged sweep with the decision on each panel, and what is recommended."""
    frames = looks.at_looks(found.sweep, found.frames, found.experiment.first_seed)
    # each look spends half of what the one before did
    number = 2 ** looks.number_of_look(frames, found.sweep.header, found.experiment.first_seed)
    if frames.trials.empty:  # no seed of the first look was trained
        nothing = decision.decide(Evidence([], [], found.facts.goal, diverged=_diverged(found)))
        return found._replace(decisions=dict.fromkeys(found.trials["panel"].unique(), nothing))
    explored = Levels(found, frames)
    again = found.confirmed
    fresh = None if again is None else Levels(again, again.frames)
    decisions, stage2 = {}, {}
    for panel in found.trials["panel"].unique():
        if own := found.stage2.get(panel):
            of = Levels(own, own.frames).limited(panel, len(LOOKS))
            stage2[panel] = of.choosing
        else:
            of = explored.limited(panel, number)
        others = explored.judged(decision.level(DENYING, number))
        decisions[panel] = decision.decide(_evidence(found, panel, of, others, fresh))
    chosen = {(panel, of.point["configuration"]) for panel, of in decisions.items() if of.point}
    verdicts = found.verdicts
    places = zip(verdicts["panel"], verdicts["configuration"], strict=True)
    recommended = np.array([place in chosen for place in places], bool)
    recommended &= (verdicts["known"] == found.facts.known).to_numpy(bool)
    verdicts = verdicts.assign(recommended=recommended)
    return found._replace(verdicts=verdicts, decisions=decisions, stage2=stage2)


def _diverged(found: Judged) -> bool:
    """Returns whether all trials of a sweep diverged."""
    return bool(len(found.trials)) and bool(found.trials["diverged"].all())


def _evidence(
    found: Judged, panel: str, of: Limited, explored: Judged, fresh: Levels | None
) -> Evidence:
    """Returns what is decided on in a panel.

    Args:
      found: the sweep, with what its folders of further seeds have.
      panel: of the federations.
      of: the points that compete.
      explored: all points on the seeds that explored, at the limits that deny.
      fresh: what was judged again.
    """
    facts, own = found.facts, found.sweep.workdir / STAGE2 / panel
    stage2 = panel in found.stage2

    def rows(judged: Judged, other: bool = True) -> list[Row]:
        verdicts = of_same_points(found, judged) if other else judged.verdicts
        return decision.of_panel(verdicts, facts.known, panel)

    final, points = rows(of.choosing, stage2), rows(of.denying, stage2)
    competing = {v["configuration"] for v in final}
    points += [v for v in rows(explored, False) if v["configuration"] not in competing]
    part = of.choosing if stage2 else found
    federations = [*part.trials["federation"].unique()]
    applying = Applying(part.experiment, part.sweep.header, federations, part.attacks)
    untried = {
        v["configuration"]: applying.families(panel, v["defenses"])
        - v["tried"]
        - v["broken_families"]
        for v in final
    }
    units = looks.progress(found.sweep.workdir) if found.sweep.unfinished else None
    return Evidence(
        points=points,
        final=final,
        goal=facts.goal,
        untried=untried,
        stage2=stage2,
        # what is left of a sweep may be units that were given up alone
        unfinished=units is not None and bool(units.waiting or not units.failed),
        unreached=looks.unreached(explored, panel)
        or (stage2 and looks.without_figures(of.choosing, panel)),
        looks_left=looks.looks_left(own),
        failed=bool(looks.progress(own).failed),
        fresh=rows(fresh.judged(LEVEL)) if fresh else (),
        fresh_denying=rows(fresh.judged(decision.level(DENYING))) if fresh else (),
        diverged=_diverged(found),
        level=of.level,
        corrected=of.statements,
    )
