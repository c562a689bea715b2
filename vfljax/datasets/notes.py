"""What a person must know of a user's table, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np

from vfljax.datasets.column_types import MISSING, NONE, OTHER, Source
from vfljax.datasets.number_formats import first_day, is_number
from vfljax.datasets.schema import Roles, Target
from vfljax.datasets.table_errors import alike, one_line, shown

FEW = 20  # distinct whole numbers that make a person ask whether they are codes
EXACT = 2**24  # above it, float32 does not hold every whole number
MOST = 8  # names that a sentence lists


def notes(
    roles: Roles,
    nameless: Sequence[str],
    target: Target,
    columns: Sequence[Source],
    held: np.ndarray | None,
    options: SimpleNamespace,
) -> list[str]:
    """Describes what became of a table, in a sentence for each thing.

    Args:
      roles: which column is what.
      nameless: columns without name and value.
      target: the labels.
      columns: the features.
      held: [R] bool, the rows of the test file; None where there is none.
      options: encoding and na_values are read.
    """
    training = slice(None) if held is None else ~held
    tested = [] if held is None else [f"{held.sum():,} of {len(held):,}"]
    how = "one-hot" if options.encoding == "onehot" else "as codes"
    categories = {c.name: len(c.values) for c in columns if c.codes is not None}
    dates = [f"{c.name} ({first_day(c.since)})" for c in columns if c.since]
    words = [f"{word} in {c.name} ({n:,})" for c in columns for word, n in c.words.items()]
    padded = [f"{c.name} ({shown(c.padded)})" for c in columns if c.padded]
    twice = [c.name for c in columns if len(set(map(alike, c.values))) < len(c.values)]
    rows = (
        *_of_labels(target),
        ("left out, as drop= asks: ", roles.dropped, "."),
        ("", roles.index, ": a data frame's index, left out."),
        ("", nameless, ": no name and no value, left out (rows that end in a delimiter?)."),
        ("", tested, " rows are the published test part."),
        _count(categories, "is a category", "are categories", f", {how}."),
        _count(
            {c.name: c.pooled for c in columns},
            "has rare values",
            "have rare values",
            f" that became one, {OTHER}: max_categories= keeps more.",
        ),
        ("dates or times, taken as days since the first: ", dates, "."),
        *_of_numbers(columns, roles.features, training),
        *_rounded(columns),
        (
            "read as missing: ",
            words,
            "; keep_default_na=False reads only empty fields and na_values= so.",
        ),
        ("zeros before a number are lost: ", padded, "; name codes so written in categorical=."),
        ("some categories differ in case, spaces or invisible characters only: ", twice, "."),
        _count(
            {c.name: int(c.missing.sum()) for c in columns},
            "has missing values",
            "have missing values",
            f"; a missing number reads as its training mean, a missing category as {NONE}.",
        ),
        _count(
            {c.name: c.unknown for c in columns},
            "has test rows",
            "have test rows",
            " of a category that no training row has; it reads as none.",
        ),
        ("na_values: no feature holds ", _unmet(options.na_values, columns, target), "."),
    )
    return [_sentence(*row) for row in rows if row[1]]


Row = tuple[str, Sequence[str], str]  # what stands before names, the names, what stands after them


def _sentence(before: str, names: Sequence[str], after: str) -> str:
    more = f", ... ({len(names)})" if len(names) > MOST else ""
    return f"{before}{', '.join(names[:MOST])}{more}{after}"


def _count(counts: Mapping[str, int], single: str, several: str, after: str) -> Row:
    """The columns that count something, and how much."""
    sizes = _sizes(counts)
    if len(sizes) == 1:
        return "", sizes, f" {single}{after}"
    return f"{len(sizes)} columns {several}: ", sizes, after


def _sizes(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count:,})" for name, count in counts.items() if count]


def _of_labels(target: Target) -> list[Row]:
    named = [f"{clip(name)} is {k}" for k, name in enumerate(target.classes)]
    if target.classes == tuple(map(str, range(len(named)))):
        named = []
    words = [name for name in target.classes if name in MISSING]
    are = "is a class" if len(words) == 1 else "are classes"
    after = f" {are}: name such words in na_values= if they stand for a missing label."
    padded = [t for t in target.spellings if t not in target.classes and t.startswith("0")]
    unlabeled = [f"{target.unlabeled:,}"] if target.unlabeled else []
    return [
        ("classes: ", [*named[:6], *["..."] * (len(named) > 6)], "."),
        ("of the labels, ", words, after),
        ("of the labels, zeros before a number are lost: ", padded, "."),
        ("rows without a label, left out: ", unlabeled, "."),
    ]


def _of_numbers(
    columns: Sequence[Source], kinds: Mapping[str, str], training: slice | np.ndarray
) -> list[Row]:
    few, constant, identifiers = {}, [], []
    for column in columns:
        if column.codes is not None:
            first, *others = np.unique(column.codes[training])
            constant += [] if others else [f"{column.name} ({clip(column.values[first])})"]
        if column.numbers is None or column.since:
            continue
        numbers = column.numbers[training]
        distinct = np.unique(numbers[~np.isnan(numbers)])
        if len(distinct) == 0:
            constant.append(f"{column.name} (no value)")
        elif len(distinct) == 1 and not np.isnan(numbers).any():
            constant.append(f"{column.name} ({distinct[0]:g})")
        if len(distinct) <= 2 or (distinct != np.floor(distinct)).any():
            continue
        index = column.name.startswith("Unnamed: ")  # as pandas names one that it saved
        if len(distinct) == len(numbers) and (index or len(distinct) > FEW):
            identifiers.append(column.name)
        elif len(distinct) <= FEW and not kinds[column.name]:
            few[column.name] = len(distinct)
    before, names = "few distinct whole numbers, taken as numbers: ", _sizes(few)
    after = "; name those that are codes in categorical=."
    for name, count in few.items() if len(few) == 1 else ():
        before, names = f"{name}: ", [f"{count} distinct whole numbers"]
        after = ", taken as a number; name it in categorical= if it is a code."
    return [
        (before, names, after),
        ("one value in all rows: ", constant, "."),
        ("another whole number in every row: ", identifiers, "; drop an identifier."),
    ]


def _rounded(columns: Sequence[Source]) -> list[Row]:
    """Lists the columns whose values collide as float32: whole numbers, and columns where at least 1 % of
    the distinct values become equal."""
    whole, equal = [], {}
    for column in columns:
        if column.numbers is None:
            continue
        x = column.numbers[~column.missing]
        large = not column.since and len(x) and np.abs(x).max() > EXACT and (x == np.floor(x)).all()
        if large and (column.merged or (x.astype(np.float32) != x).any()):
            whole.append(column.name)
        elif column.merged and column.merged >= 0.01 * len(np.unique(x)):
            equal[column.name] = column.merged
    return [
        (f"whole numbers above {EXACT:,} are rounded to float32: ", whole, "."),
        ("different values that are equal as float32: ", _sizes(equal), "."),
    ]


def _unmet(na_values: Sequence[str], columns: Sequence[Source], target: Target) -> list[str]:
    """The words for missing values that no feature holds; labels that are left out may hold them."""
    met = {word for column in columns for word in column.words}
    numbers = {float(word) for word in met if is_number(word)}
    if target.unlabeled:
        return []
    absent = sorted({*na_values} - {"", *met})
    return [shown(w) for w in absent if not (is_number(w) and float(w) in numbers)]


def clip(value: str) -> str:
    """A value as a table or sentence of many names it: one line, at most 20 characters."""
    value = one_line(value)
    return value if len(value) <= 20 else value[:17] + "..."
