"""Images, or a table, from one .npz file of plain arrays; pickled objects are never opened.

What enters: a .npz file, or a folder that holds exactly one. What leaves: its arrays, checked, for
the loader ``npz`` here and for the sets that are also kept in this form.
"""

from __future__ import annotations

import pathlib
import zipfile
from collections.abc import Sequence

import numpy as np

from vfljax.datasets import given
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.given import explained, fault, fits, folder_of, inside, without

REMEDY = "write it anew by numpy.savez_compressed, without object arrays"
LAYOUTS = "exactly one .npz file"


@given.limited(max_bytes=given.BYTES)
def npz(
    folder: str, *, x: str = "x", y: str = "y", groups: str = "", max_bytes: int = given.MAX_BYTES
) -> Dataset:
    """Any .npz with features ``x`` and labels ``y`` (integers 0..C-1), named by these options.

    x [R, H, W] or [R, H, W, channels] is of kind "image", kept as it is if uint8 and float32 otherwise;
    x [R, F] is a "table", float32, NaN being a missing number. ``groups`` names an array [R] of numbers
    or words, such as patients: rows of a group stay in one part.
    """
    keys = [x, y, *([groups] if groups else [])]
    path = pathlib.Path(folder)
    if not folder or not path.is_file():
        root = folder_of(folder, LAYOUTS)
        if (path := only(root)) is None:
            raise without(root, LAYOUTS)
    stored = arrays(path, keys, max_bytes=max_bytes)
    features, labels = stored[x], labels_of(path, y, stored[y])
    table = features.ndim == 2
    forms = "numbers [rows, columns], [rows, height, width] or [rows, height, width, channels]"
    numbers = features.dtype.kind in "biuf" and features.ndim in (2, 3, 4) and features.size > 0
    must(path, x, features, numbers, forms)
    first = features.ndim == 4 and features.shape[1] in (1, 3) and features.shape[3] > 4
    must(path, x, features, not first, f"channels last: {x}.transpose(0, 2, 3, 1)")
    if table or features.dtype != np.uint8:
        with np.errstate(over="ignore"):
            features = features.astype(np.float32)
        good = np.isfinite(features) | (np.isnan(features) & table)
        for at in np.argwhere(~good)[:1]:
            where, nan = f"{path}: {x} in row {at[0] + 1}", ", or NaN for missing" * table
            raise fault(f"{where} holds {stored[x][*at]}: numbers must be finite in float32{nan}.")
    return Dataset(
        path.stem,
        features,
        labels,
        int(labels.max()) + 1,
        "table" if table else "image",
        groups=numbered(path, groups, stored[groups]) if groups else None,
        notes=(f"read {path}",),
    )


def only(root: pathlib.Path) -> pathlib.Path | None:
    """A folder's .npz file; None where there is none, UserError where there are several."""
    files = [p for p in inside(root) if p.suffix.lower() == ".npz"]
    if len(files) > 1:
        names = f"{files[0].name}, {files[1].name}, ..."
        raise fault(f"{root} holds {len(files)} .npz files ({names}): leave one.")
    return files[0] if files else None


def arrays(
    path: pathlib.Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    max_bytes: int = given.MAX_BYTES,
) -> dict[str, np.ndarray]:
    """The arrays of these names, all of the first one's length; those of ``optional`` that exist.

    Of each the size its header claims is checked before the array is made."""
    if not path.is_file():
        raise fault(f"{path} is not a file: put the .npz file there.")
    stored = {}
    # what numpy.load returns for an archive; of a file that is none numpy.load would read on
    with explained(path, REMEDY), path.open("rb") as file, np.lib.npyio.NpzFile(file) as archive:
        assert archive.zip is not None
        for key in dict.fromkeys([*required, *(key for key in optional if key in archive.files)]):
            if key not in archive.files:
                has = ", ".join(archive.files[:20]) or "none"
                raise fault(f"{path} has no array {key!r}: it has {has}.")
            shape, dtype = header(archive.zip, f"{key}.npy")
            if dtype.hasobject:
                raise fault(f"{path}: {key} holds Python objects, never opened: {REMEDY}.")
            remedy = "set max_bytes higher, or store fewer rows"
            fits(f"{path}: {key}", shape, dtype.itemsize, max_bytes, remedy)
            stored[key] = np.asarray(archive[f"{key}.npy"])
    first = stored[required[0]]
    for key, array in stored.items():
        good = bool(array.ndim) and len(array) == len(first) > 0
        must(path, key, array, good, f"1 or more rows, as many as {required[0]} {first.shape}")
    return stored


def header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype]:
    """An array's shape and type, as its member's first bytes tell them."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        form = np.lib.format
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, _, dtype = read(stream)
    return shape, dtype


def must(path: pathlib.Path, key: str, array: np.ndarray, good: bool, be: str) -> None:
    """Raise UserError that shows an array's type and shape, and what they must be."""
    if not good:
        raise fault(f"{path}: {key} is {array.dtype} of shape {array.shape}: it must be {be}.")


def labels_of(
    path: pathlib.Path, key: str, labels: np.ndarray, num_classes: int | None = None
) -> np.ndarray:
    """Labels [R] int32, every class of 0..C-1 present."""
    good = labels.ndim == 1 and labels.dtype.kind in "biuf"
    must(path, key, labels, good, "one integer a row")
    out = classes(f"{path}, array {key}", labels, num_classes)
    present = np.unique(out)
    for absent in np.setdiff1d(np.arange(min(present[-1], len(present))), present)[:1]:
        missed = f"{key} has label {present[-1]} and no row of label {absent}"
        raise fault(f"{path}: {missed}: number the classes 0, 1, 2, ... without gaps.")
    return out


def numbered(path: pathlib.Path, key: str, groups: np.ndarray) -> np.ndarray:
    """Groups [R] as int32, numbered in the order of their values."""
    good = groups.ndim == 1 and groups.dtype.kind in "biufUS"
    must(path, key, groups, good, "one number or word a row")
    if groups.dtype.kind == "f" and not np.isfinite(groups).all():
        row = int(np.argmax(~np.isfinite(groups)))
        raise fault(f"{path}: {key} in row {row + 1} is {groups[row]}: every row needs a group.")
    return np.unique(groups, return_inverse=True)[1].astype(np.int32)


def rgb(path: pathlib.Path, key: str, x: np.ndarray, side: int | None = None) -> np.ndarray:
    """Images [R, H, W, 3] uint8, of ``side`` x ``side`` pixels if given."""
    sized = x.ndim == 4 and x.shape[1:] == ((side, side, 3) if side else (*x.shape[1:3], 3))
    good = x.dtype == np.uint8 and sized and x.size > 0
    sides = "height, width" if side is None else f"{side}, {side}"
    must(path, key, x, good, f"uint8 [rows, {sides}, 3]")
    return x
