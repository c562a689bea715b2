"""Data sets kept as folders of images: ``<split>/<class>/<image>``, below any further folders.

What enters: image entries. What leaves: each split's images and labels, the classes in the order a
caller gives; and a ``Dataset`` joined from a training and a published test part.
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.given import fault
from vfljax.datasets.images import Image

Folders = dict[str, list[Image]]  # class -> its images, in order of name


def splits(images: Sequence[Image], names: Mapping[str, str]) -> dict[str, Folders]:
    """split -> class -> images; ``names`` maps a split folder's name to the split's. Images that lie
    in no such folder do not count."""
    out: dict[str, Folders] = {}
    for image in images:
        above, kind = ("", "", *image.parts)[-3:-1]
        split = names.get(above.lower())
        if split:
            out.setdefault(split, {}).setdefault(kind, []).append(image)
    return out


def labeled(
    folder: pathlib.Path, split: str, folders: Folders, names: Sequence[str], rows: int = 0
) -> tuple[list[Image], np.ndarray]:
    """The first ``rows`` (0: all) images of a split and their labels, places in ``names``.

    Order: the first image of every class, then the second of every class, and so on, so that the
    first rows are as balanced as all. Raises UserError for a class without images or an unknown one.
    """
    strange = sorted(set(folders) - set(names))
    if strange:
        raise fault(
            f"{folder}: {split}/{strange[0]} is none of the classes {_few(names)}: "
            "remove that folder, or correct data.name."
        )
    missing = [name for name in names if name not in folders]
    if missing:
        raise fault(f"{folder}: {split}/{missing[0]} holds no image: fetch the data set again.")
    rounds = itertools.zip_longest(*(folders[name] for name in names))
    both = [(i, y) for one in rounds for y, i in enumerate(one) if i is not None]
    both = both[: rows or None]
    return [image for image, _ in both], np.array([y for _, y in both], np.int64)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 10 else f"{names[0]}, ..., {names[-1]}"


def joined(
    name: str,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    names: Sequence[str],
    num_classes: int,
    notes: Sequence[str],
) -> Dataset:
    """One image ``Dataset`` of a training part and a published test part, each (pixels, labels)."""
    for part, (_, labels) in (("training", train), ("test", test)):
        classes(f"{name}, {part} part", labels, num_classes)
    held = np.repeat([False, True], [len(train[1]), len(test[1])])
    labels = np.concatenate([train[1], test[1]]).astype(np.int32)
    pixels = np.concatenate([train[0], test[0]])
    return Dataset(
        name,
        pixels,
        labels,
        num_classes,
        "image",
        classes=tuple(names),
        test=held,
        notes=tuple(notes),
    )


def part_rows(rows: int) -> tuple[int, int]:
    """Training and test rows that ``rows=n`` asks for: n and n // 5 (one at least); 0 is all."""
    return rows, max(rows // 5, 1) if rows else 0
