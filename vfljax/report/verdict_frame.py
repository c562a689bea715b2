"""The frame of all verdicts on a sweep, from the frames of ``report.frames``.

``verdicts`` has the rule and ``costs`` that of the costs; this module brings the frames into arrays and the
results into one frame, of which all that a report shows is made. Beside these rules:

- An attack is *broken* on a configuration if on every seed with a figure it is exactly chance, or far below. It
  takes no part there, nor in undefended beside it, and does not count as tried.
- In a run, all attacks of the largest leak lead; so may the local-only learners. The attack that leads on most
  seeds leads the configuration; of several, the one of highest mean leak, then the first.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vfljax.report.costs import by_seed, costs
from vfljax.report.frames import Facts
from vfljax.report.limits import LEVEL, Bools, Floats, Limits, half_row, limits
from vfljax.report.verdicts import VERDICTS, Verdict, compare, verdict_codes, verdict_seeds

BELOW_CHANCE = 4.0
"""From so many standard deviations of its rows on, an attack is far below chance."""
NO_UNDEFENDED = -1
"""The number in place of undefended's configuration in a panel that has none."""
LOCAL_ONLY_LEADER = "local-only"
"""The leader of runs in which no attack reads more than the local-only learners."""


def verdict_frame(
    rows: pd.DataFrame, trials: pd.DataFrame, facts: Facts, level: float = LEVEL
) -> pd.DataFrame:
    """Returns one row for each configuration, panel and K.

    K is each positive number of labels that attacks know, descending, or 0 if none knows any. A panel without
    an undefended configuration has no verdicts and no costs. The columns:

        configuration, panel, known (K), method, defenses, undefended
        leak, e, d, c        means over seeds, each with _lower and _upper
        undefended_e         of undefended with all its attacks, likewise
        verdict              a value of ``Verdict``
        verdict_seeds        the seeds that would decide it; see ``verdicts.verdict_seeds``
        seeds, paired_seeds  the seeds of e, or of leak if e has none, and those of d
        seeds_left_out       the panel's other seeds: diverged, not trained, or without any attack's figure
        at_least             whether dear attacks were not run, because cheap ones have rejected it: all that is
                             said of what leaks is then a lower bound, and it counts as incomplete. Dear attacks
                             may read more of undefended too, so that d and c have no finite limits
        incomplete, missing  whether attacks lack figures, and which: labels, joined by ", "
        broken               labels likewise
        variants, families   how many attacks were tried, by label and by name
        tried                the names of the latter, a frozenset
        broken_families      those of the broken attacks, likewise
        leader, leader_seeds the attack that leads, and on how many seeds
        reached              the mean leak of the strongest attack in each run, whatever the learners read
        local_only           the mean leak of the best local-only learner in each run; chance with K = 0

    and those of ``costs.costs``, then ``chosen``: whether it is the operating point of its method in its panel.
    That is, of those that ``qualifies``, one that is not incomplete before others, then the one of lowest mean
    leak, then of lowest upper limit of e (where the local-only learners lead, leaks are equal), then of lowest
    loss. One that is undefended counts only if all of its method are.

    Args:
      rows: ``frames.Frames.rows``.
      trials: ``frames.Frames.trials``.
      facts: of the sweep.
      level: of each limit on which a verdict or a cost rests.
    """
    attacks, learners, rejected = (
        rows[rows["role"] == role] for role in ("attack", "learner", "rejected")
    )
    known = sorted({int(k) for k in attacks["known"].unique()} - {0}, reverse=True) or [0]
    parts = []
    for panel, of_panel in trials.groupby("panel", sort=False):
        of_rejected = {*rejected.loc[rejected["panel"] == panel, "configuration"]}
        of_attacks = attacks[attacks["panel"] == panel]
        table = _panel(of_attacks, of_panel, str(panel), facts, of_rejected)
        order = table.methods.index
        cost = costs(of_panel[of_panel["federation"] == panel], order, facts, level)
        found = (_of_known(table, learners, k, facts, level).join(cost) for k in known)
        # without an undefended configuration the first row is of none, and is left out
        parts += [verdicts.loc[order[not table.has_undefended :]] for verdicts in found]
    if not parts:
        return pd.DataFrame()
    verdicts = pd.concat(parts, ignore_index=True)
    return verdicts.assign(chosen=_chosen(verdicts))


def _chosen(verdicts: pd.DataFrame) -> pd.Series:
    keys = ["panel", "known", "method"]
    attacked = verdicts[(verdicts["defenses"] != "") & verdicts["leak"].notna()]
    same = attacked["verdict"] == Verdict.IS_UNDEFENDED
    counted = ~same | same.groupby([attacked[key] for key in keys]).transform("all")
    among = attacked[counted & attacked["qualifies"]].sort_values(
        ["incomplete", "leak", "e_upper", "validation_loss"], kind="stable"
    )
    return pd.Series(verdicts.index.isin(among.drop_duplicates(keys).index), verdicts.index)


