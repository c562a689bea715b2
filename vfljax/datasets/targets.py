"""The label column of a user's table: which classes it has, and each row's.

What enters: the label's column. What leaves: names of the classes in order and int32 classes 0..C-1;
one clear line for an infinite or fractional label, for too few or many, or for rows without one.
"""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa

from vfljax.datasets.columns_of import Rule, Source, source
from vfljax.datasets.faults import Place, alike, shown
from vfljax.datasets.notations import is_number
from vfljax.errors import UserError, unknown

MOST_CLASSES = 1000
LARGEST = 10**18  # of a label that is a number; larger ones are read as words


def labeled(
    place: Place, table: pa.Table, label: str, rule: Rule, drop: bool
) -> tuple[pa.Table, Place, Source]:
    """(the rows that have a label, where they are, their labels). With ``drop`` the others are left
    out; else raises UserError with their number, as it does where no row is left."""
    target = source(place, label, table[label], rule, "category")
    if not target.missing:
        return table, place, target
    assert target.codes is not None
    kept = np.flatnonzero(target.codes != len(target.values) - 1)  # NONE is the last
    if not drop or not len(kept):
        raise UserError(
            f"{place.name}: label {label!r} is missing in {target.missing:,} of {len(target.codes):,} "
            f"rows, first in row {place.row(target.first)}: fill it, or drop_unlabeled=True leaves such "
            "rows out."
        )
    table, place = table.take(pa.array(kept)), place._replace(rows=kept)
    return table, place, source(place, label, table[label], rule, "category")


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


def class_names(place: Place, target: Source, positive: str) -> tuple[str, ...]:
    """The names of the classes in order, or one clear line. Of labels that are all numbers, a whole one
    is one class however it is spelled (1, +1, 01, 1.0, 1e0)."""
    where = f"{place.name}: label {target.name!r}"
    numeric = all(map(is_number, target.values))
    if numeric:
        names = tuple(sorted(set(map(spelled, target.values)), key=_size))
        if not all(float(value).is_integer() for value in names):
            raise UserError(
                f"{where} has {len(names):,} distinct values that are not all whole numbers, a regression "
                "target: cut it into classes first."
            )
    else:
        names = target.values
        for same, why in (
            (spelled, "one number, among words"),
            (alike, "in case, spaces or invisible characters only"),
        ):
            seen: dict[str, str] = {}
            for value in names:
                other = seen.setdefault(same(value), value)
                if other != value:
                    raise UserError(
                        f"{where} has {shown(other)} and {shown(value)}, which "
                        f"{'are' if same is spelled else 'differ'} {why}: write one class in one way."
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
        positive = spelled(positive) if numeric else positive
        if positive not in names:
            raise unknown("class (positive=)", positive, names)
        names = (*(value for value in names if value != positive), positive)
    return names


def codes(place: Place, target: Source, names: tuple[str, ...]) -> np.ndarray:
    """The class of each row [R] int32; raises UserError for one that ``names`` lacks, which only a
    test file's can be."""
    assert target.codes is not None
    number: Any = {name: k for k, name in enumerate(names)}
    same = spelled if all(map(is_number, names)) else str
    for k, value in enumerate(target.values):
        if same(value) not in number:
            row = place.row(int(np.argmax(target.codes == k)))
            raise UserError(
                f"{place.name}: label {target.name!r} is {shown(value)} in row {row}: a test row needs "
                f"one of the training file's {len(names)} classes."
            )
    return np.asarray([number[same(value)] for value in target.values], np.int32)[target.codes]
