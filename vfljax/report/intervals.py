"""Limits of figures over seeds, and of the strongest of many candidates: max_k mu_k.

The functions take ``LeakSample`` records and return one-sided limits; a pair of them, at 95 % each, is a 90 %
interval. Where spreads are learned over the points of a sweep (``spread``), the axis before the candidates is
that of the points; other leading axes are repetitions. Two rules give the limits of the strongest candidate:

- *At most* needs no correction. If every candidate's limit is below x at 95 %, then so is the limit of
  the strongest one, whichever it is (intersection-union; Berger 1982).
- *At least* needs one: the highest of K lower limits is wrong as soon as one of them is. Bonferroni's over
  K candidates holds for all correlations, but most of 40 candidates are far weaker than the strongest. So
  only *contenders* count: those whose paired difference to the highest mean has a 99 % upper limit of 0 or
  more (a first step as of Romano, Shaikh and Wolf 2014). Contenders that are equal on every seed count
  once. With 5 seeds or fewer, t at such levels is useless (28 instead of 2.9, for 40 candidates and 3
  seeds). If there are then more than two contenders, the limit is that of the folds' scores (``choosing``),
  whose mean does not exceed the strongest in expectation. Folds that pick different candidates share seeds,
  so the variance of that mean is taken to be 1/n + 1/(n - 1) of the scores' and not 1/n (Nadeau and Bengio
  2003). Twenty equal attacks fail such limits up to 3 times as often, so they are at two fifths of the risk.

The coverage of the second rule is simulated, not proven: `analysis/results/judging/`. Limits hold for new
splits and new initial weights on one data set, not for other data sets.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from vfljax.report import choosing, spread
from vfljax.report.estimates import Bools, Floats, Ints, Limits
from vfljax.report.spread import FEWEST_SEEDS, moments

LEVEL = 0.95
"""The level of every one-sided limit on which a verdict rests."""
CONTENDER_LEVEL = 0.99
"""The level at which a candidate is ruled out as the strongest. With 40 equal, independent candidates and 10
seeds, the strongest's lower limit covers .89 at level .95, .93 at .99, and .95 if no candidate is ruled out."""
FEW_SEEDS = 5
"""With at most this many seeds, more than two contenders are judged by the folds' scores. With 10 seeds these
would cover .88, where limits of the contenders cover .93."""
OF_FOLDS, OF_NOTHING = 2 / 5, 2 / 3
"""The shares of the risk at which lower limits of the folds' scores are taken, and undefended's upper limits if
there is to be nothing to protect. With them false verdicts are rare enough (`analysis/results/judging`)."""
LOWER, UPPER = -1, 1
NEAR_ONE = 0.9
"""If undefended leaks more than this, limits of a change use that no figure exceeds 1 (``most_changed``)."""
SATURATED = 0.97
"""If a reference exceeds this, no spread is learned, because points differ too much in distance to 1."""


class LeakSample(NamedTuple):
    """Figures of candidates, and the spread over seeds that results from the number of judged rows alone."""

    leaks: Floats  # [..., candidates, seeds], in [0, 1]; NaN where a seed has none
    errors: Floats  # [..., candidates], this spread
    tried: Bools  # [..., candidates]; one that was not tried is NaN and does not count
    rows: int  # m, the judged rows


def half_row(rows: int) -> float:
    """Returns the standard deviation of a figure, if half a row of ``rows`` is expected to be wrong."""
    wrong = 1 - certain(rows)
    return math.sqrt(wrong * (1 - wrong) / rows)


def certain(rows: int) -> float:
    """Returns the figure above which less than half a row of ``rows`` is wrong."""
    return 1 - 0.5 / (rows + 1)


