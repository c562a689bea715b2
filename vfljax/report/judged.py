"""A judged sweep: its frames, its verdicts, and what is recommended. All that a report shows is made of these.

To the columns of ``judge.judge`` the verdicts add

    label            a text for the configuration, such as "kdk epsilon=.3 k=2"; no two have the same
    known_by         whether an attack that knows it was tried, for each defense of the chain. For a defense of
                     a plugin, whose author names these attacks, they must also read more than all others
                     somewhere
    author_says      whether attacks were tried of which nothing but the author's word says that they know it
    faint            whether attacks that know a defense of the chain read little of planted labels at its
                     strength (``defenses.rows.Strengths.faint``)
    epsilon claimed  the least ε of label differential privacy that a defense of the chain claims; NaN for none
    approximate epsilon, approximate delta
                     (ε, δ) of the approximate label differential privacy that a defense of the chain claims;
                     NaN for none
    published_leak   the leak if only published attacks are tried, without those that know the defense; NaN
                     if one of these settled a published attack that may have read as much, and where dear
                     ones were not run
    published_leader the attack that then leads
    representative   whether it represents its method in tables: the operating point that is chosen; if none is,
                     the one that loses least utility on validation rows
    recommended      whether to switch it on: at most one in a panel, see ``decision``

The last two are False but for K = ``facts.known``, the number of known labels that the report leads with.
"""

from __future__ import annotations

import functools
import math
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax import defenses, store
from vfljax.attacking.run import can_run
from vfljax.config import Config
from vfljax.plugins.described import is_recorded
from vfljax.report import decision
from vfljax.report.decision import LOOKS, Decided, Evidence
from vfljax.report.families import Applying
from vfljax.report.frames import Facts, Frames, read_frames
from vfljax.report.judge import judge
from vfljax.report.limits import FEWEST_SEEDS, LEVEL
from vfljax.report.points import members, members_of, points_of, same_points
from vfljax.store import StoredSweep
from vfljax.store.claims import TRIES
from vfljax.store.units import LOCAL_ONLY
from vfljax.sweep.grid import configurations, experiment_of

CONFIRMED, STAGE2 = "confirmed", "decided"
"""The folders within a sweep's that have the sweep of what an answer names, on fresh seeds, and for each panel
that of the candidates of its decision, on seeds of their own."""
LITTLE = 0.005
"""Leaks that differ by no more are treated as equal."""


class Judged(NamedTuple):
    """A stored sweep with its verdicts; the module's docstring lists the columns."""

    sweep: StoredSweep
    experiment: Config
    rows: pd.DataFrame  # see ``report.frames``
    trials: pd.DataFrame
    facts: Facts
    attacks: Mapping[str, Mapping[str, Any]]
    verdicts: pd.DataFrame
    confirmed: pd.DataFrame  # verdicts on fresh seeds, by the sweep's numbers of configurations
    decisions: Mapping[str, Decided]  # by panel
    stage2: Mapping[str, Judged]  # on the decision's own seeds, by panel, at the decision's limits

    @property
    def frames(self) -> Frames:
        """The frames of which the verdicts are made."""
        return Frames(self.rows, self.trials, self.facts, self.attacks)

    @property
    def leading(self) -> pd.DataFrame:
        """The verdicts of K = ``facts.known``, the number of known labels that the report leads with."""
        known = self.verdicts["known"] == self.facts.known
        return self.verdicts[known]


def judge_sweep(workdir: pathlib.Path) -> Judged:
    """Reads the sweep in ``workdir`` and judges it."""
    sweep = store.load(workdir)
    return judged(sweep, experiment_of(sweep))


def judged(sweep: StoredSweep, experiment: Config) -> Judged:
    """Returns a stored sweep with its verdicts, and what its folders of further seeds have."""
    found = judge_frames(sweep, experiment, read_frames(sweep, experiment))
    folder = sweep.workdir / CONFIRMED
    if (folder / "sweep.json").exists():
        fresh = store.load(folder)
        if not fresh.unfinished:
            again = experiment_of(fresh)
            again = judge_frames(fresh, again, read_frames(fresh, again))
            found = found._replace(confirmed=elsewhere(found, again))
    stage2 = {}
    for panel in found.trials["panel"].unique():
        if of_panel := _stage2(sweep.workdir / STAGE2 / panel):
            stage2[panel] = of_panel
    return decided(found._replace(stage2=stage2))


