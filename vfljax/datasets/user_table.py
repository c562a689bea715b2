"""A user's own table as a data set: delimited text, Parquet, NPZ, or a data frame.

What enters: a file (or frame) and what its columns are, as far as that must be said. What leaves: a
``Dataset`` of kind "table" whose ``notes`` say what was inferred and met. ``notes.columns_table`` prints
what became of each column. Reading is ``reading``'s business, types ``columns_of``'s, features
``encoding``'s, sentences ``noting``'s.

Means, scales and the categories that count come from each seed's training rows alone;
``data.scaling_rows="all"`` is for papers that took all. A data frame is used by
``prepared.write(own.from_frame(frame, label="y"), "mine")`` and then ``name="prepared"``.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from vfljax.datasets import notes
from vfljax.datasets import options as asking
from vfljax.datasets.column_types import MISSING, NAN, Rule, Source, source
from vfljax.datasets.core import Dataset
from vfljax.datasets.encoding import ENCODINGS, encode, joined, pooled
from vfljax.datasets.number_formats import Notation, is_number
from vfljax.datasets.reading import counted, is_text, named, read
from vfljax.datasets.schema import class_names, codes, labeled, roles_of, same_columns
from vfljax.datasets.table_errors import Place, all_different, fault, one_line, reading, shown
from vfljax.errors import Field, Text, UserError, options_in
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
    asking.check(Field("data.options.test_file"), test_file, str)
    arrow, test = read(path, delimiter, header, file_encoding), None
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
        test = read(test_file, delimiter, header, file_encoding)
    hint, odd = (), [name for name in arrow.column_names if is_number(name)]
    if header and odd and is_text(path) and not counted(arrow.column_names):
        said = f" Its first line names the columns, {shown(odd[0])} one of them: "
        hint = (said, *options_in("{header}=False if it is a row."))
    absent = hint
    if arrow.num_columns == 1:
        absent = options_in(" It has but one column: give {delimiter}=.")
    dataset = from_arrow(
        arrow, path, test=test, test_name=test_file, hint=absent, label=label, drop=drop,
        categorical=categorical, numeric=numeric, encoding=encoding, positive=positive, missing=missing,
        max_categories=max_categories, unknown=unknown, groups=groups, na_values=na_values,
        keep_default_na=keep_default_na, drop_unlabeled=drop_unlabeled, decimal=decimal,
        thousands=thousands, percent=percent, date_format=date_format,
    )  # fmt: skip
    more = ["".join(map(str, hint)).strip()] if hint else []
    more += [f"the test rows are of {test_file}."] if test_file else []
    return dataset._replace(notes=(*dataset.notes, *map(one_line, more)))


def from_frame(frame: Any, *, label: str, test: Any = None, **options: Any) -> Dataset:
    """A pandas ``DataFrame`` as a data set, without its index; ``test`` is a frame of the same
    columns, the published test part. The other options are ``table``'s."""
    if test is not None:
        test = arrow_of(test, "the test frame")
    arrow = arrow_of(frame, "the frame")
    return from_arrow(
        arrow, "the frame", label=label, test=test, test_name="the test frame", **options
    )


def arrow_of(frame: Any, place: str) -> pa.Table:
    """A pandas ``DataFrame`` without its index, or an Arrow table as it is, as an Arrow table of one-line
    names; ``place`` is what messages call it. Raises UserError."""
    if isinstance(frame, pa.Table):
        return frame
    if not hasattr(frame, "set_axis"):
        raise UserError(f"{place} is of type {type(frame).__name__}: give a pandas DataFrame.")
    names = [one_line(name) for name in frame.columns]
    all_different(names, place)
    with reading(place, "give each column values of one type"):
        return pa.Table.from_pandas(frame.set_axis(names, axis=1), preserve_index=False)


