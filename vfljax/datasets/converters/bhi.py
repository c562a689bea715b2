"""Breast histopathology images (Janowczyk & Madabhushi 2016): 50x50 patches, 1 = IDC (28 %).

The folder holds Kaggle's patch folders, ``<patient>/<0|1>/<patient>_idx5_x<x>_y<y>_class<0|1>.png``, or
archives of them; or one .npz with x [R, 50, 50, 3] uint8, y, patient and, if possible, name. Rows are in order
of the images' names, and groups are patients. Get it from Kaggle (breast-histopathology-images).
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from vfljax.datasets import images
from vfljax.datasets.core import Conversion, spread
from vfljax.datasets.files import FOLDER, folder_of, only
from vfljax.datasets.npz import NPZ, array_labels, arrays, numbered, rgb
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault

SIDE = 50
NAME = re.compile(r"(?P<patient>.+)_idx\d+_x\d+_y\d+_class(?P<label>[01])\.png", re.IGNORECASE)
LAYOUTS = "<patient>/<0|1>/<patient>_idx5_x<x>_y<y>_class<0|1>.png of BHI, or one .npz file"
# labels [R], patients [R], the patches, and notes
Patches = tuple[np.ndarray, np.ndarray, Sequence[Any] | np.ndarray, tuple[str, ...]]


@limited(patches=(1, 10_000))
def bhi(folder: str, *, patches: int = 1, rows: int = 0) -> Conversion:
    """Reads BHI, of kind "image", or of kind "patches" if a row has more than one patch.

    Three kinds of patches are left out and counted in the notes: those that are not 50x50 pixels (borders of
    a slide), second copies, which must be equal (Kaggle's download holds every patch twice), and the patches
    of a patient and class that do not fill another row.

    Args:
      folder: the folder that holds the images or the .npz file.
      patches: patches of a row, one for each party, as Fu et al. (2022) divide this set. They are of one
        patient and class and consecutive in order of name, and rows of a patient stay in one part. This
        deviates from Fu et al.'s released code, which groups consecutive files of one class across patients
        and splits rows at random, so that patches of one patient are in training and test rows alike; their
        paper writes that the patches are of one patient.
      rows: n keeps n rows, evenly spread, with the classes in their shares (``core.spread``); 0 keeps all.
    """
    root = folder_of(folder, LAYOUTS)
    stored = only(root, NPZ)
    labels, patients, pictures, notes = _of_npz(stored) if stored else _of_files(root)
    places, left = together(labels, patients, patches)
    if not len(places):
        raise fault(root, f"has no {patches} patches of one patient and class", "set patches lower")
    if left:
        astray = f"{left} patches that fill no row of {patches} of one patient and class left out"
        notes = (*notes, astray)
    places = places[spread(labels[places[:, 0]], rows)]

    def decode(rows: np.ndarray) -> np.ndarray:
        flat = rows.ravel()
        those = pictures[flat] if isinstance(pictures, np.ndarray) else [pictures[i] for i in flat]
        decoded = images.pixels(those, SIDE)
        return decoded.reshape(*rows.shape, SIDE, SIDE, 3) if patches > 1 else decoded

    first = places[:, 0]
    blocks = images.blocks(decode, places, labels[first], groups=patients[first])
    kind = "patches" if patches > 1 else "image"
    about = {"kind": kind, "classes": ("not IDC", "IDC"), "notes": notes}
    return Conversion("bhi", 2, blocks, about)


def together(labels: np.ndarray, patients: np.ndarray, per_row: int) -> tuple[np.ndarray, int]:
    """Returns the places of each row's patches, [R', P], and the number of patches that are left over. Rows
    are in the order of their first patch."""
    order = np.lexsort((np.arange(len(labels)), labels, patients))
    kinds = np.stack([patients[order], labels[order]], 1)
    _, first, many = np.unique(kinds, axis=0, return_index=True, return_counts=True)
    parts = [
        order[start : start + total - total % per_row].reshape(-1, per_row)
        for start, total in zip(first, many)
    ]
    places = np.concatenate(parts)
    return places[np.argsort(places[:, 0])], len(labels) - places.size


def _of_npz(path: pathlib.Path) -> Patches:
    stored = arrays(path, ("x", "y", "patient"), ("name",))
    x, y = rgb(path, stored["x"], SIDE), array_labels(path, "y", stored["y"], 2)
    patients = numbered(path, "patient", stored["patient"])
    order = np.arange(len(y))
    if "name" in stored:
        order = np.argsort(numbered(path, "name", stored["name"]), kind="stable")
    return y[order], patients[order], x[order], (f"read {path.name}",)


def _of_files(root: pathlib.Path) -> Patches:
    found, copies = images.find(root, lambda image: image.parts[-1])
    if not found:
        raise fault(root, f"does not hold {LAYOUTS}", ("correct ", FOLDER))
    found.sort(key=lambda image: image.parts[-1])
    patients, labels = map(np.array, zip(*map(_named, found)))
    fitting = np.flatnonzero((images.shapes(found) == SIDE).all(1))
    notes = [f"read {len(fitting)} patches"]
    if len(found) > len(fitting):
        notes.append(f"{len(found) - len(fitting)} patches that are not {SIDE}x{SIDE} left out")
    if copies:
        notes.append(f"{copies:,} second copies of an image left out")
    numbers = np.unique(patients, return_inverse=True)[1].astype(np.int32)
    pictures = [found[place] for place in fitting]
    return labels[fitting], numbers[fitting], pictures, tuple(notes)


def _named(image: images.Image) -> tuple[str, int]:
    """Returns a patch's patient and label by its name."""
    match = NAME.fullmatch(image.parts[-1])
    if not match:
        raise fault(image.where, "is not named as a patch of BHI", f"give a folder with {LAYOUTS}")
    return match["patient"], int(match["label"])
