"""Skin lesions, 1 = melanoma: SIIM-ISIC 2020 (33,126 images, 1.8 %) and HAM10000 (10,015, 11 %).

What enters: a folder that holds either images (.png, .jpg; in subfolders such as ``jpeg/train`` or
``HAM10000_images_part_1``, or in archives) and one CSV file, or one .npz with x [R, H, W, 3] uint8, y
and, if known, patient_id or lesion_id. What leaves: features [R, size, size, 3] uint8, or
[R, size, size] of gray; groups = patients or lesions. The CSV files:

    SIIM-ISIC 2020  train.csv or ISIC_2020_Training_GroundTruth.csv: image_name, target, patient_id
    HAM10000        HAM10000_metadata(.csv): image_id, dx, lesion_id; y = (dx == "mel")

Get SIIM-ISIC from Kaggle (siim-isic-melanoma-classification) and HAM10000 from doi:10.7910/DVN/DBW86T.
"""

from __future__ import annotations

import csv
import io
import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import image_files, images
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.faults import all_different
from vfljax.datasets.given import (
    MAX_BYTES,
    content,
    count,
    explained,
    fault,
    fits,
    flag,
    folder_of,
    inside,
    spread,
    without,
    word,
)
from vfljax.datasets.npz import arrays, labels_of, numbered, only, rgb

DIAGNOSES = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")  # HAM10000's dx
NAMES = ("image_name", "image_id")
GROUPS = ("patient_id", "lesion_id")
LAYOUTS = (
    "images and one CSV file of image_name, target (SIIM-ISIC 2020) or of image_id, dx (HAM10000), "
    "or one .npz file"
)


class Rows(NamedTuple):
    """All labels and what tells the group of each; the rows chosen, and the pixels of those."""

    labels: np.ndarray
    chosen: np.ndarray
    pixels: np.ndarray
    group: str  # "patient_id", "lesion_id" or "" where no group is known
    groups: np.ndarray
    notes: tuple[str, ...]


def isic(
    folder: str,
    *,
    size: int = 64,
    gray: bool = False,
    rows: int = 0,
    target: str = "target",
    groups: bool = True,
    max_bytes: int = MAX_BYTES,
    file: str = "",
) -> Dataset:
    """SIIM-ISIC 2020 or HAM10000, melanoma or not; the two names are of one loader.

    ``size``: every image becomes size x size, each side scaled by itself (box where it shrinks,
    bilinear where it grows); 0 keeps the files' own size, which must then be one. ``gray=True``: one
    channel, ITU-R 601 luma. ``target`` names the CSV's 0/1 column; without a
    column "target", HAM10000's ``dx`` is read. ``rows=n`` keeps n rows, classes in their shares and
    spread evenly over the file (``given.spread``). ``groups=False``: rows of a patient or lesion may
    part, as in papers that split by row; a row whose patient or lesion is not told is a group of its
    own. ``file`` names the CSV (or .npz) file where the folder holds several.

    The form of GAFM (Han and Guan 2023) is ``size=64, gray=True, groups=False``: 64x64 gray images,
    split by row. ``gray`` and ``groups`` are not so by default.
    """
    pixel_options = {"size": count("size", size, 0, images.MOST_SIZE), "gray": flag("gray", gray)}
    pixel_options["max_bytes"] = count("max_bytes", max_bytes, 1)
    rows, grouped, target = count("rows", rows), flag("groups", groups), word("target", target)
    root = folder_of(folder, LAYOUTS)
    path = _the_file(root, target, word("file", file, empty=True))
    if path.suffix.lower() == ".npz":
        found = _stored(path, rows, **pixel_options)
    else:
        found = _files(root, path, rows, target, pixel_options)
    own = None
    if found.group and grouped:
        every = numbered(path, found.group, found.groups)
        own = np.unique(every[found.chosen], return_inverse=True)[1].astype(np.int32)
    return Dataset(
        "ham10000" if found.group == "lesion_id" else "isic",
        found.pixels,
        classes(f"{path}, {len(found.chosen)} rows", found.labels[found.chosen], 2),
        2,
        "image",
        classes=("no melanoma", "melanoma"),
        groups=own,
        notes=found.notes,
    )


