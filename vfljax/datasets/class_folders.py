"""Data sets kept as folders of images, ``<split>/<class>/<image>``, below any further folders: CINIC-10.

What enters: a folder, or what ``images.find`` found in it. What leaves: pixels and labels of a training and a
published test part, training rows first, and the ``Dataset`` joined from two such parts. Rows go round the
classes; folder and archive give one order, and so one ``core.checksum``.

CINIC-10 (Darlow et al. 2018) is CIFAR-10 and downsampled ImageNet, 3 x 90,000 images of 32x32 in CIFAR-10's
classes: 180,000 rows (train and valid, as Fu et al. 2022) and 90,000 test rows. Get it from
github.com/BayesWatch/cinic-10.
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Sequence

import numpy as np

from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.files import folder_of, without
from vfljax.datasets.images import FoundImages, Image, find, pixels
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault, one_line
from vfljax.errors import Field, UserError

NAMES10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CINIC = ("train", "valid", "test")
CINIC_LAYOUTS = "train/<class>/*.png, valid/ and test/ of CINIC-10, or its archive CINIC-10.tar.gz"
Part = tuple[np.ndarray, np.ndarray]  # pixels [R, 32, 32, 3] uint8, labels [R]


def of_splits(present: FoundImages, splits: Sequence[str]) -> list[Image]:
    """Images that lie in ``<split>/<class>/`` of one of the splits."""
    return [i for i in present.images if ("", "", *i.parts)[-3].lower() in splits]


def notes(present: FoundImages, splits: Sequence[str]) -> list[str]:
    """What lies in the folders ``splits`` and is no row."""
    rows = of_splits(present, splits)
    others = [i for i in present.others if any(part.lower() in splits for part in i.parts[:-1])]
    more_notes = [
        f"{len(left):,} {kind} left out, such as {'/'.join(min(left).parts)}"
        for kind, left in (
            ("images that do not lie in <split>/<class>/", set(present.images) - set(rows)),
            ("files that are no PNG or JPEG, or lie too deep,", others),
        )
        if left
    ]
    if any(not image.parts[-1].lower().endswith(".png") for image in rows):
        what = "pixels were decoded from JPEG, which is lossy: they are not the official ones"
        more_notes.append(what)
    return [*more_notes, *present.notes]


def parts(
    root: pathlib.Path,
    present: FoundImages,
    splits: Sequence[Sequence[str]],
    names: Sequence[str],
    rows: int,
) -> list[Part]:
    """The training and the test part, each of some ``splits``; labels are places in ``names``."""
    out = []
    for names_of_part, most in zip(splits, part_rows(rows), strict=True):
        both = [row for split in names_of_part for row in _labeled(root, present, split, names)]
        images, labels = zip(*both[: most or None])
        out.append((pixels(images, shape=(32, 32)), np.array(labels, np.int64)))
    return out


def _labeled(
    root: pathlib.Path, present: FoundImages, split: str, names: Sequence[str]
) -> list[tuple[Image, int]]:
    """A split's images and labels: the first image of every class, then the second of every class,
    and so on, so that the first rows are as balanced as all."""
    folders: dict[str, list[Image]] = {}
    for image in of_splits(present, [split]):
        folders.setdefault(image.parts[-2], []).append(image)
    if not folders:
        raise fault(root, f"has no image in {split}/<class>/", f"put the {split} part there")
    for name in sorted(set(folders) ^ set(names)):
        if name in names:
            raise fault(f"{root}: {split}/{name}", "holds no image", "fetch the data set again")
        few = ", ".join(names) if len(names) <= 10 else f"{names[0]}, ..., {names[-1]}"
        what = f"is none of the classes {few}"
        remedy = ("remove that folder, or correct ", Field("data.name"))
        raise fault(f"{root}: {split}/{name}", what, remedy)
    rounds = itertools.zip_longest(*(folders[name] for name in names))
    return [(i, y) for row in rounds for y, i in enumerate(row) if i is not None]


def joined(
    name: str,
    parts: Sequence[Part],
    names: Sequence[str],
    num_classes: int,
    more_notes: Sequence[str],
    rows: int,
) -> Dataset:
    """One image ``Dataset`` of a training part and a published test part; ``rows`` is the option that
    made them small."""
    for which, (_, labels) in zip(("training", "test"), parts):
        if rows and len(np.unique(labels)) < 2:
            raise UserError(
                f"leaves {len(labels)} rows of one class in the {which} part",
                field="data.options.rows",
                value=rows,
                remedy=f"rows must be at least {5 * num_classes} for every class to be in the test part",
            )
        classes(f"{name}, {which} part", labels, num_classes)
    return Dataset(
        name,
        np.concatenate([x for x, _ in parts]),
        np.concatenate([y for _, y in parts]).astype(np.int32),
        num_classes,
        "image",
        classes=tuple(map(one_line, names)),
        test=np.repeat([False, True], [len(y) for _, y in parts]),
        notes=tuple(more_notes),
    )


def part_rows(rows: int) -> tuple[int, int]:
    """Training and test rows that ``rows=n`` asks for: n and n // 5 (one at least); 0 is all."""
    return rows, max(rows // 5, 1) if rows else 0


@limited(validation=("drop", "train", "test"))
def cinic10(folder: str, *, rows: int = 0, validation: str = "train") -> Dataset:
    """CINIC-10; ``validation`` says where the published validation part goes.

    "train" (default) or "test": it joins that part, after its own rows. Fu et al. (2022; their table
    of the attacks' results) train on the 180,000 images of both and test on 90,000. "drop": nowhere.
    vfljax draws its own validation rows from the training part in any case. ``rows=n`` keeps the
    first n training and n // 5 test rows, of all classes in turn.
    """
    root = folder_of(folder, CINIC_LAYOUTS)
    present = find(root)
    if not of_splits(present, CINIC):
        raise without(root, CINIC_LAYOUTS, present.notes)
    splits = [(part, "valid") if validation == part else (part,) for part in ("train", "test")]
    halves = parts(root, present, splits, NAMES10, rows)
    note = f"read image folders in {root}; published validation part: {validation}"
    more_notes = (note, *notes(present, CINIC))
    return joined("cinic10", halves, NAMES10, 10, more_notes, rows)
