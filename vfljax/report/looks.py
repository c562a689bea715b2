"""At which of a sweep's seeds an answer looks: those of the stages that are over.

A *look* is taken at the numbers of seeds after which stages end, once all units of a stage are over, so that
how often a command is cut off and continued has no say in what is looked at. A unit is over if it is finished,
or if it failed so often that it was given up: what it would have made is left out, as a trial that diverged is,
and the look is taken at the rest. The same command later tries such units again.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from vfljax import defenses, store
from vfljax.config import Config
from vfljax.report.frames import Frames
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import FEWEST_SEEDS
from vfljax.report.points import members_of
from vfljax.store import StoredSweep
from vfljax.store.claims import TRIES, file_name_of
from vfljax.store.units import LOCAL_ONLY
from vfljax.sweep.grid import configurations
from vfljax.types import NO_SPLIT

PLACE = ["configuration", "panel"]


class Progress(NamedTuple):
    """The units of a sweep by their state."""

    waiting: frozenset[str]  # are still to be made
    failed: frozenset[str]  # were given up, or can only be made in part because others were
    undone: frozenset[int]  # stages that are not over; the local-only baseline does not count


def progress(folder: pathlib.Path, header: Mapping[str, Any] | None = None) -> Progress:
    """Returns the units of a sweep by their state; none for a folder without a sweep.

    Args:
      folder: of the sweep.
      header: of the sweep; None reads it.
    """
    header = store.header_of(folder) if header is None else header
    if header is None:
        return Progress(frozenset(), frozenset(), frozenset())
    ever_failed, waiting, failed = store.failed(folder), set(), set()
    undone = set()
    for unit in store.units_of(header):
        if store.finished(folder, unit.name):
            continue
        given_up = file_name_of(unit.name) in ever_failed
        given_up = given_up and len(store.failures(folder, unit.name)) >= TRIES
        lacking, others = failed.intersection(unit.needs), waiting.intersection(unit.needs)
        if lacking and not others and not given_up:
            # an attack is run on those of its shards that there are, and then is not finished
            none_left = len(lacking) == len(unit.needs)
            given_up = none_left or bool(store.read_partial_rows(folder, unit.name))
        (failed if given_up else waiting).add(unit.name)
        if not given_up and unit.kind != LOCAL_ONLY:
            undone.add(unit.stage)
    return Progress(frozenset(waiting), frozenset(failed), frozenset(undone))


def planned_points(experiment: Config, panel: str) -> int:
    """Returns the number of a sweep's points of defenses in a panel, those that are not trained or attacked yet
    too. Defenses that need a top model have none without one."""
    return int((_planned(experiment, panel) != "").sum())


def _planned(experiment: Config, panel: str) -> pd.Series:
    """Returns the chains of defenses of all configurations of a panel, undefended among them."""
    chains = configurations(experiment)["defenses"]
    if panel != NO_SPLIT:
        return chains
    tops = [any(defenses.TABLE[name].needs_top for name in members_of(of)) for of in chains]
    return chains[[not needs for needs in tops]]


def seeds_at_last_look(folder: pathlib.Path, header: Mapping[str, Any]) -> dict[str, int]:
    """Returns, by entry of a staged sweep's grid, the number of its seeds at the last stage that is over, as
    all before are; 0 before the first.

    A candidate that joins later has its own stages, which follow those of the others. What these have stays.
    """
    stages = (*header["earlier"], header["config"])
    undone = progress(folder, header).undone
    planned: dict[str, int] = {}  # seeds of each entry in the stages so far
    looked: dict[str, int] = {}  # and in those up to the first that is not over
    for number, stage in enumerate(stages):
        for name in stage["grid"]:
            before = planned.get(name, 0)
            if before >= stage["seeds"]:
                continue  # this stage adds none of its trials
            planned[name] = stage["seeds"]
            whole = number not in undone and looked.get(name, 0) == before
            looked[name] = stage["seeds"] if whole else looked.get(name, 0)
    return looked


def without_later_seeds(frames: Frames, seeds: Mapping[str, int], first: int) -> Frames:
    """Returns the frames of a sweep without the seeds at which no look was taken yet.

    Args:
      frames: of the sweep.
      seeds: the number of each method's seeds at its last look, as of ``seeds_at_last_look``.
      first: the first seed.
    """
    trials = frames.trials
    end = first + trials["method"].map(seeds).fillna(0)
    trials = trials[trials["seed"] < end]
    # learners have no configuration: they stand beside every point
    ends = end.groupby(frames.trials["configuration"]).max()
    rows = frames.rows
    rows = rows[rows["seed"] < rows["configuration"].map(ends).fillna(end.max())]
    return frames._replace(rows=rows, trials=trials)


def seeds_of_looks(header: Mapping[str, Any]) -> list[int]:
    """Returns the numbers of seeds at which a decision looks at those that explored: a sweep's stages end after
    them, and they are enough for limits. It has one number at least."""
    counts = {stage["seeds"] for stage in (*header["earlier"], header["config"])}
    return sorted(seeds for seeds in counts if seeds >= FEWEST_SEEDS) or [max(counts)]


def number_of_look(frames: Frames, header: Mapping[str, Any], begins: int) -> int:
    """Returns the number, from 1, of the look that is taken at the seeds that explored, by the last of these
    that a point of a defense has.

    Args:
      frames: of the sweep, at this look.
      header: of the sweep.
      begins: its first seed.
    """
    last = frames.trials.loc[frames.trials["defenses"] != "", "seed"].max()
    return max(sum(seeds <= last + 1 - begins for seeds in seeds_of_looks(header)), 1)


def at_looks(sweep: StoredSweep, frames: Frames, begins: int) -> Frames:
    """Returns the frames of a sweep that explores without the seeds of stages that are not over.

    The first look at a point is taken once its first stage is over, or some attack was run on each of its
    seeds that has not diverged: before all attacks are run, points can be denied. Until then its first two
    seeds stay, which have no limits.

    Args:
      sweep: finished or not.
      frames: of the sweep.
      begins: its first seed.
    """
    if not sweep.unfinished:
        return frames
    first = seeds_of_looks(sweep.header)[0]
    done = seeds_at_last_look(sweep.workdir, sweep.header)
    seeds = {name: max(of, first) for name, of in done.items()}
    frames = without_later_seeds(frames, seeds, begins)
    rows, trials = frames.rows, frames.trials
    run = (rows["role"] == "attack") & (rows["leak"].notna() | (rows["settled_by"] != ""))
    reached = pd.concat(
        [rows.loc[run, [*PLACE, "seed"]], trials.loc[trials["diverged"], [*PLACE, "seed"]]]
    )
    counts = reached.groupby(PLACE)["seed"].nunique()
    over = trials.loc[trials["method"].map(done).fillna(0) >= first, "configuration"]
    few = counts.index[counts < first]
    begun = few[~few.get_level_values("configuration").isin(over)]
    of = pd.MultiIndex.from_frame(trials[PLACE])
    # by rank: the first seeds of a point may be those that failed
    late = trials.groupby(PLACE)["seed"].rank("dense") >= FEWEST_SEEDS
    left_out = trials.loc[late & of.isin(begun), [*PLACE, "seed"]]

    def kept(table: pd.DataFrame) -> pd.DataFrame:
        gone = pd.MultiIndex.from_frame(left_out)
        return table[~pd.MultiIndex.from_frame(table[[*PLACE, "seed"]]).isin(gone)]

    return frames._replace(rows=kept(rows), trials=kept(trials))


def seeds_looked_at(folder: pathlib.Path) -> int:
    """Returns the fewest seeds of an entry of a staged sweep's grid at the last look; 0 without a sweep."""
    header = store.header_of(folder)
    return 0 if header is None else min(seeds_at_last_look(folder, header).values())


