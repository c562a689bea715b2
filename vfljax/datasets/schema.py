"""Which column of a user's table is what, and the classes and groups of its rows."""

from __future__ import annotations

import decimal
import fnmatch
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax.datasets.column_types import Rule, ordered, words_of
from vfljax.datasets.number_formats import is_number
from vfljax.datasets.table_errors import Place, alike, fault, one_line, shown
from vfljax.errors import Field, UserError, options_in, unknown

MOST_CLASSES = 1000
LARGEST = 10**18  # of a label that is a number; larger ones are read as words
INDEX = "__index_level_"  # pandas writes an unnamed index so


File = tuple[Place, pd.DataFrame]  # where messages say it is, and its rows


class Roles(NamedTuple):
    """What each column of a table is."""

    label: str
    groups: str  # "" is none
    features: dict[str, str]  # name -> what the user calls it: "number", "category" or ""
    dropped: tuple[str, ...]  # by the user
    index: tuple[str, ...]  # of a data frame, left out


class Target(NamedTuple):
    """The labels of the rows that have one."""

    labels: np.ndarray  # [R] int32
    classes: tuple[str, ...]
    spellings: list[str]  # the classes as the training file has them
    unlabeled: int  # rows without a label, left out


def roles_of(place: Place, names: Sequence[str], options: SimpleNamespace) -> Roles:
    """Finds the columns that ``user_table.table``'s options name.

    Args:
      place: where the table is, for messages.
      names: its columns.
      options: label, groups, drop, categorical and numeric are read.

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
    gone = tuple(name for name in names if name in dropped)
    index = tuple(name for name in names if name.startswith(INDEX))
    return Roles(label=label, groups=groups, features=features, dropped=gone, index=index)


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


def labeled(
    files: Sequence[File], label: str, rule: Rule, drop: bool, positive: str
) -> tuple[list[File], Target]:
    """Reads the labels, and leaves out the rows without one.

    Args:
      files: the training file, and the test file if there is one.
      label: their column.
      rule: which words are missing labels.
      drop: whether such rows are left out; they are refused otherwise.
      positive: of two classes, the one that becomes class 1; or "".

    Returns:
      The files' rows that have a label, and the labels of all.

    Raises:
      UserError: for labels that are missing, are no classes, or are none of the training file's.
    """
    kept, texts, rows = [], [], 0
    for place, frame in files:
        rows += len(frame)
        text = words_of(place.at(label), frame[label], rule)
        gone = text.isna().to_numpy(bool)
        _at(place, label).check(
            gone & (not drop or gone.all()),
            f"is missing in {gone.sum():,} of {len(frame):,} rows, first in row {{row}}",
            "fill it, or {drop_unlabeled}=True leaves such rows out",
        )
        if gone.any():
            left = np.flatnonzero(~gone)
            place, frame = place._replace(rows=left), frame.iloc[left].reset_index(drop=True)
        kept.append((place, frame))
        texts.append(text[~gone])
    spellings = ordered(texts[0].unique())
    classes = _class_names(f"{files[0][0].name}: label {label!r}", spellings, positive)
    number = {name: k for k, name in enumerate(classes)}
    same = spelled if all(map(is_number, classes)) else str
    labels = []
    for (place, _), text in zip(kept, texts, strict=True):
        codes, found = pd.factorize(text)
        numbers = np.asarray([number.get(same(value), -1) for value in found], np.int32)[codes]
        remedy = f"a test row needs one of the training file's {len(classes)} classes"
        _at(place, label).check(numbers < 0, "is {value} in row {row}", remedy, text)
        labels.append(numbers)
    both = np.concatenate(labels)
    return kept, Target(both, classes, spellings, unlabeled=rows - len(both))


def _at(place: Place, label: str) -> Place:
    return place._replace(name=f"{place.name}: label {label!r}")


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


def _class_names(where: str, spellings: list[str], positive: str) -> tuple[str, ...]:
    """The names of the classes in order. Of labels that are all numbers, a whole one is one class however it
    is spelled (1, +1, 01, 1.0, 1e0)."""
    numeric = all(map(is_number, spellings))
    names = tuple(spellings)
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
    regression = f"{distinct} that are not all whole numbers, a regression target"
    fraction = numeric and not all(float(value).is_integer() for value in names)
    infinite = any(value.lower().lstrip("+-") in ("inf", "infinity") for value in names)
    many = len(names) > MOST_CLASSES
    for wrong, what, remedy in (
        (fraction, regression, "cut it into classes first"),
        (infinite, "holds an infinite number", "correct it"),
        (many, f"{distinct}, more than {MOST_CLASSES:,} classes", "name another column"),
        (len(names) == 1, f"is {shown(names[0])} in all rows", "at least two classes are needed"),
    ):
        if wrong:
            raise fault(where, what, remedy)
    if positive:
        if len(names) != 2:
            what = f"{positive!r}: {where} has {len(names)} classes, not two."
            raise UserError((*options_in("{positive}="), what))
        positive = spelled(positive) if numeric else positive
        if positive not in names:
            raise unknown("class (positive=)", positive, names)
        names = (*(value for value in names if value != positive), positive)
    return names
