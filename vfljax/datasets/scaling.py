"""Computes scaling statistics of a party's columns over some rows. Rows that are mapped from disk are read in
pieces, so that they need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vfljax.datasets.core import Column

PIECE = 1 << 18  # rows at a time


def _pieces(x: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yields ``x[rows]`` in pieces of ``PIECE`` rows; for several pieces rows are sorted into file order."""
    if len(rows) > PIECE:
        rows = np.sort(rows)
    for first in range(0, len(rows), PIECE):
        yield x[rows[first : first + PIECE]]


def statistics(
    x: np.ndarray, rows: np.ndarray, scaling: str, columns: Sequence[Column] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean and the scale of some rows, [...] float32 each.

    Missing numbers (NaN) are ignored. Categories and codes have mean 0 and scale 1, so they stay as they are.
    A category that none of the rows has gets an infinite scale, so it reads 0: no network has learned it.

    Args:
      x: one party's columns or pixels [R, ...].
      rows: the rows that the statistics are of.
      scaling: "standard" and "minmax" (to [0, 1]) per column, "range" (to [0, 1]) for all pixels at once,
        or "none".
      columns: of a table, what each column is.
    """
    numbers = np.asarray([column.kind == "number" for column in columns], bool)
    if scaling == "none":
        mean, scale = np.float64(0), np.float64(1)
    elif scaling == "standard":
        mean, scale = _moments(x, rows)
    else:
        axis = None if scaling == "range" else 0
        # codes have no range
        counted: Any = numbers if axis is None and numbers.any() else slice(None)
        low, high = [], []
        for piece in _pieces(x, rows):
            low.append(np.fmin.reduce(piece[:, counted], axis=axis))
            high.append(np.fmax.reduce(piece[:, counted], axis=axis))
        mean = np.fmin.reduce(np.asarray(low, np.float64), axis=0)
        scale = np.fmax.reduce(np.asarray(high, np.float64), axis=0) - mean
    mean = np.nan_to_num(mean, nan=0.0)  # a column without any number is a constant
    scale = np.where(scale > 0, scale, 1.0)  # a constant column stays constant, at 0
    if not numbers.all():
        mean, scale = (np.broadcast_to(a, x.shape[1:]).copy() for a in (mean, scale))
        seen = np.any([(piece != 0).any(0) for piece in _pieces(x, rows)], axis=0)
        coded = np.asarray([column.kind == "code" for column in columns])
        mean[~numbers] = 0.0
        scale[~numbers] = np.where(seen | coded, 1.0, np.inf)[~numbers]
    return np.asarray(mean, np.float32), np.asarray(scale, np.float32)


def _moments(x: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the mean and the standard deviation of each column, as NumPy's nanmean and nanstd."""
    total, count, square = 0.0, 0, 0.0
    for piece in _pieces(x, rows):
        numbers = piece.astype(np.float64)
        total, count = total + np.nansum(numbers, 0), count + (~np.isnan(numbers)).sum(0)
    count = np.maximum(count, 1)
    mean = np.asarray(total / count)
    for piece in _pieces(x, rows):
        square = square + np.nansum((piece.astype(np.float64) - mean) ** 2, 0)
    return mean, np.sqrt(square / count)
