"""Attacks and operating points chosen on some seeds and scored on another.

An operating point is one configuration of a method. Figures are leaks [candidates, seeds] of one point, or
[points, candidates, seeds], NaN where a seed has none. A *fold* chooses on the mean over all seeds but one
and scores on that one, so nothing is chosen where it is scored. With fewer than 3 seeds the choice is made on
other rows of the same seeds (``by_halves``), which flatters: halves of the same rows err together.

The mean score is unbiased for what the folds picked. It is no more than the strongest candidate leaks,
for a fold may pick another one: that shortfall grows with the seeds' spread and is simulated
(`analysis/results/judging/`). It is also never more than the highest mean over all seeds, where every
candidate has every seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]

MEAN_LOSS = 0.02
"""The most validation accuracy that an operating point may cost as the mean over seeds; ``config.goal`` may set
another."""
LOSS_LEVEL = 0.90
"""The level of the upper limit of that loss, one-sided, which may be twice as much."""
FEWEST_SEEDS = 3
"""With fewer seeds nothing is chosen by folds, no figure has limits, and nothing is judged."""
NOBODY = -1


class Folds(NamedTuple):
    """What each fold chose and what that scored; leading axes are repetitions."""

    scores: Floats  # [..., seeds], of the pick on the seed left out; NaN without a pick
    picks: Ints  # [..., seeds], candidates; ``NOBODY`` where none could be chosen or scored
    expected: Floats  # [..., seeds], the highest mean over the other seeds; NaN without one


class Chosen(NamedTuple):
    """An operating point and an attack on it, by index; ``NOBODY`` where no point keeps the accuracy and
    has figures. Leading axes are repetitions."""

    scores: Floats  # [..., seeds], NaN where a fold chose no point or its point has no figure
    points: Ints  # [..., seeds], of each fold
    attacks: Ints  # [..., seeds], of each fold
    point: Ints  # [...], on all seeds: the one to be named ...
    attack: Ints  # [...]
    folds: Ints  # [...], ... and how many folds chose that point


def leave_one_out(leaks: ArrayLike) -> Folds:
    """The strongest candidate of ``leaks`` [..., candidates, seeds], chosen without each seed in turn.

    A seed is scored by the candidate of the highest mean over the other seeds, of those that have a
    figure on it: an attacker whose attack diverges sees that, and takes the next. The first of equal
    ones is chosen. With one seed there is nothing to choose on, and no score.
    """
    leaks = np.asarray(leaks, np.float64)
    means = _means_without(leaks)  # [..., K, seeds]
    scored = np.where(np.isfinite(leaks), means, -np.inf)
    picks = np.argmax(scored, axis=-2)
    scores = np.take_along_axis(leaks, picks[..., None, :], axis=-2)[..., 0, :]
    chosen = np.max(scored, axis=-2) > -np.inf
    expected = np.max(means, axis=-2)
    return Folds(
        np.where(chosen, scores, np.nan),
        np.where(chosen, picks, NOBODY),
        np.where(np.isfinite(expected), expected, np.nan),
    )


def by_halves(leaks: ArrayLike, selects: ArrayLike) -> Folds:
    """The candidate of the highest mean of ``selects`` [candidates, seeds], scored by its ``leaks``.

    Both are of the same attacks, on two halves of each seed's rows. Every seed has the same pick, which
    is ``NOBODY`` where no candidate has a figure.
    """
    leaks, selects = np.asarray(leaks, np.float64), np.asarray(selects, np.float64)
    means = _means(selects)
    pick, seeds = int(np.argmax(means)), leaks.shape[-1]
    if means[pick] == -np.inf:
        return Folds(np.full(seeds, np.nan), np.full(seeds, NOBODY), np.full(seeds, np.nan))
    return Folds(leaks[pick], np.full(seeds, pick), np.full(seeds, means[pick]))


def enough_seeds(leaks: ArrayLike) -> bool:
    """Whether ``leaks`` [..., seeds] have figures on ``FEWEST_SEEDS`` seeds."""
    present = np.isfinite(np.asarray(leaks, np.float64))
    return int(present.any(axis=tuple(range(present.ndim - 1))).sum()) >= FEWEST_SEEDS


def strongest(leaks: ArrayLike) -> Ints:
    """The candidate of the highest mean over all its seeds, [...]; ``NOBODY`` without any figure."""
    means = _means(np.asarray(leaks, np.float64))
    return np.where(np.max(means, axis=-1) > -np.inf, np.argmax(means, axis=-1), NOBODY)


def choose_operating_point(
    leaks: ArrayLike, losses: ArrayLike, max_cost: float = MEAN_LOSS
) -> Chosen:
    """Returns the point that keeps the accuracy and whose strongest attack leaks least.

    Each fold chooses point and attack on the other seeds, the accuracy included. With one point that keeps the
    accuracy in every fold this is ``leave_one_out``. The figures are of a minimum over points of maxima over
    attacks, so they may lie on either side of the best point's strongest attack; for what was picked they are
    unbiased.

    Args:
      leaks: [..., points, candidates, seeds], all NaN where a point was not given an attack.
      losses: [..., points, seeds] of ``accuracy_losses``.
      max_cost: of ``keeps_accuracy``.
    """
    leaks, losses = np.asarray(leaks, np.float64), np.asarray(losses, np.float64)
    of_point = leave_one_out(leaks)
    kept = [keeps_accuracy(np.delete(losses, s, axis=-1), max_cost) for s in range(leaks.shape[-1])]
    folds = _least(np.where(np.stack(kept, axis=-1), of_point.expected, np.nan))
    worst = np.max(_means(leaks), axis=-1)
    worst = np.where(keeps_accuracy(losses, max_cost) & np.isfinite(worst), worst, np.nan)
    point = _least(worst[..., None])
    chosen = folds != NOBODY
    return Chosen(
        np.where(chosen, _at(of_point.scores, folds), np.nan),
        folds,
        np.where(chosen, _at(of_point.picks, folds), NOBODY),
        point[..., 0],
        np.where(point == NOBODY, NOBODY, _at(strongest(leaks)[..., None], point))[..., 0],
        np.sum((folds == point) & chosen, axis=-1),
    )


def operating_point_by_halves(
    leaks: ArrayLike, selects: ArrayLike, losses: ArrayLike, max_cost: float = MEAN_LOSS
) -> Chosen:
    """``choose_operating_point`` for fewer than 3 seeds: point and attack are chosen on ``selects``
    [points, candidates, seeds] and scored by ``leaks``. No fold chooses anything."""
    leaks, losses = np.asarray(leaks, np.float64), np.asarray(losses, np.float64)
    of_point = [by_halves(*pair) for pair in zip(leaks, np.asarray(selects, np.float64))]
    expected = np.stack([folds.expected for folds in of_point])
    points = _least(np.where(keeps_accuracy(losses, max_cost)[:, None], expected, np.nan))
    scores = _at(np.stack([folds.scores for folds in of_point]), points)
    attacks = _at(np.stack([folds.picks for folds in of_point]), points)
    chosen = points != NOBODY
    attacks = np.where(chosen, attacks, NOBODY)
    none = np.zeros((), np.intp)
    return Chosen(np.where(chosen, scores, np.nan), points, attacks, points[0], attacks[0], none)


def accuracy_losses(accuracies: ArrayLike, undefended: ArrayLike, majority: float) -> Floats:
    """What an operating point costs, [..., seeds]: ``undefended`` [seeds] less ``accuracies`` [..., seeds], on
    validation rows. A seed that diverged (NaN) guesses the class of share ``majority``."""
    accuracies, undefended = np.asarray(accuracies, float), np.asarray(undefended, float)
    return np.where(np.isfinite(undefended), undefended, majority) - np.where(
        np.isfinite(accuracies), accuracies, majority
    )


def keeps_accuracy(losses: ArrayLike, max_cost: float = MEAN_LOSS) -> Bools:
    """Whether ``losses`` [..., seeds] are small: a mean of at most ``max_cost``, and its t-limit at
    ``LOSS_LEVEL`` at most twice that. Of one seed there is no limit, and its loss decides; of no seed
    nothing is known to be kept."""
    losses = np.asarray(losses, np.float64)
    count = losses.shape[-1]
    if count == 0:
        return np.zeros(losses.shape[:-1], bool)
    mean = losses.mean(-1)
    if count == 1:
        return _at_most(mean, max_cost)
    error = losses.std(-1, ddof=1) / np.sqrt(count)
    limit = mean + special.stdtrit(count - 1, LOSS_LEVEL) * error
    return _at_most(mean, max_cost) & _at_most(limit, 2 * max_cost)


def _at_most(values: Floats, bound: float) -> Bools:
    return values <= bound + 1e-12  # .90 - .88 is .02 and a bit


def _means(leaks: Floats) -> Floats:
    """The mean over the seeds that there are, [..., candidates]; -inf without any."""
    present = np.isfinite(leaks)
    count = present.sum(-1)
    total = np.where(present, leaks, 0.0).sum(-1)
    # rounded, so that equal figures tie whichever seeds they come from
    return np.where(count > 0, np.round(total / np.maximum(count, 1), 12), -np.inf)


def _means_without(leaks: Floats) -> Floats:
    """``_means`` of all seeds but one, [..., candidates, seeds]."""
    seeds = range(leaks.shape[-1])
    return np.stack([_means(np.delete(leaks, seed, axis=-1)) for seed in seeds], axis=-1)


def _least(values: Floats) -> Ints:
    """The point of the least of ``values`` [..., points, seeds]; ``NOBODY`` where all are NaN."""
    least = np.argmin(np.where(np.isnan(values), np.inf, values), axis=-2)
    return np.where(np.all(np.isnan(values), axis=-2), NOBODY, least)


def _at(values: NDArray, points: Ints) -> NDArray:
    """``values`` [..., points, seeds] of each seed's point, [..., seeds]."""
    return np.take_along_axis(values, np.maximum(points, 0)[..., None, :], axis=-2)[..., 0, :]
