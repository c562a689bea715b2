"""Makes a data set of a user's own table: delimited text, Parquet, NPZ, or a data frame.

``reading`` makes a pandas frame of any of them, ``column_types`` finds what each column is, and this module
makes features of the columns. Means, scales and the categories that are not read as 0 come from each seed's
training rows alone; ``data.scaling_rows="all"`` takes all rows, as some papers do. To use a data frame, write
``prepared.write(user_table.from_frame(frame, label="y"), "mine")`` and load that with ``name="prepared"``.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from vfljax.datasets import options as asking
from vfljax.datasets.column_types import MISSING, NAN, Rule, Source, source, words_of
from vfljax.datasets.copies import copies, copies_note
from vfljax.datasets.core import Column, Dataset
from vfljax.datasets.files import MAX_BYTES
from vfljax.datasets.notes import notes
from vfljax.datasets.number_formats import Notation
from vfljax.datasets.reading import Read, framed, read
from vfljax.datasets.schema import labels_of, roles_of
from vfljax.datasets.table_errors import MOST_COLUMNS, fault, one_line, place_of, shown
from vfljax.errors import Field, UserError, options_in, user_path
from vfljax.errors import shown as short
from vfljax.errors import unknown as no_such

# Version 2 changed the words for missing values, added dates, heeds columns that pandas marks as categories,
# and refuses more columns. To read as version 1 did, give its ten words in na_values=, keep_default_na=False,
# refused columns in categorical=, and marked ones in numeric=
# Version 3 sorts intervals such as "(5, 10]" by their ends
# Version 4 keeps rows that are copies of each other in one part
READER = 4
LIMITS = {  # by option: the values that it may have; None: any of its type
    "encoding": ("onehot", "codes"),
    "missing": ("keep", "refuse"),
    "unknown": ("refuse", "ignore"),
    "decimal": (".", ","),
    "thousands": ("", ",", ".", " ", "'", "_"),
    "max_categories": (1, asking.MOST),
    **dict.fromkeys(("keep_default_na", "drop_unlabeled", "percent", "date_format")),
}
TEST = Field("data.options.test_file")
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
    """Reads a table's file as a data set; a fault of the file is one clear line.

    A column is a number if its values are all numbers, or all true and false, also as texts. A column of
    dates or times becomes the days since its first one. A column that pandas or Arrow marks as categories
    is a category, also of whole numbers, and so is a column of other words. Three kinds of columns are
    refused, with the options that settle them: half numbers and half words, numbers in another notation,
    and texts that differ in nearly all rows (90 %, and more than 20).

    Args:
        path: delimited text of any ending (also gzipped), ``.parquet``, or ``.npz`` of 1-d columns or of
            ``x`` [R, F] and ``y``.
        label: the column of the classes, texts or whole numbers, sorted into 0..C-1.
        drop: columns to leave out; like the next two options, it takes names and globs.
        categorical: columns that are categories whatever they look like.
        numeric: columns that must be numbers.
        encoding: "onehot" makes a column of 0 and 1 for each category; "codes" makes one column of codes
            0, 1, ... for each source column, for networks that embed them.
        positive: of two classes, the one that becomes class 1.
        missing: "keep" leaves a missing number NaN (the training rows' mean replaces it later) and gives
            a missing category the category "(missing)"; "refuse" raises.
        max_categories: the most one-hot columns of a source column; the rarest further values become one,
            "(other)". Values are counted once, on all rows outside the test file and not on each seed's
            training rows, so that all seeds have the same columns.
        delimiter: of a text file; "auto" finds , ; tab or | in its first line.
        test_file: a second file of the same columns, by its path or its name beside the first (looked for
            there first): the published test part.
        unknown: "refuse" a category that only the test file has, or "ignore" it: it is then 0 in all
            columns, or has the code of a missing one.
        groups: a column that is no feature; rows of an equal value, such as a patient, stay in one part. By
            default rows that are equal in all columns do; a column of row numbers lets them part.
        na_values: further words, or numbers, that stand for missing values.
        keep_default_na: whether pandas' words for missing values, and "?", are read as missing; empty
            fields always are. A label is missing only if it is empty, NaN, "?" or in ``na_values``.
        drop_unlabeled: whether rows without a label are left out; they are refused otherwise.
        header: whether a text file's first line names its columns; if not, they are called 0, 1, ...
        file_encoding: of a text file, as Python names it, such as "latin-1".
        decimal: "," if numbers are written as 0,5.
        thousands: "," if numbers are written as 1,000; also ".", " ", "'" or "_".
        percent: whether 5% is the number .05.
        date_format: the ``strptime`` format of dates that could be read in several ways: "%d/%m/%Y".
    """
    options = {name: value for name, value in locals().items() if name not in OF_FILE}
    asking.check(TEST, test_file, str)
    files = {path: read(path, delimiter, header, file_encoding)}
    if test_file:
        beside, here = pathlib.Path(path).parent / test_file, user_path(test_file, TEST)
        place = beside if beside.exists() or not here.exists() else here
        test_file = str(place)
        if place.exists() and place.samefile(path):
            remedy = "give another file, or leave it out"
            raise UserError("is the table itself", field=TEST, value=test_file, remedy=remedy)
        files[test_file] = read(test_file, delimiter, header, file_encoding)
    dataset = _dataset(files, options)
    hint = "".join(map(str, files[path].hint)).strip()
    more = [f"the test rows are of {short(test_file)}."] if test_file else []
    return dataset._replace(notes=(*dataset.notes, *map(one_line, filter(None, [hint, *more]))))


def from_frame(frame: Any, *, label: str, test: Any = None, **options: Any) -> Dataset:
    """Makes a data set of a data frame; a fault of the frame is one clear line.

    Args:
      frame: a pandas ``DataFrame``, whose index is left out, or an Arrow table.
      label: the column of the classes.
      test: a frame of the same columns, the published test part.
      **options: the other options of ``table``, except those of files (``OF_FILE``).
    """
    files = {"the frame": framed(frame, "the frame")}
    if test is not None:
        files["the test frame"] = framed(test, "the test frame")
    return _dataset(files, {"label": label, **options})


def _dataset(files: dict[str, Read], options: dict[str, Any]) -> Dataset:
    """Returns the data set of a training file and, if there is one, a test file."""
    o, rule, label_rule = _checked(options)
    (name, training), *tested = files.items()
    roles = roles_of(name, [*training.frame.columns], o, training.hint)
    used = [roles.label, *filter(None, [roles.groups]), *roles.features]
    for test_name, test in tested:
        lacking = [repr(column) for column in used if column not in test.frame]
        more = [repr(column) for column in test.frame if column not in training.frame]
        if lacking or more:
            what = [f"lacks {', '.join(lacking[:5])}"] if lacking else []
            what += [f"has also {', '.join(more[:5])}"] if more else []
            remedy = f"give it the columns of {name}, in any order"
            raise fault(test_name, " and ".join(what), remedy)
    frames = [table.frame for table in files.values()]
    place = place_of({file: len(table.frame) for file, table in files.items()})
    where = place.at(roles.label)
    labels = words_of([frame[roles.label] for frame in frames], where, label_rule)
    kept, target = labels_of(labels, where, o.drop_unlabeled, str(o.positive))
    if not kept.all():
        which = np.split(kept, [len(frames[0])])
        frames = [frame[rows].reset_index(drop=True) for frame, rows in zip(frames, which)]
        place = place._replace(held=place.held[kept], rows=place.rows[kept])
    held = place.held if tested else None
    sources = []
    for column, kind in roles.features.items():
        kind = kind or ("category" if column in training.marked else "")
        sources.append(source([frame[column] for frame in frames], place.at(column), rule, kind))
    groups = None
    if roles.groups:
        where = place.at(roles.groups)
        texts = words_of([frame[roles.groups] for frame in frames], where, rule)
        where.check(texts.isna(), "names groups and has no value in row {row}", "fill it")
        if both := set(texts[~place.held]) & set(texts[place.held]):
            group, remedy = shown(min(both)), "leave them out of one file"
            what = f"{group} has rows in both files, and rows of a group stay in one part"
            raise UserError((*options_in("{groups}="), f"{roles.groups!r}: {what}"), remedy=remedy)
        groups = np.unique(list(texts), return_inverse=True)[1].astype(np.int32)
    formats = dict.fromkeys(column.since.form for column in sources if column.since)
    if o.date_format and o.date_format not in formats:
        dates = f" (dates are read as {', '.join(formats)})" if formats else ""
        what = f"has no column of dates for date_format={o.date_format!r}{dates}"
        raise fault(name, what, "correct it, or leave it out")
    columns, features = _encode(sources, o.encoding)
    remarks = notes(roles, training.nameless, target, sources, held, o)
    if groups is None and (groups := copies(features, target.labels)) is not None:
        remarks = [*remarks, copies_note(groups, held)]
    return Dataset(
        name=one_line(pathlib.PurePath(name).name),
        features=features,
        labels=target.labels,
        num_classes=len(target.classes),
        columns=columns,
        classes=target.classes,
        test=held,
        groups=groups,
        notes=tuple(map(one_line, remarks)),
        reader=READER,
    )


def _checked(options: dict[str, Any]) -> tuple[SimpleNamespace, Rule, Rule]:
    """Returns all options of ``table``, the rule by which features are read, and that for labels."""
    known = {name: value for name, value in asking.of(table).items() if name not in OF_FILE}
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
    missing = ("", *o.na_values)
    rule = Rule(
        missing=(*missing, *(MISSING if o.keep_default_na else ())),
        notation=Notation(o.decimal, o.thousands, o.percent, o.date_format),
        refuse=o.missing == "refuse",
        codes=o.encoding == "codes",
        most=o.max_categories,
        ignore=o.unknown == "ignore",
    )
    words = (*NAN, "?") if o.keep_default_na else ()
    return o, rule, rule._replace(missing=(*missing, *words))


def _encode(sources: Sequence[Source], encoding: str) -> tuple[tuple[Column, ...], np.ndarray]:
    """Returns (columns, features [R, F] float32). Numbers stay as they are, NaN where missing. A column of
    categories becomes a column of 0 and 1 for each of its values, or one column of codes."""
    columns: list[Column] = []
    for column in sources:
        if column.numbers is not None:
            columns.append(Column(column.name))
        elif encoding == "codes":
            columns.append(Column(column.name, "code", vocabulary=len(column.values)))
        else:
            columns += [Column(column.name, "category", value) for value in column.values]
    if len(columns) > MOST_COLUMNS:
        what = f"makes {len(columns):,} columns, more than {MOST_COLUMNS:,}"
        remedy = "choose 'codes', or drop columns of many categories"
        raise UserError(what, field="data.options.encoding", value="onehot", remedy=remedy)
    rows = len(sources[0].missing)
    size = 4 * rows * len(columns)
    if size > MAX_BYTES:
        what = f"{rows:,} rows of {len(columns):,} columns take {size:,} bytes, more than {MAX_BYTES:,}"
        remedy = "choose {encoding}='codes', " if encoding == "onehot" else ""
        remedy += "name columns in {drop}=, or give fewer rows"
        raise UserError(what, remedy=options_in(remedy))
    features, first = np.zeros((rows, len(columns)), np.float32), 0
    for column in sources:
        if column.codes is not None and encoding == "onehot":
            known = np.flatnonzero(column.codes >= 0)
            features[known, first + column.codes[known]] = 1
            first += len(column.values)
        else:
            features[:, first] = column.codes if column.numbers is None else column.numbers
            first += 1
    return tuple(columns), features
