"""Intervals and limits of figures over seeds.

Two records say how sure a mean over seeds is: ``Interval`` is the usual 95 % t-interval, and ``Estimate`` has
the limits of the strongest of many candidates, max_k mu_k. The functions take leak figures [..., candidates,
seeds] in [0, 1], NaN where a seed has none, and the number of judged rows of the rarest class. They return
one-sided limits; a pair of them, at 95 % each, is a 90 % interval. Leading axes are repetitions. Two rules
carry everything about the strongest candidate:

- *At most* needs no correction. If every candidate's limit is below x at 95 %, then so is the limit of
  the strongest one, whichever it is (intersection-union; Berger 1982).
- *At least* needs one: the highest of K lower limits is wrong as soon as one of them is. Bonferroni
  over K candidates holds for all correlations, but most of 40 candidates are no rivals of the strongest.
  So only *contenders* count, whose paired difference to the highest mean has a 99 % upper limit of 0 or
  more (a first step as of Romano, Shaikh and Wolf 2014); of contenders that are equal on every seed, one
  counts. With 5 seeds or fewer t at such levels is useless (28 instead of 2.9, for 40 candidates and 3
  seeds). There, of more than two contenders, the limit is of the folds' scores (``choosing``), whose mean
  does not exceed the strongest in expectation. Folds share seeds, so the variance of that mean is
  taken to be 1/n + 1/(n - 1) of the scores' and not 1/n (Nadeau and Bengio 2003).

What the second rule covers is simulated, not proven: `analysis/results/judging/`. Limits cover new splits and
new initial weights on one data set, and no other data set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from vfljax.report import choosing
from vfljax.report.choosing import FEWEST_SEEDS

Floats = NDArray[np.float64]

LEVEL = 0.95
"""The level of every one-sided limit on which a verdict rests."""
CONTENDER_LEVEL = 0.99
"""At which a candidate is ruled out as the strongest. At .95 the lower limit of the strongest of 40
equal and independent candidates covers .89 with 10 seeds, at .99 .93, and without ruling out .95."""
FEW_SEEDS = 5
"""Up to so many seeds, more than two contenders are judged by the folds' scores. With 10 seeds these
cover .88 where the contenders cover .93."""
LOWER, UPPER = -1, 1


class Limits(NamedTuple):
    """A lower and an upper limit, each one-sided; floats, or arrays [...] of repetitions."""

    lower: float | Floats
    upper: float | Floats


NO_LIMITS = Limits(math.nan, math.nan)


class Interval(NamedTuple):
    """Mean over seeds and half the width of its 95 % t-interval (NaN for one seed)."""

    mean: float
    half: float
    count: int

    def __str__(self) -> str:
        if self.count == 0:
            return "-"
        return f"{self.mean:.3f}" + ("" if math.isnan(self.half) else f" ± {self.half:.3f}")


NO_INTERVAL = Interval(math.nan, math.nan, 0)


def interval(values: Iterable[float | None]) -> Interval:
    """Returns the 95 % t-interval of a figure over seeds; missing values are left out."""
    sample = np.array([v for v in values if v is not None and not math.isnan(v)], np.float64)
    if len(sample) == 0:
        return NO_INTERVAL
    if len(sample) == 1:
        return Interval(float(sample[0]), math.nan, 1)
    error = sample.std(ddof=1) / math.sqrt(len(sample))
    half = float(special.stdtrit(len(sample) - 1, 0.975)) * error
    return Interval(float(sample.mean()), half, len(sample))


class Estimate(NamedTuple):
    """A mean over seeds, and the limits between which the strongest candidate's true mean lies."""

    mean: float  # NaN without any figure
    limits: Limits  # NaN with fewer than 3 seeds

    def __str__(self) -> str:
        return self.text("")

    @property
    def signed(self) -> str:
        """As a difference: '+0.050 (-0.010 to +0.120)'."""
        return self.text("+")

    @property
    def at_most(self) -> float:
        """The upper limit, or the mean where there are too few seeds for limits."""
        upper = float(self.limits.upper)
        return self.mean if math.isnan(upper) else upper

    def text(self, sign: str) -> str:
        """'0.750 (0.600 to 0.850)'; without limits the mean alone, and '-' without that."""
        if math.isnan(self.mean):
            return "-"
        lower, upper = (float(limit) for limit in self.limits)
        between = "" if math.isnan(lower) else f" ({lower:{sign}.3f} to {upper:{sign}.3f})"
        return f"{self.mean:{sign}.3f}{between}"


NO_ESTIMATE = Estimate(math.nan, NO_LIMITS)


