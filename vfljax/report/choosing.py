"""Attacks chosen on some seeds and scored on another, and operating points that keep the utility.

Figures are leaks [candidates, seeds], NaN where a seed has none. A *fold* chooses on the mean over all seeds
but one and scores on that one, so nothing is chosen where it is scored. The mean score is unbiased for what
the folds picked. In expectation it is at most the leak of the strongest candidate, because a fold may pick
another one. It never exceeds the highest mean over all seeds if every candidate has a figure on every seed.
If several candidates read all rows of the other seeds, a fold cannot tell them apart, and scores their median.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from vfljax.report.estimates import Bools, Floats, Ints

MEAN_LOSS = 0.02
"""The mean validation utility that an operating point may lose if the federation's gain is not known."""
LOSS_LEVEL = 0.90
"""The level of the one-sided upper limit of the loss. The limit may be twice as large as the mean may be."""
NOBODY = -1


class Folds(NamedTuple):
    """The pick of each fold and its score; leading axes are repetitions."""

    scores: Floats  # [..., seeds], on the seed left out; NaN without a pick
    picks: Ints  # [..., seeds], candidates; ``NOBODY`` where none could be chosen or scored
    medians: Ints  # [..., seeds], the candidates whose figures the scores are; ``NOBODY`` likewise


def leave_one_out(leaks: ArrayLike, certain: float = 1.0) -> Folds:
    """Chooses the strongest candidate without each seed in turn, and scores it on that seed.

    The pick has the highest mean over the other seeds, among the candidates that have a figure on this
    one: an attacker whose attack diverges notices, and takes the next. The first of equal ones is
    chosen. With one seed there is nothing to choose on, and no score.

    Args:
      leaks: [..., candidates, seeds].
      certain: candidates whose mean over the other seeds is at least this are not told apart. The score
        is the (lower) median of their figures, and the pick is still the first with the highest mean.
    """
    leaks = np.asarray(leaks, np.float64)
    seeds = range(leaks.shape[-1])
    # [..., K, seeds], of all seeds but one
    means = np.stack([_means(np.delete(leaks, seed, axis=-1)) for seed in seeds], axis=-1)
    scored = np.where(np.isfinite(leaks), means, -np.inf)
    picks = np.argmax(scored, axis=-2)
    picks = np.where(np.max(scored, axis=-2) > -np.inf, picks, NOBODY)
    chosen = np.arange(leaks.shape[-2])[:, None] == picks[..., None, :]
    alike = (scored >= certain) | chosen
    order = np.argsort(np.where(alike, leaks, np.inf), axis=-2, kind="stable")
    middle = np.maximum(alike.sum(-2, keepdims=True) - 1, 0) // 2
    medians = np.take_along_axis(order, middle, axis=-2)[..., 0, :]
    medians = np.where(picks == NOBODY, NOBODY, medians)
    return Folds(of_picks(leaks, medians), picks, medians)


def of_picks(figures: Floats, picks: Ints) -> Floats:
    """Returns each seed's figure of its pick, NaN where there is none.

    Args:
      figures: [..., candidates, seeds].
      picks: candidates [..., seeds].
    """
    at = np.take_along_axis(figures, np.maximum(picks, 0)[..., None, :], axis=-2)[..., 0, :]
    return np.where(picks == NOBODY, np.nan, at)


def repeated(leaks: Floats) -> Bools:
    """Returns which candidates equal an earlier one on every seed, for leaks [..., candidates, seeds]."""
    values = np.where(np.isnan(leaks), -1.0, leaks)
    equal = np.all(values[..., :, None, :] == values[..., None, :, :], axis=-1)  # [..., K, K]
    earlier = np.tril(np.ones(equal.shape[-2:], bool), -1)
    return np.any(equal & earlier, axis=-1)


def strongest(leaks: ArrayLike) -> Ints:
    """Returns the candidate [...] with the highest mean over its seeds; ``NOBODY`` if none has a figure."""
    means = _means(np.asarray(leaks, np.float64))
    return np.where(np.max(means, axis=-1) > -np.inf, np.argmax(means, axis=-1), NOBODY)


def accuracy_losses(accuracies: ArrayLike, undefended: ArrayLike, majority: float) -> Floats:
    """Returns the utility that operating points lose, [..., seeds].

    Args:
      accuracies: utility [..., seeds]; NaN, where training diverged, counts as a guess.
      undefended: [seeds], likewise.
      majority: the utility of a guess.
    """
    every = (np.asarray(x, float) for x in (accuracies, undefended))
    ours, others = (np.where(np.isfinite(x), x, majority) for x in every)
    return others - ours


def keeps_accuracy(losses: ArrayLike, max_cost: float = MEAN_LOSS) -> Bools:
    """Returns whether losses are small by their mean, and by its upper t-limit at ``LOSS_LEVEL``.

    With one seed there is no limit, and its loss decides. Without seeds the answer is no.

    Args:
      losses: [..., seeds].
      max_cost: the most that the mean may be; the limit may be twice as much.
    """
    losses = np.asarray(losses, np.float64)
    count = losses.shape[-1]
    if count == 0:
        return np.zeros(losses.shape[:-1], bool)
    mean, most = losses.mean(-1), max_cost + 1e-12  # in floats .90 - .88 is above .02
    if count == 1:
        return mean <= most
    error = losses.std(-1, ddof=1) / np.sqrt(count)
    limit = mean + special.stdtrit(count - 1, LOSS_LEVEL) * error
    return (mean <= most) & (limit <= 2 * most)


def _means(leaks: Floats) -> Floats:
    """Returns the mean [..., candidates] over the seeds with a figure; -inf if there are none."""
    present = np.isfinite(leaks)
    count = present.sum(-1)
    total = np.where(present, leaks, 0.0).sum(-1)
    # rounded, so that equal figures tie whichever seeds they come from
    return np.where(count > 0, np.round(total / np.maximum(count, 1), 12), -np.inf)
