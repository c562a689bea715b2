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
    """What became of the features, a sentence a thing. ``training``: its file; ``everything``: with the
    test file's rows."""
    how = "one-hot" if encoding == "onehot" else "as codes"
    categories = {one.name: len(one.values) for one in everything if one.kind == "category"}
    rare = {one.name: one.pooled for one in everything if one.pooled}
    missing = {one.name: one.missing for one in everything if one.missing}
    strange = {name: count for name, count in ignored.items() if count}
    dates = [f"{one.name} ({first_day(*one.since)})" for one in everything if one.since]
    words = [f"{w} in {one.name} ({n:,})" for one in everything for w, n in one.words.items()]
    padded = [f"{one.name} ({shown(one.padded)})" for one in everything if one.padded]
    twice = [one.name for one in training if len(set(map(alike, one.values))) < len(one.values)]
    return _some(
        f"{held.sum():,} of {len(held):,} rows are the published test part."
        if held is not None
        else "",
        _count(categories, "is a category", "are categories", f", {how}."),
        _count(
            rare,
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
            missing,
            "has missing values",
            "have missing values",
            f"; a missing number reads as its training mean, a missing category as {NONE}.",
        ),
        _count(
            strange,
            "has test rows",
            "have test rows",
            " of a category that no training row has; it reads as none.",
        ),
    )


def of_labels(
    classes: Sequence[str], spellings: Sequence[str], unlabeled: int, rule: Rule
) -> list[str]:
    """What became of the label. ``spellings``: its values in the file; ``rule``: which of its words are
    missing values."""
    named = [f"{_clip(one)} is {k}" for k, one in enumerate(classes)]
    named = [] if list(classes) == [str(k) for k in range(len(classes))] else named
    words = [one for one in classes if one in MISSING and one not in rule.missing]
    padded = [one for one in spellings if one not in classes and one.startswith("0")]
    return _some(
        _list("classes: ", [*named[:6], *["..."] * (len(named) > 6)]),
        _list(
            "of the labels, ",
            words,
            f" {'is a class' if len(words) == 1 else 'are classes'}: name such words in na_values= if they "
            "stand for a missing label.",
        ),
        _list("of the labels, zeros before a number are lost: ", padded),
        f"rows without a label, left out: {unlabeled:,}." if unlabeled else "",
    )


def left_out(names: Sequence[str], empty: Sequence[str], roles: Roles) -> list[str]:
    """Which columns are no features, and why. ``names``: the table's; ``empty``: nameless ones."""
    index = [name for name in names if name.startswith(INDEX)]
    return _some(
        _list("left out, as drop= asks: ", roles.dropped),
        _list("", index, ": a data frame's index, left out."),
        _list("", empty, ": no name and no value, left out (rows that end in a delimiter?)."),
    )


def _numbers(training: Sequence[Source], kinds: Mapping[str, str]) -> list[str]:
    few, constant, identifiers = {}, [], []
    for one in training:
        if one.numbers is None:
            if len(one.values) == 1:
                constant.append(f"{one.name} ({_clip(one.values[0])})")
            continue
        if one.since:
            continue
        distinct = np.unique(one.numbers[~np.isnan(one.numbers)])
        if len(distinct) == 0:
            constant.append(f"{one.name} (no value)")
        elif len(distinct) == 1 and not one.missing:
            constant.append(f"{one.name} ({distinct[0]:g})")
        if len(distinct) <= 2 or (distinct != np.floor(distinct)).any():
            continue
        index = one.name.startswith("Unnamed: ")  # as pandas names one that it saved
        if len(distinct) == len(one.numbers) and (index or len(distinct) > FEW):
            identifiers.append(one.name)
        elif len(distinct) <= FEW and not kinds[one.name]:
            few[one.name] = len(distinct)
    alone = "".join(f"{name}: {count} distinct" for name, count in few.items())
    return _some(
        f"{alone} whole numbers, taken as a number; name it in categorical= if it is a code."
        if len(few) == 1
        else _list(
            "few distinct whole numbers, taken as numbers: ",
            _sizes(few),
            "; name those that are codes in categorical=.",
        ),
        _list("one value in all rows: ", constant),
        _list("another whole number in every row: ", identifiers, "; drop an identifier."),
    )


def _rounded(everything: Sequence[Source]) -> list[str]:
    """What float32 loses: whole numbers, and of others so much that 1 % are equal to another."""
    whole, equal = [], {}
    for one in everything:
        if one.numbers is None:
            continue
        x = one.numbers[~np.isnan(one.numbers)]
        large = not one.since and len(x) and np.abs(x).max() > EXACT and (x == np.floor(x)).all()
        if large and (one.merged or (x.astype(np.float32) != x).any()):
            whole.append(one.name)
        elif one.merged and one.merged >= 0.01 * len(np.unique(x)):
            equal[one.name] = one.merged
    return _some(
        _list(f"whole numbers above {EXACT:,} are rounded to float32: ", whole),
        _list("different values that are equal as float32: ", _sizes(equal)),
    )


def _some(*sentences: str) -> list[str]:
    return [sentence for sentence in sentences if sentence]


def _list(before: str, names: Sequence[str], after: str = ".") -> str:
    return f"{before}{_few(names)}{after}" if names else ""


def _count(counts: Mapping[str, int], one: str, many: str, after: str) -> str:
    if len(counts) == 1:
        ((name, count),) = counts.items()
        return f"{name} ({count:,}) {one}{after}"
    return f"{len(counts)} columns {many}: {_few(_sizes(counts))}{after}" if counts else ""


def _sizes(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count:,})" for name, count in counts.items()]


def _few(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f", ... ({len(names)})" if len(names) > most else "")


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
    numbered = enumerate(column._replace(name=one_line(column.name)) for column in columns)
    for (name, kind), group in itertools.groupby(numbered, lambda item: item[1][:2]):
        places = [j for j, _ in group]
        source_columns = [columns[j] for j in places]
        if kind == "category":
            values = [column.value for column in source_columns]
            empty = [j for j, value in zip(places, values) if value == NONE]
            lines.append((name, kind, _clipped(values), _share(dataset.features[:, empty].sum(1))))
        elif kind == "code":
            lines.append((name, kind, f"0..{source_columns[0].vocabulary - 1}", "-"))
        else:
            for j in places:
                x = dataset.features[:, j]
                gone = np.isnan(x)
                span = "" if gone.all() else f"{np.nanmin(x):g} to {np.nanmax(x):g}"
                lines.append((name, kind, span, _share(gone)))
    widths = [max(len(line[k]) for line in lines) for k in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines
    )


def _clipped(values: Sequence[str]) -> str:
    some = ", ".join(map(_clip, values[:5]))
    rest = f", ..., {OTHER}" if OTHER in values[5:] else ", ..." if len(values) > 5 else ""
    return f"{len(values)}: {some}{rest}"


def _share(gone: np.ndarray) -> str:
    return "" if not gone.any() else f"{float(np.mean(gone)):.1%}"
