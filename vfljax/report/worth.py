"""What a federation is worth to the label party, and what a defense keeps of that.

Utility is accuracy, or AUC where the rarer of two classes has under 30 % of the rows. Let U be the utility of
a configuration, U_0 that of undefended, and A that of the label party alone (its own columns and all labels,
the same networks), all paired by seed. The federation gains U_0 - A. A defense is judged by a contrast and not
by a ratio, because the ratio's limits are wide or infinite where the gain is small:

    U - A - k (U_0 - A), k = ``goal.keep_gain``.

| outcome        | when                                                                        |
|----------------|-----------------------------------------------------------------------------|
| kept           | the contrast is above or at 0, and the loss U_0 - U below ``goal.max_cost``  |
| costs too much | the contrast is below 0, or the loss above ``goal.max_cost``                 |
| cost unclear   | all else                                                                    |

"Above" refers to lower limits and "below" to upper ones: Student's, one-sided at 95 %. Without figures of the
label party alone (sweeps of earlier versions, and columns that stay on the host), only the loss counts. It is
compared with ``goal.max_cost``, or with .02 if that is not given.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from vfljax.report.choosing import MEAN_LOSS
from vfljax.report.estimates import NO_ESTIMATE, NO_LIMITS, Estimate, Limits
from vfljax.report.intervals import LEVEL, LOWER, UPPER
from vfljax.report.spread import FEWEST_SEEDS, means
from vfljax.sweep.records import Goal

RARE = 0.3
"""If the rarer of two classes has a smaller share of the rows, utility is AUC."""
SHOWN_GAIN = 0.01
"""The share of the gain that is kept is shown only if the gain's lower limit exceeds this."""
BySeed = Mapping[int, float]


class CostOutcome(enum.StrEnum):
    """The conclusion that the limits allow on the cost of a configuration."""

    KEPT = "kept"
    TOO_MUCH = "costs too much"
    UNCLEAR = "cost unclear"
    UNKNOWN = "cost not known"


class Worth(NamedTuple):
    """What undefended gains over the label party alone, on test or validation rows; empty if not known."""

    alone: BySeed
    undefended: BySeed
    gain: Estimate = NO_ESTIMATE

    @property
    def known(self) -> bool:
        """Whether the label party alone has figures."""
        return bool(self.alone)

    @property
    def shown(self) -> bool:
        """Whether the limits show that the federation gains anything."""
        return bool(self.gain.limits.lower > 0)

    @property
    def undefended_mean(self) -> float:
        """The mean utility of undefended over the seeds that have one."""
        return paired(list(self.undefended.values())).mean

    @property
    def alone_mean(self) -> float:
        """The mean utility of the label party alone; NaN if it is not known."""
        return self.undefended_mean - self.gain.mean

    def allowed(self, goal: Goal) -> float:
        """Returns the mean utility over seeds that an operating point may lose."""
        if not self.known:
            return goal.max_cost if goal.max_cost < 1 else MEAN_LOSS
        return min(goal.max_cost, max(0.0, (1 - goal.keep_gain) * self.gain.mean))


class Kept(NamedTuple):
    """What a configuration keeps of the gain."""

    cost: CostOutcome
    share: Estimate = NO_ESTIMATE  # of the gain, with Fieller's limits; NaN if the gain is small


NOT_KNOWN = Kept(CostOutcome.UNKNOWN)


def utility_of(balance: Sequence[int]) -> str:
    """Returns what utility is for classes with these numbers of rows: "AUC" or "accuracy"."""
    return "AUC" if len(balance) == 2 and min(balance) / sum(balance) < RARE else "accuracy"


def worth(alone: BySeed, undefended: BySeed) -> Worth:
    """Returns what undefended gains over the label party alone, paired by seed.

    Args:
      alone: utility of the label party alone, by seed.
      undefended: utility of undefended.
    """
    seeds = [seed for seed in undefended if seed in alone]
    if not seeds:
        return Worth({}, undefended)
    return Worth(alone, undefended, paired([undefended[seed] - alone[seed] for seed in seeds]))


def kept(utility: BySeed, federation: Worth, goal: Goal) -> Kept:
    """Returns what a configuration keeps of the gain.

    Args:
      utility: of the configuration by seed; NaN of a seed that diverged is left out.
      federation: what undefended gains.
      goal: what is to be kept, and what may be lost.
    """
    bare = federation.undefended
    seeds = [s for s, u in utility.items() if not math.isnan(u - bare.get(s, math.nan))]
    ours, undefended = (np.array([by[s] for s in seeds]) for by in (utility, bare))
    if len(seeds) < FEWEST_SEEDS:
        return NOT_KNOWN
    max_cost = goal.max_cost if federation.known or goal.max_cost < 1 else MEAN_LOSS
    contrasts = [paired(ours - undefended + max_cost)] if max_cost < 1 else []
    share = NO_ESTIMATE
    if federation.known and all(s in federation.alone for s in seeds):
        alone = np.array([federation.alone[s] for s in seeds])
        contrasts.append(paired(ours - alone - goal.keep_gain * (undefended - alone)))
        if federation.gain.limits.lower > SHOWN_GAIN:
            share = _ratio(ours - alone, undefended - alone)
    if any(contrast.limits.upper < 0 for contrast in contrasts):
        return Kept(CostOutcome.TOO_MUCH, share)
    if all(contrast.limits.lower >= 0 for contrast in contrasts):
        return Kept(CostOutcome.KEPT, share)
    return Kept(CostOutcome.UNCLEAR, share)


def _ratio(numerators: np.ndarray, denominators: np.ndarray) -> Estimate:
    """The ratio of two means over 3 seeds or more with Fieller's limits, one-sided at 95 % (Fieller 1954).

    With means a and b, their variances v_a, v_b and covariance c, t Student's quantile, g = t^2 v_b / b^2 and
    r = a / b, the limits are

        (r - g c / v_b ± t / |b| sqrt(v_a - 2 r c + r^2 v_b - g (v_a - c^2 / v_b))) / (1 - g).

    There are none if g is 1 or more, because the denominator may then be 0.
    """
    count = len(numerators)
    a, b = float(np.mean(numerators)), float(np.mean(denominators))
    if b == 0:
        return NO_ESTIMATE
    r = a / b
    v_a, c, v_b = np.cov(numerators, denominators)[[0, 0, 1], [0, 1, 1]] / count
    t = float(special.stdtrit(count - 1, LEVEL))
    g = t**2 * v_b / b**2
    if g >= 1:
        return Estimate(r, NO_LIMITS)
    slope = c / v_b if v_b > 0 else 0.0
    inside = v_a - 2 * r * c + r**2 * v_b - g * (v_a - c * slope)
    half = t / abs(b) * math.sqrt(max(inside, 0.0))
    lower, upper = ((r - g * slope + side * half) / (1 - g) for side in (-1, 1))
    return Estimate(r, Limits(lower, upper))


def paired(differences: Sequence[float] | np.ndarray, floor: float = 0.0) -> Estimate:
    """Returns the mean over seeds with Student's limits; NaN is left out.

    Args:
      differences: of two figures, a seed each.
      floor: the least spread.
    """
    values = np.asarray(differences, np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return NO_ESTIMATE
    if len(values) < FEWEST_SEEDS:
        return Estimate(float(values.mean()), NO_LIMITS)
    sample = means(values, floor)
    lower, upper = (float(sample.limit(side, LEVEL)) for side in (LOWER, UPPER))
    return Estimate(float(values.mean()), Limits(lower, upper))
