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
    published_leak   the leak if only published attacks are tried, without those that know the defense; NaN
                     if one of these settled a published attack that may have read as much
    published_leader the attack that then leads
    representative   whether it represents its method in tables: the operating point that is chosen; if none is,
                     the one that loses least utility on validation rows
    recommended      whether to switch it on: at most one in a panel, see ``_recommended``
    confirms         of a verdict on fresh seeds: whether it helps as much there

The last three are False but for K = ``facts.known``, the number of known labels that the report leads with.
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
from vfljax.config import Config
from vfljax.plugins.described import is_recorded
from vfljax.report.costs import Cost
from vfljax.report.judge import judge
from vfljax.report.points import members, members_of, points_of, same_points
from vfljax.report.rows import Facts, Frames, read
from vfljax.report.verdicts import Verdict
from vfljax.store import StoredSweep
from vfljax.sweep.grid import experiment_of

CONFIRMED = "confirmed"
"""The folder within a sweep's that has the sweep of what is recommended, on fresh seeds."""
LITTLE = 0.005
"""Leaks that differ by no more are treated as equal."""


class Judged(NamedTuple):
    """A stored sweep with its verdicts; the module's docstring lists the columns."""

    sweep: StoredSweep
    experiment: Config
    rows: pd.DataFrame  # see ``report.rows``
    trials: pd.DataFrame
    facts: Facts
    attacks: Mapping[str, Mapping[str, Any]]
    verdicts: pd.DataFrame
    confirmed: pd.DataFrame  # verdicts on fresh seeds, by the sweep's numbers of configurations

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
    """Returns a stored sweep with its verdicts, and those of the folder of fresh seeds if that is finished."""
    found = judge_frames(sweep, experiment, read(sweep, experiment))
    folder = sweep.workdir / CONFIRMED
    if (folder / "sweep.json").exists():
        fresh = store.load(folder)
        if not fresh.unfinished:
            again = judged(fresh, experiment_of(fresh))
            confirmed = on_fresh_seeds(found.verdicts, found.trials, again)
            return found._replace(confirmed=confirmed)
    return found


def judge_frames(sweep: StoredSweep, experiment: Config, frames: Frames) -> Judged:
    """Returns a sweep with the verdicts on its frames, or on a part of them.

    Args:
      sweep: the stored sweep.
      experiment: the sweep's.
      frames: as ``rows.read`` returns them.
    """
    points = points_of(frames.trials)
    every = [*members(points)]
    faint = {of.configuration for of in every if defenses.TABLE[of.defense].faint(of.knobs)}
    claims = [defenses.TABLE[of.defense].remarks.epsilon(of.knobs, of.options) for of in every]
    claimed = pd.Series(claims, [of.configuration for of in every], float).groupby(level=0).min()
    about = points[["label"]].assign(
        faint=points.index.isin([*faint]), **{"epsilon claimed": claimed}
    )
    verdicts = judge(frames.rows, frames.trials, frames.facts)
    out = verdicts.join(about, on="configuration")
    out = out.join(_known_by(out, frames))
    published = _published(out, frames)
    out = out.join(published, on=[*published.index.names])
    out["representative"] = _representative(out, frames.facts)
    out = out.assign(recommended=_recommended(out, frames.facts), confirms=False)
    return Judged(sweep, experiment, *frames, out, out.iloc[:0])


def _published(verdicts: pd.DataFrame, frames: Frames) -> pd.DataFrame:
    """Returns the columns ``published_leak`` and ``published_leader`` by configuration, panel and K.

    A run in which an attack that is in no paper settled a published one does not show what published attacks
    read, unless another of them reads as much. On a configuration with such a run both columns are missing.
    """
    rows, place, run = frames.rows, ["configuration", "panel"], ["configuration", "panel", "seed"]
    known, adaptive = [*place, "known"], rows["adaptive"].astype(bool)
    out = judge(rows[~adaptive], frames.trials, frames.facts) if adaptive.any() else verdicts
    out = out[[*known, "leak", "leader"]].set_index(known).add_prefix("published_")
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


def _recommended(verdicts: pd.DataFrame, facts: Facts) -> pd.Series:
    """Returns which configurations to switch on [verdicts], at most one in a panel, at K = ``facts.known``.

    A candidate is the operating point of its method, which keeps the utility on validation rows; its verdict
    helps; all attacks on it have figures, and one that knows it was tried; it does not cost too much on test
    rows; and the upper limit of its leak is at most the goal's. Of these the one of lowest mean leak is
    recommended, then of lowest upper limit of e, then of lowest loss.
    """
    able = [verdict.value for verdict in Verdict if verdict.helps]
    candidates = verdicts[
        verdicts["chosen"]
        & verdicts["verdict"].isin(able)
        & verdicts["known_by"]
        & ~verdicts["incomplete"]  # an attack that was not reached may be the one that reads most
        & (verdicts["cost"] != Cost.TOO_MUCH)
        & (verdicts["leak_upper"] <= facts.goal.max_leak + 1e-12)
        & (verdicts["known"] == facts.known)
    ]
    first = candidates.sort_values(["leak", "e_upper", "validation_loss"], kind="stable")
    best = first.drop_duplicates("panel").index
    return pd.Series(verdicts.index.isin(best), verdicts.index)


def on_fresh_seeds(verdicts: pd.DataFrame, trials: pd.DataFrame, fresh: Judged) -> pd.DataFrame:
    """Returns the verdicts of a sweep on fresh seeds, with the first sweep's numbers and labels of
    configurations. ``confirms`` is whether a verdict helps at least as much as the first one, and the utility
    is kept on validation rows.

    Args:
      verdicts: of the first sweep.
      trials: of the first sweep.
      fresh: the sweep on fresh seeds. Configurations that the first does not have are left out.
    """
    number_of = same_points(trials, fresh.trials)
    out = fresh.leading[fresh.leading["configuration"].isin(number_of)]
    out = out.assign(configuration=out["configuration"].map(number_of), known=fresh.facts.known)
    first = verdicts.drop_duplicates(["configuration", "panel"])  # of the headline's K
    first = first[["configuration", "panel", "label", "verdict"]]
    out = out.drop(columns="label").merge(
        first, on=["configuration", "panel"], suffixes=("", "_first")
    )
    able = [verdict.value for verdict in Verdict if verdict.helps]
    rank = {verdict: place for place, verdict in enumerate(able)}
    as_strong = out["verdict"].map(rank) <= out["verdict_first"].map(rank)
    return out.assign(confirms=as_strong & out["qualifies"]).drop(columns="verdict_first")
