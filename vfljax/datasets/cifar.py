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
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vfljax.datasets import class_folders, images, tfds
from vfljax.datasets.class_folders import NAMES10, Part, part_rows
from vfljax.datasets.core import Dataset
from vfljax.datasets.files import folder_of, named, without
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault

SPLITS = ("train", "test")
OFFICIAL = (50_000, 10_000)  # training and test rows
PIXELS = 3 * 32 * 32


class Version(NamedTuple):
    """The official binary version of one set: files of rows, each its label bytes and then 1,024 red,
    green and blue bytes, row by row of the image."""

    name: str
    folder: str
    archive: str
    train: tuple[str, ...]  # the training files, in order
    test: str
    below: tuple[int, ...]  # number of classes of each label byte
    texts: tuple[str, ...]  # names of those classes
    pickled: tuple[str, ...]  # names of the "python version"


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
    """CIFAR-10: 50,000 training and 10,000 test images, 10 equal classes in the official order.

    ``rows=n`` keeps the first n training and n // 5 test rows; of image folders, whose rows go round
    the classes, that is a balanced share.
    """
    return _load(folder, CIFAR10, rows, 0)


@limited(labels=("fine", "coarse"))
def cifar100(folder: str, *, rows: int = 0, labels: str = "fine") -> Dataset:
    """CIFAR-100: 50,000 training and 10,000 test images of 100 equal classes.

    ``labels="coarse"`` takes the 20 superclasses instead; image folders do not know them. ``rows`` is
    as of ``cifar10``. Image folders are numbered in alphabetical order, which is the official one.
    """
    return _load(folder, CIFAR100, rows, int(labels == "fine"))


def _load(folder: str, version: Version, rows: int, byte: int) -> Dataset:
    """The first layout there is, with the labels of one label byte of the binary version."""
    layouts = (
        f"{version.name}/<version>/ of TFDS, {version.folder}/, {version.archive}, or image folders "
        "train/<class>/ and test/<class>/ (or archives of them)"
    )
    root = folder_of(folder, layouts)
    coarse = byte < len(version.below) - 1
    if prepared := tfds.locate(root, version.name):
        key = "coarse_label" if coarse else "label"
        parts, names = tfds.parts(prepared, version.name, key, part_rows(rows))
        notes = [f"read {prepared} (TFDS)"]
    elif files := _binary(root, version):
        parts, names = _binary_parts(*files, version, byte, part_rows(rows))
        notes = [f"read {files[0]} (official binary version)"]
    else:
        present = images.find(root)
        train = {i.parts[-2] for i in class_folders.of_splits(present, SPLITS[:1])}
        if not class_folders.of_splits(present, SPLITS):
            raise without(root, layouts, present.notes)
        if coarse:
            raise fault(root, "holds image folders, of fine labels only", "use labels='fine'")
        names = sorted(train) if version is CIFAR100 else NAMES10
        if train and len(names) != version.below[-1]:
            raise fault(root / "train", f"has {len(names)} class folders and not 100")
        parts = class_folders.parts(root, present, [[split] for split in SPLITS], names, rows)
        notes = [f"read image folders in {root}", *class_folders.notes(present, SPLITS)]
    has = [len(labels) for _, labels in parts]
    if has != [min(n or full, full) for n, full in zip(part_rows(rows), OFFICIAL)]:
        counts = f"{has[0]:,} training and {has[1]:,} test rows"
        notes.append(f"{counts}; the official set has 50,000 and 10,000")
    names = NAMES10 if version is CIFAR10 else names
    return class_folders.joined(version.name, parts, names, version.below[byte], notes, rows)


def _binary(folder: pathlib.Path, version: Version) -> tuple[pathlib.Path, dict[str, bytes]] | None:
    """Where the binary version is, and its files by name; None where there is none.

    Raises UserError where only the python version is there: it is pickled, and unpickling a file
    can run anything."""

    def is_part(name: str) -> bool:
        return name in (*version.train, version.test, *version.texts) or (
            version is CIFAR10 and bool(re.fullmatch(r"data_batch_\d+\.bin", name))
        )

    archive = folder / version.archive
    for place in (folder, folder / version.folder, archive):
        files = named(place, is_part)
        if any(name.endswith(".bin") for name in files):
            return place, files
    if archive.exists():
        raise fault(archive, "holds no .bin file of the binary version", "fetch it again")
    for name in version.pickled:
        if (folder / name).exists():
            what = "is the python (pickle) version, never opened"
            raise fault(folder / name, what, f"fetch the binary version, {version.archive}")
    return None


def _binary_parts(
    where: pathlib.Path, files: dict[str, bytes], version: Version, byte: int, rows: Sequence[int]
) -> tuple[list[Part], Sequence[str]]:
    """The training and the test part, each its first ``rows`` (0: all), and the classes' names (()
    where no file has them). A file may hold any number of rows, but every official one must be there."""
    expected, again = (*version.train, version.test), f"fetch {version.archive} again"
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
        parts.append((x, data[:, byte].astype(np.int64)))
    text, number = version.texts[byte], version.below[byte]
    lines = files.get(text, b"").decode("utf-8", "replace").splitlines()
    names = [line.strip() for line in lines if line.strip()]
    if text in files and len(names) != number:
        raise fault(where / text, f"has {len(names)} names and not {number}", again)
    return parts, names


def _binary_rows(file: pathlib.Path, data: bytes, version: Version) -> np.ndarray:
    """One file's rows, [R, label bytes and pixels] uint8."""
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