def _stored(path: pathlib.Path, rows: int, size: int, gray: bool, max_bytes: int) -> Rows:
    found = arrays(path, ("x", "y"), GROUPS, max_bytes)
    labels = labels_of(path, "y", found["y"], 2)
    chosen = spread(labels, rows)
    x = rgb(path, "x", found["x"])[chosen]
    shape = (len(x), size or x.shape[1], size or x.shape[2], 1 if gray else 3)
    fits(path, shape, 1, max_bytes, "set rows, or raise max_bytes")
    notes = [f"read {path}"]
    if size and x.shape[1:3] != (size, size):
        notes.append(f"images of {x.shape[2]}x{x.shape[1]} pixels resized to {size}x{size}")
    pixels = images.changed(x, gray=gray, size=size)
    group = next((key for key in GROUPS if key in found), "")
    return Rows(labels, chosen, pixels, group, found.get(group, labels), tuple(notes))


def _files(
    root: pathlib.Path, path: pathlib.Path, rows: int, target: str, pixel_options: Mapping[str, Any]
) -> Rows:
    table = _table(path)
    column = target if target in table else "dx"
    allowed = DIAGNOSES if column == "dx" else ("0", "1", "0.0", "1.0")
    for row, value in enumerate(table[column]):
        if value not in allowed:
            raise fault(
                f"{path} row {row + 1}: {column} is {value!r} and not one of {', '.join(allowed)}."
            )
    labels = np.array([value in ("1", "1.0", "mel") for value in table[column]], np.int64)
    found = image_files.find(root, _stem)
    names = next(table[key] for key in NAMES if key in table)
    every = _in_order(root, path, names, found)
    chosen = spread(labels, rows)
    pixels = images.pixels([every[row] for row in chosen], **pixel_options)
    group = next((key for key in GROUPS if key in table), "")
    groups = [value or f"row {row}" for row, value in enumerate(table.get(group, ()))]
    note = f"read {len(chosen)} of {len(found.images)} images in {root} by {path.name}"
    return Rows(labels, chosen, pixels, group, np.array(groups), (note, *found.notes))


def _stem(image: image_files.Image) -> str:
    return image.parts[-1].rpartition(".")[0]


def _in_order(
    root: pathlib.Path, path: pathlib.Path, names: Sequence[str], found: image_files.Found
) -> list[image_files.Image]:
    """Each row's image, by its name without a suffix."""
    named = {_stem(image): image for image in found.images}
    rows: dict[str, int] = {}
    for row, name in enumerate(names):
        if name not in named:
            said = "".join(f" ({note})" for note in found.notes)
            raise fault(
                f"{path} row {row + 1} names the image {name!r}, which is not in {root}: put the images "
                f"there{said}."
            )
        if rows.setdefault(name, row) != row:
            raise fault(f"{path} rows {rows[name] + 1} and {row + 1} both name the image {name!r}.")
    return [named[name] for name in names]


def _the_file(root: pathlib.Path, target: str, file: str) -> pathlib.Path:
    """The file named, or the only .npz file, or the one CSV file that names images and says what they
    are."""
    if file:
        if not _tells(root / file, target):
            raise fault(
                f"{root / file} has no column {target!r} (or dx) beside {' or '.join(NAMES)}: correct "
                "config.data.options.file or target."
            )
        return root / file
    stored = only(root)
    if stored:
        return stored
    named = [p for p in inside(root) if p.suffix.lower() == ".csv" or p.name == "HAM10000_metadata"]
    samples = "sample_submission"
    found = [p for p in named if not p.name.startswith(samples) and _tells(p, target)]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise fault(f"{root} holds {names}: name one by config.data.options.file.")
    if not found:
        raise without(root, LAYOUTS, [f"no CSV file has a column {target!r}, or dx"])
    return found[0]


def _tells(path: pathlib.Path, target: str) -> bool:
    """Whether a file can be the one of labels; of a .npz its arrays tell later."""
    if path.suffix.lower() == ".npz":
        return True
    header = _lines(path, 1)[0]
    told = target in header or (target == "target" and "dx" in header)
    return told and any(name in header for name in NAMES)


def _lines(path: pathlib.Path, most: int | None = None) -> list[list[str]]:
    with explained(path, "it is no CSV file in UTF-8; fetch it again"):
        text = io.StringIO(content(path).decode("utf-8-sig"), newline="")
        return list(itertools.islice(csv.reader(text, strict=True), most)) or [[]]


def _table(path: pathlib.Path) -> dict[str, tuple[str, ...]]:
    """The file's columns; blank lines are no rows."""
    header, *lines = (line for line in _lines(path) if line)
    all_different(header, str(path))
    for number, line in enumerate(lines):
        if len(line) != len(header):
            raise fault(
                f"{path} row {number + 1} has {len(line)} values and not {len(header)}: the file is "
                "cut off; fetch it again."
            )
    if not lines:
        raise fault(f"{path} has no row: fetch it again.")
    return dict(zip(header, zip(*lines)))
