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

import pathlib

import numpy as np

from vfljax.datasets import files, images
from vfljax.datasets.core import Dataset, classes, spread
from vfljax.datasets.files import FILE, MAX_BYTES
from vfljax.datasets.npz import NPZ, arrays, labels_of, numbered, rgb
from vfljax.datasets.options import BYTES, limited
from vfljax.datasets.table_errors import fault
from vfljax.errors import options_in

DIAGNOSES = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")  # HAM10000's dx
NAMES = ("image_name", "image_id")
GROUPS = ("patient_id", "lesion_id")
LAYOUTS = (
    "images and one CSV file of image_name, target (SIIM-ISIC 2020) or of image_id, dx (HAM10000), "
    "or one .npz file"
)


@limited(size=(0, images.MOST_SIZE), max_bytes=BYTES)
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
    """Reads SIIM-ISIC 2020 or HAM10000 as melanoma or no melanoma; both names have this loader.

    Second copies of an image, which must be equal, are left out and counted in ``notes``, and so are images
    that the CSV file does not name. GAFM (Han and Guan 2023) uses 64x64 gray images split by row:
    ``size=64, gray=True, groups=False``. The defaults are colors and groups.

    Args:
      folder: the folder that holds the files.
      size: every image is resized to size x size, whatever its shape (``images.pixels``); 0 keeps the size of
        the files, which must then be the same for all.
      gray: whether an image has one channel, ITU-R 601 luma, in place of three.
      rows: n keeps n rows, evenly spread, with the classes in their shares (``core.spread``); 0 keeps all.
      target: the CSV's column of 0 and 1. If it is "target" and there is none, HAM10000's ``dx`` is read.
      groups: True keeps rows of a patient or lesion in one part; a row whose patient or lesion is not known
        is its own group. False splits by row, as some papers do.
      max_bytes: the most bytes that the pixels may take in memory.
      file: the name of the CSV (or .npz) file, if the folder holds several.
    """
    root = files.folder_of(folder, LAYOUTS)
    path = _the_file(root, target, file)
    zipped = path.suffix.lower() == ".npz"
    whole, group = _of_npz(path, size, max_bytes) if zipped else _of_files(root, path, target)
    chosen = spread(whole.labels, rows)
    numbers = None
    if groups and group:
        every = numbered(path, group, whole.groups)
        numbers = np.unique(every[chosen], return_inverse=True)[1].astype(np.int32)
    return Dataset(
        "ham10000" if group == "lesion_id" else "isic",
        whole.pixels(chosen, size=size, gray=gray, max_bytes=max_bytes),
        classes(f"{path}, {len(chosen)} rows", whole.labels[chosen], 2),
        2,
        "image",
        classes=("no melanoma", "melanoma"),
        groups=numbers,
        notes=(f"read {len(chosen)} of {len(whole.labels)} rows of {path}", *whole.notes),
    )


def _of_npz(path: pathlib.Path, size: int, max_bytes: int) -> tuple[images.ImageRows, str]:
    """Returns the rows, and the name of the array of their groups, "" if there is none."""
    stored = arrays(path, ("x", "y"), GROUPS, max_bytes)
    x, labels = rgb(path, stored["x"]), labels_of(path, "y", stored["y"], 2)
    group = next((key for key in GROUPS if key in stored), "")
    note = f"images of {x.shape[2]}x{x.shape[1]} pixels" + f" resized to {size}x{size}" * (size > 0)
    return images.ImageRows(labels, stored.get(group, labels), x, (note,)), group


def _of_files(root: pathlib.Path, path: pathlib.Path, target: str) -> tuple[images.ImageRows, str]:
    header, records = files.csv_table(path)
    column = target if target in header else "dx"
    allowed = DIAGNOSES if column == "dx" else ("0", "1", "0.0", "1.0")
    name, group = (next((k for k in keys if k in header), "") for keys in (NAMES, GROUPS))
    found = images.find(root, _stem)
    named = {_stem(image): image for image in found.images}
    lines: dict[str, int] = {}  # the line that names each image
    labels, groups = [], []
    for line, record in records:
        image_name, value = record[name], record[column]
        if value not in allowed:
            what = f"is {value[:40]!r} and not one of {', '.join(allowed)}"
            raise fault(path, what, line=line, column=column)
        if image_name not in named:
            what = f"names the image {image_name[:40]!r}, which is not in {root}"
            raise fault(path, what, "; ".join(["put the images there", *found.notes]), line=line)
        if lines.setdefault(image_name, line) != line:
            what = f"names the image {image_name!r}, as does line {lines[image_name]}"
            raise fault(path, what, line=line)
        labels.append(value in ("1", "1.0", "mel"))
        # a row without a patient or lesion is its own group
        groups.append((record[group] if group else "") or f"row {len(labels) - 1}")
    if not labels:
        raise fault(path, "has no row")
    more, notes = len(named) - len(lines), found.notes
    if more:
        notes = (f"{more:,} images that {path.name} does not name left out", *notes)
    every = [named[image_name] for image_name in lines]
    return images.ImageRows(np.array(labels, np.int64), np.array(groups), every, notes), group


def _stem(image: images.Image) -> str:
    return image.parts[-1].rpartition(".")[0]


def _the_file(root: pathlib.Path, target: str, file: str) -> pathlib.Path:
    """Returns the file named, else the only .npz file, else the only CSV with names and labels of images."""
    if file:
        if not _tells(root / file, target):
            what = f"has no column {target!r} (or dx) beside {' or '.join(NAMES)}"
            raise fault(root / file, what, ("correct ", FILE, *options_in(" or {target}")))
        return root / file
    if stored := files.only(root, NPZ):
        return stored
    named = [
        p for p in files.inside(root) if p.suffix.lower() == ".csv" or p.name == "HAM10000_metadata"
    ]
    tables = [p for p in named if not p.name.startswith("sample_submission") and _tells(p, target)]
    if len(tables) > 1:
        names = ", ".join(path.name for path in tables)
        raise fault(root, f"holds {names}", ("name one by ", FILE))
    if not tables:
        raise files.without(root, LAYOUTS, [f"no CSV file has a column {target!r}, or dx"])
    return tables[0]


def _tells(path: pathlib.Path, target: str) -> bool:
    """Returns True if a CSV file has columns of names and labels, and for any .npz file, checked later."""
    if path.suffix.lower() == ".npz":
        return True
    _, header = next(files.csv_rows(path), (1, []))
    has_target = target in header or (target == "target" and "dx" in header)
    return has_target and any(name in header for name in NAMES)
