"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), in any of the layouts people keep them in.

What enters: a folder. What leaves: features [R, 32, 32, 3] uint8, training rows first, the published
test part in ``Dataset.test``. The first of these layouts that the folder holds is read:

    1. TensorFlow Datasets: ``cifar10/<version>/dataset_info.json``, or that version folder
       (array_record or parquet)
    2. the official binary version: ``cifar-10-batches-bin/*.bin``, ``cifar-100-binary/*.bin``, or
       that folder; a file may hold any number of rows
    3. its archive ``cifar-10-binary.tar.gz``, ``cifar-100-binary.tar.gz``, read in place
    4. image folders ``train/<class>/*.png|jpg`` and ``test/<class>/...``, or archives of them

The python version is pickled, so it is refused. Order of the rows, and so ``core.checksum``, is equal
between folder and archive of one layout, not between layouts: the binary version keeps the official
order, image folders go round the classes, TFDS has its own shuffled order.

50,000 training and 10,000 test rows; Fu et al. 2022 give each party the left or right half of the
image. Get it from cs.toronto.edu/~kriz/cifar.html or TFDS.
"""

from __future__ import annotations

import pathlib

import numpy as np

from vfljax.datasets import cifar_binary, class_folders, tfds_folders
from vfljax.datasets.core import Dataset
from vfljax.datasets.given import choice, count, fault, folder_of
from vfljax.datasets.image_files import ignored, listing
from vfljax.datasets.images import decoded, pixels

NAMES10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
SPLITS = {"train": "train", "test": "test"}
OFFICIAL = (50_000, 10_000)  # training and test rows


def cifar10(folder: str, *, rows: int = 0) -> Dataset:
    """CIFAR-10: 50,000 training and 10,000 test images, 10 equal classes in the official order.

    ``rows=n`` keeps the first n training and n // 5 test rows; of image folders, whose rows go round
    the classes, that is a balanced share.
    """
    return _load(folder, "cifar10", cifar_binary.CIFAR10, count("rows", rows), "label", 10)


def cifar100(folder: str, *, rows: int = 0, labels: str = "fine") -> Dataset:
    """CIFAR-100: 50,000 training and 10,000 test images of 100 equal classes.

    ``labels="coarse"`` takes the 20 superclasses instead; image folders do not know them. ``rows`` is
    as of ``cifar10``. Image folders are numbered in alphabetical order, which is the official one.
    """
    fine = choice("labels", labels, ("fine", "coarse")) == "fine"
    key, classes = ("label", 100) if fine else ("coarse_label", 20)
    return _load(folder, "cifar100", cifar_binary.CIFAR100, count("rows", rows), key, classes)


def _load(
    folder: str, name: str, version: cifar_binary.Version, rows: int, key: str, num_classes: int
) -> Dataset:
    """The data set, with a note where rows of the official set are missing."""
    data = _read(folder, name, version, rows, key, num_classes)
    assert data.test is not None
    has = (int((~data.test).sum()), int(data.test.sum()))
    asked = class_folders.part_rows(rows)
    if has != tuple(min(n or full, full) for n, full in zip(asked, OFFICIAL)):
        note = (
            f"{has[0]:,} training and {has[1]:,} test rows; the official set has 50,000 and 10,000"
        )
        data = data._replace(notes=(*data.notes, note))
    return data


def _read(
    folder: str, name: str, version: cifar_binary.Version, rows: int, key: str, num_classes: int
) -> Dataset:
    layouts = (
        f"{name}/<version>/ of TFDS, {version.folder}/, {version.archive}, or image folders "
        "train/<class>/ and test/<class>/ (or archives of them)"
    )
    root = folder_of(folder, layouts)
    prepared = tfds_folders.locate(root, name)
    if prepared:
        return _prepared(prepared, name, rows, key, num_classes)
    files = cifar_binary.locate(root, version)
    if files:
        return _binary(files, name, version, rows, key, num_classes)
    cifar_binary.refuse_pickled(root, version)
    images, others = listing(root)
    folders = class_folders.splits(images, SPLITS)
    notes = (*class_folders.left_out(images, others, SPLITS), *ignored(root, images))
    if not folders:
        said = "".join(f" ({note})" for note in ignored(root, images))
        raise fault(f"{root} holds none of the layouts of {name}: {layouts}{said}.")
    if key == "coarse_label":
        raise fault(
            f"{root}: image folders have fine labels only: use labels='fine' or {version.archive}."
        )
    return _folders(root, name, folders, rows, num_classes, notes)


def _prepared(version: pathlib.Path, name: str, rows: int, key: str, num_classes: int) -> Dataset:
    tfds_folders.check(version, name)
    parts, names = [], ()
    for part, wanted in zip(SPLITS, class_folders.part_rows(rows), strict=True):
        encoded, labels, names = tfds_folders.split(version, name, part, key, wanted)
        if not encoded:
            raise fault(f"{version}: split {part!r} has no row: {tfds_folders.REMEDY}.")
        where = [f"{version}, {part} row {row + 1}" for row in range(len(encoded))]
        parts.append((decoded(iter(enumerate(encoded)), where, shape=(32, 32)), labels))
    names = NAMES10 if name == "cifar10" else names if len(names) == num_classes else ()
    note = f"read {version} (TFDS)"
    return class_folders.joined(name, parts[0], parts[1], names, num_classes, (note,), rows)


def _binary(
    files: cifar_binary.Files,
    name: str,
    version: cifar_binary.Version,
    rows: int,
    key: str,
    num_classes: int,
) -> Dataset:
    column = -1 if key == "label" else 0  # of the label bytes: coarse, fine
    parts = [
        (x[: wanted or None], y[: wanted or None, column].astype(np.int64))
        for (x, y), wanted in zip(
            cifar_binary.parts(files, version), class_folders.part_rows(rows), strict=True
        )
    ]
    text = version.texts[0 if key == "label" else -1]
    names = NAMES10 if name == "cifar10" else cifar_binary.names(files, text, num_classes)
    note = f"read {files.where} (official binary version)"
    return class_folders.joined(name, parts[0], parts[1], names, num_classes, (note,), rows)


def _folders(
    root: pathlib.Path,
    name: str,
    folders: dict[str, class_folders.Folders],
    rows: int,
    num_classes: int,
    more: tuple[str, ...],
) -> Dataset:
    for split in SPLITS:
        if split not in folders:
            raise fault(f"{root} has no image in {split}/<class>/: put the {split} part there.")
    names = NAMES10 if name == "cifar10" else tuple(sorted(folders["train"]))
    if len(names) != num_classes:
        raise fault(f"{root}/train has {len(names)} class folders and not {num_classes}.")
    parts, lossy = [], False
    for split, wanted in zip(SPLITS, class_folders.part_rows(rows), strict=True):
        images, labels = class_folders.labeled(root, split, folders[split], names, wanted)
        lossy |= any(not image.parts[-1].lower().endswith(".png") for image in images)
        parts.append((pixels(images, shape=(32, 32)), labels))
    notes = [f"read image folders in {root}", *more]
    if lossy:
        notes.append(
            "pixels were decoded from JPEG, which is lossy: they are not the official ones"
        )
    return class_folders.joined(name, parts[0], parts[1], names, num_classes, notes, rows)
