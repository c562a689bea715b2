"""Guesses of coins and their lower limits, restated in NumPy and with scipy's binomial."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats


def epsilon_at_least(guessed: int, right: int, level: float) -> float:
    """The largest epsilon with P[Binomial(guessed, p) >= right] <= 1 - level, by bisection; at least 0."""
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        p = 1 / (1 + math.exp(-middle))
        possible = stats.binom.sf(right - 1, guessed, p) <= 1 - level
        low, high = (middle, high) if possible else (low, middle)
    return low


def guesses(scores, labels, candidates, rows, share: float) -> tuple[int, int]:
    """How many of the canaries among ``rows`` [n] are guessed, the surest ones, and how many are right."""
    found = []
    for row in rows:
        first, second = candidates[row]
        difference = np.nan_to_num(scores[row, second] - scores[row, first])
        guess = second if difference > 0 else first
        if first >= 0:
            found.append((-abs(difference), row, guess == labels[row]))
    count = math.ceil(share * len(found))
    return count, sum(right for _, _, right in sorted(found)[:count])
