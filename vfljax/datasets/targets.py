"""The label column of a user's table: which classes it has, and each row's.

What enters: the label's ``Source`` (a category). What leaves: names of the classes in order and int32
classes 0..C-1; one clear line for a missing, infinite or fractional label, or too few or many.
"""

from __future__ import annotations

import decimal

import numpy as np

from vfljax.datasets.columns_of import NONE, Source, is_number
from vfljax.datasets.faults import shown
from vfljax.errors import UserError, unknown

MOST_CLASSES = 1000
LARGEST = 10**18  # of a label that is a number; larger ones are read as words


def by_value(place: str, target: Source) -> Source:
    """The label with one value a class: of labels that are all whole numbers, the number, however it
    is spelled (1, +1, 01, 1.0, 1e0); raises UserError where others spell one number in two ways."""
    names: dict[str, list[str]] = {}
    for value in target.values:
        names.setdefault(spelled(value), []).append(value)
    if len(names) == len(target.values) and tuple(names) == target.values:
        return target
    if all(map(is_number, names)):
        return _merged(target, tuple(sorted(names, key=_size)))
    for several in names.values():
        if len(several) > 1:
            raise UserError(
                f"{place}: label {target.name!r} has {shown(several[0])} and {shown(several[1])}, one "
                "number, among words: write one class in one way."
            )
    return target


def spelled(value: str) -> str:
    """A whole number as digits; anything else as it is.

    >>> [spelled(value) for value in ("+1", "01", "1e0", "-0.0", "1.5", "one")]
    ['1', '1', '1', '0', '1.5', 'one']
    """
    if not is_number(value):
        return value
    try:
        number = decimal.Decimal(value)
    except decimal.InvalidOperation:  # an exponent beyond all bounds
        return value
    if not abs(number) < LARGEST or number != number.to_integral_value():
        return value
    return str(int(number))


def _size(name: str) -> float:
    return int(name) if name.lstrip("-").isdigit() else float(name)


def _merged(target: Source, names: tuple[str, ...]) -> Source:
    assert target.codes is not None
    place = {name: k for k, name in enumerate(names)}
    places = np.asarray([place[spelled(value)] for value in target.values], np.int32)
    return target._replace(codes=places[target.codes], values=names)


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
        positive = spelled(positive) if all(map(is_number, names)) else positive
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
    if all(map(is_number, names)):
        tested = _merged(tested, tuple(dict.fromkeys(map(spelled, tested.values))))
    for value in tested.values:
        if value not in names:
            row = int(np.argmax(tested.codes == tested.values.index(value)))
            what = "is missing" if value == NONE else f"is {shown(value)}"
            raise UserError(
                f"{place}: label {tested.name!r} {what} in row {row + 1}: a test row needs one of the "
                f"training file's {len(names)} classes."
            )
    return codes(tested, names)
