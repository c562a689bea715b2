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
from vfljax.datasets.faults import one_line
from vfljax.datasets.given import fault
from vfljax.datasets.image_files import Image

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


def left_out(
    images: Sequence[Image], others: Sequence[Sequence[str]], names: Mapping[str, str]
) -> tuple[str, ...]:
    """A note on what lies in the split folders ``names`` and is no row; () where nothing does."""
    astray = [i.parts for i in images if ("", "", *i.parts)[-3].lower() not in names]
    of_no_kind = [parts for parts in others if any(p.lower() in names for p in parts[:-1])]
    notes = []
    if astray:
        notes.append(
            f"{len(astray):,} images that do not lie in <split>/<class>/ left out, such as "
            f"{'/'.join(astray[0])}"
        )
    if of_no_kind:
        notes.append(
            f"{len(of_no_kind):,} files that are no PNG or JPEG, or lie too deep, left out, such as "
            f"{'/'.join(of_no_kind[0])}"
        )
    return tuple(notes)


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
    rows: int = 0,
) -> Dataset:
    """One image ``Dataset`` of a training part and a published test part, each (pixels, labels);
    ``rows`` is the option that made them small."""
    for part, (_, labels) in (("training", train), ("test", test)):
        if rows and len(np.unique(labels)) < 2:
            raise fault(
                f"config.data.options.rows={rows} leaves {len(labels)} rows of one class in the {part} "
                f"part: rows must be at least {5 * num_classes} for every class to be in the test part."
            )
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
        classes=tuple(map(one_line, names)),
        test=held,
        notes=tuple(notes),
    )


def part_rows(rows: int) -> tuple[int, int]:
    """Training and test rows that ``rows=n`` asks for: n and n // 5 (one at least); 0 is all."""
    return rows, max(rows // 5, 1) if rows else 0