def sample(leaks: ArrayLike, rows: int, errors: ArrayLike | None = None) -> LeakSample:
    """Returns the ``LeakSample`` of some figures, of candidates that were all tried.

    The spread due to the number of judged rows is the mean over seeds of ``errors`` (``metrics.leak_error``:
    DeLong's for an AUC, and that of C binomials for a balanced top-1). Without these it is
    sqrt(p (1 - p) / m), with m = ``rows`` and p the mean. For a balanced top-1 of C classes, m is C times the
    judged rows of the rarest class. For an AUC, m is the judged rows of the rarer class, which gives the
    largest spread that an AUC can have. The spread is never below ``half_row`` of m.

    Args:
      leaks: [..., candidates, seeds].
      rows: the number of judged rows, at least one of every class.
      errors: the standard deviation of each figure, [..., candidates, seeds], if it is known.

    Raises:
      ValueError: where there is no candidate or no seed, or ``rows`` is below 1.
    """
    leaks = np.asarray(leaks, np.float64)
    if leaks.ndim < 2 or 0 in leaks.shape[-2:]:
        raise ValueError(f"leaks are [candidates, seeds], at least one of each; here {leaks.shape}")
    if rows < 1:
        raise ValueError(f"rows={rows}: a figure needs at least one judged row of every class")
    count, mean, _ = moments((leaks * rows + 0.5) / (rows + 1))
    mean = np.where(count > 0, mean, 0.5)
    spreads = np.sqrt(mean * (1 - mean) / rows)
    if errors is not None:
        known, scored, _ = moments(np.asarray(errors, np.float64))
        spreads = np.maximum(np.where(known > 0, scored, spreads), half_row(rows))
    return LeakSample(leaks, spreads, np.ones(leaks.shape[:-1], bool), rows)


def _figure_limit(
    figures: Floats, error: Floats, rows: int, side: int, level: ArrayLike, share: ArrayLike = 0.0
) -> Floats:
    """Returns the one-sided limit [...] in [0, 1] of the mean of bounded figures [..., seeds].

    With m = ``rows`` judged rows, a figure x becomes (x m + 1/2) / (m + 1), which is never 0 or 1. Let p be
    the mean of these. Its logit moves by t times its standard error: the seeds' spread divided by p (1 - p)
    and by the root of their number. The spread is never below ``error`` [...], that of the rows. The limit
    is mapped back to the figure's scale and clipped to [0, 1]. ``share`` is that of ``_chosen``.
    With fewer than 3 figures the limits are 0 and 1; for m large and p far from 0 and 1 they are Student's.
    The mean is taken before the logit, because the mean of logits is the logit of another mean.
    """
    shrunk = (np.asarray(figures, np.float64) * rows + 0.5) / (rows + 1)
    count, mean, _ = moments(shrunk)
    enough = count >= FEWEST_SEEDS
    mean = np.where(count > 0, mean, 0.5)
    of_mean = spread.means(shrunk, error, _chosen(shrunk, error, share))
    away = special.stdtrit(of_mean.freedom, level) * np.where(enough, of_mean.error, 0.0)
    moved = special.expit(special.logit(mean) + side * away / (mean * (1 - mean)))
    limit = np.clip((moved * (rows + 1) - 0.5) / rows, 0.0, 1.0)
    return np.where(enough, limit, 1.0 if side == UPPER else 0.0)


class _Contenders(NamedTuple):
    """Which candidates may be the strongest, and how their limits are corrected for choosing among them."""

    among: Bools  # [..., candidates]
    number: Ints  # [...], number of contenders that differ
    folds: Bools  # [...], whether the folds' scores are to be used instead
    scores: Floats  # [..., seeds], of the folds, chosen on the other seeds
    medians: Ints  # [..., seeds], the candidates whose figures these scores are
    share: Floats  # [...], argument of ``_chosen`` for these scores
    error: Floats  # [...], their spread due to the judged rows alone

    def level(self, level: float) -> Floats:
        """Returns the level [..., 1] of each contender's limit so that all of them hold at ``level``."""
        return (1 - (1 - level) / np.maximum(self.number, 1))[..., None]


