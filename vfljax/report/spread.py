"""Means of paired differences over seeds, whose spread is learned from all points of a sweep.

The differences of an attack to a reference, at all points (configurations) of a sweep, are split into the
effect of the seed on all points, and the rest. The variances of the rest are moderated by their common prior
(Smyth, "Linear models and empirical Bayes methods", 2004, section 6). A point's is (d0 s0^2 + d s^2) / (d0 +
d), with s^2 its own variance of d = n - 1 degrees of freedom. The prior's s0^2 and d0 are fitted to the
logarithms of all points' variances. The variances of both parts are added, with Satterthwaite's degrees of
freedom. Nothing is pooled over attacks, because their spreads differ.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from vfljax.report.estimates import Bools, Floats, Ints

FEWEST_SEEDS = 3
"""With fewer seeds nothing is chosen by folds, no figure has limits, and nothing is judged."""
POOLED_POINTS = 8
"""With fewer points that have figures on every seed, no spread is learned."""
OWN_SPREAD_LEVEL = 0.99
"""A point keeps its own variance if its ratio to the prior's is beyond this quantile of F."""
MOST_PRIOR = 30.0
"""The most degrees of freedom that the prior may have: its estimate is infinite where the variances of few
points happen to be alike."""


class Means(NamedTuple):
    """Means [...] of paired differences in [-1, 1], with what Student's t needs."""

    value: Floats
    error: Floats  # standard error of the mean; infinite with fewer than 3 differences
    freedom: Floats  # degrees of freedom of the error

    def limit(self, side: int, level: ArrayLike) -> Floats:
        """Returns the one-sided limit [...].

        Args:
          side: 1 for the upper limit, -1 for the lower one.
          level: the probability that the limit holds.
        """
        away = special.stdtrit(self.freedom, level) * self.error
        return np.clip(self.value + side * away, -1.0, 1.0)


def moments(values: Floats) -> tuple[Ints, Floats, Floats]:
    """Returns number, mean and standard deviation (n - 1) of the finite values along the last axis."""
    present = np.isfinite(values)
    count = present.sum(-1)
    mean = np.where(present, values, 0.0).sum(-1) / np.maximum(count, 1)
    squares = np.where(present, values - mean[..., None], 0.0) ** 2
    return count, mean, np.sqrt(squares.sum(-1) / np.maximum(count - 1, 1))


def means(differences: Floats, floor: ArrayLike, chosen: ArrayLike = 0.0) -> Means:
    """Returns the means of differences, each with its own spread.

    Args:
      differences: [..., seeds].
      floor: the least spread.
      chosen: the variance that choosing by folds adds to that of the mean.
    """
    count, mean, spread = moments(differences)
    enough = count >= FEWEST_SEEDS
    spread = np.maximum(spread, floor)
    error = np.sqrt(spread**2 / np.maximum(count, 1) + np.asarray(chosen))
    return Means(
        np.where(enough, mean, 0.0),
        np.where(enough, error, np.inf),
        np.maximum(count - 1, 1).astype(np.float64),
    )


def pooled_means(
    differences: Floats, floor: ArrayLike, chosen: ArrayLike = 0.0, pool: ArrayLike = True
) -> Means:
    """Returns ``means`` with spreads that are learned from all points.

    A point keeps its own spread if it is not in ``pool``, lacks a seed, equals the reference on every seed, or
    has a variance beyond the prior's at ``OWN_SPREAD_LEVEL``. All points of an attack keep theirs if fewer than
    ``POOLED_POINTS`` of them are in ``pool``, have every seed and differ from the reference.

    Args:
      differences: [..., points, attacks, seeds].
      floor, chosen: as in ``means``.
      pool: [..., points, attacks], whether a point takes part.
    """
    floor = np.asarray(floor, np.float64)
    alone = means(differences, floor, chosen)
    seeds, points = differences.shape[-1], differences.shape[-3]
    if points < POOLED_POINTS or seeds < FEWEST_SEEDS:
        return alone
    centered = differences - alone.value[..., None]
    whole = np.isfinite(differences).all(-1) & np.any(differences != 0, axis=-1)
    whole &= np.asarray(pool, bool)
    number = whole.sum(-2, keepdims=True)  # [..., 1, attacks]
    usable = np.where(whole[..., None], centered, np.nan)
    # [..., 1, attacks, seeds]; 0 where no point is usable
    shared = np.ma.median(np.ma.masked_invalid(usable), axis=-3, keepdims=True).filled(0.0)
    rest = usable - shared
    rest = rest - rest.mean(-1, keepdims=True)
    degrees = seeds - 1
    own = np.maximum((rest**2).sum(-1) / degrees, floor**2 + 1e-12)  # NaN where not whole
    prior, prior_degrees = _prior(own, whole, degrees)
    typical = whole & (own <= prior * special.fdtri(degrees, prior_degrees, OWN_SPREAD_LEVEL))
    with np.errstate(invalid="ignore"):
        posterior = (prior_degrees * prior + degrees * own) / (prior_degrees + degrees)
    seed_part = (shared**2).sum(-1) / degrees
    total = np.maximum(seed_part + posterior, floor**2)
    freedom = total**2 / (
        seed_part**2 / degrees + posterior**2 / (prior_degrees + degrees) + 1e-300
    )
    error = np.sqrt(total / seeds + np.asarray(chosen))
    learned = typical & (number >= POOLED_POINTS)
    return Means(
        alone.value,
        np.where(learned, error, alone.error),
        np.where(learned, np.maximum(freedom, degrees), alone.freedom),
    )


def _prior(own: Floats, whole: Bools, degrees: int) -> tuple[Floats, Floats]:
    """Returns Smyth's estimates of s0^2 and d0, both [..., 1, attacks], for ``own`` [..., points, attacks]."""
    count = np.maximum(whole.sum(-2, keepdims=True), 1)
    logs = np.log(np.where(whole, own, 1.0)) - special.digamma(degrees / 2) + np.log(degrees / 2)
    mean = np.where(whole, logs, 0.0).sum(-2, keepdims=True) / count
    squares = np.where(whole, logs - mean, 0.0) ** 2
    excess = squares.sum(-2, keepdims=True) / np.maximum(count - 1, 1)
    excess = excess - special.polygamma(1, degrees / 2)
    prior_degrees = np.where(
        excess > 0, 2 * _inverse_trigamma(np.maximum(excess, 1e-8)), MOST_PRIOR
    )
    prior_degrees = np.minimum(prior_degrees, MOST_PRIOR)
    half = prior_degrees / 2
    return np.exp(mean + special.digamma(half) - np.log(half)), prior_degrees


def _inverse_trigamma(values: Floats) -> Floats:
    """Returns y > 0 with trigamma(y) = ``values`` > 0, by Newton's method (Smyth 2004, appendix)."""
    y = 0.5 + 1 / values
    for _ in range(12):
        trigamma = special.polygamma(1, y)
        y = y + trigamma * (1 - trigamma / values) / special.polygamma(2, y)
    return y