def _stage2(folder: pathlib.Path) -> Judged | None:
    """Returns the sweep of a decision at its limits, each point on the seeds of the last look that is complete
    of it; None before undefended's first."""
    header = store.header_of(folder)
    seeds = seeds_looked_at(folder, header) if header is not None else {}
    if not any(seeds.values()):
        return None
    sweep = store.load(folder)
    experiment = experiment_of(sweep)
    frames = looked_at(read_frames(sweep, experiment), seeds, experiment.first_seed)
    if not (frames.trials["defenses"] == "").any():
        return None
    level = decision.level(_competing(experiment, stage2=True), len(LOOKS))
    return judge_frames(sweep, experiment, frames, level, published=False)


def planned_points(experiment: Config) -> int:
    """Returns the number of a sweep's points of defenses, those that are not trained or attacked yet too."""
    return int((configurations(experiment)["defenses"] != "").sum())


def _competing(experiment: Config, stage2: bool) -> int:
    """Returns for how many points the limits of a decision among those of a sweep are corrected. If they have
    seeds of their own, more may join until there are ``CANDIDATES``."""
    return max(planned_points(experiment), decision.CANDIDATES if stage2 else 1)


def looked_at(frames: Frames, seeds: Mapping[str, int], first: int) -> Frames:
    """Returns the frames of a sweep without the seeds at which no look was taken yet.

    Args:
      frames: of the sweep.
      seeds: the number of each method's seeds at its last look, as of ``seeds_looked_at``.
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


def seeds_looked_at(folder: pathlib.Path, header: Mapping[str, Any]) -> dict[str, int]:
    """Returns, by entry of a staged sweep's grid, the number of its seeds at the last stage whose units are all
    trained and attacked, as those of all before are; 0 before the first.

    A candidate that joins later has its own stages, which follow those of the others. What these have stays.
    """
    stages = (*header["earlier"], header["config"])
    undone = {
        unit.stage
        for unit in store.units_of(header)
        if unit.kind != LOCAL_ONLY and not store.finished(folder, unit.name)
    }
    planned: dict[str, int] = {}  # seeds of each entry in the stages so far
    looked: dict[str, int] = {}  # and in those up to the first that is not done
    for number, stage in enumerate(stages):
        for name in stage["grid"]:
            before = planned.get(name, 0)
            if before >= stage["seeds"]:
                continue  # this stage adds none of its trials
            planned[name] = stage["seeds"]
            whole = number not in undone and looked.get(name, 0) == before
            looked[name] = stage["seeds"] if whole else looked.get(name, 0)
    return looked


def decided(found: Judged) -> Judged:
    """Returns a judged sweep with the decision on each panel, and what is recommended."""
    decisions, facts = {}, found.facts
    frames = _explored(found)
    # each look spends half of what the one before did
    explored = 2 ** look_at(frames, found.sweep.header)
    diverged = bool(len(found.trials)) and bool(found.trials["diverged"].all())
    for panel in found.trials["panel"].unique():
        competing, stage2 = found.stage2.get(panel, found), panel in found.stage2
        parts = found.sweep, found.experiment, frames
        corrected = _competing(competing.experiment, stage2)
        denying = max(corrected, decision.DENYING)
        if stage2:
            level, final = decision.level(corrected, len(LOOKS)), elsewhere(found, competing)
            others = decision.level(decision.DENYING, explored)
            points = judge_frames(*parts, others, published=False).verdicts
            points = points[~points["configuration"].isin(final["configuration"])]
            own = competing.sweep, competing.experiment, competing.frames
            at = decision.level(denying, len(LOOKS))
            denied = elsewhere(found, judge_frames(*own, at, published=False))
        else:
            level = decision.level(corrected, explored)
            final = judge_frames(*parts, level, published=False).verdicts
            points, at = final.iloc[:0], decision.level(denying, explored)
            denied = judge_frames(*parts, at, published=False).verdicts if at > level else final
        applying = Applying(
            competing.experiment,
            competing.sweep.header,
            [*competing.trials["federation"].unique()],
            competing.attacks,
        )
        rows = decision.of_panel(final, facts.known, panel)
        untried = {
            v["configuration"]: applying.families(panel, v["defenses"]) - v["tried"] for v in rows
        }
        decisions[panel] = decision.decide(
            Evidence(
                points=[
                    v for of in (denied, points) for v in decision.of_panel(of, facts.known, panel)
                ],
                final=rows,
                goal=facts.goal,
                untried=untried,
                stage2=stage2,
                unfinished=bool(found.sweep.unfinished),
                unreached=bool(found.sweep.unfinished) and _unreached(found, panel),
                looks_left=looks_left(found, panel),
                stuck=stuck(found.sweep.workdir / STAGE2 / panel),
                fresh=decision.of_panel(found.confirmed, facts.known, panel),
                diverged=diverged,
                level=level,
                corrected=corrected,
            )
        )
    chosen = {(panel, of.point["configuration"]) for panel, of in decisions.items() if of.point}
    verdicts = found.verdicts
    places = zip(verdicts["panel"], verdicts["configuration"], strict=True)
    recommended = np.array([place in chosen for place in places], bool)
    recommended &= (verdicts["known"] == facts.known).to_numpy(bool)
    return found._replace(verdicts=verdicts.assign(recommended=recommended), decisions=decisions)


def seeds_explored(header: Mapping[str, Any]) -> list[int]:
    """Returns the numbers of seeds at which a decision looks at those that explored: a sweep's stages end after
    them, and they are enough for limits. It has one number at least."""
    counts = {stage["seeds"] for stage in (*header["earlier"], header["config"])}
    return sorted(seeds for seeds in counts if seeds >= FEWEST_SEEDS) or [max(counts)]


def _explored(found: Judged) -> Frames:
    """Returns the frames of a sweep without the seeds of stages that are not complete.

    The first look at a point is taken once some attack was run on each of its seeds that has not diverged:
    before all attacks are run, points can be denied. Until then two of its seeds stay, which have no limits.
    """
    if not found.sweep.unfinished:
        return found.frames
    first, begins = seeds_explored(found.sweep.header)[0], found.experiment.first_seed
    done = seeds_looked_at(found.sweep.workdir, found.sweep.header)
    seeds = {name: max(of, first) for name, of in done.items()}
    frames = looked_at(found.frames, seeds, begins)
    rows, trials, place = frames.rows, frames.trials, ["configuration", "panel"]
    run = (rows["role"] == "attack") & (rows["leak"].notna() | (rows["settled_by"] != ""))
    reached = pd.concat(
        [rows.loc[run, [*place, "seed"]], trials.loc[trials["diverged"], [*place, "seed"]]]
    )
    counts = reached.groupby(place)["seed"].nunique()
    begun = counts.index[counts < first]

    def kept(of: pd.DataFrame) -> pd.DataFrame:
        late = of["seed"] >= begins + FEWEST_SEEDS - 1
        return of[~(late & pd.MultiIndex.from_frame(of[place]).isin(begun))]

    return frames._replace(rows=kept(rows), trials=kept(trials))


def look_at(frames: Frames, header: Mapping[str, Any]) -> int:
    """Returns the number, from 1, of the look that is taken at the seeds that explored: at the most seeds that
    a point of a defense has."""
    of = frames.trials[frames.trials["defenses"] != ""]
    most = of.groupby("configuration")["seed"].nunique().max()
    return max(sum(seeds <= most for seeds in seeds_explored(header)), 1)


def looks_left(found: Judged, panel: str) -> bool:
    """Returns whether looks at the seeds that were set aside for a panel are planned and not taken."""
    folder = found.sweep.workdir / STAGE2 / panel
    header = store.header_of(folder)
    if header is None:
        return False
    return min(seeds_looked_at(folder, header).values()) < header["config"]["seeds"]


def stuck(folder: pathlib.Path) -> bool:
    """Returns whether units of a sweep were given up, or are of an attack of which this process has no code;
    False for a folder without a sweep."""
    header = store.header_of(folder)
    left = [] if header is None else store.units_of(header)
    return any(
        not can_run(unit, header or {}) or len(store.failures(folder, unit.name)) >= TRIES
        for unit in left
        if not store.finished(folder, unit.name)
    )


def _unreached(found: Judged, panel: str) -> bool:
    """Returns whether points of a sweep are not trained, or are not attacked in a panel. One that diverged on
    all seeds is not attacked."""
    planned = len(configurations(found.experiment))
    of = found.leading[found.leading["panel"] == panel]
    able = found.trials.loc[~found.trials["diverged"], "configuration"]
    waiting = of["leak"].isna() & of["configuration"].isin(able)
    return found.trials["configuration"].nunique() < planned or bool(waiting.any())


def judge_frames(
    sweep: StoredSweep,
    experiment: Config,
    frames: Frames,
    level: float = LEVEL,
    published: bool = True,
) -> Judged:
    """Returns a sweep with the verdicts on its frames, or on a part of them.

    Args:
      sweep: the stored sweep.
      experiment: the sweep's.
      frames: as ``rows.read_frames`` returns them.
      level: of each limit on which a verdict or a cost rests.
      published: whether the columns of published attacks are computed.

    Returns:
      The sweep, without any decision.
    """
    points = points_of(frames.trials)
    every = [*members(points)]
    faint = {of.configuration for of in every if defenses.TABLE[of.defense].faint(of.knobs)}
    claims = [defenses.TABLE[of.defense].remarks.epsilon(of.knobs, of.options) for of in every]
    claimed = pd.Series(claims, [of.configuration for of in every], float).groupby(level=0).min()
    about = points[["label"]].assign(
        faint=points.index.isin([*faint]), **{"epsilon claimed": claimed}
    )
    about[["approximate epsilon", "approximate delta"]] = math.nan
    for of in every:
        if pair := defenses.TABLE[of.defense].remarks.approximate(of.knobs, of.options):
            about.loc[of.configuration, ["approximate epsilon", "approximate delta"]] = pair
    verdicts = judge(frames.rows, frames.trials, frames.facts, level)
    out = verdicts.join(about, on="configuration")
    out = out.join(_known_by(out, frames))
    if published:
        of_published = _published(out, frames)
        out = out.join(of_published, on=[*of_published.index.names])
    out["representative"] = _representative(out, frames.facts)
    return Judged(sweep, experiment, *frames, out.assign(recommended=False), out.iloc[:0], {}, {})


def _published(verdicts: pd.DataFrame, frames: Frames) -> pd.DataFrame:
    """Returns the columns ``published_leak`` and ``published_leader`` by configuration, panel and K.

    A run in which an attack that is in no paper settled a published one does not show what published attacks
    read, unless another of them reads as much. On a configuration with such a run both columns are missing.
    """
    rows, place, run = frames.rows, ["configuration", "panel"], ["configuration", "panel", "seed"]
    known, adaptive = [*place, "known"], rows["adaptive"].astype(bool)
    out = judge(rows[~adaptive], frames.trials, frames.facts) if adaptive.any() else verdicts
    spared = out["at_least"].to_numpy(bool)
    out = out[[*known, "leak", "leader"]].set_index(known).add_prefix("published_")
    out.loc[spared, "published_leak"], out.loc[spared, "published_leader"] = math.nan, None
    attacked = (rows["role"] == "attack") & adaptive.any()
    for most in verdicts["known"].unique():
        of = rows[attacked & (rows["known"] <= most)]
        published = of[~of["adaptive"].astype(bool)]
        read, every = (x.groupby(run)["leak"].max() for x in (published, of))
        settled = published.loc[published["settled_by"] != "", run].drop_duplicates()
        at = pd.MultiIndex.from_frame(settled)
        hidden = settled[~(every.reindex(at) - read.reindex(at) <= LITTLE).to_numpy()]
        hidden = pd.MultiIndex.from_frame(hidden[place].drop_duplicates().assign(known=most))
        out.loc[out.index.isin(hidden), "published_leak"] = math.nan
        out.loc[out.index.isin(hidden), "published_leader"] = None
    return out


def _known_by(verdicts: pd.DataFrame, frames: Frames) -> pd.DataFrame:
    """Returns the columns ``known_by`` and ``author_says``. A defense for which no attack is listed in a panel
    has none to be tried."""
    rows = frames.rows
    scored = rows[(rows["role"] == "attack") & (rows["leak"].notna() | (rows["settled_by"] != ""))]
    variants = {
        place: dict(zip(of["label"], of["variant"]))
        for place, of in scored.groupby(["configuration", "panel"])
    }
    identities = {variant: store.identity_of(entry) for variant, entry in frames.attacks.items()}
    supported = _supported_claims(rows, verdicts, identities)

    @functools.cache
    def known(panel: str, chain: str, run: frozenset[str]) -> tuple[bool, bool]:
        table = {name: defenses.TABLE[name] for name in members_of(chain)}
        listed = {name: row for name, row in table.items() if row.known_by.get(panel)}
        of_run = [identities[variant] for variant in run]
        tried_on = all(row.known_to(panel, of_run) for row in listed.values())
        believed = all(
            _vouched_for(row) or (panel, name) in supported for name, row in listed.items()
        )
        return tried_on and believed, tried_on and not believed

    found = []
    columns = verdicts[["configuration", "panel", "defenses", "broken"]]
    for configuration, panel, chain, broken in columns.itertuples(index=False, name=None):
        of = variants.get((configuration, panel), {})
        run = frozenset(of[label] for label in {*of} - {*broken.split(", ")})
        found.append(known(panel, chain, run))
    return pd.DataFrame(found, verdicts.index, ["known_by", "author_says"])


def _vouched_for(row: defenses.DefenseRow) -> bool:
    """Returns whether this library says which attacks know a defense, and not the author of a plugin."""
    return row.origin is None or is_recorded(row)


def _supported_claims(
    rows: pd.DataFrame, verdicts: pd.DataFrame, identities: Mapping[str, Any]
) -> set[tuple[str, str]]:
    """Returns (panel, defense) of the plugins' defenses of which, on some configuration, an attack that is said
    to know the defense has a higher mean leak than all that are not."""
    chains = verdicts.drop_duplicates("configuration").set_index("configuration")["defenses"]
    scored = rows[(rows["role"] == "attack") & rows["leak"].notna()]
    place = ["configuration", "panel", "variant", "label"]
    means = scored.groupby(place, sort=False)["leak"].mean().reset_index()
    out = set()
    for (configuration, panel), of in means.groupby(["configuration", "panel"], sort=False):
        for name in members_of(chains.get(configuration, "")):
            row = defenses.TABLE[name]
            if _vouched_for(row):
                continue
            knows = np.array([row.known_to(panel, [identities[v]]) for v in of["variant"]])
            leaks = of["leak"].to_numpy()
            if leaks[knows].max(initial=-1.0) > leaks[~knows].max(initial=-1.0):
                out.add((panel, name))
    return out


def _representative(verdicts: pd.DataFrame, facts: Facts) -> pd.Series:
    """Returns which configurations represent their methods [verdicts]; undefended represents its own."""
    of = verdicts[verdicts["known"] == facts.known].assign(unattacked=verdicts["leak"].isna())
    of = of[of["undefended"] | (of["defenses"] != "")]
    first = of.sort_values(
        ["chosen", "unattacked", "validation_loss", "leak"],
        ascending=[False, True, True, True],
        kind="stable",
    )
    representatives = first.drop_duplicates(["panel", "method"]).index
    return pd.Series(verdicts.index.isin(representatives), verdicts.index)


def elsewhere(found: Judged, other: Judged) -> pd.DataFrame:
    """Returns the verdicts of another sweep of some of the same configurations, with the first sweep's numbers
    and labels of these, at its headline's number of known labels.

    Args:
      found: the first sweep.
      other: the other one; configurations that the first does not have are left out.
    """
    number_of = same_points(found.trials, other.trials)
    out = other.leading[other.leading["configuration"].isin(number_of)]
    out = out.assign(configuration=out["configuration"].map(number_of), known=found.facts.known)
    first = found.verdicts.drop_duplicates("configuration")[["configuration", "label", "method"]]
    return out.drop(columns=["label", "method"]).merge(first, on="configuration")