class _Panel(NamedTuple):
    """A panel as arrays [points, attacks, seeds]; the first point is undefended, or has no figures."""

    name: str
    methods: pd.DataFrame  # [points], by configuration
    has_undefended: bool
    seeds: NDArray
    about: pd.DataFrame  # [attacks], by label
    leaks: Floats  # NaN without a figure, and of broken attacks
    had: Bools  # scored or settled, and not broken
    missing: Bools  # [points, attacks], planned without a figure
    broken: Bools  # [points, attacks]
    same: Bools  # [points], equal to undefended
    rejected: Bools  # [points], without dear attacks


def _panel(
    attacks: pd.DataFrame, trials: pd.DataFrame, name: str, facts: Facts, rejected: Collection[int]
) -> _Panel:
    """Returns the arrays of a panel, whose rows of attacks and trials are given."""
    methods = trials.drop_duplicates("configuration").set_index("configuration")
    bare = methods.index[(methods["defenses"] == "").to_numpy()]
    first = bare.min() if len(bare) else NO_UNDEFENDED
    order = pd.Index([first, *sorted(set(methods.index) - {first})])
    seeds = np.sort(trials["seed"].unique())
    attacks = attacks[~attacks["trial"].isin(trials.loc[trials["diverged"], "trial"])]
    places, labels = pd.factorize(attacks["label"])
    at = (
        order.get_indexer(attacks["configuration"]),
        places,
        np.searchsorted(seeds, attacks["seed"]),
    )
    shape = len(order), len(labels), len(seeds)
    leaks, planned, settled = np.full(shape, np.nan), np.zeros(shape, bool), np.zeros(shape, bool)
    leaks[at], planned[at] = attacks["leak"], True
    settled[at] = attacks["settled_by"].to_numpy() != ""
    had, broken = np.isfinite(leaks) | settled, _broken(leaks, facts)
    return _Panel(
        name=name,
        methods=methods[["method", "defenses"]].reindex(order),
        has_undefended=len(bare) > 0,
        seeds=seeds,
        about=attacks.drop_duplicates("label").set_index("label").loc[labels],
        leaks=np.where(broken[..., None], np.nan, leaks),
        had=had & ~broken[..., None],
        missing=(planned & ~had).any(-1),
        broken=broken,
        same=_same(leaks, planned & ~settled, trials[trials["federation"] == name], order, seeds),
        rejected=order.isin([*rejected]),
    )


def _same(
    leaks: Floats, planned: Bools, trials: pd.DataFrame, order: pd.Index, seeds: NDArray
) -> Bools:
    """Returns which points [points] have undefended's utilities, and its leaks of shared attacks.

    Args:
      leaks: [points, attacks, seeds].
      planned: which were to be scored, likewise; NaN if that failed.
      trials: of the honest federation.
      order: the configurations.
      seeds: in ascending order.
    """
    shared = planned & planned[:1]
    same = (_equal(leaks) | ~shared).all((1, 2)) & (shared & np.isfinite(leaks)).any((1, 2))
    trained = by_seed(trials.assign(trained=1.0), "trained", order, seeds) == 1
    for name in ("test_utility", "validation_utility"):
        same &= (_equal(by_seed(trials, name, order, seeds)) | ~trained).all(-1)
    return same


def _broken(leaks: Floats, facts: Facts) -> Bools:
    """Returns which attacks [points, attacks] show nothing but that they failed."""
    chance = facts.chance
    far = BELOW_CHANCE * facts.task.null_spread(facts.classes, facts.scored_rows)
    missing = np.isnan(leaks)
    constant = (missing | (np.abs(leaks - chance) < 1e-6)).all(-1)
    below = (missing | (leaks < chance - far)).all(-1)
    return (constant | below) & ~missing.all(-1)


