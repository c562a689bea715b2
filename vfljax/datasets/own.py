"""A user's own table as a data set: CSV, Parquet, NPZ, or a data frame.

What enters: a file (or frame) and what its columns are, as far as that must be said. What leaves: a
``Dataset`` of kind "table" whose ``notes`` say what was inferred and met. ``noting.columns_table`` prints
what became of each column. Reading is ``reading``'s business, types ``columns_of``'s, features
``encoding``'s, sentences ``noting``'s.

Means, scales and the categories that count come from each seed's training rows alone;
``data.scaling_rows="all"`` is for papers that took all. A data frame is used by
``prepared.write(own.from_frame(frame, label="y"), "mine")`` and then ``name="prepared"``.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vfljax.datasets import noting
from vfljax.datasets.columns_of import Source, source
from vfljax.datasets.core import Dataset
from vfljax.datasets.encoding import ENCODINGS, encode, joined
from vfljax.datasets.faults import all_different, one_line, shown
from vfljax.datasets.reading import named, read
from vfljax.datasets.roles import roles_of, same_columns
from vfljax.datasets.targets import by_value, class_names, codes, test_codes
from vfljax.errors import UserError
from vfljax.errors import unknown as no_such


def table(
    path: str,
    *,
    label: str,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    encoding: str = "onehot",
    positive: str = "",
    missing: str = "keep",
    max_categories: int = 256,
    delimiter: str = "auto",
    test_file: str = "",
    unknown: str = "refuse",
    groups: str = "",
) -> Dataset:
    """A table's file as a data set; every fault of it is one clear line.

    Args:
        path: ``.csv``, ``.tsv``, ``.txt`` (also ``.gz``) with a header, ``.parquet``, or ``.npz`` of
            1-d columns or of ``x`` [R, F] and ``y``.
        label: the column of the classes, texts or whole numbers, sorted into 0..C-1.
        drop: columns to leave out; these three take names and globs.
        categorical: columns that are categories whatever they look like.
        numeric: columns that must be numbers.
        encoding: "onehot", one column of 0 and 1 a category, or "codes", one column of codes 0, 1,
            ... a source (for networks that embed them).
        positive: of two classes, the one that becomes class 1.
        missing: "keep": a missing number stays NaN (the training rows' mean is put there later), a
            missing category becomes the category "(missing)"; or "refuse".
        max_categories: a one-hot column of more values is refused.
        delimiter: of a CSV; "auto" finds , ; tab or | in the header.
        test_file: a second file of the same columns, by its path or its name beside the first (looked for
            there first): the published test part.
        unknown: a category that only the test file has: "refuse", or "ignore" (reads as none).
        groups: a column whose equal values stay in one part (patients); no feature.
    """
    if not isinstance(test_file, str):
        raise UserError(f"test_file={test_file!r}: give the name of a file.")
    arrow = read(path, delimiter)
    test = None
    if test_file:
        beside = pathlib.Path(path).parent / test_file
        if beside.exists() or not pathlib.Path(test_file).exists():
            test_file = str(beside)
        if pathlib.Path(test_file).exists() and pathlib.Path(test_file).samefile(path):
            raise UserError(
                f"test_file={test_file!r} is the table itself: give another file, or leave test_file out."
            )
        test = read(test_file, delimiter)
    made = from_arrow(
        arrow,
        path,
        label=label,
        drop=drop,
        categorical=categorical,
        numeric=numeric,
        encoding=encoding,
        positive=positive,
        missing=missing,
        max_categories=max_categories,
        test=test,
        test_name=test_file,
        unknown=unknown,
        groups=groups,
    )
    if not test_file:
        return made
    return made._replace(notes=(*made.notes, one_line(f"the test rows are of {test_file}.")))


def from_frame(frame: Any, *, label: str, test: Any = None, **options: Any) -> Dataset:
    """A pandas ``DataFrame`` as a data set, without its index; ``test`` is a frame of the same
    columns, the published test part. The other options are ``table``'s."""
    if test is not None:
        test = _arrow(test, "the test frame")
    arrow = _arrow(frame, "the frame")
    return from_arrow(
        arrow, "the frame", label=label, test=test, test_name="the test frame", **options
    )


def _arrow(frame: Any, place: str) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if not hasattr(frame, "set_axis"):
        raise UserError(f"{place} is of type {type(frame).__name__}: give a pandas DataFrame.")
    names = [one_line(name) for name in frame.columns]
    all_different(names, place)
    try:
        return pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"{place} cannot be read ({one_line(error)[:160]}): give each column values of one type."
        ) from error


