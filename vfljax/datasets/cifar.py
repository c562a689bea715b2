"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), and CINIC-10 (Darlow et al. 2018), in their usual layouts.

Features are [R, 32, 32, 3] uint8, training rows first; ``Dataset.test`` is the published test part. For CIFAR
the first of these layouts that the folder holds is read. CINIC-10 is read only from the last one:

    1. TensorFlow Datasets: ``cifar10/<version>/dataset_info.json``, or that version folder
       (array_record or parquet)
    2. the official binary version: ``cifar-10-batches-bin/*.bin``, ``cifar-100-binary/*.bin``, or
       that folder; a file may hold any number of rows
    3. its archive ``cifar-10-binary.tar.gz``, ``cifar-100-binary.tar.gz``, read in place
    4. image folders ``<split>/<class>/*.png|jpg`` below any further folders, or archives of them

The python version is pickled, so it is refused. The order of the rows, and so ``core.checksum``, is the same
for a folder and an archive of one layout, but differs between layouts: the binary version keeps the official
order, image folders take an image of each class in turn, and TFDS has its own shuffled order.

CIFAR has 50,000 training and 10,000 test rows; Fu et al. 2022 give each party the left or right half of the
image. Get it from cs.toronto.edu/~kriz/cifar.html or TFDS. CINIC-10 joins CIFAR-10 and downsampled ImageNet
images of the same classes in three parts of 90,000 rows. Train and valid make 180,000 training rows, as in Fu
et al. 2022, and test has 90,000 rows. Get it from github.com/BayesWatch/cinic-10.
"""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import images, tfds
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.files import folder_of, named, without
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault, one_line
from vfljax.errors import Field, UserError

NAMES10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
SPLITS = ("train", "test")
OFFICIAL = (50_000, 10_000)  # training and test rows
PIXELS = 3 * 32 * 32
CINIC = "train/<class>/*.png, valid/ and test/ of CINIC-10, or its archive CINIC-10.tar.gz"
Part = tuple[Any, np.ndarray]  # image files or pixels [R, 32, 32, 3] uint8, labels [R]


class Version(NamedTuple):
    """The official binary version of one set. A row of its files is the label bytes, then 1,024 red, 1,024
    green and 1,024 blue bytes, each in the order of the image's rows."""

    name: str
    folder: str
    archive: str
    train: tuple[str, ...]  # the training files, in order
    test: str
    below: tuple[int, ...]  # number of classes of each label byte
    texts: tuple[str, ...]  # the file of class names, for each label byte
    pickled: tuple[str, ...]  # files and folders of the "python version"


CIFAR10 = Version(
    name="cifar10",
    folder="cifar-10-batches-bin",
    archive="cifar-10-binary.tar.gz",
    train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    test="test_batch.bin",
    below=(10,),
    texts=("batches.meta.txt",),
    pickled=("cifar-10-python.tar.gz", "cifar-10-batches-py", "data_batch_1"),
)
CIFAR100 = Version(
    name="cifar100",
    folder="cifar-100-binary",
    archive="cifar-100-binary.tar.gz",
    train=("train.bin",),
    test="test.bin",
    below=(20, 100),
    texts=("coarse_label_names.txt", "fine_label_names.txt"),
    pickled=("cifar-100-python.tar.gz", "cifar-100-python", "meta"),
)


@limited()
def cifar10(folder: str, *, rows: int = 0) -> Dataset:
    """Reads CIFAR-10: 10 classes of equal size, numbered in the official order.

    Args:
      folder: the folder that holds it in one of the layouts above.
      rows: n keeps the first n training rows and the first n // 5 test rows (at least 1); 0 keeps all. Image
        folders take the classes in turn, so that the first rows are balanced.
    """
    return _load(folder, CIFAR10, rows, 0)


@limited(labels=("fine", "coarse"))
def cifar100(folder: str, *, rows: int = 0, labels: str = "fine") -> Dataset:
    """Reads CIFAR-100: 100 classes of equal size.

    Args:
      folder: as of ``cifar10``. Image folders are numbered in alphabetical order, which is the official one.
      rows: as of ``cifar10``.
      labels: "fine", or "coarse" for the 20 superclasses, which image folders do not have.
    """
    return _load(folder, CIFAR100, rows, int(labels == "fine"))


@limited(validation=("drop", "train", "test"))
def cinic10(folder: str, *, rows: int = 0, validation: str = "train") -> Dataset:
    """Reads CINIC-10.

    Args:
      folder: the folder that holds the image folders, or their archive.
      rows: as of ``cifar10``.
      validation: "train" or "test", the part to whose end the published validation rows are added, or "drop".
        Fu et al. (2022; their table of the attacks' results) train on the 180,000 images of train and valid
        and test on 90,000. vfljax draws its own validation rows from the training part in any case.
    """
    root = folder_of(folder, CINIC)
    splits = [(part, "valid") if validation == part else (part,) for part in ("train", "test")]
    published, most = ("train", "valid", "test"), _part_rows(rows)
    parts, _, left = _class_folders(root, CINIC, published, splits, NAMES10, 10, most)
    notes = [f"read image folders in {root}; published validation part: {validation}", *left]
    return _joined("cinic10", parts, NAMES10, 10, notes, rows)


def _load(folder: str, version: Version, rows: int, byte: int) -> Dataset:
    """Reads the first layout found. ``byte`` is the label byte of the binary version that is read."""
    layouts = (
        f"{version.name}/<version>/ of TFDS, {version.folder}/, {version.archive}, or image folders "
        "train/<class>/ and test/<class>/ (or archives of them)"
    )
    root, number, most = folder_of(folder, layouts), version.below[byte], _part_rows(rows)
    if prepared := tfds.locate(root, version.name):
        label = "label" if number == version.below[-1] else "coarse_label"
        parts, names = _tfds_parts(prepared, version.name, label, most)
        notes = [f"read {prepared} (TFDS)"]
    elif binary := _binary(root, version, byte, most):
        where, parts, names = binary
        notes = [f"read {where} (official binary version)"]
    else:
        if number != version.below[-1] and images.find(root).images:
            raise fault(root, "holds image folders, of fine labels only", "use labels='fine'")
        known, splits = NAMES10 if version is CIFAR10 else (), [("train",), ("test",)]
        parts, names, left = _class_folders(root, layouts, SPLITS, splits, known, number, most)
        notes = [f"read image folders in {root}", *left]
    has = [len(labels) for _, labels in parts]
    if has != [min(n or full, full) for n, full in zip(most, OFFICIAL)]:
        counts = f"{has[0]:,} training and {has[1]:,} test rows"
        notes.append(f"{counts}; the official set has 50,000 and 10,000")
    names = NAMES10 if version is CIFAR10 else names
    return _joined(version.name, parts, names, number, notes, rows)


def _part_rows(rows: int) -> tuple[int, int]:
    """Returns the numbers of training and test rows for ``rows=n``: n, and n // 5 but at least 1; 0: all."""
    return rows, max(rows // 5, 1) if rows else 0


def _joined(
    name: str,
    parts: Sequence[Part],
    names: Sequence[str],
    num_classes: int,
    notes: Sequence[str],
    rows: int,
) -> Dataset:
    """Joins a training and a test part to a data set; ``rows`` is the option by which they were cut."""
    for which, (_, labels) in zip(("training", "test"), parts):
        if rows and len(np.unique(labels)) < 2:
            what = f"leaves {len(labels)} rows of one class in the {which} part"
            least = 5 * num_classes
            remedy = f"rows must be at least {least} for every class to be in the test part"
            raise UserError(what, field="data.options.rows", value=rows, remedy=remedy)
        classes(f"{name}, {which} part", labels, num_classes)
    return Dataset(
        name,
        np.concatenate([images.pixels(x, shape=(32, 32)) for x, _ in parts]),
        np.concatenate([y for _, y in parts]).astype(np.int32),
        num_classes,
        "image",
        classes=tuple(map(one_line, names)),
        test=np.repeat([False, True], [len(y) for _, y in parts]),
        notes=tuple(notes),
    )


def _class_folders(
    root: pathlib.Path,
    layouts: str,
    published: Sequence[str],
    splits: Sequence[Sequence[str]],
    names: Sequence[str],
    number: int,
    rows: Sequence[int],
) -> tuple[list[Part], Sequence[str], list[str]]:
    """Returns the parts, each the first ``rows`` (0: all) of the images in its ``splits``; the class names;
    and notes on what was left out. If ``names`` is (), the ``number`` training folders name the classes."""
    found = images.find(root)
    folders: dict[str, dict[str, list[images.Image]]] = {split: {} for split in published}
    outside, notes, parts = [], [], []
    for image in found.images:
        split, name = ("", "", *image.parts)[-3:-1]
        if split.lower() in folders:
            folders[split.lower()].setdefault(name, []).append(image)
        else:
            outside.append(image)
    if not any(folders.values()):
        raise without(root, layouts, found.notes)
    names = names or sorted(folders["train"])
    if folders["train"] and len(names) != number:
        raise fault(root / "train", f"has {len(names)} class folders and not {number}")
    for splits_of_part, most in zip(splits, rows, strict=True):
        every = [row for s in splits_of_part for row in _rounds(root, s, folders[s], names)]
        files, labels = zip(*every[: most or None])
        parts.append((files, np.array(labels)))
    others = [i for i in found.others if {part.lower() for part in i.parts[:-1]} & {*published}]
    for left, kind in (
        (outside, "images that do not lie in <split>/<class>/"),
        (others, "files that are no PNG or JPEG, or lie too deep,"),
    ):
        if left:
            notes.append(f"{len(left):,} {kind} left out, such as {'/'.join(min(left).parts)}")
    every = [image for split in folders.values() for kept in split.values() for image in kept]
    if any(not image.parts[-1].lower().endswith(".png") for image in every):
        what = "pixels were decoded from JPEG, which is lossy: they are not the official ones"
        notes.append(what)
    return parts, names, [*notes, *found.notes]


def _rounds(
    root: pathlib.Path, split: str, folders: dict[str, list[images.Image]], names: Sequence[str]
) -> list[tuple[images.Image, int]]:
    """Returns a split's images and labels: the first image of every class, then the second of every class,
    and so on, so that the first rows are as balanced as all."""
    if not folders:
        raise fault(root, f"has no image in {split}/<class>/", f"put the {split} part there")
    for name in sorted(set(folders) ^ set(names)):
        where = f"{root}: {split}/{name}"
        if name in names:
            raise fault(where, "holds no image", "fetch the data set again")
        few = ", ".join(names) if len(names) <= 10 else f"{names[0]}, ..., {names[-1]}"
        remedy = ("remove that folder, or correct ", Field("data.name"))
        raise fault(where, f"is none of the classes {few}", remedy)
    rounds = itertools.zip_longest(*(folders[name] for name in names))
    return [(i, y) for row in rounds for y, i in enumerate(row) if i is not None]


def _tfds_parts(
    version: pathlib.Path, name: str, label: str, rows: Sequence[int]
) -> tuple[list[Part], Sequence[str]]:
    """Returns the training and the test part, each cut to its first ``rows`` (0: all), and the names of the
    classes, or () if TFDS has only numbers for them."""
    from tensorflow_datasets import decode

    parts, names = [], ()
    for split, most in zip(SPLITS, rows, strict=True):
        encoded: Any = {"image": decode.SkipDecoding()}
        features, records = tfds.examples(version, name, split, most=most, **encoded)
        names = tuple(features[label].names)
        files = [
            images.Image((), f"{version}, {split} row {row}", data=record["image"])
            for row, record in enumerate(records, 1)
        ]
        parts.append((files, np.array([record[label] for record in records])))
    return parts, () if all(class_name.isdecimal() for class_name in names) else names


def _binary(
    folder: pathlib.Path, version: Version, byte: int, rows: Sequence[int]
) -> tuple[pathlib.Path, list[Part], Sequence[str]] | None:
    """Returns the place of the binary version, its parts, each cut to its first ``rows`` (0: all), and the
    classes' names, or () without a file of names; None if there is no binary version. All official files must
    be there. Raises UserError if only the python version is there: unpickling can run any code."""
    expected, again = (*version.train, version.test), f"fetch {version.archive} again"

    def is_part(name: str) -> bool:
        more = version is CIFAR10 and re.fullmatch(r"data_batch_\d+\.bin", name)
        return bool(more) or name in (*expected, *version.texts)

    archive = folder / version.archive
    for where in (folder, folder / version.folder, archive):
        files = named(where, is_part)
        if any(name.endswith(".bin") for name in files):
            break
    else:
        if archive.exists():
            raise fault(archive, "holds no .bin file of the binary version", "fetch it again")
        for name in version.pickled:
            if (folder / name).exists():
                what = "is the python (pickle) version, never opened"
                raise fault(folder / name, what, f"fetch the binary version, {version.archive}")
        return None
    for name in (*expected, *sorted(files)):
        if name not in files:
            raise fault(where, f"has no {name}", again)
        if name not in (*expected, *version.texts):
            raise fault(where / name, f"is no file of {version.archive}", "remove it")
    parts = []
    for batches, most in zip((version.train, (version.test,)), rows, strict=True):
        every = [_binary_rows(where / name, files[name], version) for name in batches]
        data = np.concatenate(every)[: most or None]
        x = data[:, len(version.below) :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        parts.append((x, data[:, byte]))
    text, number = version.texts[byte], version.below[byte]
    lines = files.get(text, b"").decode("utf-8", "replace").splitlines()
    names = [line.strip() for line in lines if line.strip()]
    if text in files and len(names) != number:
        raise fault(where / text, f"has {len(names)} names and not {number}", again)
    return where, parts, names


def _binary_rows(file: pathlib.Path, data: bytes, version: Version) -> np.ndarray:
    """Returns the rows of one file, [R, label bytes and pixels] uint8."""
    width, again = len(version.below) + PIXELS, f"fetch {version.archive} again"
    if not data or len(data) % width:
        what = f"has {len(data):,} bytes, not whole rows of {width:,}"
        raise fault(file, what, f"it is cut off or another version; {again}")
    rows = np.frombuffer(data, np.uint8).reshape(-1, width)
    for column, below in enumerate(version.below):
        for row in np.flatnonzero(rows[:, column] >= below)[:1]:
            what = f"has label {rows[row, column]}, not one of 0..{below - 1}"
            raise fault(file, what, again, row=int(row) + 1)
    return rows
