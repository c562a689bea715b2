"""Records of means over seeds with their intervals or limits, and their form as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


class Limits(NamedTuple):
    """A lower and an upper limit, each one-sided; floats, or arrays [...] of repetitions."""

    lower: float | Floats
    upper: float | Floats

    def text(self, write: Callable[[float], str]) -> str:
        """Returns ' (0.600 to 0.850)' with numbers formatted by ``write``; '' if the limits are NaN."""
        lower, upper = (float(limit) for limit in self)
        return "" if math.isnan(lower) else f" ({write(lower)} to {write(upper)})"


NO_LIMITS = Limits(math.nan, math.nan)


class Interval(NamedTuple):
    """Mean over seeds and half the width of its 95 % t-interval (NaN for one seed)."""

    mean: float
    half: float
    count: int

    @property
    def limits(self) -> Limits:
        """Its two limits, NaN for fewer than 2 seeds."""
        return Limits(self.mean - self.half, self.mean + self.half)

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
    """A mean over seeds, and limits of its true value or of the strongest candidate's."""

    mean: float  # NaN without any figure
    limits: Limits  # NaN with too few seeds

    def __str__(self) -> str:
        return self.text("")

    @property
    def signed(self) -> str:
        """Its text as a difference: '+0.050 (-0.010 to +0.120)'."""
        return self.text("+")

    @property
    def at_most(self) -> float:
        """The upper limit, or the mean where there are too few seeds for limits."""
        upper = float(self.limits.upper)
        return self.mean if math.isnan(upper) else upper

    def text(self, sign: str) -> str:
        """Returns '0.750 (0.600 to 0.850)', or the mean alone without limits, or '-' without a mean."""
        if math.isnan(self.mean):
            return "-"
        return f"{self.mean:{sign}.3f}{self.limits.text(lambda limit: f'{limit:{sign}.3f}')}"


NO_ESTIMATE = Estimate(math.nan, NO_LIMITS)
