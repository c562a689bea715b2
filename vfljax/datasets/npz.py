"""Reads images or a table from one .npz file of plain arrays; pickled objects are never opened."""

from __future__ import annotations

import math
import pathlib
import statistics
import zipfile
from collections.abc import Sequence

import numpy as np

from vfljax.datasets import formats
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.files import MAX_BYTES, find, fits
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault, narrow, reading

FEWER = "give fewer rows"
REMEDY = "write it anew by numpy.savez_compressed, without object arrays"
NPZ = ("*.npz",)


@limited()
def npz(folder: str, *, x: str = "x", y: str = "y", groups: str = "") -> Dataset:
    """Reads a table or images from an .npz file, whose arrays the options name.

    Args:
      folder: the file, or the folder that holds it.
      x: name of the features. [R, F] is of kind "table" and read as float32, NaN being a missing number;
        [R, H, W] or [R, H, W, channels] is of kind "image", and uint8 stays uint8, else it is float32.
      y: name of the labels [R], integers 0..C-1.
      groups: name of [R] numbers or words, such as patients, whose rows stay in one part; "" is none.
    """
    keys = [x, y, *([groups] if groups else [])]
    path = find(folder, "one .npz file, or the folder that holds it", NPZ)
    stored = arrays(path, keys, ())
    features, labels = stored[x], array_labels(path, y, stored[y])
    table = features.ndim == 2
    forms = "numbers [rows, columns], [rows, height, width] or [rows, height, width, channels]"
    numbers = features.dtype.kind in "biuf" and features.ndim in (2, 3, 4) and features.size > 0
    must(path, x, features, numbers, forms)
    first = features.ndim == 4 and features.shape[1] in (1, 3) and features.shape[3] > 4
    must(path, x, features, not first, f"channels last: {x}.transpose(0, 2, 3, 1)")
    if table or features.dtype != np.uint8:
        with np.errstate(over="ignore"):
            features = features.astype(np.float32)
        right = np.isfinite(features) | (np.isnan(features) & table)
        for at in np.argwhere(~right)[:1]:
            nan = ", or NaN for missing" * table
            what = f"holds {stored[x][*at]}"
            remedy = f"numbers must be finite in float32{nan}"
            raise fault(f"{path}: {x}", what, remedy, row=at[0] + 1)
    return Dataset(
        path.stem,
        features,
        labels,
        int(labels.max()) + 1,
        "table" if table else "image",
        groups=numbered(path, groups, stored[groups]) if groups else None,
        notes=(f"read {path}",),
    )


def arrays(
    path: pathlib.Path,
    required: Sequence[str] = (),
    optional: Sequence[str] | None = None,
    max_bytes: int = MAX_BYTES,
    of_rows: bool = True,
) -> dict[str, np.ndarray]:
    """Reads arrays; the sizes that headers claim are checked before any array is made.

    Args:
      path: the file.
      required: names of arrays that must be there.
      optional: names of arrays that are read if they are there; None is all others.
      max_bytes: the most bytes that the arrays may have together.
      of_rows: whether all arrays must have the same length.

    Raises:
      UserError: for any fault of the file.
    """
    # numpy.load returns this for an archive, but would try other formats for any other file
    with reading(path, REMEDY), path.open("rb") as file, np.lib.npyio.NpzFile(file) as archive:
        assert archive.zip is not None
        kind = formats.of_program(archive.zip.namelist())
        if kind not in (formats.NPZ, ""):
            raise fault(path, f"is {kind}", REMEDY)
        named = [key for key in archive.files if not formats.hidden(key)]
        present = [key for key in named if optional is None or key in optional]
        keys = list(dict.fromkeys([*required, *present]))
        narrow(path, len(keys))
        total = 0
        for key in keys:
            if key not in archive.files:
                has = ", ".join(archive.files[:20]) or "none"
                raise fault(path, f"has no array {key!r}", f"it has {has}")
            total += _size(path, key, archive.zip, max_bytes)
        fits(path, (total,), 1, max_bytes, FEWER)
        stored = {key: np.asarray(archive[f"{key}.npy"]) for key in keys}
    lengths = [len(array) if array.ndim else 0 for array in stored.values()]
    usual = statistics.mode(lengths) if lengths else 0
    for (key, array), length in zip(stored.items(), lengths, strict=True):
        right = length == usual > 0 or not of_rows
        must(path, key, array, right, f"of {usual or 'some'} rows, as others are")
    return stored


