"""Some columns or pixels of arrays that are mapped from disk, read when their rows are.

What enters: an array [R, ...] and where to cut it. What leaves: what stands for the cut array, without
having read it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Part:
    """Some columns or pixels of every row of an array mapped from disk: ``part[rows]`` reads those rows
    and cuts them, ``np.asarray(part)`` all. Where the array is in memory its copy is taken instead."""

    def __init__(self, rows: np.ndarray, *where: Any) -> None:
        self._rows, self._where = rows, where
        self.dtype = rows.dtype
        self.shape = (len(rows), *self._cut(np.empty((0, *rows.shape[1:]), rows.dtype)).shape[1:])
        self.ndim = len(self.shape)
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize

    def _cut(self, some: np.ndarray) -> np.ndarray:
        return some[:, *self._where]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> np.ndarray:
        return self._cut(np.asarray(self._rows[which]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy  # always one
        return np.ascontiguousarray(self._cut(self._rows), dtype)


def part(rows: np.ndarray, *where: Any) -> Any:
    """``rows[:, *where]``: a ``Part`` where ``rows`` is mapped from disk, else a copy."""
    own = Part(rows, *where)
    return own if isinstance(rows, np.memmap) else np.asarray(own)
