"""Skin lesions, 1 = melanoma: SIIM-ISIC 2020 (33,126 images, 1.8 %) and HAM10000 (10,015, 11 %).

The folder holds either images (.png, .jpg; in subfolders such as ``jpeg/train`` or ``HAM10000_images_part_1``,
or in archives) and one CSV file, or one .npz with x [R, H, W, 3] uint8, y and, if known, patient_id or
lesion_id. Features are [R, size, size, 3] uint8, or [R, size, size] of gray; groups are patients or lesions.
The CSV files:

    SIIM-ISIC 2020  train.csv or ISIC_2020_Training_GroundTruth.csv: image_name, target, patient_id
    HAM10000        HAM10000_metadata(.csv): image_id, dx, lesion_id; y = (dx == "mel")

Get SIIM-ISIC from Kaggle (siim-isic-melanoma-classification) and HAM10000 from doi:10.7910/DVN/DBW86T.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vfljax.datasets import images
from vfljax.datasets.core import Conversion
from vfljax.datasets.files import folder_of, inside, only
from vfljax.datasets.npz import NPZ, array_labels, arrays, numbered, rgb
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault, reading

# the columns of each set's table: the image, its label and its group; and the values of the label
SIIM = (("image_name", "target", "patient_id"), ("0", "1", "0.0", "1.0"))
HAM = (("image_id", "dx", "lesion_id"), ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc"))
MELANOMA = ("1", "1.0", "mel")
GROUPS = ("patient_id", "lesion_id")
LAYOUTS = (
    "images and one CSV file of image_name, target, patient_id (SIIM-ISIC 2020) or of image_id, dx, "
    "lesion_id (HAM10000), or one .npz file"
)
# labels [R], groups [R], the images, the groups' column, and notes
Lesions = tuple[np.ndarray, np.ndarray, Sequence[Any] | np.ndarray, str, tuple[str, ...]]


@limited(size=(1, 4096))
def isic(folder: str, *, size: int = 64, gray: bool = False, groups: bool = True) -> Conversion:
    """Reads SIIM-ISIC 2020 or HAM10000 as melanoma or no melanoma; both names have this converter.

    Second copies of an image, which must be equal, are left out and counted in the notes, and so are images
    that the CSV file does not name. GAFM (Han and Guan 2023) uses 64x64 gray images split by row:
    ``size=64, gray=True, groups=False``. The defaults are colors and groups.

    Args:
      folder: the folder that holds the files.
      size: every image is resized to size x size, whatever its shape (``images.pixels``).
      gray: whether an image has one channel, ITU-R 601 luma, in place of three.
      groups: True keeps rows of a patient or lesion in one part; a row whose patient or lesion is not known
        is its own group. False splits by row, as some papers do.
    """
    root = folder_of(folder, LAYOUTS)
    stored = only(root, NPZ)
    labels, owners, pictures, group, notes = _of_npz(stored) if stored else _of_files(root)
    decode = functools.partial(images.pixels, side=size, resize=True, gray=gray)
    numbers = numbered(root, group, owners) if groups and group else None
    about = {"kind": "image", "classes": ("no melanoma", "melanoma"), "notes": notes}
    name = "ham10000" if group == "lesion_id" else "isic"
    return Conversion(name, 2, images.blocks(decode, pictures, labels, groups=numbers), about)


def _of_npz(path: pathlib.Path) -> Lesions:
    stored = arrays(path, ("x", "y"), GROUPS)
    x, labels = rgb(path, stored["x"]), array_labels(path, "y", stored["y"], 2)
    group = next((key for key in GROUPS if key in stored), "")
    notes = (f"read {path.name}, images of {x.shape[2]}x{x.shape[1]} pixels",)
    return labels, stored.get(group, labels), x, group, notes


def _of_files(root: pathlib.Path) -> Lesions:
    path, (name, label, group), allowed = _table(root)
    with reading(path):
        table = pd.read_csv(path, usecols=[name, label, group], dtype=str, keep_default_na=False)
    found, copies = images.find(root, _stem)
    named = {_stem(image): image for image in found}
    for wrong, column, what in (
        (~table[label].isin(allowed), label, f"is not one of {', '.join(allowed)}"),
        (~table[name].isin(list(named)), name, f"is an image that is not in {root}"),
        (table[name].duplicated(), name, "is named twice"),
    ):
        for row in np.flatnonzero(wrong)[:1]:
            value = table[column].iloc[row][:40]
            raise fault(path, f"{what}: {value!r}", row=int(row) + 1, column=column)
    owners = [owner or f"row {row}" for row, owner in enumerate(table[group])]
    notes = [f"read {path.name}"]
    if len(named) > len(table):
        more = len(named) - len(table)
        notes.append(f"{more:,} images that {path.name} does not name left out")
    if copies:
        notes.append(f"{copies:,} second copies of an image left out")
    pictures = [named[image_name] for image_name in table[name]]
    labels = table[label].isin(MELANOMA).to_numpy()
    return labels, np.array(owners), pictures, group, tuple(notes)


def _table(root: pathlib.Path) -> tuple[pathlib.Path, tuple[str, str, str], tuple[str, ...]]:
    """Returns the only CSV file that has a set's columns, these columns, and the values of the label."""
    found = []
    for path in inside(root):
        if path.suffix.lower() == ".csv" or path.name == "HAM10000_metadata":
            with reading(path):
                header = set(pd.read_csv(path, nrows=0).columns)
            found += [(path, *of) for of in (SIIM, HAM) if header.issuperset(of[0])]
    if len(found) != 1:
        held = " and ".join(path.name for path, *_ in found) or "no such table"
        raise fault(root, f"holds {held}", f"give a folder with {LAYOUTS}")
    return found[0]


def _stem(image: images.Image) -> str:
    return image.parts[-1].rpartition(".")[0]