def figure_limit(
    figures: ArrayLike, rows: int, side: int, level: ArrayLike = LEVEL, folds: bool = False
) -> Floats:
    """The one-sided limit of the mean of bounded figures [..., seeds], [...] in [0, 1].

    ``rows`` is m, the judged rows of the rarest class. A figure x becomes (x m + 1/2) / (m + 1), which
    is never 0 or 1. The logit of the mean p of these moves by t times its standard error: the seeds'
    spread over p (1 - p) and the root of their number. The spread is never below sqrt(p (1 - p) / m):
    what m rows right with probability p give, and the most that an AUC can spread with m rows of the
    rarer class. Back on the figure's scale the limit is clipped to [0, 1]. ``folds`` says that the
    figures are scores of folds, whose mean varies more (see the module).

    | figures                   | limits                                                        |
    |---------------------------|---------------------------------------------------------------|
    | all 1                     | the upper one is 1, the lower one below it by some rows of m   |
    | all 0                     | the mirror image                                              |
    | all equal                 | those of m rows, not a point                                  |
    | fewer than 3 present      | 0 and 1: nothing is ruled out                                 |
    | m large, spread small, p not near 0 or 1 | mean ± t spread / sqrt(seeds), the t-interval  |

    The mean is taken before the logit, not after: the mean of logits is the logit of another mean.
    Its lower limit covered .42 instead of .95 in a trial (mean .97, spread .05, 10 seeds; here .87).
    """
    rows = _checked(rows)
    shrunk = (np.asarray(figures, np.float64) * rows + 0.5) / (rows + 1)
    count, mean, spread = _moments(shrunk)
    mean = np.where(count > 0, mean, 0.5)
    variance = mean * (1 - mean)
    spread = np.maximum(spread, np.sqrt(variance / rows))
    errors = side * _errors(count, level, folds) * spread / variance
    moved = special.expit(special.logit(mean) + errors)
    limit = np.clip((moved * (rows + 1) - 0.5) / rows, 0.0, 1.0)
    return np.where(count < FEWEST_SEEDS, 1.0 if side == UPPER else 0.0, limit)


def difference_limit(
    differences: ArrayLike, rows: int, side: int, level: ArrayLike = LEVEL, folds: bool = False
) -> Floats:
    """The one-sided limit of the mean of paired differences [..., seeds], [...] in [-1, 1].

    The t-limit of the differences themselves, for the margins that matter (0, .02, .05) are far from
    their ends. Their spread is never below sqrt(r (1 - r) / m), r = (abs(mean) m + 1/2) / (m + 1): of two
    attacks on the same m rows at least the share abs(mean) is right in one and wrong in the other, and
    no pairing spreads less. With fewer than 3 differences the limits are -1 and 1.
    """
    rows = _checked(rows)
    count, mean, spread = _moments(np.asarray(differences, np.float64))
    share = (np.abs(mean) * rows + 0.5) / (rows + 1)
    spread = np.maximum(spread, np.sqrt(share * (1 - share) / rows))
    limit = np.clip(mean + side * _errors(count, level, folds) * spread, -1.0, 1.0)
    return np.where(count < FEWEST_SEEDS, float(side), limit)


class Contenders(NamedTuple):
    """Who may be the strongest, and how their limits are corrected for choosing among them."""

    among: NDArray[np.bool_]  # [..., candidates]
    level: Floats  # [...], of each one's limit, so that all of them hold at ``LEVEL``
    folds: NDArray[np.bool_]  # [...], whether the folds' scores are to be used instead
    scores: Floats  # [..., seeds], of the folds


def contenders(leaks: ArrayLike, rows: int) -> Contenders:
    """Which candidates of ``leaks`` [..., candidates, seeds] may be the strongest.

    Ruled out is who has fewer than 3 figures, and whose difference to the highest mean is below 0 at
    ``CONTENDER_LEVEL``. The one of the highest mean always stays.
    """
    leaks = _candidates(leaks)
    count, mean, _ = _moments(leaks)
    usable = count >= FEWEST_SEEDS
    leader = np.argmax(np.where(usable, mean, -np.inf), axis=-1)
    behind = leaks - np.take_along_axis(leaks, leader[..., None, None], axis=-2)
    among = usable & (difference_limit(behind, rows, UPPER, CONTENDER_LEVEL) >= 0)
    different = np.sum(among & ~_repeated(leaks), axis=-1)
    scores = choosing.leave_one_out(leaks).scores
    few = np.isfinite(scores).sum(-1) <= FEW_SEEDS
    level = 1 - (1 - LEVEL) / np.maximum(different, 1)
    return Contenders(among, level, few & (different > 2), scores)


