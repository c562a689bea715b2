"""Guesses of coins, restated in NumPy."""

from __future__ import annotations

import math

import numpy as np


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
