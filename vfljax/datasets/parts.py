"""Whether each part of a split has each class: no figure can be told of a class that a part lacks.

What enters: a ``Dataset`` and rows. What leaves: a ``UserError`` that names the class, or nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vfljax.datasets.faults import one_line
from vfljax.errors import UserError

if TYPE_CHECKING:
    from vfljax.datasets.core import Dataset, Split

REMEDY = "leave the class out, or give more rows or larger shares"


def enough(dataset: Dataset, present: np.ndarray, rows: np.ndarray) -> None:
    """Raises UserError where one of the ``present`` classes has too few rows in ``own`` (all rows, or
    those outside the published test part) for each part to hold one."""
    least, where, parts = 3, "", "train, validation and test"
    if dataset.test is not None:
        least, where, parts = 2, " outside the published test part", "train and validation"
    labels, counts = np.unique(dataset.labels[rows], return_counts=True)
    count_of = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    for label in present.tolist():
        if (count := count_of.get(label, 0)) < least:
            raise UserError(
                f"data: class {_named(dataset, label)} has {count} row{'s' * (count != 1)}{where}: "
                f"{parts} need one each: {REMEDY}."
            )


def complete(dataset: Dataset, present: np.ndarray, split: Split) -> Split:
    """The split, if each part has the ``present`` classes; a published test part, its own ones."""
    for part, rows in zip(("train", "validation", "test"), split, strict=True):
        expected = present
        if part == "test" and dataset.test is not None:
            expected = np.unique(dataset.labels[dataset.test])
        lacking = np.setdiff1d(expected, dataset.labels[rows])
        if len(lacking):
            label = int(lacking[0])
            count = int((dataset.labels == label).sum())
            raise UserError(
                f"data: class {_named(dataset, label)} has {count} rows and none of the {len(rows)} of "
                f"the {part} part: train, validation and test need one each: {REMEDY}."
            )
    return split


def _named(dataset: Dataset, label: int) -> str:
    return one_line(dataset.classes[label]) if label < len(dataset.classes) else str(label)
