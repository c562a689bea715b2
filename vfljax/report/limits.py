"""Means over seeds with Student's limits.

The limits hold for new splits and new initial weights on one data set, not for other data sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVEL, SHOWN_LEVEL = 0.95, 0.975
"""The level of each limit on which a verdict rests, and of each of the two limits of a figure that is shown."""
FEWEST_SEEDS = 3
"""With fewer seeds nothing has limits."""
MOST_SEEDS = 100
"""If not even so many seeds are likely to decide, no number of seeds is named."""


class Limits(NamedTuple):
    """A mean over seeds with its one-sided limits, [...]; NaN where there is none."""

    count: NDArray[np.intp]
    mean: Floats
    lower: Floats
    upper: Floats

    def columns(self, name: str) -> dict[str, Floats]:
        """Returns the mean and its limits by the names of their columns; ``of_row`` reads them back."""
        return {name: self.mean, f"{name}_lower": self.lower, f"{name}_upper": self.upper}


def of_row(row: Mapping[str, Any], name: str) -> tuple[float, float, float]:
    """Returns a mean of a row of the verdict frame, such as "leak", and its two limits."""
    return row[name], row[f"{name}_lower"], row[f"{name}_upper"]


def half_row(rows: int) -> float:
    """Returns the standard deviation of a figure of ``rows`` rows if half a row is expected to be wrong.

    It is the least spread over seeds of a leak: a figure that is equal on all seeds is not certain.
    """
    wrong = 0.5 / (rows + 1)
    return math.sqrt(wrong * (1 - wrong) / rows)


def limits(
    values: Floats, least: float = 0.0, level: float = LEVEL, fewest: int = FEWEST_SEEDS
) -> Limits:
    """Returns the mean of values [..., seeds] over the seeds that have one, with Student's limits.

    Args:
      values: NaN on seeds that have none.
      least: the least standard deviation.
      level: of each of the two limits.
      fewest: with fewer values there are no limits.
    """
    present = np.isfinite(values)
    count = present.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, values, 0.0).sum(-1) / np.where(count > 0, count, np.nan)
        squares = np.where(present, values - mean[..., None], 0.0) ** 2
        spread = np.maximum(np.sqrt(squares.sum(-1) / (count - 1)), least)
        away = special.stdtrit(np.maximum(count - 1, 1), level) * spread / np.sqrt(count)
    away = np.where(count >= fewest, away, np.nan)
    return Limits(count, mean, mean - away, mean + away)


def projected(
    found: Limits, seeds: NDArray[np.intp], level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Returns the limits [..., n] that other numbers of seeds are likely to have: mean and spread stay.

    Args:
      found: limits; NaN where there are none.
      seeds: [n].
      level: of each limit, found or projected.
    """
    count = np.maximum(np.asarray(found.count), 2)
    spread = (found.upper - found.mean) * np.sqrt(count) / special.stdtrit(count - 1, level)
    away = spread[..., None] * special.stdtrit(seeds - 1, level) / np.sqrt(seeds)
    mean = np.asarray(found.mean)[..., None]
    return mean - away, mean + away


def deciding_seeds(decides: Bools, seeds: NDArray[np.intp]) -> Floats:
    """Returns the first of the numbers ``seeds`` [n] at which ``decides`` [..., n]; NaN where none does."""
    return np.where(decides.any(-1), seeds[decides.argmax(-1)], np.nan)
