"""What a person must know of a user's table: sentences, and a table of its columns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from vfljax.datasets.column_types import MISSING, NONE, Rule, Source
from vfljax.datasets.core import Column, Dataset
from vfljax.datasets.dates import first_day
from vfljax.datasets.encoding import OTHER
from vfljax.datasets.schema import INDEX, Roles
from vfljax.datasets.table_errors import alike, one_line, shown

FEW = 20  # distinct whole numbers that make a person ask whether they are codes
EXACT = 2**24  # above it, float32 does not hold every whole number


def notes(
    training: Sequence[Source],
    everything: Sequence[Source],
    roles: Roles,
    encoding: str,
    held: np.ndarray | None,
    ignored: Mapping[str, int],
) -> list[str]:
    """Describes what became of the features.

    Args:
      training: the training file's columns.
      everything: the same with the test file's rows.
      roles: which column is what.
      encoding: "onehot" or "codes".
      held: [R] bool, the rows of the test file; None where there is none.
      ignored: of each column, test rows of a category that no training row has.

    Returns:
      A sentence for each thing.
    """
    how = "one-hot" if encoding == "onehot" else "as codes"
    categories = {c.name: len(c.values) for c in everything if c.kind == "category"}
    dates = [f"{c.name} ({first_day(*c.since)})" for c in everything if c.since]
    words = [f"{word} in {c.name} ({n:,})" for c in everything for word, n in c.words.items()]
    padded = [f"{c.name} ({shown(c.padded)})" for c in everything if c.padded]
    twice = [c.name for c in training if len(set(map(alike, c.values))) < len(c.values)]
    sentences = (
        f"{held.sum():,} of {len(held):,} rows are the published test part."
        if held is not None
        else "",
        _count(categories, "is a category", "are categories", f", {how}."),
        _count(
            {c.name: c.pooled for c in everything},
            "has rare values",
            "have rare values",
            f" that became one, {OTHER}: max_categories= keeps more.",
        ),
        _list("dates or times, taken as days since the first: ", dates),
        *_numbers(training, roles.features),
        *_rounded(everything),
        _list(
            "read as missing: ",
            words,
            "; keep_default_na=False reads only empty fields and na_values= so.",
        ),
        _list(
            "zeros before a number are lost: ", padded, "; name codes so written in categorical=."
        ),
        _list("some categories differ in case, spaces or invisible characters only: ", twice),
        _count(
            {c.name: c.missing for c in everything},
            "has missing values",
            "have missing values",
            f"; a missing number reads as its training mean, a missing category as {NONE}.",
        ),
        _count(
            ignored,
            "has test rows",
            "have test rows",
            " of a category that no training row has; it reads as none.",
        ),
    )
    return list(filter(None, sentences))


def of_labels(
    classes: Sequence[str], spellings: Sequence[str], unlabeled: int, rule: Rule
) -> list[str]:
    """Describes what became of the label.

    Args:
      classes: the names of the classes.
      spellings: the label's values in the file.
      unlabeled: rows without one.
      rule: which of its words are missing values.

    Returns:
      A sentence for each thing.
    """
    named = [f"{_clip(name)} is {k}" for k, name in enumerate(classes)]
    named = [] if list(classes) == [str(k) for k in range(len(classes))] else named
    words = [name for name in classes if name in MISSING and name not in rule.missing]
    padded = [text for text in spellings if text not in classes and text.startswith("0")]
    are = "is a class" if len(words) == 1 else "are classes"
    sentences = (
        _list("classes: ", [*named[:6], *["..."] * (len(named) > 6)]),
        _list(
            "of the labels, ",
            words,
            f" {are}: name such words in na_values= if they stand for a missing label.",
        ),
        _list("of the labels, zeros before a number are lost: ", padded),
        f"rows without a label, left out: {unlabeled:,}." if unlabeled else "",
    )
    return list(filter(None, sentences))


def left_out(names: Sequence[str], nameless: Sequence[str], roles: Roles) -> list[str]:
    """Tells which columns of ``names``, or ``nameless`` ones, are no features, and why."""
    index = [name for name in names if name.startswith(INDEX)]
    sentences = (
        _list("left out, as drop= asks: ", roles.dropped),
        _list("", index, ": a data frame's index, left out."),
        _list("", nameless, ": no name and no value, left out (rows that end in a delimiter?)."),
    )
    return list(filter(None, sentences))


def _numbers(training: Sequence[Source], kinds: Mapping[str, str]) -> list[str]:
    few, constant, identifiers = {}, [], []
    for column in training:
        if column.numbers is None:
            if len(column.values) == 1:
                constant.append(f"{column.name} ({_clip(column.values[0])})")
            continue
        if column.since:
            continue
        distinct = np.unique(column.numbers[~np.isnan(column.numbers)])
        if len(distinct) == 0:
            constant.append(f"{column.name} (no value)")
        elif len(distinct) == 1 and not column.missing:
            constant.append(f"{column.name} ({distinct[0]:g})")
        if len(distinct) <= 2 or (distinct != np.floor(distinct)).any():
            continue
        index = column.name.startswith("Unnamed: ")  # as pandas names one that it saved
        if len(distinct) == len(column.numbers) and (index or len(distinct) > FEW):
            identifiers.append(column.name)
        elif len(distinct) <= FEW and not kinds[column.name]:
            few[column.name] = len(distinct)
    after = "; name those that are codes in categorical=."
    codes = _list("few distinct whole numbers, taken as numbers: ", _sizes(few), after)
    for name, count in few.items() if len(few) == 1 else ():
        after = "taken as a number; name it in categorical= if it is a code."
        codes = f"{name}: {count} distinct whole numbers, {after}"
    return [
        codes,
        _list("one value in all rows: ", constant),
        _list("another whole number in every row: ", identifiers, "; drop an identifier."),
    ]


def _rounded(everything: Sequence[Source]) -> list[str]:
    """Lists the columns whose values collide as float32: whole numbers, and columns where at least 1 % of
    the distinct values become equal."""
    whole, equal = [], {}
    for column in everything:
        if column.numbers is None:
            continue
        x = column.numbers[~np.isnan(column.numbers)]
        large = not column.since and len(x) and np.abs(x).max() > EXACT and (x == np.floor(x)).all()
        if large and (column.merged or (x.astype(np.float32) != x).any()):
            whole.append(column.name)
        elif column.merged and column.merged >= 0.01 * len(np.unique(x)):
            equal[column.name] = column.merged
    return [
        _list(f"whole numbers above {EXACT:,} are rounded to float32: ", whole),
        _list("different values that are equal as float32: ", _sizes(equal)),
    ]


def _list(before: str, names: Sequence[str], after: str = ".", most: int = 8) -> str:
    """A sentence of names, or "" where there are none."""
    more = f", ... ({len(names)})" if len(names) > most else ""
    return f"{before}{', '.join(names[:most])}{more}{after}" if names else ""


def _count(counts: Mapping[str, int], single: str, several: str, after: str) -> str:
    """A sentence of the columns that count something, and how much."""
    sizes = _sizes(counts)
    before = f"{sizes[0]} {single}" if len(sizes) == 1 else f"{len(sizes)} columns {several}: "
    return f"{before}{after}" if len(sizes) == 1 else _list(before, sizes, after)


def _sizes(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count:,})" for name, count in counts.items() if count]


def _clip(value: str) -> str:
    value = one_line(value)
    return value if len(value) <= 20 else value[:17] + "..."


def columns_table(dataset: Dataset) -> str:
    """An aligned table for people, a line a source column: its name, kind, categories or range, and
    the share of rows without a value ("-" for codes, which do not tell)."""
    columns = dataset.columns or tuple(
        Column(f"column {j}") for j in range(dataset.features.shape[1])
    )
    lines = [("column", "kind", "values", "missing")]
    for (source, kind), group in itertools.groupby(enumerate(columns), lambda item: item[1][:2]):
        places, name = [j for j, _ in group], one_line(source)
        if kind == "category":
            values = [columns[j].value for j in places]
            empty = [j for j in places if columns[j].value == NONE]
            few = ", ".join(map(_clip, values[:5])) + ", ..." * (len(values) > 5)
            few += f", {OTHER}" if OTHER in values[5:] else ""
            missing = _share(dataset.features[:, empty].sum(1))
            lines.append((name, kind, f"{len(values)}: {few}", missing))
        elif kind == "code":
            lines.append((name, kind, f"0..{columns[places[0]].vocabulary - 1}", "-"))
        for j in places if kind == "number" else ():
            x = dataset.features[:, j]
            gone = np.isnan(x)
            span = "" if gone.all() else f"{np.nanmin(x):g} to {np.nanmax(x):g}"
            lines.append((name, kind, span, _share(gone)))
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _share(gone: np.ndarray) -> str:
    return "" if not gone.any() else f"{float(np.mean(gone)):.1%}"
