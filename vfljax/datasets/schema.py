"""Which column of a user's table is what, and the classes of the one that is the label.

What enters: a table's column names and what the user named; the label's column. What leaves: ``Roles``; names
of the classes in order and int32 classes 0..C-1; or one clear line for a name that is in no column or in two
roles, for an infinite or fractional label, for too few classes or many, or for rows without a label.
"""

from __future__ import annotations

import decimal
import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from vfljax.datasets.column_types import Rule, Source, source
from vfljax.datasets.number_formats import is_number
from vfljax.datasets.table_errors import Place, alike, fault, one_line, shown
from vfljax.errors import Field, UserError, options_in, unknown

MOST_CLASSES = 1000
LARGEST = 10**18  # of a label that is a number; larger ones are read as words
INDEX = "__index_level_"  # pandas writes an unnamed index so


class Roles(NamedTuple):
    label: str
    groups: str
    features: dict[str, str]  # name -> what the user says it is: "number", "category" or ""
    dropped: tuple[str, ...]  # by the user


def _absent(option: str, name: str, names: Sequence[str], place: Place) -> UserError:
    kind = ("column in ", Field(f"data.options.{option}", option), "=")
    return UserError((f"{place.name}: ", *unknown(kind, name, names, place.hint).parts))


def roles_of(
    place: Place,
    names: Sequence[str],
    label: str,
    groups: str,
    drop: Sequence[str],
    categorical: Sequence[str],
    numeric: Sequence[str],
) -> Roles:
    """Which column is what; raises UserError for a name that is in no column, or in two roles."""
    label, groups = _name("label", label), _name("groups", groups)
    dropped = _matching("drop", drop, names, place)
    for option, one in (("label", label), ("groups", groups)):
        if one not in names and (one or option == "label"):
            raise _absent(option, one, names, place)
        if one and one in dropped:
            what = options_in("is also in {drop}=")
            field = f"data.options.{option}"
            raise UserError(what, field=field, value=one, remedy="take it out of one")
    if label == groups:
        what = options_in("is also {groups}=")
        remedy = "name another column"
        raise UserError(what, field="data.options.label", value=label, remedy=remedy)
    words = _matching("categorical", categorical, names, place)
    numbers = _matching("numeric", numeric, names, place)
    if words & numbers:
        what = options_in(" is in {categorical}= and in {numeric}=.")
        raise UserError((f"column {min(words & numbers)!r}", *what))
    features = {
        one: "category" if one in words else "number" if one in numbers else ""
        for one in names
        if one not in dropped | {label, groups} and not one.startswith(INDEX)
    }
    if not features:
        raise fault(place.name, f"has no column beside {label!r} left", "drop fewer columns")
    return Roles(label, groups, features, tuple(one for one in names if one in dropped))


def _name(option: str, value: Any) -> str:
    """A column's name as it stands in the table; a number is the name of a column called so."""
    if value is None or isinstance(value, bool):
        raise UserError(
            field=f"data.options.{option}", value=value, remedy="give the name of a column"
        )
    return one_line(value)


def _matching(option: str, patterns: Any, names: Sequence[str], place: Place) -> set[str]:
    named: set[str] = set()
    several = isinstance(patterns, Iterable) and not isinstance(patterns, str)
    for pattern in patterns if several else [patterns]:
        pattern = _name(option, pattern)
        hit = {pattern} & set(names) or set(fnmatch.filter(names, pattern))
        if not hit:
            raise _absent(option, pattern, names, place)
        named |= hit
    return named


def same_columns(
    test: Sequence[str], test_name: str, names: Sequence[str], place: Place, roles: Roles
) -> None:
    """Raise UserError unless ``test`` has every column that is used and none that ``names`` lacks."""
    used = [roles.label, *([roles.groups] if roles.groups else []), *roles.features]
    lacks = [one for one in used if one not in set(test)]
    more = [one for one in test if one not in set(names)]
    if lacks or more:
        says = [f"lacks {', '.join(map(repr, lacks[:5]))}"] if lacks else []
        says += [f"has also {', '.join(map(repr, more[:5]))}"] if more else []
        remedy = f"give it the columns of {place.name}, in any order"
        raise fault(test_name, " and ".join(says), remedy)


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
        what = f"is missing in {target.missing:,} of {len(target.codes):,} rows"
        what = f"{what}, first in row {place.row(target.first)}"
        remedy = options_in("fill it, or {drop_unlabeled}=True leaves such rows out")
        raise fault(f"{place.name}: label {label!r}", what, remedy)
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
