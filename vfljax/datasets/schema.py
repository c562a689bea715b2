"""Finds the role of each column of a user's table, and the classes of its rows."""

from __future__ import annotations

import decimal
import fnmatch
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax.datasets.column_types import ordered
from vfljax.datasets.number_formats import Series, is_number
from vfljax.datasets.table_errors import Place, alike, fault, one_line, shown
from vfljax.errors import Field, Text, UserError, options_in, unknown

MOST_CLASSES = 1000
LARGEST = 10**18  # whole numbers below it are normalized as labels; larger ones stay as written
INDEX = "__index_level_"  # how pandas' name for an unnamed index begins


class Roles(NamedTuple):
    """The role of each column of a table."""

    label: str
    groups: str  # "" is none
    features: dict[str, str]  # name -> what the user calls it: "number", "category" or ""
    dropped: tuple[str, ...]  # columns that the user leaves out
    index: tuple[str, ...]  # the index of a data frame, left out


class Target(NamedTuple):
    """The labels of the rows that have one."""

    labels: np.ndarray  # [R] int32
    classes: tuple[str, ...]
    spellings: list[str]  # the distinct labels as the training file writes them
    unlabeled: int  # rows without a label, left out


def roles_of(file: str, names: Sequence[str], options: SimpleNamespace, hint: Text = "") -> Roles:
    """Finds the columns that ``user_table.table``'s options name.

    Args:
      file: the table's name, for messages.
      names: its columns.
      options: of ``user_table.table``; label, groups, drop, categorical and numeric are read.
      hint: what may be wrong with the table if a column is not there, for the message.

    Raises:
      UserError: for a name that is in no column, or in two roles.
    """

    def columns_of(option: str, patterns: Any, globs: bool = True) -> set[str]:
        several = isinstance(patterns, Iterable) and not isinstance(patterns, str)
        matching: set[str] = set()
        for pattern in patterns if several and globs else [patterns]:
            field = Field(f"data.options.{option}", option)
            if pattern is None or isinstance(pattern, bool):
                raise UserError(field=field.path, value=pattern, remedy="give the name of a column")
            name = one_line(pattern)  # the number 1 names the column "1"
            hits = {name} & {*names}
            if not hits and globs:
                hits = {*fnmatch.filter(names, name)}
            if not hits:
                kind = ("column in ", field, "=")
                raise UserError((f"{file}: ", *unknown(kind, name, names, hint).parts))
            matching |= hits
        return matching

    (label,) = columns_of("label", options.label, globs=False)
    (groups,) = columns_of("groups", options.groups, globs=False) if options.groups != "" else [""]
    dropped = columns_of("drop", options.drop)
    words = columns_of("categorical", options.categorical)
    numbers = columns_of("numeric", options.numeric)
    for option, name in (("label", label), ("groups", groups)):
        if name in dropped:
            what, field = options_in("is also in {drop}="), f"data.options.{option}"
            raise UserError(what, field=field, value=name, remedy="take it out of one")
    if label == groups:
        what, remedy = options_in("is also {groups}="), "name another column"
        raise UserError(what, field="data.options.label", value=label, remedy=remedy)
    if words & numbers:
        what = options_in(" is in {categorical}= and in {numeric}=.")
        raise UserError((f"column {min(words & numbers)!r}", *what))
    features = {
        name: "category" if name in words else "number" if name in numbers else ""
        for name in names
        if name not in dropped | {label, groups} and not name.startswith(INDEX)
    }
    if not features:
        raise fault(file, f"has no column beside {label!r} left", "drop fewer columns")
    gone = tuple(name for name in names if name in dropped)
    index = tuple(name for name in names if name.startswith(INDEX))
    return Roles(label=label, groups=groups, features=features, dropped=gone, index=index)


def labels_of(text: Series, place: Place, drop: bool, positive: str) -> tuple[np.ndarray, Target]:
    """Reads the labels.

    Args:
      text: their column as texts [R], null for a missing label.
      place: the files and row numbers of all rows, for messages.
      drop: whether rows without a label are left out; they are refused otherwise.
      positive: of two classes, the one that becomes class 1; "" keeps their order.

    Returns:
      Which rows have a label, [R] bool, and the labels of these rows.

    Raises:
      UserError: for labels that are missing, that are no classes, or that only the test file has.
    """
    files = tuple(f"{file}: label {place.column!r}" for file in place.files)
    place = place._replace(files=files, column="")
    gone = text.isna().to_numpy(bool)
    for rows in (~place.held, place.held):
        missing, total = (gone & rows).sum(), rows.sum()
        refused = gone & rows & (not drop or missing == total)
        what = f"is missing in {missing:,} of {total:,} rows, first in row {{row}}"
        place.check(refused, what, "fill it, or {drop_unlabeled}=True leaves such rows out")
    spellings = ordered(text[~gone & ~place.held].unique())
    classes = _class_names(place.files[0], spellings, positive)
    number = {value: k for k, value in enumerate(classes)}
    same = spelled if all(map(is_number, classes)) else str
    codes, distinct = pd.factorize(text)
    labels = np.asarray([*(number.get(same(value), -1) for value in distinct), 0], np.int32)[codes]
    remedy = f"a test row needs one of the training file's {len(classes)} classes"
    place.check(labels < 0, "is {value} in row {row}", remedy, text)
    return ~gone, Target(labels[~gone], classes, spellings, unlabeled=int(gone.sum()))


def spelled(value: str) -> str:
    """Returns a whole number as plain digits, and any other text as it is.

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
    """Returns the number that names a class, exact if it is whole."""
    return int(name) if name.lstrip("-").isdigit() else float(name)


def _class_names(where: str, spellings: list[str], positive: str) -> tuple[str, ...]:
    """Returns the names of the classes in order. If all labels are numbers, all spellings of a whole number
    (1, +1, 01, 1.0, 1e0) are one class."""
    numeric = all(map(is_number, spellings))
    names = tuple(sorted({*map(spelled, spellings)}, key=_size) if numeric else spellings)
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
