"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), and CINIC-10 (Darlow et al. 2018), in their usual layouts.

Features are [R, 32, 32, 3] uint8, training rows first; ``Dataset.test`` is the published test part. For CIFAR
the first of these layouts that the folder holds is read. CINIC-10 is read only from the last one:

    1. TensorFlow Datasets: ``cifar10/<version>/dataset_info.json``, or that version folder
       (array_record or parquet)
    2. the official binary version: ``cifar-10-batches-bin/*.bin``, ``cifar-100-binary/*.bin``, that
       folder, or its archive ``cifar-10-binary.tar.gz``; a file may hold any number of rows
    3. image folders ``<split>/<class>/*.png|jpg`` below any further folders, or archives of them

The python version is pickled, so it is not read. The order of the rows, and so ``core.checksum``, differs
between layouts: the binary version keeps the official order, image folders take an image of each class in
turn, and TFDS has its own shuffled order.

CIFAR has 50,000 training and 10,000 test rows; Fu et al. 2022 give each party the left or right half of the
image. Get it from cs.toronto.edu/~kriz/cifar.html or TFDS. CINIC-10 joins CIFAR-10 and downsampled ImageNet
images of the same classes in three parts of 90,000 rows. Train and valid make 180,000 training rows, as in Fu
et al. 2022, and test has 90,000 rows. Get it from github.com/BayesWatch/cinic-10.
"""

from __future__ import annotations

import functools
import itertools
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import files, images, tfds
from vfljax.datasets.core import Block, Conversion
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault

NAMES10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
PIXELS = 3 * 32 * 32
CINIC = "train/<class>/*.png, valid/ and test/ of CINIC-10, or its archive CINIC-10.tar.gz"
Part = tuple[Sequence[images.Image], np.ndarray]  # image files, labels [R]


class Binary(NamedTuple):
    """The official binary version of one set. A row of its files is the label bytes, the last of which is
    read, then 1,024 red, 1,024 green and 1,024 blue bytes, each in the order of the image's rows."""

    folder: str
    archive: str
    train: tuple[str, ...]  # the training files, in order
    test: str
    label_bytes: int
    names: str  # the file of the classes' names
    pickled: tuple[str, ...]  # files and folders of the python version


BINARY = {
    "cifar10": Binary(
        folder="cifar-10-batches-bin",
        archive="cifar-10-binary.tar.gz",
        train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        test="test_batch.bin",
        label_bytes=1,
        names="batches.meta.txt",
        pickled=("cifar-10-python.tar.gz", "cifar-10-batches-py", "data_batch_1"),
    ),
    "cifar100": Binary(
        folder="cifar-100-binary",
        archive="cifar-100-binary.tar.gz",
        train=("train.bin",),
        test="test.bin",
        label_bytes=2,
        names="fine_label_names.txt",
        pickled=("cifar-100-python.tar.gz", "cifar-100-python", "meta"),
    ),
}


@limited()
def cifar10(folder: str, *, rows: int = 0) -> Conversion:
    """Reads CIFAR-10: 10 classes of equal size, numbered in the official order.

    Args:
      folder: the folder that holds it in one of the layouts above.
      rows: n keeps the first n training rows and the first n // 5 test rows (at least 1); 0 keeps all. Image
        folders take the classes in turn, so that the first rows are balanced.
    """
    return _cifar(folder, "cifar10", 10, rows)


@limited()
def cifar100(folder: str, *, rows: int = 0) -> Conversion:
    """Reads CIFAR-100: 100 classes of equal size, the fine labels.

    Args:
      folder: as of ``cifar10``. Image folders are numbered in alphabetical order, which is the official one.
      rows: as of ``cifar10``.
    """
    return _cifar(folder, "cifar100", 100, rows)


@limited()
def cinic10(folder: str, *, rows: int = 0) -> Conversion:
    """Reads CINIC-10. Fu et al. (2022; their table of the attacks' results) train on the 180,000 images of the
    published train and valid and test on 90,000. vfljax draws its own validation rows from the training part.

    Args:
      folder: the folder that holds the image folders, or their archive.
      rows: as of ``cifar10``.
    """
    root = files.folder_of(folder, CINIC)
    splits = (("train", "valid"), ("test",))
    return _of_folders("cinic10", root, CINIC, splits, NAMES10, 10, rows)


def _cifar(folder: str, name: str, number: int, rows: int) -> Conversion:
    """Reads the first layout found."""
    binary = BINARY[name]
    layouts = (
        f"{name}/<version>/ of TFDS, {binary.folder}/, {binary.archive}, or image folders "
        "train/<class>/ and test/<class>/ (or archives of them)"
    )
    root = files.folder_of(folder, layouts)
    if version := tfds.locate(root, name):
        return _of_tfds(name, version, number, rows)
    for place in (root, root / binary.folder, root / binary.archive):
        if found := _contents(place, {*binary.train, binary.test, binary.names}):
            return _of_binary(name, place, found, number, rows)
    for pickled in binary.pickled:
        if (root / pickled).exists():
            remedy = f"fetch the binary version, {binary.archive}"
            raise fault(root / pickled, "is the python (pickle) version, never opened", remedy)
    names = NAMES10 if name == "cifar10" else ()
    return _of_folders(name, root, layouts, (("train",), ("test",)), names, number, rows)


def _part_rows(rows: int) -> tuple[int, int]:
    """Returns the numbers of training and test rows for ``rows=n``: n, and n // 5 but at least 1; 0: all."""
    return rows, max(rows // 5, 1) if rows else 0


def _contents(place: pathlib.Path, names: set[str]) -> dict[str, Callable[[], bytes]]:
    """Returns functions that read files of a folder or an archive, by the files' names."""
    if place.is_dir():
        named = [(p.name, functools.partial(files.content, p)) for p in files.inside(place)]
    else:
        members = files.archive_members(place) if place.exists() else []
        named = [(member.name.rpartition("/")[2], member.read) for member in members]
    return {name: read for name, read in named if name in names}


def _of_binary(
    name: str, place: pathlib.Path, contents: dict[str, Callable[[], bytes]], number: int, rows: int
) -> Conversion:
    binary = BINARY[name]
    again = f"fetch {binary.archive} again"
    for file in (*binary.train, binary.test):
        if file not in contents:
            raise fault(place, f"has no {file}", again)
    width = binary.label_bytes + PIXELS

    def blocks() -> Iterator[Block]:
        for batches, most in zip((binary.train, (binary.test,)), _part_rows(rows), strict=True):
            left = most
            for file in batches:
                data = contents[file]()
                if not data or len(data) % width:
                    what = f"has {len(data):,} bytes, not whole rows of {width:,}"
                    raise fault(place / file, what, f"it is cut off or another version; {again}")
                whole = np.frombuffer(data, np.uint8).reshape(-1, width)
                part = whole[:left] if most else whole
                left -= len(part)
                x = part[:, -PIXELS:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
                labels = part[:, binary.label_bytes - 1].astype(np.int32)
                for row in np.flatnonzero(labels >= number)[:1]:
                    what = f"has label {labels[row]}, not one of 0..{number - 1}"
                    raise fault(place / file, what, again, row=int(row) + 1)
                yield Block(x, labels, np.full(len(labels), file == binary.test))

    listed = contents[binary.names]().decode("utf-8", "replace") if binary.names in contents else ""
    names = NAMES10 if name == "cifar10" else tuple(listed.split())
    notes = (f"read {place.name} (official binary version)",)
    return Conversion(name, number, blocks(), {"kind": "image", "classes": names, "notes": notes})


def _of_tfds(name: str, version: pathlib.Path, number: int, rows: int) -> Conversion:
    from tensorflow_datasets import decode

    parts, names = [], ()
    for split, most in zip(("train", "test"), _part_rows(rows), strict=True):
        encoded: Any = {"image": decode.SkipDecoding()}
        features, records = tfds.examples(version, name, split, most=most, **encoded)
        names = tuple(features["label"].names)
        found = [
            images.Image((), f"{version}, {split} row {row}", functools.partial(bytes, data))
            for row, data in enumerate((record["image"] for record in records), 1)
        ]
        parts.append((found, np.array([record["label"] for record in records])))
    if all(class_name.isdecimal() for class_name in names):
        names = ()  # TFDS has only numbers for them
    names = NAMES10 if name == "cifar10" else names
    return _of_images(name, parts, names, number, (f"read {name} of TFDS",))


def _of_folders(
    name: str,
    root: pathlib.Path,
    layouts: str,
    splits: Sequence[Sequence[str]],
    names: Sequence[str],
    number: int,
    rows: int,
) -> Conversion:
    """Reads image folders. If ``names`` is (), the ``number`` training folders name the classes."""
    found, copies = images.find(root)
    folders: dict[str, dict[str, list[images.Image]]] = {s: {} for part in splits for s in part}
    outside = 0
    for image in found:
        split, class_name = ("", "", *image.parts)[-3:-1]
        if split.lower() in folders:
            folders[split.lower()].setdefault(class_name, []).append(image)
        else:
            outside += 1
    if not any(folders.values()):
        raise fault(root, f"does not hold {layouts}", ("correct ", files.FOLDER))
    names = names or sorted(folders["train"])
    if len(names) != number:
        raise fault(root / "train", f"has {len(names)} class folders and not {number}")
    for split, held in folders.items():
        if differing := sorted(set(held) ^ set(names)):
            what = f"has images of {len(held)} classes; {differing[0]!r} is lacking or unknown"
            raise fault(root / split, what, f"the classes are {', '.join(names[:10])}")
    parts = []
    for part, most in zip(splits, _part_rows(rows), strict=True):
        every = [row for split in part for row in _in_turn([folders[split][n] for n in names])]
        pictures, labels = zip(*every[: most or None])
        parts.append((pictures, np.array(labels)))
    notes = ["read image folders"]
    if outside:
        notes.append(f"{outside:,} images that do not lie in <split>/<class>/ left out")
    if copies:
        notes.append(f"{copies:,} second copies of an image left out")
    if any(not image.parts[-1].lower().endswith(".png") for image in found):
        notes.append("pixels were decoded from JPEG, which is lossy: not the official ones")
    return _of_images(name, parts, names, number, notes)


def _in_turn(folders: Sequence[Sequence[images.Image]]) -> list[tuple[images.Image, int]]:
    """Returns images and labels: the first image of every class, then the second of every class, and so on,
    so that the first rows are as balanced as all."""
    rounds = itertools.zip_longest(*folders)
    return [(image, y) for images in rounds for y, image in enumerate(images) if image is not None]


def _of_images(
    name: str, parts: Sequence[Part], names: Sequence[str], number: int, notes: Sequence[str]
) -> Conversion:
    pictures = [image for found, _ in parts for image in found]
    labels = np.concatenate([y for _, y in parts])
    test = np.repeat([False, True], [len(y) for _, y in parts])
    decode = functools.partial(images.pixels, side=32)
    about = {"kind": "image", "classes": tuple(names), "notes": tuple(notes)}
    return Conversion(name, number, images.blocks(decode, pictures, labels, test=test), about)