def _contenders(candidates: LeakSample) -> _Contenders:
    """Returns which candidates of a ``LeakSample`` [..., candidates, seeds] may be the strongest.

    A candidate is ruled out if it has fewer than 3 figures, or if its difference to the candidate with the
    highest mean is below 0 at ``CONTENDER_LEVEL``. The candidate with the highest mean always stays.
    """
    leaks, errors = candidates.leaks, candidates.errors
    count, mean, _ = moments(leaks)
    usable = count >= FEWEST_SEEDS
    leader = np.argmax(np.where(usable, mean, -np.inf), axis=-1)[..., None]
    behind = leaks - np.take_along_axis(leaks, leader[..., None], axis=-2)
    error = np.take_along_axis(errors, leader, -1)
    floor = _difference_error(errors, error, candidates.rows)
    among = usable & (spread.means(behind, floor).limit(UPPER, CONTENDER_LEVEL) >= 0)
    different = np.sum(among & ~choosing.repeated(leaks), axis=-1)
    folds = choosing.leave_one_out(leaks, certain(candidates.rows))
    seeds = np.isfinite(folds.scores).sum(-1)
    picked = np.where(folds.picks == choosing.NOBODY, folds.picks.max(-1)[..., None], folds.picks)
    return _Contenders(
        among=among,
        number=different,
        folds=(seeds <= FEW_SEEDS) & (different > 2),
        scores=folds.scores,
        medians=folds.medians,
        share=np.where(np.ptp(picked, axis=-1) > 0, 1 / np.maximum(seeds - 1, 1), 0.0),
        error=error[..., 0],
    )


def matched(local_only: LeakSample) -> LeakSample:
    """Returns the baseline that each candidate is compared with, [..., 1 or candidates, seeds].

    Args:
      local_only: the baseline, [..., 1, seeds], or [..., candidates + 1, seeds] with its own figures last.
    """
    leaks, errors, tried, rows = local_only
    if leaks.shape[-2] == 1:
        return local_only
    return LeakSample(leaks[..., :-1, :], errors[..., :-1], tried[..., :-1], rows)


def worst_limits(candidates: LeakSample, level: float = LEVEL) -> Limits:
    """Returns the limits [...] of the strongest candidate's leak, "at least" and "at most".

    The lower limit is corrected for choosing. The upper limit is the highest of all candidates' upper
    limits; it is 1 if a candidate that was tried has fewer than 3 figures.

    Args:
      candidates: [..., candidates, seeds].
      level: of each of the two limits.
    """
    leaks, errors, tried, rows = candidates
    rivals = _contenders(candidates)
    lower = _figure_limit(leaks, errors, rows, LOWER, rivals.level(level))
    of_folds = _figure_limit(
        rivals.scores, rivals.error, rows, LOWER, at_risk(OF_FOLDS, level), rivals.share
    )
    upper = np.where(tried, _figure_limit(leaks, errors, rows, UPPER, level), 0.0)
    highest = np.max(np.where(rivals.among, lower, 0.0), axis=-1)
    return Limits(np.where(rivals.folds, of_folds, highest), np.max(upper, axis=-1))


def excess_limits(candidates: LeakSample, local_only: LeakSample, level: float = LEVEL) -> Limits:
    """Returns the limits [..., points] of e, the excess of the strongest candidate over the baseline.

    Args:
      candidates: [..., points, candidates, seeds].
      local_only: the baseline (``matched``); its axis of points may have length 1.
      level: of each of the two limits.
    """
    rivals, each = _contenders(candidates), differences(candidates, local_only)
    lower = each.limit(LOWER, rivals.level(level))
    highest = np.max(np.where(rivals.among, lower, -1.0), axis=-1)
    floor = _difference_error(rivals.error, local_only.errors[..., -1], candidates.rows)
    beyond = choosing.of_picks(candidates.leaks - matched(local_only).leaks, rivals.medians)
    of_folds = spread.means(beyond, floor, _chosen(beyond, floor, rivals.share))
    lower = np.where(rivals.folds, of_folds.limit(LOWER, at_risk(OF_FOLDS, level)), highest)
    upper = np.where(candidates.tried, each.limit(UPPER, level), -1.0)
    return Limits(lower, np.max(upper, axis=-1))


def most_changed(candidates: LeakSample, undefended: LeakSample, level: float = LEVEL) -> Floats:
    """Returns the upper limit [..., points, candidates] of d, each candidate's leak less that of undefended's
    strongest. The highest of a point's limits is that of its strongest candidate.

    The two are paired by seed, but their candidates may differ. The limits are against undefended's
    contenders, corrected for choosing among these. As no figure exceeds 1, d is at most 1 less undefended's
    leak. If that leak is above ``NEAR_ONE``, the lower of these two limits is returned, each at half the risk.

    Args:
      candidates: [..., points, candidates, seeds].
      undefended: [..., 1, others, seeds].
      level: of the limit.
    """
    limit = most_beyond(candidates, undefended, level)
    count, mean, _ = moments(undefended.leaks)
    near = np.where(count >= FEWEST_SEEDS, mean, 0.0).max(-1) > NEAR_ONE
    if not np.any(near):
        return limit
    half = at_risk(0.5, level)
    least = np.asarray(worst_limits(undefended, half).lower)
    both = np.minimum(most_beyond(candidates, undefended, half), (1 - least)[..., None])
    return np.where(near[..., None], both, limit)