def looks_left(folder: pathlib.Path) -> bool:
    """Returns whether looks at seeds that were set aside are planned and not taken; False without a sweep."""
    header = store.header_of(folder)
    return header is not None and seeds_looked_at(folder) < header["config"]["seeds"]


def unreached(found: Judged, panel: str) -> bool:
    """Returns whether points of a sweep are not trained, or have no figure, in a panel.

    Args:
      found: the sweep at the seeds of its last look.
      panel: of the federations.
    """
    trials = found.trials[found.trials["panel"] == panel]
    planned = len(_planned(found.experiment, panel))
    return trials["configuration"].nunique() < planned or without_figures(found, panel)


def without_figures(found: Judged, panel: str) -> bool:
    """Returns whether points were trained on which no attack has a figure. One that diverged on all its seeds,
    if these are enough for limits, needs none.

    Args:
      found: the sweep at the seeds of its last look.
      panel: of the federations.
    """
    trials = found.trials[found.trials["panel"] == panel]
    over = trials.groupby("configuration").agg({"diverged": "all", "seed": "nunique"})
    diverged = over.index[over["diverged"] & (over["seed"] >= FEWEST_SEEDS)]
    of = found.leading[found.leading["panel"] == panel]
    return bool((of["leak"].isna() & ~of["configuration"].isin(diverged)).any())