def from_arrow(
    arrow: pa.Table,
    name: str,
    *,
    label: str,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    encoding: str = "onehot",
    positive: str = "",
    missing: str = "keep",
    max_categories: int = 256,
    test: pa.Table | None = None,
    test_name: str = "",
    unknown: str = "refuse",
    groups: str = "",
) -> Dataset:
    """An Arrow table as a data set; ``name`` stands in messages. The options are ``table``'s, and
    ``test`` is the published test part. Raises UserError."""
    _check("encoding", encoding, ENCODINGS)
    _check("missing", missing, ("keep", "refuse"))
    _check("unknown", unknown, ("refuse", "ignore"))
    if type(max_categories) is not int or max_categories < 1:
        raise UserError(f"max_categories={max_categories!r}: give a whole number of at least 1.")
    arrow = named(arrow, name)
    roles = roles_of(name, arrow.column_names, label, groups, drop, categorical, numeric)
    own = [
        _checked(source(name, one, arrow[one], wanted), name, encoding, missing, max_categories)
        for one, wanted in roles.features.items()
    ]
    target = by_value(name, source(name, roles.label, arrow[roles.label], "category"))
    names = class_names(name, target, str(positive))
    labels = codes(target, names)
    group = _texts(name, arrow, roles.groups) if roles.groups else None
    everything, held, ignored = own, None, {}
    if test is not None:
        held_out = same_columns(named(test, test_name), test_name, arrow, name, roles)
        tested = source(test_name, roles.label, held_out[roles.label], "category")
        labels = np.concatenate([labels, test_codes(tested, names, test_name)])
        everything = []
        for one in own:
            why = (
                "" if roles.features[one.name] else f"name it in categorical= ({name} has numbers)"
            )
            other = source(test_name, one.name, held_out[one.name], one.kind, why)
            if missing == "refuse":
                _no_missing(other, test_name)
            both, ignored[one.name] = joined(one, other, test_name, encoding, unknown == "ignore")
            everything.append(both)
        held = np.arange(len(labels)) >= arrow.num_rows
        if group is not None:
            group += _texts(test_name, held_out, roles.groups)
            _apart(group, arrow.num_rows, roles.groups)
    columns, features = encode(everything, encoding)
    return Dataset(
        one_line(pathlib.PurePath(name).name),
        features,
        labels,
        len(names),
        columns=columns,
        classes=names,
        test=held,
        groups=None if group is None else np.unique(group, return_inverse=True)[1].astype(np.int32),
        notes=noting.notes(arrow, own, everything, roles.features, names, encoding, held, ignored),
    )


def _check(option: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise no_such(option, str(value), known)


def _checked(one: Source, place: str, encoding: str, missing: str, most: int) -> Source:
    if missing == "refuse":
        _no_missing(one, place)
    if one.kind == "category" and encoding == "onehot" and len(one.values) > most:
        why = f" (its first word among numbers is {one.mixed})" if one.mixed else ""
        raise UserError(
            f"{place}: column {one.name!r} has {len(one.values):,} distinct values{why}, more than "
            f"max_categories={most}, like an identifier: name it in drop=, choose encoding='codes', or "
            "raise max_categories."
        )
    return one


def _no_missing(one: Source, place: str) -> None:
    if one.missing:
        raise UserError(
            f"{place}: column {one.name!r} has no value in row {one.first + 1} and missing='refuse': "
            "fill it, or missing='keep'."
        )


def _texts(place: str, arrow: pa.Table, groups: str) -> list[str]:
    one = source(place, groups, arrow[groups], "category")
    assert one.codes is not None
    if one.missing:
        raise UserError(f"{place}: groups={groups!r} has no value in row {one.first + 1}: fill it.")
    return [one.values[code] for code in one.codes]


def _apart(group: list[str], rows: int, groups: str) -> None:
    both = set(group[:rows]) & set(group[rows:])
    if both:
        raise UserError(
            f"groups={groups!r}: {shown(min(both))} has rows in both files, and rows of a group stay in "
            "one part: leave them out of one file."
        )
