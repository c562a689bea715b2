"""A user's own table as a data set: delimited text, Parquet, NPZ, or a data frame.

``reading`` makes one pandas frame of any of them, ``column_types`` finds what each column is, and here columns
become features. Means, scales and the categories that count come from each seed's training rows alone;
``data.scaling_rows="all"`` is for papers that took all. A data frame is used by
``prepared.write(user_table.from_frame(frame, label="y"), "mine")`` and then ``name="prepared"``.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vfljax.datasets import notes
from vfljax.datasets import options as asking
from vfljax.datasets.column_types import MISSING, NAN, Rule, Source, source
from vfljax.datasets.core import Dataset
from vfljax.datasets.encoding import ENCODINGS, encode, joined, pooled
from vfljax.datasets.number_formats import Notation, is_number
from vfljax.datasets.reading import counted, framed, is_text, read
from vfljax.datasets.schema import Roles, class_names, codes, roles_of
from vfljax.datasets.table_errors import Place, all_different, fault, one_line, reading, shown
from vfljax.errors import Field, UserError, options_in
from vfljax.errors import unknown as no_such

# 2: words for missing values, pandas' mark of categories, dates, and what is refused. Version 1's reading is
# had by na_values= of its ten words, keep_default_na=False, categorical= of columns that are refused, and
# numeric= of those that are marked
READER = 2
LIMITS = {  # of an option's value; None: any of its type
    "encoding": ENCODINGS,
    "missing": ("keep", "refuse"),
    "unknown": ("refuse", "ignore"),
    "decimal": (".", ","),
    "thousands": ("", ",", ".", " ", "'", "_"),
    "max_categories": (1, asking.MOST),
    **dict.fromkeys(("keep_default_na", "drop_unlabeled", "percent", "date_format")),
}

OF_FILE = ("path", "delimiter", "test_file", "header", "file_encoding")  # options of ``table``


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
    na_values: Sequence[str] = (),
    keep_default_na: bool = True,
    drop_unlabeled: bool = False,
    header: bool = True,
    file_encoding: str = "utf-8",
    decimal: str = ".",
    thousands: str = "",
    percent: bool = False,
    date_format: str = "",
) -> Dataset:
    """A table's file as a data set; every fault of it is one clear line.

    A column of texts that are all numbers, or all true and false, is a number; one of dates or times is
    the days since its first; one of whole numbers that pandas or Arrow marks as categories is a
    category, as is one of other words. Refused, with the options that settle it, are columns of which
    half is numbers and the rest is words, of numbers in another notation, and of texts that differ in
    nearly all rows (90 %, and more than 20).

    Args:
        path: delimited text of any ending (also gzipped), ``.parquet``, or ``.npz`` of 1-d columns or of
            ``x`` [R, F] and ``y``.
        label: the column of the classes, texts or whole numbers, sorted into 0..C-1.
        drop: columns to leave out; these three take names and globs.
        categorical: columns that are categories whatever they look like.
        numeric: columns that must be numbers.
        encoding: "onehot", one column of 0 and 1 a category, or "codes", one column of codes 0, 1,
            ... a source (for networks that embed them).
        positive: of two classes, the one that becomes class 1.
        missing: "keep": a missing number stays NaN (the training rows' mean is put there later), a
            missing category becomes the category "(missing)"; or "refuse".
        max_categories: one-hot columns of a source at most; of more values, the rarest become one,
            "(other)". They are counted once, on all rows outside the test file and not on each seed's
            training rows, so that all seeds have the same columns.
        delimiter: of a text file; "auto" finds , ; tab or | in its first line.
        test_file: a second file of the same columns, by its path or its name beside the first (looked for
            there first): the published test part.
        unknown: a category that only the test file has: "refuse", or "ignore" (reads as none).
        groups: a column whose equal values stay in one part (patients); no feature.
        na_values: further words, or numbers, that are missing values.
        keep_default_na: whether pandas' words for missing values, and "?", are such; empty fields are
            always. Of labels, only empty ones, NaN, "?" and ``na_values`` are missing.
        drop_unlabeled: leave out rows without a label, which are refused otherwise.
        header: whether a text file's first line names its columns; if not, they are called 0, 1, ...
        file_encoding: of a text file, as Python names it, such as "latin-1".
        decimal: "," of numbers written as 0,5.
        thousands: "," of numbers written as 1,000; also "." or " ".
        percent: whether 5% is the number .05.
        date_format: of dates that could be read in several ways, as of ``strptime``: "%d/%m/%Y".
    """
    options = {name: value for name, value in locals().items() if name not in OF_FILE}
    asking.check(Field("data.options.test_file"), test_file, str)
    layout = (delimiter, header, file_encoding)
    (frame, nameless), test = read(path, *layout), None
    if test_file:
        beside = pathlib.Path(path).parent / test_file
        if beside.exists() or not pathlib.Path(test_file).exists():
            test_file = str(beside)
        if pathlib.Path(test_file).exists() and pathlib.Path(test_file).samefile(path):
            raise UserError(
                "is the table itself",
                field="data.options.test_file",
                value=test_file,
                remedy="give another file, or leave it out",
            )
        test, _ = read(test_file, *layout)
    hint, names = (), [*frame.columns, *nameless]
    odd = [name for name in names if is_number(name)]
    if header and odd and is_text(path) and not counted(names):
        first = f" Its first line names the columns, {shown(odd[0])} one of them: "
        hint = (first, *options_in("{header}=False if it is a row."))
    single = options_in(" It has but one column: give {delimiter}=.")
    dataset = _dataset(
        frame,
        Place(path, hint=single if len(names) == 1 else hint),
        nameless,
        test,
        test_file,
        options,
    )
    more = ["".join(map(str, hint)).strip()] if hint else []
    more += [f"the test rows are of {test_file}."] if test_file else []
    return dataset._replace(notes=(*dataset.notes, *map(one_line, more)))


def from_frame(frame: Any, *, label: str, test: Any = None, **options: Any) -> Dataset:
    """Makes a data set of a data frame.

    Args:
      frame: a pandas ``DataFrame``, whose index is left out, or an Arrow table.
      label: the column of the classes.
      test: a frame of the same columns, the published test part.
      **options: the other options of ``table`` that are not of a file.

    Returns:
      The data set.

    Raises:
      UserError: for any fault of the frame, or an unknown option.
    """
    held = None
    if test is not None:
        held, _ = framed(arrow_of(test, "the test frame"), "the test frame")
    table, nameless = framed(arrow_of(frame, "the frame"), "the frame")
    options = {"label": label, **options}
    return _dataset(table, Place("the frame"), nameless, held, "the test frame", options)


def arrow_of(frame: Any, place: str) -> pa.Table:
    """A pandas ``DataFrame`` without its index, or an Arrow table as it is, as an Arrow table of one-line
    names; ``place`` is what messages call it. Raises UserError."""
    if isinstance(frame, pa.Table):
        return frame
    if not isinstance(frame, pd.DataFrame):
        raise UserError(f"{place} is of type {type(frame).__name__}: give a pandas DataFrame.")
    names = [one_line(name) for name in frame.columns]
    all_different(names, place)
    with reading(place, "give each column values of one type"):
        return pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)


def _dataset(
    frame: pd.DataFrame,
    whole: Place,
    nameless: Sequence[str],
    test: pd.DataFrame | None,
    test_name: str,
    options: dict[str, Any],
) -> Dataset:
    """A frame as a data set; ``test`` is the published test part. The options are ``table``'s."""
    o, rule, label_rule = _checked(options)
    roles = roles_of(whole, list(frame.columns), o)
    names, rows = list(frame.columns), len(frame)
    frame, place, target = _labeled(whole, frame, roles.label, label_rule, o.drop_unlabeled)
    classes = class_names(place, target, str(o.positive))
    labels, spellings = codes(place, target, classes), target.values
    sources = []
    for column, kind in roles.features.items():
        typed = source(place, column, frame[column], rule, kind)
        _check_missing(typed, place, o.missing)
        sources.append(pooled(typed, o.max_categories) if o.encoding == "onehot" else typed)
    group = _texts(place, frame, roles.groups, rule) if roles.groups else None
    everything, held, ignored = sources, None, {}
    if test is not None:
        _check_columns(list(test.columns), test_name, names, whole, roles)
        rows += len(test)
        test, there, target = _labeled(
            Place(test_name), test, roles.label, label_rule, o.drop_unlabeled
        )
        labels = np.concatenate([labels, codes(there, target, classes)])
        everything = []
        for train in sources:
            column = train.name
            other = source(there, column, test[column], rule, roles.features[column], train)
            _check_missing(other, there, o.missing)
            both, ignored[column] = joined(train, other, there, o.encoding, o.unknown == "ignore")
            everything.append(both)
        held = np.arange(len(labels)) >= len(frame)
        if group is not None:
            more = _texts(there, test, roles.groups, rule)
            _check_apart(group, more, roles.groups)
            group = group + more
    columns, features = encode(everything, o.encoding)
    inferred = [
        *notes.of_labels(classes, spellings, rows - len(labels), label_rule),
        *notes.left_out(names, nameless, roles),
        *notes.notes(sources, everything, roles, o.encoding, held, ignored),
        *_unmet(place.name, o, everything, rows > len(labels)),
    ]
    return Dataset(
        name=one_line(pathlib.PurePath(place.name).name),
        features=features,
        labels=labels,
        num_classes=len(classes),
        columns=columns,
        classes=classes,
        test=held,
        groups=None if group is None else np.unique(group, return_inverse=True)[1].astype(np.int32),
        notes=tuple(map(one_line, inferred)),
        reader=READER,
    )


def _checked(options: dict[str, Any]) -> tuple[SimpleNamespace, Rule, Rule]:
    """(all options of ``table``, how features are read, how labels are)."""
    known = asking.of(table)
    for option in options:
        if option not in known:
            raise no_such("option of a table", option, known)
    o = SimpleNamespace(**known | options)
    for option, limit in LIMITS.items():
        field = Field(f"data.options.{option}", option)
        asking.check(field, getattr(o, option), type(known[option]), limit)
    if o.thousands == o.decimal:
        what, remedy = options_in("is also {decimal}="), "give two different signs"
        raise UserError(what, field="data.options.thousands", value=o.thousands, remedy=remedy)
    words = [o.na_values] if isinstance(o.na_values, str | int | float) else o.na_values
    if words is None or any(isinstance(word, bool | None) for word in words):
        remedy = "give words, or numbers"
        raise UserError(field="data.options.na_values", value=o.na_values, remedy=remedy)
    o.na_values = tuple(str(word).strip() for word in words)
    default = o.keep_default_na
    notation = Notation(o.decimal, o.thousands, o.percent, o.date_format)
    every = Rule(("", *o.na_values, *(MISSING if default else ())), notation)
    return o, every, every._replace(missing=("", *o.na_values, *((*NAN, "?") if default else ())))


def _check_columns(
    test: Sequence[str], test_name: str, names: Sequence[str], place: Place, roles: Roles
) -> None:
    """Raise UserError unless ``test`` has every column that is used and none that ``names`` lacks."""
    used = [roles.label, *filter(None, [roles.groups]), *roles.features]
    lacking = [name for name in used if name not in set(test)]
    more = [name for name in test if name not in set(names)]
    if lacking or more:
        what = [f"lacks {', '.join(map(repr, lacking[:5]))}"] if lacking else []
        what += [f"has also {', '.join(map(repr, more[:5]))}"] if more else []
        remedy = f"give it the columns of {place.name}, in any order"
        raise fault(test_name, " and ".join(what), remedy)


def _labeled(
    place: Place, frame: pd.DataFrame, label: str, rule: Rule, drop: bool
) -> tuple[pd.DataFrame, Place, Source]:
    """(the rows that have a label, where they are, their labels). With ``drop`` the others are left
    out; else raises UserError with their number, as it does where no row is left."""
    target = source(place, label, frame[label], rule, "category")
    if not target.missing:
        return frame, place, target
    assert target.codes is not None
    kept = np.flatnonzero(target.codes != len(target.values) - 1)  # NONE is the last
    if not drop or not len(kept):
        what = f"is missing in {target.missing:,} of {len(frame):,} rows"
        what = f"{what}, first in row {place.row(target.first)}"
        remedy = options_in("fill it, or {drop_unlabeled}=True leaves such rows out")
        raise fault(f"{place.name}: label {label!r}", what, remedy)
    frame, place = frame.iloc[kept].reset_index(drop=True), place._replace(rows=kept)
    return frame, place, source(place, label, frame[label], rule, "category")


def _unmet(
    name: str, o: SimpleNamespace, everything: Sequence[Source], unlabeled: bool
) -> list[str]:
    """A note on missing words that no feature holds; raises UserError for a format of dates that none has."""
    forms = [typed.since[0] for typed in everything if typed.since]
    if o.date_format and o.date_format not in forms:
        read = f" (dates are read as {', '.join(dict.fromkeys(forms))})" if forms else ""
        what = f"has no column of dates for date_format={o.date_format!r}{read}"
        raise fault(name, what, "correct it, or leave it out")
    met = {word for typed in everything for word in typed.words}
    numbers = {float(word) for word in met if is_number(word)}
    absent = sorted(
        word
        for word in {*o.na_values} - {"", *met}
        if not (is_number(word) and float(word) in numbers)
    )
    if not absent or unlabeled:  # labels may have held them
        return []
    return [f"na_values: no feature holds {', '.join(map(shown, absent))}."]


def _check_missing(typed: Source, place: Place, missing: str) -> None:
    if typed.missing and missing == "refuse":
        raise place.at(typed.name).fault(
            f"has no value in row {place.row(typed.first)} and missing='refuse'",
            "fill it, or {missing}='keep'",
        )


def _texts(place: Place, frame: pd.DataFrame, groups: str, rule: Rule) -> list[str]:
    typed = source(place, groups, frame[groups], rule, "category")
    assert typed.codes is not None
    if typed.missing:
        what = f"names groups and has no value in row {place.row(typed.first)}"
        raise place.at(groups).fault(what, "fill it")
    return [typed.values[code] for code in typed.codes]


def _check_apart(group: list[str], more: list[str], groups: str) -> None:
    both = set(group) & set(more)
    if both:
        what = f"{shown(min(both))} has rows in both files, and rows of a group stay in one part"
        remedy = "leave them out of one file"
        raise UserError((*options_in("{groups}="), f"{groups!r}: {what}"), remedy=remedy)
