"""A figure over seeds: its mean and a 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import special


class Interval(NamedTuple):
    """Mean over seeds and half the width of its 95 % t-interval (nan for one seed)."""

    mean: float
    half: float
    count: int

    def __str__(self) -> str:
        if self.count == 0:
            return "-"
        return f"{self.mean:.3f}" + ("" if math.isnan(self.half) else f" ± {self.half:.3f}")


def interval(values: Iterable[float | None]) -> Interval:
    """95 % t-interval over seeds; missing values are left out."""
    sample = np.array([v for v in values if v is not None and not math.isnan(v)], np.float64)
    if len(sample) == 0:
        return Interval(math.nan, math.nan, 0)
    if len(sample) == 1:
        return Interval(float(sample[0]), math.nan, 1)
    error = sample.std(ddof=1) / math.sqrt(len(sample))
    half = float(special.stdtrit(len(sample) - 1, 0.975)) * error
    return Interval(float(sample.mean()), half, len(sample))
