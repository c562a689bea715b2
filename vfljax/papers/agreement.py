"""How our runs compare with a printed number, in one of three words.

    equivalent               by two one-sided tests at 5 %: the difference is within .03, or within two printed
                             units where those are larger
    differs                  not equivalent, and by Welch's two-sided test at 5 % the difference is larger than
                             half a printed unit, which rounding may have taken away
    compatible, low power    neither: these runs cannot tell

Both tests use both spreads and both counts. Best and worst of n runs give the spread of which their distance
is the expected range of n normal numbers (3.08 spreads of 10). Where no spread is printed ours stands in for
it, and where no number of runs is stated there was one. A bound ("at least .7") has one side and no printed
units. "About .5" is judged as .5, of which two printed units are .2.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import integrate, special, stats

from vfljax.papers import Number
from vfljax.report.estimates import interval

LEVEL = 0.05
MARGIN = 0.03  # of a share, an AUC, or a ratio of two
GRADIENTS = ("gan_gradient_avg", "ce_gradient_avg")  # metrics whose unit is no share
ROUNDING = 1e-9  # of float arithmetic
SIDES = {"lower_bound": (-1,), "upper_bound": (1,)}  # on which a difference counts; else on both


class Status(enum.StrEnum):
    """How a printed number compares with our runs; the first three are verdicts."""

    EQUIVALENT = "equivalent"
    COMPATIBLE = "compatible, low power"
    DIFFERS = "differs"
    SHOWN = "shown"  # of one seed
    CLAIMS = "claims only"  # run with fewer rows or epochs or a smaller network
    NOT_RUN = "not run"  # its config is complete and what it needs is not at hand
    NOT_COMPARABLE = "not comparable"  # no run of ours can measure what is printed


JUDGED = (Status.EQUIVALENT, Status.COMPATIBLE, Status.DIFFERS)


class Agreement(NamedTuple):
    """Our mean over seeds, its 95 % interval, and how it compares with the printed number."""

    mean: float
    spread: float  # standard deviation over seeds (n - 1)
    low: float
    high: float
    difference: float  # ours - printed
    status: Status  # one of JUDGED, or SHOWN
    width: float = math.nan  # half of the difference's 95 % interval, half a printed unit included
    p: float = math.nan  # of the test for a difference
    borrowed: bool = False  # whether our spread stands in for one that is not printed


def agreement(number: Number, ours: Sequence[float]) -> Agreement:
    """Compares a printed number with our figure.

    Args:
      number: a number of a paper.
      ours: our figure by seed, at least one, all finite.

    Returns:
      The agreement; of one seed without spread and limits (NaN), and without a verdict.

    Raises:
      ValueError: if there is no figure, or one is not finite.
    """
    values = np.asarray(ours, float)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(f"{number.id}: our figure by seed is {list(ours)}, give finite numbers.")
    mean, half, count = interval(values)
    spread = float(values.std(ddof=1)) if count > 1 else math.nan
    found = Agreement(mean, spread, mean - half, mean + half, mean - number.value, Status.SHOWN)
    if count < 2:
        return found
    sides = SIDES.get(number.kind, (-1, 1))
    error, freedom, borrowed = _error(number, spread, count)
    rounding = number.half_unit if len(sides) == 2 else 0.0
    margin = max(4 * rounding, 0.0 if number.metric in GRADIENTS else MARGIN)
    apart = max(side * found.difference for side in sides)
    p = float(apart <= rounding + ROUNDING)  # of runs that are all the same
    if error:
        p = min(1.0, len(sides) * float(stats.t.sf((apart - rounding) / error, freedom)))
    one_sided, two_sided = stats.t.ppf([1 - LEVEL, 1 - LEVEL / 2], freedom) * error
    status = Status.DIFFERS if p < LEVEL else Status.COMPATIBLE
    if apart + one_sided <= margin + ROUNDING:
        status = Status.EQUIVALENT
    width = float(two_sided) + rounding
    return found._replace(status=status, width=width, p=p, borrowed=borrowed)


def expected_range(count: int) -> float:
    """Returns the expected distance of the largest and the smallest of ``count`` standard normal numbers."""
    x = np.linspace(-10, 10, 4001)
    return float(integrate.trapezoid(1 - special.ndtr(x) ** count - special.ndtr(-x) ** count, x))


def _error(number: Number, spread: float, count: int) -> tuple[float, float, bool]:
    """Returns the standard error of the difference, its degrees of freedom, and if our spread stands in."""
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
    """Returns which differences remain after Benjamini and Hochberg's correction at ``LEVEL``."""
    return [bool(q <= LEVEL) for q in stats.false_discovery_control(p_values)] if p_values else []


def by_chance(statuses: Iterable[Status]) -> float:
    """Returns how many of the verdicts chance alone would call different, at most."""
    return LEVEL * sum(status in JUDGED for status in statuses)