def _of_known(
    panel: _Panel, learners: pd.DataFrame, known: int, facts: Facts, level: float
) -> pd.DataFrame:
    """Returns a row for each configuration, without costs, indexed by configuration."""
    fair = (panel.about["known"] <= known).to_numpy()
    about, leaks, had = panel.about[fair], panel.leaks[:, fair], panel.had[:, fair]
    missing, broken = panel.missing[:, fair], panel.broken[:, fair]
    matched, most = _learners(learners, about, panel.seeds, known, facts)
    least = half_row(facts.scored_rows)
    compared = compare(leaks, had, matched[None], most[None], least, level)
    compared = compared._replace(
        change=_unlimited(compared.change, panel.rejected),
        rest=_unlimited(compared.rest, panel.rejected),
    )
    complete, tried = ~missing.any(-1) & ~panel.rejected, had.any(-1)
    codes = verdict_codes(compared, panel.same, complete)
    families = pd.get_dummies(about["attack"], dtype=np.float32).to_numpy()
    columns = {
        "configuration": panel.methods.index,
        "panel": panel.name,
        "known": known,
        "method": panel.methods["method"],
        "defenses": panel.methods["defenses"],
        "undefended": np.arange(len(leaks)) == 0,
    }
    of = {"leak": compared.leak, "e": compared.excess, "d": compared.change, "c": compared.rest}
    for name, each in {**of, "undefended_e": compared.undefended}.items():
        for title, values in each.columns(name).items():
            columns[title] = np.broadcast_to(values, len(leaks))
    columns |= {
        "verdict": np.array([verdict.value for verdict in VERDICTS], object)[codes],
        "verdict_seeds": verdict_seeds(compared, codes, level),
        # without a baseline e has none
        "seeds": np.where(compared.excess.count, compared.excess.count, compared.leak.count),
        "paired_seeds": compared.change.count,
        "seeds_left_out": len(panel.seeds) - compared.leak.count,
        "at_least": panel.rejected,
        "incomplete": ~complete,
        "missing": _joined(missing, about.index),
        "broken": _joined(broken, about.index),
        "variants": tried.sum(-1),
        "families": (tried.astype(np.float32) @ families > 0).sum(-1),
        "tried": [frozenset(about["attack"][of]) for of in tried],
        "broken_families": [frozenset(about["attack"][of]) for of in broken],
        **_leaders(leaks, most, about.index),
    }
    return pd.DataFrame(columns, panel.methods.index)


def _unlimited(of: Limits, where: Bools) -> Limits:
    """Returns limits [points] that exclude nothing at some of the points."""
    has = where & np.isfinite(of.upper)  # too few seeds stay without limits
    return of._replace(
        lower=np.where(has, -np.inf, of.lower), upper=np.where(has, np.inf, of.upper)
    )


def _learners(
    learners: pd.DataFrame, about: pd.DataFrame, seeds: NDArray, known: int, facts: Facts
) -> tuple[Floats, Floats]:
    """Returns the arguments ``matched`` and ``most`` of ``verdicts.runs``, [attacks, seeds] both."""
    shape = len(about), len(seeds)
    if not known:
        return np.full(shape, facts.chance), np.full(shape, facts.chance)
    learners = learners[learners["known"] == known]
    at = [about[name].repeat(len(seeds)) for name in ("attackers", "draws")]
    at += [np.tile(seeds, len(about))]
    by_draws = learners.groupby(["attackers", "draws", "seed"])["leak"].max()
    by_attackers = learners.groupby(["attackers", "seed"])["leak"].max()
    matched = by_draws.reindex(pd.MultiIndex.from_arrays(at))
    most = by_attackers.reindex(pd.MultiIndex.from_arrays(at[::2]))
    return matched.to_numpy().reshape(shape), most.to_numpy().reshape(shape)


def _equal(values: Floats) -> Bools:
    """Returns where values [points, ...] equal the first point's; NaN equals NaN."""
    return (values == values[:1]) | (np.isnan(values) & np.isnan(values[:1]))


def _joined(marked: Bools, labels: pd.Index) -> NDArray[np.object_]:
    """Returns the labels that are marked in each point, [points, attacks], joined by ", "."""
    out = np.full(len(marked), "", object)
    for point in np.flatnonzero(marked.any(-1)):
        out[point] = ", ".join(labels[marked[point]])
    return out


def _leaders(leaks: Floats, most: Floats, labels: pd.Index) -> dict[str, NDArray]:
    """Returns the columns that name the leading attacks, for leaks [points, attacks, seeds]."""
    scored = np.isfinite(leaks)
    local = np.fmax.reduce(np.where(scored, most, np.nan), axis=-2, keepdims=True, initial=np.nan)
    every = np.concatenate([leaks, local], axis=-2)
    names = np.array([*labels, LOCAL_ONLY_LEADER], object)
    highest = np.fmax.reduce(every, axis=-2, keepdims=True)
    leads = every == highest  # NaN is no leader
    # rounded, so that equal figures tie whichever seeds they come from
    count, mean = leads.sum(-1), np.round(limits(every).mean, 12)
    place = np.broadcast_to(np.arange(count.shape[-1]), count.shape)
    first = np.lexsort((place, -mean, -count), axis=-1)[:, 0]  # NaN is last
    seeds = count.max(-1)
    return {
        "leader": np.where(seeds > 0, names[first], ""),
        "leader_seeds": seeds,
        "reached": limits(np.fmax.reduce(leaks, axis=-2, initial=np.nan)).mean,
        "local_only": limits(local[:, 0]).mean,
    }
