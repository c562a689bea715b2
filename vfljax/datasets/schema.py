"""Which column of a user's table is what, and the classes of the one that is the label."""

from __future__ import annotations

import decimal
import fnmatch
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets.column_types import Source
from vfljax.datasets.number_formats import is_number
from vfljax.datasets.table_errors import Place, alike, fault, one_line, shown
from vfljax.errors import Field, UserError, options_in, unknown

MOST_CLASSES = 1000
LARGEST = 10**18  # of a label that is a number; larger ones are read as words
INDEX = "__index_level_"  # pandas writes an unnamed index so


class Roles(NamedTuple):
    """What each column of a table is."""

    label: str
    groups: str  # "" is none
    features: dict[str, str]  # name -> what the user calls it: "number", "category" or ""
    dropped: tuple[str, ...]  # by the user


def roles_of(place: Place, names: Sequence[str], options: SimpleNamespace) -> Roles:
    """Finds the columns that ``user_table.table``'s options name.

    Args:
      place: where the table is, for messages.
      names: its columns.
      options: label, groups, drop, categorical and numeric are read.

    Returns:
      Which column is what.

    Raises:
      UserError: for a name that is in no column, or in two roles.
    """
    label, groups = _name("label", options.label), _name("groups", options.groups)
    dropped = _matching("drop", options.drop, names, place)
    for option, name in (("label", label), ("groups", groups)):
        if name not in names and (name or option == "label"):
            raise _absent(option, name, names, place)
        if name and name in dropped:
            what, field = options_in("is also in {drop}="), f"data.options.{option}"
            raise UserError(what, field=field, value=name, remedy="take it out of one")
    if label == groups:
        what, remedy = options_in("is also {groups}="), "name another column"
        raise UserError(what, field="data.options.label", value=label, remedy=remedy)
    words = _matching("categorical", options.categorical, names, place)
    numbers = _matching("numeric", options.numeric, names, place)
    if words & numbers:
        what = options_in(" is in {categorical}= and in {numeric}=.")
        raise UserError((f"column {min(words & numbers)!r}", *what))
    features = {
        name: "category" if name in words else "number" if name in numbers else ""
        for name in names
        if name not in dropped | {label, groups} and not name.startswith(INDEX)
    }
    if not features:
        raise fault(place.name, f"has no column beside {label!r} left", "drop fewer columns")
    return Roles(label, groups, features, tuple(name for name in names if name in dropped))


def _absent(option: str, name: str, names: Sequence[str], place: Place) -> UserError:
    kind = ("column in ", Field(f"data.options.{option}", option), "=")
    return UserError((f"{place.name}: ", *unknown(kind, name, names, place.hint).parts))


def _name(option: str, value: Any) -> str:
    """A column's name as it stands in the table; a number is the name of a column called so."""
    if value is None or isinstance(value, bool):
        remedy = "give the name of a column"
        raise UserError(field=f"data.options.{option}", value=value, remedy=remedy)
    return one_line(value)


def _matching(option: str, patterns: Any, names: Sequence[str], place: Place) -> set[str]:
    """The columns that any of an option's names and globs match; each must match one."""
    found: set[str] = set()
    several = isinstance(patterns, Iterable) and not isinstance(patterns, str)
    for pattern in patterns if several else [patterns]:
        pattern = _name(option, pattern)
        hits = {pattern} & set(names) or set(fnmatch.filter(names, pattern))
        if not hits:
            raise _absent(option, pattern, names, place)
        found |= hits
    return found


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
    where, names = f"{place.name}: label {target.name!r}", target.values
    numeric = all(map(is_number, names))
    if numeric:
        names = tuple(sorted(set(map(spelled, names)), key=_size))
    same_word = "differ in case, spaces or invisible characters only"
    for same, why in ((spelled, "are one number, among words"), (alike, same_word)):
        first: dict[str, str] = {}
        for value in () if numeric else names:
            if (other := first.setdefault(same(value), value)) != value:
                what = f"has {shown(other)} and {shown(value)}, which {why}"
                raise fault(where, what, "write one class in one way")
    distinct = f"has {len(names):,} distinct values"
    infinite = any(value.lower().lstrip("+-") in ("inf", "infinity") for value in names)
    if numeric and not all(float(value).is_integer() for value in names):
        what = f"{distinct} that are not all whole numbers, a regression target"
        raise fault(where, what, "cut it into classes first")
    if infinite:
        raise fault(where, "holds an infinite number", "correct it")
    if len(names) > MOST_CLASSES:
        raise fault(where, f"{distinct}, more than {MOST_CLASSES:,} classes", "name another column")
    if len(names) == 1:
        what = f"is {shown(names[0])} in all rows"
        raise fault(where, what, "at least two classes are needed")
    if positive:
        if len(names) != 2:
            what = f"{positive!r}: {where} has {len(names)} classes, not two."
            raise UserError((*options_in("{positive}="), what))
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
            remedy = f"a test row needs one of the training file's {len(names)} classes"
            what = f"is {shown(value)} in row {row}"
            raise fault(f"{place.name}: label {target.name!r}", what, remedy)
    return np.asarray([number[same(value)] for value in target.values], np.int32)[target.codes]
