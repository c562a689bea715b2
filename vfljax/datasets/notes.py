"""Writes the sentences that tell a person what became of a user's table."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np

from vfljax.datasets.column_types import MISSING, NONE, OTHER, Source
from vfljax.datasets.number_formats import EPOCH, Since, is_number
from vfljax.datasets.schema import Roles, Target
from vfljax.datasets.table_errors import alike, one_line, shown

FEW = 20  # a column of at most so many distinct whole numbers may hold codes
EXACT = 2**24  # above it, float32 does not hold every whole number
MOST = 8  # names that a sentence lists

# a sentence, and the names that replace its {}; without names the sentence is left out
Row = tuple[str, Sequence[str]]


def notes(
    roles: Roles,
    nameless: Sequence[str],
    target: Target,
    columns: Sequence[Source],
    held: np.ndarray | None,
    options: SimpleNamespace,
) -> list[str]:
    """Returns the sentences on a table.

    Args:
      roles: the role of each column.
      nameless: columns without name and value.
      target: the labels.
      columns: the features.
      held: [R] bool, the rows of the test file; None if there is none.
      options: of ``user_table.table``; encoding and na_values are read.
    """
    training = slice(None) if held is None else ~held
    how = "one-hot" if options.encoding == "onehot" else "as codes"
    tested = [] if held is None else [f"{held.sum():,} of {len(held):,}"]
    dates = [f"{c.name} ({_first_day(c.since)})" for c in columns if c.since]
    words = [f"{word} in {c.name} ({n:,})" for c in columns for word, n in c.words.items()]
    padded = [f"{c.name} ({shown(c.padded)})" for c in columns if c.padded]
    pooled = _sizes((c.name, c.pooled) for c in columns)
    unknown = _sizes((c.name, c.unknown) for c in columns)
    twice = [c.name for c in columns if len(set(map(alike, c.values))) < len(c.values)]
    rows = (
        *_of_labels(target),
        ("left out, as drop= asks: {}.", roles.dropped),
        ("{}: a data frame's index, left out.", roles.index),
        ("{}: no name and no value, left out (rows that end in a delimiter?).", nameless),
        ("{} rows are the published test part.", tested),
        (f"categories, {how}: {{}}.", _sizes((c.name, len(c.values)) for c in columns)),
        (f"rare values became one, {OTHER}: {{}}; max_categories= keeps more.", pooled),
        ("dates or times, taken as days since the first: {}.", dates),
        *_of_numbers(columns, roles.features, training),
        (
            "read as missing: {}; keep_default_na=False reads only empty fields and na_values= so.",
            words,
        ),
        ("zeros before a number are lost: {}; name codes so written in categorical=.", padded),
        ("some categories differ in case, spaces or invisible characters only: {}.", twice),
        (
            f"missing values: {{}}; a missing number reads as its training mean, a missing category as {NONE}.",
            _sizes((c.name, int(c.missing.sum())) for c in columns),
        ),
        ("test rows of a category that no training row has, which reads as none: {}.", unknown),
        ("na_values: no feature holds {}.", _unmet(options.na_values, columns, target)),
    )
    sentences = []
    for text, names in rows:
        more = f", ... ({len(names)})" if len(names) > MOST else ""
        if names:
            sentences.append(text.replace("{}", ", ".join(names[:MOST]) + more))
    return sentences


def _sizes(counts: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{name} ({count:,})" for name, count in counts if count]


def _first_day(since: Since) -> str:
    """Returns a column's first date and format; only the format for times of day and durations."""
    if since.dated:
        try:
            first = EPOCH + datetime.timedelta(microseconds=since.first)
        except OverflowError:
            return since.form
        return f"{first:%Y-%m-%d %H:%M}".removesuffix(" 00:00") + f", {since.form}"
    return since.form


def _of_labels(target: Target) -> list[Row]:
    named = [f"{clip(name)} is {k}" for k, name in enumerate(target.classes)]
    if target.classes == tuple(map(str, range(len(named)))):
        named = []
    words = [name for name in target.classes if name in MISSING]
    are = "is a class" if len(words) == 1 else "are classes"
    padded = [t for t in target.spellings if t not in target.classes and t.startswith("0")]
    unlabeled = [f"{target.unlabeled:,}"] if target.unlabeled else []
    remedy = "name such words in na_values= if they stand for a missing label."
    return [
        ("classes: {}.", [*named[:6], *["..."] * (len(named) > 6)]),
        (f"of the labels, {{}} {are}: {remedy}", words),
        ("of the labels, zeros before a number are lost: {}.", padded),
        ("rows without a label, left out: {}.", unlabeled),
    ]


def _of_numbers(
    columns: Sequence[Source], kinds: Mapping[str, str], training: slice | np.ndarray
) -> list[Row]:
    few, constant, identifiers, whole, equal = [], [], [], [], []
    for column in columns:
        if column.numbers is None:
            assert column.codes is not None
            first, *others = np.unique(column.codes[training])
            constant += [] if others else [f"{column.name} ({clip(column.values[first])})"]
            continue
        x = column.numbers[~column.missing]
        large = not column.since and len(x) and np.abs(x).max() > EXACT and (x == np.floor(x)).all()
        if large and (column.merged or (x.astype(np.float32) != x).any()):
            whole.append(column.name)
        elif column.merged and column.merged >= 0.01 * len(np.unique(x)):
            equal.append((column.name, column.merged))
        if column.since:
            continue
        numbers = column.numbers[training]
        distinct = np.unique(numbers[~np.isnan(numbers)])
        if len(distinct) == 0:
            constant.append(f"{column.name} (no value)")
        elif len(distinct) == 1 and not np.isnan(numbers).any():
            constant.append(f"{column.name} ({distinct[0]:g})")
        if len(distinct) <= 2 or (distinct != np.floor(distinct)).any():
            continue
        index = column.name.startswith("Unnamed: ")  # pandas saves an index so
        if len(distinct) == len(numbers) and (index or len(distinct) > FEW):
            identifiers.append(column.name)
        elif len(distinct) <= FEW and not kinds[column.name]:
            few.append((column.name, len(distinct)))
    codes = "taken as numbers: {}; name those that are codes in categorical=."
    return [
        (f"few distinct whole numbers, {codes}", _sizes(few)),
        ("one value in all rows: {}.", constant),
        ("another whole number in every row: {}; drop an identifier.", identifiers),
        (f"whole numbers above {EXACT:,} are rounded to float32: {{}}.", whole),
        ("different values that are equal as float32: {}.", _sizes(equal)),
    ]


def _unmet(na_values: Sequence[str], columns: Sequence[Source], target: Target) -> list[str]:
    """Returns the ``na_values`` that no feature holds; [] if labels of left-out rows may hold them."""
    met = {word for column in columns for word in column.words}
    numbers = {float(word) for word in met if is_number(word)}
    if target.unlabeled:
        return []
    absent = sorted({*na_values} - {"", *met})
    return [shown(w) for w in absent if not (is_number(w) and float(w) in numbers)]


def clip(value: str) -> str:
    """Returns a value in one line of at most 20 characters, for tables and lists."""
    value = one_line(value)
    return value if len(value) <= 20 else value[:17] + "..."