def from_arrow(
    arrow: pa.Table,
    name: str,
    *,
    test: pa.Table | None = None,
    test_name: str = "",
    hint: Text = "",
    **options: Any,
) -> Dataset:
    """An Arrow table as a data set; ``name`` stands in messages. The options are ``table``'s, and
    ``test`` is the published test part. Raises UserError."""
    o, rule, label_rule = _checked(options)
    arrow, empty = named(arrow, name)
    whole = Place(name, hint=hint)
    roles = roles_of(whole, arrow.column_names, o.label, o.groups, o.drop, o.categorical, o.numeric)
    rows = arrow.num_rows
    arrow, place, target = labeled(whole, arrow, roles.label, label_rule, o.drop_unlabeled)
    names = class_names(place, target, str(o.positive))
    labels, spellings = codes(place, target, names), target.values
    sources = []
    for column, kind in roles.features.items():
        one = source(place, column, arrow[column], rule, kind)
        _no_missing(one, place, o.missing)
        sources.append(pooled(one, o.max_categories) if o.encoding == "onehot" else one)
    group = _texts(place, arrow, roles.groups, rule) if roles.groups else None
    everything, held, ignored = sources, None, {}
    if test is not None:
        tested, _ = named(test, test_name)
        same_columns(tested.column_names, test_name, arrow.column_names, whole, roles)
        rows += tested.num_rows
        tested, there, target = labeled(
            Place(test_name), tested, roles.label, label_rule, o.drop_unlabeled
        )
        labels = np.concatenate([labels, codes(there, target, names)])
        everything = []
        for one in sources:
            other = source(there, one.name, tested[one.name], rule, roles.features[one.name], one)
            _no_missing(other, there, o.missing)
            both, ignored[one.name] = joined(one, other, there, o.encoding, o.unknown == "ignore")
            everything.append(both)
        held = np.arange(len(labels)) >= arrow.num_rows
        if group is not None:
            more = _texts(there, tested, roles.groups, rule)
            _apart(group, more, roles.groups)
            group = group + more
    columns, features = encode(everything, o.encoding)
    inferred = [
        *notes.of_labels(names, spellings, rows - len(labels), label_rule),
        *notes.left_out(arrow.column_names, empty, roles),
        *notes.notes(sources, everything, roles, o.encoding, held, ignored),
        *_met(name, o, everything, rows > len(labels)),
    ]
    return Dataset(
        one_line(pathlib.PurePath(name).name),
        features,
        labels,
        len(names),
        columns=columns,
        classes=names,
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
        also = options_in("is also {decimal}=")
        raise UserError(
            also,
            field="data.options.thousands",
            value=o.thousands,
            remedy="give two different signs",
        )
    words = [o.na_values] if isinstance(o.na_values, str | int | float) else o.na_values
    if words is None or any(isinstance(word, bool | None) for word in words):
        raise UserError(
            field="data.options.na_values", value=o.na_values, remedy="give words, or numbers"
        )
    o.na_values = tuple(str(word).strip() for word in words)
    default = o.keep_default_na
    how = Notation(o.decimal, o.thousands, o.percent, o.date_format)
    every = Rule(("", *o.na_values, *(MISSING if default else ())), how)
    return o, every, every._replace(missing=("", *o.na_values, *((*NAN, "?") if default else ())))


def _met(name: str, o: SimpleNamespace, everything: Sequence[Source], unlabeled: bool) -> list[str]:
    """A note on missing words that no feature holds; raises UserError for a form of dates that none has."""
    forms = [one.since[0] for one in everything if one.since]
    if o.date_format and o.date_format not in forms:
        read = f" (dates are read as {', '.join(dict.fromkeys(forms))})" if forms else ""
        what = f"has no column of dates for date_format={o.date_format!r}{read}"
        raise fault(name, what, "correct it, or leave it out")
    met = {word for one in everything for word in one.words}
    absent = sorted(w for w in {*o.na_values} - {""} if not any(_same(w, other) for other in met))
    if not absent or unlabeled:  # labels may have held them
        return []
    return [f"na_values: no feature holds {', '.join(map(shown, absent))}."]


def _same(word: str, other: str) -> bool:
    both = is_number(word) and is_number(other)
    return word == other or (both and float(word) == float(other))


def _no_missing(one: Source, place: Place, missing: str) -> None:
    if one.missing and missing == "refuse":
        raise place.fault(
            one.name,
            f"has no value in row {place.row(one.first)} and missing='refuse'",
            options_in("fill it, or {missing}='keep'"),
        )


def _texts(place: Place, arrow: pa.Table, groups: str, rule: Rule) -> list[str]:
    one = source(place, groups, arrow[groups], rule, "category")
    assert one.codes is not None
    if one.missing:
        what = f"names groups and has no value in row {place.row(one.first)}"
        raise place.fault(groups, what, "fill it")
    return [one.values[code] for code in one.codes]


def _apart(group: list[str], more: list[str], groups: str) -> None:
    both = set(group) & set(more)
    if both:
        what = f"{shown(min(both))} has rows in both files, and rows of a group stay in one part"
        remedy = "leave them out of one file"
        raise UserError((*options_in("{groups}="), f"{groups!r}: {what}"), remedy=remedy)
