"""Sources to features: numbers as they are, categories as 0/1 columns or as codes.

What enters: the ``Source`` columns of a user's table, and of its published test part if it has one.
What leaves: the ``Column`` tuple and float32 matrix of a ``Dataset``. Nothing is fitted here but the
list of categories, on the rows outside the test file; means, scales and which categories count are
each seed's training rows' business (``scaling.statistics``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfljax.datasets.column_types import NONE, Source
from vfljax.datasets.core import Column
from vfljax.datasets.files import MAX_BYTES
from vfljax.datasets.table_errors import MOST_COLUMNS, Place, shown
from vfljax.errors import UserError, options_in

ENCODINGS = ("onehot", "codes")
OTHER = "(other)"  # the category that pools the rarest


def pooled(column: Source, most: int) -> Source:
    """A category source of at most ``most`` values: the rarest are one, ``OTHER``. Of equally frequent
    ones the last in order are pooled; a missing value keeps its own category."""
    if column.codes is None or len(column.values) <= most:
        return column
    last = len(column.values) - bool(column.missing)  # NONE comes after all others, and stays there
    counts = np.bincount(column.codes, minlength=len(column.values))[:last]
    kept = np.sort(np.argsort(-counts, kind="stable")[: max(0, most - 1 - bool(column.missing))])
    places = np.full(len(column.values), len(kept), np.int32)
    places[kept] = np.arange(len(kept))
    places[last:] = len(kept) + 1
    values = (*(column.values[k] for k in kept), OTHER, *column.values[last:])
    return column._replace(codes=places[column.codes], values=values, pooled=last - len(kept))


def encode(sources: Sequence[Source], encoding: str) -> tuple[tuple[Column, ...], np.ndarray]:
    """(columns, features [R, F] float32). "onehot": a category column a value, 0 or 1; "codes": one
    column of codes 0..vocabulary-1 a category source. Numbers stay, NaN where missing."""
    columns = tuple(column for source in sources for column in columns_of(source, encoding))
    if len(columns) > MOST_COLUMNS:
        raise UserError(
            f"makes {len(columns):,} columns, more than {MOST_COLUMNS:,}",
            field="data.options.encoding",
            value="onehot",
            remedy="choose 'codes', or drop columns of many categories",
        )
    first = sources[0].codes if sources[0].numbers is None else sources[0].numbers
    assert first is not None  # a source holds one of the two
    rows = len(first)
    size = 4 * rows * len(columns)
    if size > MAX_BYTES:
        codes = "choose {encoding}='codes', " if encoding == "onehot" else ""
        raise UserError(
            f"{rows:,} rows of {len(columns):,} columns take {size:,} bytes, more than {MAX_BYTES:,}",
            remedy=options_in(codes + "name columns in {drop}=, or give fewer rows"),
        )
    features = np.zeros((rows, len(columns)), np.float32)
    place = 0
    for column in sources:
        if column.numbers is not None:
            features[:, place] = column.numbers
        elif encoding == "codes":
            features[:, place] = column.codes
        else:
            assert column.codes is not None
            known = np.flatnonzero(column.codes >= 0)
            features[known, place + column.codes[known]] = 1
        place += len(columns_of(column, encoding))
    return columns, features


def columns_of(column: Source, encoding: str) -> tuple[Column, ...]:
    """The feature columns a source becomes."""
    if column.numbers is not None:
        return (Column(column.name),)
    if encoding == "codes":
        return (Column(column.name, "code", vocabulary=len(column.values)),)
    return tuple(Column(column.name, "category", value) for value in column.values)


def joined(
    train: Source, test: Source, place: Place, encoding: str, ignore: bool
) -> tuple[Source, int]:
    """(Source of the training rows followed by the test rows, how many test rows have a category
    that no training row has).

    Such a category is ``OTHER`` where the training rows' rarest are; else it is an error, or with
    ``ignore`` none of the known: no column of its source is 1; of codes, the code of a missing category.
    """
    words = {w: train.words.get(w, 0) + test.words.get(w, 0) for w in {**train.words, **test.words}}
    train = train._replace(missing=train.missing + test.missing, words=words)
    if train.numbers is not None and test.numbers is not None:
        numbers = np.concatenate([train.numbers, test.numbers])
        padded, merged = train.padded or test.padded, max(train.merged, test.merged)
        return train._replace(numbers=numbers, padded=padded, merged=merged), 0
    assert train.codes is not None
    assert test.codes is not None
    known = {value: k for k, value in enumerate(train.values)}
    rest = known[OTHER] if train.pooled else -1
    places = np.asarray([known.get(value, rest) for value in test.values], np.int32)
    codes, values = places[test.codes], train.values
    strange = codes < 0
    count = int(strange.sum())
    if count and not ignore:
        row = int(np.argmax(strange))
        raise place.at(train.name).fault(
            f"has {shown(test.values[test.codes[row]])} in row {place.row(row)}, an unknown category at "
            "test time (no training row has it)",
            "correct it, or {unknown}='ignore' reads it as "
            + ("the code of a missing one" if encoding == "codes" else "none of the known"),
        )
    if count and encoding == "codes":
        if NONE not in known:
            values = (*values, NONE)
        codes = np.where(strange, len(values) - 1, codes)  # NONE is the last value
    codes = np.concatenate([train.codes, codes]).astype(np.int32)
    return train._replace(codes=codes, values=values), count
