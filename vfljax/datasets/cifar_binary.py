"""The official binary version of CIFAR-10 and CIFAR-100: rows of label bytes and 3,072 pixel bytes.

What enters: a folder. What leaves: pixels [R, 32, 32, 3] uint8 and label bytes of the two parts. A
row is 1 label byte (CIFAR-10) or 2 (CIFAR-100: coarse, fine), then 1,024 red, green and blue
bytes, row by row. A file may hold any number of rows, but every official file must be there.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vfljax.datasets import archives
from vfljax.datasets.given import content, fault, inside

PIXELS = 3 * 32 * 32


class Version(NamedTuple):
    """The official names of one set."""

    folder: str
    archive: str
    pickled: tuple[str, ...]  # of the "python version"
    train: tuple[str, ...]  # the training files, in order
    batch: str  # pattern of any training file's name
    test: str
    texts: tuple[str, ...]  # files of class names
    label_bytes: int


CIFAR10 = Version(
    "cifar-10-batches-bin",
    "cifar-10-binary.tar.gz",
    ("cifar-10-python.tar.gz", "cifar-10-batches-py", "data_batch_1"),
    tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    r"data_batch_\d+\.bin",
    "test_batch.bin",
    ("batches.meta.txt",),
    1,
)
CIFAR100 = Version(
    "cifar-100-binary",
    "cifar-100-binary.tar.gz",
    ("cifar-100-python.tar.gz", "cifar-100-python", "meta"),
    ("train.bin",),
    r"train\.bin",
    "test.bin",
    ("fine_label_names.txt", "coarse_label_names.txt"),
    2,
)


class Files(NamedTuple):
    """One binary version, where it was found."""

    where: pathlib.Path
    content: Mapping[str, bytes]  # name -> bytes


def locate(folder: pathlib.Path, version: Version) -> Files | None:
    """The version's files from its folder, this folder, or its archive; None where there are none."""
    for place in (folder, folder / version.folder):
        if place.is_dir():
            own = [p for p in inside(place) if _belongs(p.name, version)]
            if any(p.name.endswith(".bin") for p in own):
                return Files(place, {p.name: content(p) for p in own})
    archive = folder / version.archive
    if not archive.exists():
        return None
    if not archive.is_file():
        raise fault(f"{archive} is not a file: put the official archive there.")
    names = [n for n in archives.members(archive) if _belongs(n.rsplit("/", 1)[-1], version)]
    by_name = {name.rsplit("/", 1)[-1]: name for name in reversed(names)}
    for name in names:
        first = by_name[name.rsplit("/", 1)[-1]]
        if name != first:
            raise fault(f"{archive} holds {first} and {name}: fetch {version.archive} again.")
    found = {n.rsplit("/", 1)[-1]: data for n, data in archives.contents(archive, names)}
    if not any(name.endswith(".bin") for name in found):
        raise fault(f"{archive} holds no .bin file of the binary version: fetch it again.")
    return Files(archive, found)


def refuse_pickled(folder: pathlib.Path, version: Version) -> None:
    """The python version is pickled, and unpickling a file can run anything."""
    for name in version.pickled:
        if (folder / name).exists():
            raise fault(
                f"{folder / name} is the python (pickle) version, which is never opened: fetch the "
                f"binary version, {version.archive}."
            )


def _belongs(name: str, version: Version) -> bool:
    return name in (version.test, *version.texts) or bool(re.fullmatch(version.batch, name))


def parts(files: Files, version: Version) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """(pixels [R, 32, 32, 3], label bytes [R, 1 or 2]) of the training and of the test part."""
    for name in (*version.train, version.test):
        if name not in files.content:
            raise fault(f"{files.where} has no {name}: fetch {version.archive} again.")
    for name in files.content:
        if re.fullmatch(version.batch, name) and name not in version.train:
            raise fault(f"{files.where / name} is no file of {version.archive}: remove it.")
    batches = [_rows(files, name, version) for name in version.train]
    joined = tuple(np.concatenate(arrays) for arrays in zip(*batches))
    return (joined[0], joined[1]), _rows(files, version.test, version)


def _rows(files: Files, name: str, version: Version) -> tuple[np.ndarray, np.ndarray]:
    data, bytes_a_row = files.content[name], version.label_bytes + PIXELS
    if not data or len(data) % bytes_a_row:
        raise fault(
            f"{files.where / name} has {len(data):,} bytes, not whole rows of {bytes_a_row:,}: it is "
            f"cut off, or not the binary version; fetch {version.archive} again."
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, bytes_a_row)
    labels = rows[:, : version.label_bytes]
    for column, below in enumerate((10,) if version.label_bytes == 1 else (20, 100)):
        if (labels[:, column] >= below).any():
            row = int(np.argmax(labels[:, column] >= below))
            raise fault(
                f"{files.where / name} row {row + 1} has label {labels[row, column]}: labels must be "
                f"0..{below - 1}; fetch {version.archive} again."
            )
    return rows[:, version.label_bytes :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels


def names(files: Files, text: str, number: int) -> tuple[str, ...]:
    """Names of the classes from one of the version's text files; () where it is not there."""
    if text not in files.content:
        return ()
    lines = files.content[text].decode("utf-8", "replace").splitlines()
    found = tuple(line.strip() for line in lines if line.strip())
    if len(found) != number:
        raise fault(
            f"{files.where / text} has {len(found)} names and not {number}: fetch it again."
        )
    return found
