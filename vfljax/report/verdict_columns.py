"""The columns that a judged sweep adds to those of ``verdict_frame``: what is said of a point beside its leak.

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

The last is False but for K = ``facts.known``, the number of known labels that the report leads with.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vfljax import defenses, store
from vfljax.plugins.described import is_recorded
from vfljax.report.frames import Facts, Frames
from vfljax.report.points import members, members_of, points_of
from vfljax.report.verdict_frame import verdict_frame
from vfljax.report.verdicts import LITTLE

OF_NO_LEVEL = [
    "label",
    "faint",
    "epsilon claimed",
    "approximate epsilon",
    "approximate delta",
    "known_by",
    "author_says",
]
"""The columns that do not depend on the level of the verdicts' limits."""


def with_columns(
    verdicts: pd.DataFrame,
    frames: Frames,
    published: bool = True,
    other: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Returns verdicts with the columns of this module.

    Args:
      verdicts: of ``verdict_frame``, on these frames.
      frames: of the sweep.
      published: whether the columns of published attacks are among them.
      other: verdicts on the same frames at another level, with these columns, of which those that depend on no
        level are taken; None computes them.
    """
    out = verdicts.join(_of_no_level(verdicts, frames) if other is None else other[OF_NO_LEVEL])
    if published:
        of_published = _published(out, frames)
        out = out.join(of_published, on=[*of_published.index.names])
    return out.assign(representative=_representative(out, frames.facts))


def _of_no_level(verdicts: pd.DataFrame, frames: Frames) -> pd.DataFrame:
    """Returns the columns ``OF_NO_LEVEL`` [verdicts]."""
    points = points_of(frames.trials)
    every = [*members(points)]
    faint = {of.configuration for of in every if defenses.TABLE[of.defense].faint(of.knobs)}
    remarks = [defenses.TABLE[of.defense].remarks(of.knobs, of.options) for of in every]
    claims = [of.epsilon for of in remarks]
    claimed = pd.Series(claims, [of.configuration for of in every], float).groupby(level=0).min()
    about = points[["label"]].assign(
        faint=points.index.isin([*faint]), **{"epsilon claimed": claimed}
    )
    about[["approximate epsilon", "approximate delta"]] = math.nan
    for of, said in zip(every, remarks, strict=True):
        if pair := said.approximate:
            about.loc[of.configuration, ["approximate epsilon", "approximate delta"]] = pair
    return (
        verdicts[["configuration"]]
        .join(about, on="configuration")
        .join(_known_by(verdicts, frames))[OF_NO_LEVEL]
    )


def _published(verdicts: pd.DataFrame, frames: Frames) -> pd.DataFrame:
    """Returns the columns ``published_leak`` and ``published_leader`` by configuration, panel and K.

    A run in which an attack that is in no paper settled a published one does not show what published attacks
    read, unless another of them reads as much. On a configuration with such a run both columns are missing.
    """
    rows, place, run = frames.rows, ["configuration", "panel"], ["configuration", "panel", "seed"]
    known, adaptive = [*place, "known"], rows["adaptive"].astype(bool)
    out = (
        verdict_frame(rows[~adaptive], frames.trials, frames.facts) if adaptive.any() else verdicts
    )
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
    if all(_vouched_for(defenses.TABLE[name]) for of in chains for name in members_of(of)):
        return set()
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