def most_beyond(
    candidates: LeakSample,
    others: LeakSample,
    level: float = LEVEL,
    weight: float = 1.0,
    rest: LeakSample | None = None,
) -> Floats:
    """Returns the upper limit [..., points, candidates] of mu_k - w max_j nu_j - (1 - w) b; -1 if a candidate
    was not tried. The highest of a point's limits is that of its strongest candidate.

    Args:
      candidates: mu, [..., points, candidates, seeds].
      others: nu, [..., points, others, seeds]. Each axis of points may have length 1.
      level: of the limit.
      weight: w.
      rest: b (``matched``); needed for a weight below 1.
    """
    rivals = _contenders(others)
    points = np.broadcast_shapes(candidates.leaks.shape[:-2], others.leaks.shape[:-2])
    limit = np.ones((*points, candidates.leaks.shape[-2]))

    def against(figures: Floats, error: Floats, chosen: Floats | float = 0.0) -> spread.Means:
        figures, error = weight * figures[..., None, :], weight * error[..., None]
        if rest is not None:
            baseline = matched(rest)
            figures = figures + (1 - weight) * baseline.leaks
            error = error + (1 - weight) * baseline.errors
        return _differences(candidates, figures, error, chosen)

    paired = rivals.among & ~rivals.folds[..., None]
    for j in np.flatnonzero(paired.any(axis=tuple(range(paired.ndim - 1)))):
        pairs = against(others.leaks[..., j, :], others.errors[..., j])
        upper = pairs.limit(UPPER, rivals.level(level))
        limit = np.minimum(limit, np.where(rivals.among[..., j, None], upper, 1.0))
    if np.any(rivals.folds):
        chosen = weight**2 * _chosen(rivals.scores, half_row(others.rows), rivals.share)
        of_folds = against(rivals.scores, rivals.error, chosen[..., None])
        limit = np.where(rivals.folds[..., None], of_folds.limit(UPPER, level), limit)
    return np.where(candidates.tried, limit, -1.0)


def differences(candidates: LeakSample, local_only: LeakSample) -> spread.Means:
    """Returns the means of each candidate's excess over the baseline, [..., points, candidates].

    Args:
      candidates: [..., points, candidates, seeds].
      local_only: the baseline (``matched``).
    """
    baseline = matched(local_only)
    return _differences(candidates, baseline.leaks, baseline.errors)


def _differences(
    candidates: LeakSample, figures: Floats, error: Floats, chosen: ArrayLike = 0.0
) -> spread.Means:
    """Returns means of candidates [..., points, candidates, seeds] less figures [..., points, 1 or candidates,
    seeds]. The spread is learned over the points whose mean figure is at most ``SATURATED``."""
    differences = candidates.leaks - figures
    floor = _difference_error(candidates.errors, error, candidates.rows)
    if differences.ndim == 2:  # one point without an axis
        return spread.means(differences, floor, chosen)
    count, mean, _ = moments(figures)
    pool = (count > 0) & (mean <= SATURATED)
    pool = np.broadcast_to(pool, differences.shape[:-1])
    return spread.pooled_means(differences, np.broadcast_to(floor, pool.shape), chosen, pool)


def _chosen(scores: Floats, error: ArrayLike, share: ArrayLike) -> Floats:
    """Returns what choosing adds to the variance of the mean of scores [..., seeds]: ``share`` times their
    variance, which is at least the square of ``error``."""
    return np.asarray(share) * np.maximum(moments(scores)[2], error) ** 2


def at_risk(share: float, level: float = LEVEL) -> float:
    """Returns the level at which a limit is wrong ``share`` times as often as at ``level``."""
    return 1 - share * (1 - level)


def _difference_error(errors: Floats, others: Floats, rows: int) -> Floats:
    """Returns the least spread of the difference of two figures of the same rows: that of two perfectly
    correlated figures, combined with that of half a row."""
    return np.hypot(errors - others, half_row(rows))
