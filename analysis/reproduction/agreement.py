"""How our runs compare with a printed number, by one of three verdicts.

    equivalent               two one-sided tests at 5 % show that the difference is within .03, or within two
                             printed units where those are larger
    differs                  not equivalent, and by Welch's two-sided test at 5 % the difference is larger than
                             half a printed unit, which rounding may have changed
    compatible, low power    neither: the runs cannot decide

Both tests use both spreads and both numbers of runs. If best and worst of n runs are printed, the spread is
their distance over the expected range of n standard normal numbers (3.08 for n = 10). If no spread is printed,
ours is used in its place. If no number of runs is stated, one run is assumed. A bound ("at least .7") is tested
on one side, without rounding. A printed unit is that of the last digit: two units of "about .5" are .2.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import integrate, special, stats

from analysis.reproduction.papers import Number
from vfljax.report.limits import SHOWN_LEVEL, limits

LEVEL = 0.05
MARGIN = 0.03  # largest difference of equivalent shares, AUCs and ratios of AUCs
GRADIENTS = ("gan_gradient_avg", "ce_gradient_avg")  # metrics without ``MARGIN``
ROUNDING = 1e-9  # tolerance for float arithmetic
SIDES = {"lower_bound": (-1,), "upper_bound": (1,)}  # signs of differences that count; else both


class Status(enum.StrEnum):
    """How a printed number compares with our runs; the first three are verdicts."""

    EQUIVALENT = "equivalent"
    COMPATIBLE = "compatible, low power"
    DIFFERS = "differs"
    ONE_SEED = "shown"  # one seed only
    CLAIMS = "claims only"  # only run with fewer rows or epochs or a smaller network
    NOT_RUN = "not run"  # no stored run measures it
    NOT_COMPARABLE = "not comparable"  # no run of ours can measure what is printed


JUDGED = (Status.EQUIVALENT, Status.COMPATIBLE, Status.DIFFERS)


class Agreement(NamedTuple):
    """Our mean over seeds, its 95 % interval, and how it compares with the printed number."""

    mean: float
    spread: float  # standard deviation over seeds (n - 1)
    low: float
    high: float
    difference: float  # ours - printed
    status: Status  # one of JUDGED, or ONE_SEED
    width: float = math.nan  # of half the difference's 95 % interval, plus half a printed unit
    p: float = math.nan  # p-value of the test for a difference
    borrowed: bool = False  # whether our spread is used in place of the paper's


def agreement(number: Number, ours: Sequence[float]) -> Agreement:
    """Compares a printed number with our figure.

    Args:
      number: a number of a paper.
      ours: our figure by seed, at least one, all finite.

    Returns:
      The agreement. With one seed its spread and limits are NaN, and its status is ``ONE_SEED``.

    Raises:
      ValueError: if ``ours`` is empty or has a figure that is not finite.
    """
    values = np.asarray(ours, float)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(f"{number.id}: our figure by seed is {list(ours)}, give finite numbers.")
    over_seeds = limits(values, level=SHOWN_LEVEL, fewest=2)
    count, (mean, low, high) = len(values), map(float, over_seeds[1:])
    spread = float(values.std(ddof=1)) if count > 1 else math.nan
    found = Agreement(mean, spread, low, high, mean - number.value, Status.ONE_SEED)
    if count < 2:
        return found
    sides = SIDES.get(number.kind, (-1, 1))
    error, freedom, borrowed = _error(number, spread, count)
    rounding = number.half_unit if len(sides) == 2 else 0.0
    margin = max(4 * rounding, 0.0 if number.metric in GRADIENTS else MARGIN)
    apart = max(side * found.difference for side in sides)
    p = float(apart <= rounding + ROUNDING)  # for runs that are all equal
    if error:
        p = min(1.0, len(sides) * float(stats.t.sf((apart - rounding) / error, freedom)))
    one_sided, two_sided = stats.t.ppf([1 - LEVEL, 1 - LEVEL / 2], freedom) * error
    status = Status.DIFFERS if p < LEVEL else Status.COMPATIBLE
    if apart + one_sided <= margin + ROUNDING:
        status = Status.EQUIVALENT
    width = float(two_sided) + rounding
    return found._replace(status=status, width=width, p=p, borrowed=borrowed)


def expected_range(count: int) -> float:
    """Returns the expected range (largest less smallest) of ``count`` standard normal numbers."""
    x = np.linspace(-10, 10, 4001)
    return float(integrate.trapezoid(1 - special.ndtr(x) ** count - special.ndtr(-x) ** count, x))


def _error(number: Number, spread: float, count: int) -> tuple[float, float, bool]:
    """Returns the difference's standard error, its degrees of freedom, and whether both spreads are ours."""
    theirs, runs = number.spread, number.runs or 1
    if number.kind in SIDES:
        return spread / math.sqrt(count), count - 1, False
    if number.best is not None and number.worst is not None and runs > 1:
        theirs = (number.best - number.worst) / expected_range(runs)
    if theirs is None or runs < 2:
        return spread * math.sqrt(1 / count + 1 / runs), count - 1, True
    parts = np.array([spread**2 / count, theirs**2 / runs])
    if not parts.sum():
        return 0.0, count - 1, False
    freedom = parts.sum() ** 2 / np.sum(parts**2 / np.array([count - 1, runs - 1]))
    return math.sqrt(parts.sum()), float(freedom), False


def after_correction(p_values: Sequence[float]) -> list[bool]:
    """Returns which p-values stay significant after Benjamini and Hochberg's correction at ``LEVEL``."""
    return [bool(q <= LEVEL) for q in stats.false_discovery_control(p_values)] if p_values else []


def by_chance(statuses: Iterable[Status]) -> float:
    """Returns the most verdicts that would be expected to be ``DIFFERS`` by chance alone."""
    return LEVEL * sum(status in JUDGED for status in statuses)
