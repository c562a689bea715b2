"""Whether our runs agree with a printed number: the one rule, and the only place it stands.

What enters: a ``Number`` and our figure by seed. What leaves: a ``Verdict``.

    a mean and a spread over n runs   Welch's t-test at 5 %, two-sided, with both spreads and both counts;
                                      the difference may be half a printed unit larger, for the rounding
    a mean without a spread           our 95 % t-interval over seeds, half a printed unit wider
    a bound ("at least .7")           differs only if our one-sided 95 % limit lies on the other side
    "about .5"                        shown, no verdict: nobody says how near is near

A paper's best and worst of n runs are shown beside it without a verdict. With fewer than two seeds
there is no spread of ours, hence no verdict. Runs that are not at the published setting (a sample of the
data, fewer epochs, a narrower network) are not compared at all: see ``vfljax.papers.reproduction``.

Chance: a two-sided test at 5 % calls up to 5 % of numbers different that are not (``by_chance``); the
half unit makes that fewer. Numbers of one table share runs, so that they come in groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from vfljax.papers import Number

AGREES, DIFFERS, SHOWN, FEW = "agrees", "differs", "shown, no verdict", "too few seeds"
LEVEL = 0.05
ROUNDING = 1e-9  # of float arithmetic


class Verdict(NamedTuple):
    """Our mean over seeds, its 95 % interval, and how it stands to the printed number."""

    mean: float
    spread: float  # standard deviation over seeds (n - 1); NaN of one seed
    low: float
    high: float
    difference: float  # ours - printed
    says: str  # AGREES, DIFFERS, SHOWN or FEW


def verdict(number: Number, ours: Sequence[float]) -> Verdict:
    """The verdict on a printed number; ``ours``: our figure by seed, at least one, all finite."""
    values = np.asarray(ours, float)
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(f"{number.id}: our figure by seed is {list(ours)}, give finite numbers.")
    count, mean = len(values), float(values.mean())
    difference = mean - number.value
    if count < 2:
        says = SHOWN if number.kind == "approx" else FEW
        return Verdict(mean, math.nan, math.nan, math.nan, difference, says)
    spread = float(values.std(ddof=1))
    error = spread / math.sqrt(count)
    half = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * error
    agrees = _agrees(number, difference, spread, count)
    says = SHOWN if agrees is None else AGREES if agrees else DIFFERS
    return Verdict(mean, spread, mean - half, mean + half, difference, says)


def _agrees(number: Number, difference: float, spread: float, count: int) -> bool | None:
    """Whether ours agrees; None where the paper's number can have no verdict."""
    rounding = number.half_unit + ROUNDING
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
    return abs(difference) <= width + rounding


def _welch(spread: float, count: int, their_spread: float, their_count: int) -> float:
    """The largest difference of two means that Welch's test at ``LEVEL`` does not call one."""
    parts = np.array([spread**2 / count, their_spread**2 / their_count])
    if not parts.sum():
        return 0.0
    freedom = parts.sum() ** 2 / np.sum(parts**2 / np.array([count - 1, their_count - 1]))
    return float(stats.t.ppf(1 - LEVEL / 2, freedom)) * math.sqrt(parts.sum())


def by_chance(verdicts: Iterable[Verdict]) -> float:
    """How many of these verdicts chance alone would call different, at most."""
    return LEVEL * sum(v.says in (AGREES, DIFFERS) for v in verdicts)
