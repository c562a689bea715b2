"""Breast histopathology images (Janowczyk & Madabhushi 2016): 50x50 patches, 1 = IDC (28 %).

The folder holds Kaggle's patch folders, ``<patient>/<0|1>/<patient>_idx5_x<x>_y<y>_class<0|1>.png``, or
archives of them; or one .npz with x [R, 50, 50, 3] uint8, y, patient and, if possible, name. Rows are in order
of the images' names, and groups are patients. Get it from Kaggle (breast-histopathology-images).
"""

from __future__ import annotations

import pathlib
import re

import numpy as np

from vfljax.datasets import images
from vfljax.datasets.core import Dataset, classes, spread
from vfljax.datasets.files import MAX_BYTES, folder_of, only, without
from vfljax.datasets.npz import NPZ, arrays, labels_of, numbered, rgb
from vfljax.datasets.options import BYTES, limited
from vfljax.datasets.table_errors import fault

SIDE = 50
MOST_PATCHES = 10_000  # of a row; no slide has so many of one class
NAME = re.compile(r"(?P<patient>.+)_idx\d+_x\d+_y\d+_class(?P<label>[01])\.png", re.IGNORECASE)
LAYOUTS = "<patient>/<0|1>/<patient>_idx5_x<x>_y<y>_class<0|1>.png of BHI, or one .npz file"


@limited(patches=(1, MOST_PATCHES), size=(1, images.MOST_SIZE), max_bytes=BYTES)
def bhi(
    folder: str, *, patches: int = 1, rows: int = 0, size: int = SIDE, max_bytes: int = MAX_BYTES
) -> Dataset:
    """Reads BHI, of kind "image", or of kind "patches" if a row has more than one patch.

    Three kinds of patches are left out and counted in ``notes``: those that are not 50x50 pixels (borders of
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
      size: height and width of a patch in pixels; every patch is resized if it is not 50.
      max_bytes: the most bytes that the pixels may take in memory.
    """
    root = folder_of(folder, LAYOUTS)
    stored = only(root, NPZ)
    whole = _of_npz(stored, max_bytes) if stored else _of_files(root)
    patients, labels = whole.groups, whole.labels
    places, left = _together(labels, patients, patches)
    if not len(places):
        raise fault(root, f"has no {patches} patches of one patient and class", "set patches lower")
    places = places[spread(labels[places[:, 0]], rows)]
    pixels = whole.pixels(places.ravel(), size=size, max_bytes=max_bytes)
    astray = f"{left} patches that fill no row of {patches} of one patient and class left out"
    return Dataset(
        "bhi",
        pixels.reshape(len(places), patches, size, size, 3) if patches > 1 else pixels,
        classes(f"{root}, its {len(places)} rows", labels[places[:, 0]], 2),
        2,
        "patches" if patches > 1 else "image",
        classes=("not IDC", "IDC"),
        groups=patients[places[:, 0]],
        notes=(*whole.notes, astray) if left else whole.notes,
    )


def _together(labels: np.ndarray, patients: np.ndarray, per_row: int) -> tuple[np.ndarray, int]:
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


def _of_npz(path: pathlib.Path, max_bytes: int) -> images.ImageRows:
    stored = arrays(path, ("x", "y", "patient"), ("name",), max_bytes)
    x, y = rgb(path, stored["x"], SIDE), labels_of(path, "y", stored["y"], 2)
    patients = numbered(path, "patient", stored["patient"])
    order = np.arange(len(y))
    if "name" in stored:
        order = np.argsort(numbered(path, "name", stored["name"]), kind="stable")
    return images.ImageRows(y[order], patients[order], x[order], (f"read {path}",))


def _of_files(root: pathlib.Path) -> images.ImageRows:
    # Kaggle's download holds every patch in two folders
    found = images.find(root, lambda image: image.parts[-1])
    if not found.images:
        raise without(root, LAYOUTS)
    every = sorted(found.images, key=lambda image: image.parts[-1])
    patients, labels = map(np.array, zip(*map(_named, every)))
    fitting = np.flatnonzero((images.shapes(every) == SIDE).all(1))
    if not len(fitting):
        raise fault(root, f"has no patch of {SIDE}x{SIDE} pixels", "fetch BHI again")
    notes = [f"read {len(fitting)} patches in {root}"]
    if len(every) > len(fitting):
        notes.append(f"{len(every) - len(fitting)} patches that are not {SIDE}x{SIDE} left out")
    numbers = np.unique(patients, return_inverse=True)[1].astype(np.int32)
    pictures = [every[place] for place in fitting]
    return images.ImageRows(labels[fitting], numbers[fitting], pictures, (*notes, *found.notes))


def _named(image: images.Image) -> tuple[str, int]:
    """Returns a patch's patient and label by its name, with which its folders must agree."""
    match = NAME.fullmatch(image.parts[-1])
    if not match:
        raise fault(image.where, "is not named as a patch of BHI", f"give a folder with {LAYOUTS}")
    lies, should = image.parts[-3:-1], match.groups()
    if lies != should:
        what = f"lies in {'/'.join(lies) or 'no folder'} and not in {'/'.join(should)}"
        raise fault(image.where, what, "folder and name must agree")
    return match["patient"], int(match["label"])