def _size(path: pathlib.Path, key: str, archive: zipfile.ZipFile, max_bytes: int) -> int:
    """Returns an array's bytes by its header; raises UserError for more than ``max_bytes``."""
    form = np.lib.format
    with archive.open(f"{key}.npy") as stream:
        old = form.read_magic(stream) == (1, 0)
        read_header = form.read_array_header_1_0 if old else form.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        start = stream.tell()
    if dtype.hasobject:
        raise fault(f"{path}: {key}", "holds Python objects, never opened", REMEDY)
    fits(f"{path}: {key}", shape, dtype.itemsize, max_bytes, FEWER)
    size = math.prod(shape) * dtype.itemsize
    if start + size != archive.getinfo(f"{key}.npy").file_size:
        raise ValueError(f"{key} has not the size that its header claims")
    return size


def must(path: pathlib.Path, key: str, array: np.ndarray, right: bool, be: str) -> None:
    """Raises UserError, with an array's type and shape, unless it is right.

    Args:
      path: the file.
      key: the array's name.
      array: the array.
      right: whether it is as it must be.
      be: what it must be, for the message.
    """
    if not right:
        what = f"is {array.dtype} of shape {array.shape}"
        raise fault(f"{path}: {key}", what, f"it must be {be}")


def array_labels(
    path: pathlib.Path, key: str, labels: np.ndarray, num_classes: int | None = None
) -> np.ndarray:
    """Returns the labels [R] int32, or raises UserError, also if a class below the largest label has no row.

    Args:
      path: the file.
      key: the array's name.
      labels: the array as it is stored.
      num_classes: C; None is one more than the largest label.
    """
    right = labels.ndim == 1 and labels.dtype.kind in "biuf"
    must(path, key, labels, right, "one integer a row")
    out = classes(f"{path}, array {key}", labels, num_classes)
    present = np.unique(out)
    for absent in np.setdiff1d(np.arange(min(present[-1], len(present))), present)[:1]:
        what = f"has label {present[-1]} and no row of label {absent}"
        raise fault(f"{path}: {key}", what, "number the classes 0, 1, 2, ... without gaps")
    return out


def numbered(path: pathlib.Path, key: str, groups: np.ndarray) -> np.ndarray:
    """Returns the groups [R] as int32, numbered in the order of their values, or raises UserError.

    Args:
      path: the file.
      key: the array's name.
      groups: numbers or words.
    """
    right = groups.ndim == 1 and groups.dtype.kind in "biufUS"
    must(path, key, groups, right, "one number or word a row")
    if groups.dtype.kind == "f" and not np.isfinite(groups).all():
        row = int(np.argmax(~np.isfinite(groups)))
        raise fault(f"{path}: {key}", f"is {groups[row]}", "every row needs a group", row=row + 1)
    return np.unique(groups, return_inverse=True)[1].astype(np.int32)


def rgb(path: pathlib.Path, x: np.ndarray, side: int = 0) -> np.ndarray:
    """Returns images [R, H, W, 3] uint8, or raises UserError.

    Args:
      path: the file.
      x: the array as it is stored.
      side: H and W; 0 is any size.
    """
    sized = x.ndim == 4 and x.shape[1:] == ((side, side, 3) if side else (*x.shape[1:3], 3))
    right = x.dtype == np.uint8 and sized and x.size > 0
    sides = f"{side}, {side}" if side else "height, width"
    must(path, "x", x, right, f"uint8 [rows, {sides}, 3]")
    return x