def worst_limits(leaks: ArrayLike, rows: int) -> Limits:
    """Between what the strongest of ``leaks`` [..., candidates, seeds] leaks: "at least" and "at most".

    The lower limit is corrected for choosing. The upper one is the highest of every candidate's, and 1
    where a candidate has fewer than 3 figures.
    """
    leaks = _candidates(leaks)
    rivals = contenders(leaks, rows)
    lower = figure_limit(leaks, rows, LOWER, rivals.level[..., None])
    of_folds = figure_limit(rivals.scores, rows, LOWER, LEVEL, folds=True)
    upper = figure_limit(leaks, rows, UPPER)
    highest = np.max(np.where(rivals.among, lower, 0.0), axis=-1)
    return Limits(np.where(rivals.folds, of_folds, highest), np.max(upper, axis=-1))


def excess_limits(leaks: ArrayLike, local_only: ArrayLike, rows: int) -> Limits:
    """Returns the limits of e, what the strongest attack leaks beyond the local-only baseline.

    Args:
      leaks: [..., candidates, seeds].
      local_only: [..., seeds], leaks of the baseline.
      rows: judged rows of the rarest class.
    """
    leaks, local_only = _candidates(leaks), np.asarray(local_only, np.float64)
    rivals = contenders(leaks, rows)
    excess = leaks - local_only[..., None, :]
    lower = difference_limit(excess, rows, LOWER, rivals.level[..., None])
    of_folds = difference_limit(rivals.scores - local_only, rows, LOWER, LEVEL, folds=True)
    upper = difference_limit(excess, rows, UPPER)
    highest = np.max(np.where(rivals.among, lower, -1.0), axis=-1)
    return Limits(np.where(rivals.folds, of_folds, highest), np.max(upper, axis=-1))


def change_limits(leaks: ArrayLike, undefended: ArrayLike, rows: int) -> Limits:
    """Likewise for d, what the strongest of ``leaks`` [..., candidates, seeds] leaks more than the
    strongest of ``undefended`` [..., others, seeds], paired by seed; the candidates need not be the same.

    The upper limit is the highest of every candidate's against undefended's contenders, corrected for
    choosing among these. The lower limit exchanges the two.
    """
    leaks, undefended = _candidates(leaks), _candidates(undefended)
    return Limits(-_most(undefended, leaks, rows), _most(leaks, undefended, rows))


def _most(leaks: Floats, others: Floats, rows: int) -> Floats:
    """The upper limit [...] of max_k mu_k - max_j nu_j; mu of ``leaks``, nu of ``others``."""
    rivals = contenders(others, rows)
    pairs = leaks[..., :, None, :] - others[..., None, :, :]  # [..., K, J, seeds]
    limit = difference_limit(pairs, rows, UPPER, rivals.level[..., None, None])
    limit = np.min(np.where(rivals.among[..., None, :], limit, 1.0), axis=-1)
    to_folds = leaks - rivals.scores[..., None, :]
    of_folds = difference_limit(to_folds, rows, UPPER, LEVEL, folds=True)
    return np.max(np.where(rivals.folds[..., None], of_folds, limit), axis=-1)


def _repeated(leaks: Floats) -> NDArray[np.bool_]:
    """Which candidates have, on every seed, the figure of an earlier one."""
    values = np.where(np.isnan(leaks), -1.0, leaks)
    equal = np.all(values[..., :, None, :] == values[..., None, :, :], axis=-1)  # [..., K, K]
    earlier = np.tril(np.ones(equal.shape[-2:], bool), -1)
    return np.any(equal & earlier, axis=-1)


def _moments(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Number, mean and standard deviation (n - 1) of what is present, along the last axis."""
    present = np.isfinite(values)
    count = present.sum(-1)
    mean = np.where(present, values, 0.0).sum(-1) / np.maximum(count, 1)
    squares = np.where(present, values - mean[..., None], 0.0) ** 2
    return count, mean, np.sqrt(squares.sum(-1) / np.maximum(count - 1, 1))


def _errors(count: NDArray, level: ArrayLike, folds: bool) -> Floats:
    """How many spreads the limit is from the mean: Student's t times the mean's standard error."""
    known = np.maximum(count, 2)
    errors = np.ones(())
    for number in np.unique(known):  # few, and the quantile is dear
        share = 1 / number + (1 / (number - 1) if folds else 0)
        error = special.stdtrit(number - 1, level) * np.sqrt(share)
        errors = np.where(known == number, error, errors)
    return errors


def _candidates(leaks: ArrayLike) -> Floats:
    leaks = np.asarray(leaks, np.float64)
    if leaks.ndim < 2 or 0 in leaks.shape[-2:]:
        raise ValueError(f"leaks are [candidates, seeds], at least one of each; here {leaks.shape}")
    return leaks


def _checked(rows: int) -> int:
    if rows < 1:
        raise ValueError(f"rows={rows}: a figure needs at least one judged row of every class")
    return rows
