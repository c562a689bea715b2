"""Whether our runs agree with a printed number.

    a mean and a spread over n runs   Welch's t-test at 5 %, two-sided, with both spreads and both counts;
                                      the difference may be half a printed unit larger, for the rounding
    a mean without a spread           our 95 % t-interval over seeds, half a printed unit wider
    a bound ("at least .7")           differs only if our one-sided 95 % limit lies on the other side
    "about .5"                        shown without a verdict: how near is near is not defined

A paper's best and worst of n runs have no influence. A two-sided test at 5 % calls up to 5 % of numbers
different that are not (``by_chance``); numbers of one table share runs, so that they come in groups.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from vfljax.papers import Number

LEVEL = 0.05
ROUNDING = 1e-9  # of float arithmetic


class Status(enum.StrEnum):
    """How a printed number compares with our runs; the first two are verdicts."""

    AGREES = "agrees"
    DIFFERS = "differs"
    SHOWN = "shown"  # "about", or too few seeds
    CLAIMS = (
        "claims only"  # run with fewer rows or epochs or a smaller network: no verdict on a number
    )
    NOT_RUN = "not run"  # its config is complete and what it needs is not at hand
    NOT_COMPARABLE = "not comparable"  # no run of ours can measure what is printed


JUDGED = (Status.AGREES, Status.DIFFERS)


class Agreement(NamedTuple):
    """Our mean over seeds, its 95 % interval, and how it compares with the printed number."""

    mean: float
    spread: float  # standard deviation over seeds (n - 1)
    low: float
    high: float
    difference: float  # ours - printed
    status: Status  # AGREES, DIFFERS or SHOWN


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
    count, mean = len(values), float(values.mean())
    spread = half = math.nan
    agrees = None
    if count > 1:
        spread = float(values.std(ddof=1))
        half = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * spread / math.sqrt(count)
        agrees = _agrees(number, mean - number.value, spread, count)
    return Agreement(
        mean=mean,
        spread=spread,
        low=mean - half,
        high=mean + half,
        difference=mean - number.value,
        status=Status.SHOWN if agrees is None else Status.AGREES if agrees else Status.DIFFERS,
    )


def _agrees(number: Number, difference: float, spread: float, count: int) -> bool | None:
    """Whether ours agrees; None where the paper's number can have no verdict."""
    error = spread / math.sqrt(count)
    if number.kind in ("lower_bound", "upper_bound"):
        limit = float(stats.t.ppf(1 - LEVEL, count - 1)) * error
        beyond = -difference if number.kind == "lower_bound" else difference
        return beyond <= limit + ROUNDING
    if number.kind == "approx":
        return None
    if number.spread is None or number.runs is None or number.runs < 2:
        width = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * error
    else:
        width = _welch(spread, count, number.spread, number.runs)
    return abs(difference) <= width + number.half_unit + ROUNDING


def _welch(spread: float, count: int, their_spread: float, their_count: int) -> float:
    """The largest difference of two means that Welch's test at ``LEVEL`` does not call one."""
    parts = np.array([spread**2 / count, their_spread**2 / their_count])
    if not parts.sum():
        return 0.0
    freedom = parts.sum() ** 2 / np.sum(parts**2 / np.array([count - 1, their_count - 1]))
    return float(stats.t.ppf(1 - LEVEL / 2, freedom)) * math.sqrt(parts.sum())


def by_chance(statuses: Iterable[Status]) -> float:
    """Returns how many of the verdicts chance alone would call different, at most."""
    return LEVEL * sum(status in JUDGED for status in statuses)
