"""Writes .npy files of numbers and bools block by block, maps them read-only, and reads some columns or
pixels of their rows. Nothing is pickled."""

from __future__ import annotations

import math
import os
import pathlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import UserError

BYTES = 1 << 22  # written or read at a time
KINDS = "biuf"  # bools, integers, floats
AGAIN = "remove the folder, and prepare the data set again"


def pieces(array: np.ndarray) -> Iterator[bytes]:
    """Yields the bytes of an array piece by piece, since a mapped array may exceed memory."""
    step = max(1, BYTES // max(1, array[:1].nbytes))
    for first in range(0, len(array), step):
        yield array[first : first + step].tobytes()


class Growing:
    """A file to which rows are appended. ``finish`` writes its header again, with the number of rows: NumPy's
    headers leave room for a longer first axis."""

    def __init__(self, path: pathlib.Path, like: np.ndarray) -> None:
        if like.dtype.kind not in KINDS or not like.ndim:
            raise UserError(f"{path.name}: a {like.ndim}-d array of {like.dtype} is not rows.")
        self.path, self.dtype, self.shape, self.rows = path, like.dtype, like.shape[1:], 0
        self.file: BinaryIO = open(path, "wb")  # noqa: SIM115 - finish or close closes it
        self._header()
        self.start = self.file.tell()  # where the data begins

    def _header(self) -> None:
        descr = np.lib.format.dtype_to_descr(self.dtype)
        about = {"descr": descr, "fortran_order": False, "shape": (self.rows, *self.shape)}
        np.lib.format.write_array_header_1_0(self.file, about)

    def append(self, array: np.ndarray) -> None:
        """Appends rows, which must have the first block's type and shape."""
        if array.dtype != self.dtype or array.shape[1:] != self.shape:
            what = f"{self.path.name}: a block of {array.dtype} {array.shape[1:]}"
            rows = f"rows of {self.dtype} {self.shape}"
            raise UserError(f"{what} follows {rows}: all blocks need the same.")
        self.file.writelines(pieces(array))
        self.rows += len(array)

    def finish(self) -> None:
        """Writes the header with the final number of rows, and flushes the file to disk."""
        self.file.seek(0)
        self._header()
        assert self.file.tell() == self.start
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()

    def close(self) -> None:
        """Closes the file, which stays unfinished."""
        self.file.close()


def mapped(path: pathlib.Path, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Returns a file's array, mapped read-only, or raises UserError.

    Args:
      path: the file.
      dtype: the name of the type that it must be of.
      shape: the shape that it must have.
    """
    # NumPy warns of headers that only seem readable
    with reading(path, AGAIN), warnings.catch_warnings(action="error"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap) or array.dtype.kind not in KINDS:
        raise fault(path, "holds no array of numbers", AGAIN)
    if str(array.dtype) != dtype or array.shape != tuple(shape) or not array.flags.c_contiguous:
        what = f"holds {array.dtype} {array.shape} and {dtype!r} {tuple(shape)} is recorded"
        raise fault(path, what, AGAIN)
    if excess := os.path.getsize(path) - array.offset - array.nbytes:
        raise fault(path, f"has {excess} bytes too many: it was changed", AGAIN)
    return array


class Part:
    """Some columns or pixels of every row of an array that is mapped from disk. ``part[rows]`` reads these
    rows and cuts them, and ``np.asarray(part)`` reads all. The function ``part`` copies arrays in memory."""

    def __init__(self, rows: np.ndarray, *where: Any) -> None:
        self._rows, self._where = rows, where
        self.dtype = rows.dtype
        self.shape = (len(rows), *self._cut(np.empty((0, *rows.shape[1:]), rows.dtype)).shape[1:])
        self.ndim = len(self.shape)
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize

    def _cut(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, *self._where]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> np.ndarray:
        return self._cut(np.asarray(self._rows[which]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy  # the result is always a copy, which no change of the file on disk reaches
        return np.array(self._cut(self._rows), dtype, order="C")


def part(rows: np.ndarray, *where: Any) -> Any:
    """Returns ``rows[:, *where]``: a ``Part`` if ``rows`` is mapped from disk, else a copy.

    Args:
      rows: [R, ...].
      *where: an index for each further axis.
    """
    view = Part(rows, *where)
    return view if isinstance(rows, np.memmap) else np.asarray(view)
