"""Images, or a table, from one .npz file of plain arrays; pickled objects are never opened.

What enters: a .npz file, or a folder that holds exactly one. What leaves: its arrays, checked, for
the loader ``npz`` here and for the sets that are also kept in this form.
"""

from __future__ import annotations

import pathlib
import zipfile
from collections.abc import Sequence

import numpy as np

from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.given import (
    MAX_BYTES,
    count,
    explained,
    fault,
    fits,
    folder_of,
    inside,
    word,
)

REMEDY = "write it anew by numpy.savez_compressed, without object arrays"


def npz(
    folder: str, *, x: str = "x", y: str = "y", groups: str = "", max_bytes: int = MAX_BYTES
) -> Dataset:
    """Any .npz with features ``x`` and labels ``y`` (integers 0..C-1), named by these options.

    x [R, H, W] or [R, H, W, channels] is of kind "image", kept as it is if uint8 and float32 otherwise;
    x [R, F] is a "table", float32, NaN being a missing number. ``groups`` names an array [R] of numbers
    or words, such as patients: rows of a group stay in one part.
    """
    keys = [word("x", x), word("y", y), *([groups] if word("groups", groups, empty=True) else [])]
    path = _the_file(folder)
    found = arrays(path, keys, max_bytes=count("max_bytes", max_bytes, 1))
    features, labels = found[x], labels_of(path, y, found[y])
    if features.ndim not in (2, 3, 4) or 0 in features.shape:
        raise fault(
            f"{path}: {x} has shape {features.shape}: images are [rows, height, width] or "
            "[rows, height, width, channels], a table is [rows, columns]."
        )
    if features.ndim == 4 and features.shape[1] in (1, 3) and features.shape[3] > 4:
        raise fault(
            f"{path}: {x} has shape {features.shape}, channels first: store it with channels last, "
            f"{x}.transpose(0, 2, 3, 1)."
        )
    table = features.ndim == 2
    if table or features.dtype != np.uint8:
        features = _floats(path, x, features, missing=table)
    return Dataset(
        path.stem,
        features,
        labels,
        int(labels.max()) + 1,
        "table" if table else "image",
        groups=numbered(path, groups, found[groups]) if groups else None,
        notes=(f"read {path}",),
    )


def _the_file(folder: str) -> pathlib.Path:
    layouts = "exactly one .npz file"
    if folder and pathlib.Path(folder).is_file():
        return pathlib.Path(folder)
    root = folder_of(folder, layouts)
    path = only(root)
    if path is None:
        raise fault(
            f"{root} holds no .npz file: give the folder that holds {layouts}, or the file."
        )
    return path


def only(root: pathlib.Path) -> pathlib.Path | None:
    """A folder's .npz file; None where there is none, UserError where there are several."""
    files = [p for p in inside(root) if p.suffix.lower() == ".npz"]
    if len(files) > 1:
        raise fault(
            f"{root} holds {len(files)} .npz files ({files[0].name}, {files[1].name}, ...): leave one."
        )
    return files[0] if files else None


def arrays(
    path: pathlib.Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
) -> dict[str, np.ndarray]:
    """The arrays of these names, all of the first one's length; those of ``optional`` that exist."""
    if not path.is_file():
        raise fault(f"{path} is not a file: put the .npz file there.")
    with explained(path, REMEDY), zipfile.ZipFile(path) as archive:
        names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
        for key in required:
            if key not in names:
                raise fault(
                    f"{path} has no array {key!r}: it has {', '.join(names[:20]) or 'none'}."
                )
        wanted = [*required, *(key for key in optional if key in names)]
        found = {key: _array(path, archive, key, max_bytes) for key in dict.fromkeys(wanted)}
    rows = {key: len(array) if array.ndim else -1 for key, array in found.items()}
    first = next(iter(rows))
    for key, length in rows.items():
        if length != rows[first] or length < 1:
            told = f"{length} rows" if length >= 0 else "no axis"
            raise fault(
                f"{path}: {key} has {told} and {first} has {rows[first]}: every array needs one entry "
                "a row."
            )
    return found


def header(archive: zipfile.ZipFile, member: str) -> tuple[tuple[int, ...], np.dtype]:
    """An array's shape and type, as its member's first bytes tell them."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    return shape, dtype


def _array(path: pathlib.Path, archive: zipfile.ZipFile, key: str, max_bytes: int) -> np.ndarray:
    """One array, its size checked before it is made."""
    shape, dtype = header(archive, f"{key}.npy")
    if dtype.hasobject:
        raise fault(f"{path}: {key} holds Python objects, which are never opened: {REMEDY}.")
    remedy = "set max_bytes higher, or store fewer rows"
    fits(f"{path}: {key}", shape, dtype.itemsize, max_bytes, remedy)
    with archive.open(f"{key}.npy") as stream:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def labels_of(
    path: pathlib.Path, key: str, labels: np.ndarray, num_classes: int | None = None
) -> np.ndarray:
    """Labels [R] int32, every class of 0..C-1 present."""
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        raise fault(
            f"{path}: {key} is {labels.dtype} of shape {labels.shape}: labels are one integer a row."
        )
    out = classes(f"{path}, array {key}", labels, num_classes)
    present = np.unique(out)
    if len(present) <= present[-1]:
        absent = int(np.argmax(present != np.arange(len(present))))
        raise fault(
            f"{path}: {key} has label {present[-1]} and no row of label {absent}: number the classes "
            "0, 1, 2, ... without gaps."
        )
    return out


def numbered(path: pathlib.Path, key: str, groups: np.ndarray) -> np.ndarray:
    """Groups [R] as int32, numbered in the order of their values."""
    if groups.ndim != 1 or groups.dtype.kind not in "biufUS":
        raise fault(
            f"{path}: {key} is {groups.dtype} of shape {groups.shape}: groups are one number or word "
            "a row."
        )
    if groups.dtype.kind == "f" and not np.isfinite(groups).all():
        row = int(np.argmax(~np.isfinite(groups)))
        raise fault(f"{path}: {key} in row {row + 1} is {groups[row]}: every row needs a group.")
    return np.unique(groups, return_inverse=True)[1].astype(np.int32)


def rgb(path: pathlib.Path, key: str, x: np.ndarray, shape: Sequence[int] = ()) -> np.ndarray:
    """Images [R, H, W, 3] uint8, [H, W] being ``shape`` if given."""
    square = not shape or x.shape[1:3] == tuple(shape)
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[3] != 3 or 0 in x.shape or not square:
        sides = ", ".join(map(str, shape)) or "height, width"
        raise fault(
            f"{path}: {key} is {x.dtype} of shape {x.shape}: images are uint8 [rows, {sides}, 3]."
        )
    return x


def _floats(path: pathlib.Path, key: str, x: np.ndarray, missing: bool) -> np.ndarray:
    if x.dtype.kind not in "biuf":
        raise fault(f"{path}: {key} is {x.dtype}: features are numbers.")
    with np.errstate(over="ignore"):
        out = x.astype(np.float32)
    wrong = np.isinf(out) if missing else ~np.isfinite(out)
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(out), -1).any(1)))
        told = (
            "infinity or a number beyond float32: numbers must be finite, or NaN where one is missing"
            if missing
            else "NaN, infinity or a number beyond float32: every pixel must be finite"
        )
        raise fault(f"{path}: {key} in row {row + 1} holds {told}.")
    return out
