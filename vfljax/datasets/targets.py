"""The label column of a user's table: which classes it has, and each row's.

What enters: the label's ``Source`` (a category). What leaves: names of the classes in order and int32
classes 0..C-1; one clear line for a missing, infinite or fractional label, or too few or many.
"""

from __future__ import annotations

import numpy as np

from vfljax.config import unknown
from vfljax.datasets.columns_of import NONE, Source, is_number
from vfljax.datasets.faults import shown
from vfljax.errors import UserError

MOST_CLASSES = 1000


def class_names(place: str, target: Source, positive: str) -> tuple[str, ...]:
    """The names of the classes in order, or one clear line."""
    if target.missing:
        raise UserError(
            f"{place}: label {target.name!r} is missing in row {target.first + 1}: fill it, or leave "
            "the row out."
        )
    names, where = target.values, f"{place}: label {target.name!r}"
    numbers = [float(value) for value in names if is_number(value)]
    if len(numbers) == len(names) and not all(value.is_integer() for value in numbers):
        raise UserError(
            f"{where} has {len(names):,} distinct values that are not all whole numbers, a regression "
            "target: cut it into classes first."
        )
    if any(value.lower().lstrip("+-") in ("inf", "infinity") for value in names):
        raise UserError(f"{where} holds an infinite number: correct it.")
    if len(names) > MOST_CLASSES:
        raise UserError(
            f"{where} has {len(names):,} distinct values, more than {MOST_CLASSES:,} classes: name "
            "another column."
        )
    if len(names) == 1:
        raise UserError(
            f"{where} is {shown(names[0])} in all rows: at least two classes are needed."
        )
    if positive:
        if len(names) != 2:
            raise UserError(f"positive={positive!r}: {where} has {len(names)} classes, not two.")
        if positive not in names:
            raise unknown("class (positive=)", positive, names)
        names = (*(value for value in names if value != positive), positive)
    return names


def codes(target: Source, names: tuple[str, ...]) -> np.ndarray:
    assert target.codes is not None
    places = np.asarray([names.index(value) for value in target.values], np.int32)
    return places[target.codes]


def test_codes(tested: Source, names: tuple[str, ...], place: str) -> np.ndarray:
    assert tested.codes is not None
    for value in tested.values:
        if value not in names:
            row = int(np.argmax(tested.codes == tested.values.index(value)))
            what = "is missing" if value == NONE else f"is {shown(value)}"
            raise UserError(
                f"{place}: label {tested.name!r} {what} in row {row + 1}: a test row needs one of the "
                f"training file's {len(names)} classes."
            )
    return codes(tested, names)
