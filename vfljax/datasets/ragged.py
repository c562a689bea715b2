"""Token ids of texts of different lengths, and each party's span of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Ragged(NamedTuple):
    """Rows of different lengths: row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: np.ndarray  # [total] int32
    offsets: np.ndarray  # [R + 1] int64


def spans(
    ragged: Ragged, parts: int | Sequence[float], length: int, cls: int, sep: int, pad: int
) -> tuple[np.ndarray, ...]:
    """Stub until merge."""
    raise NotImplementedError
