"""Makes a data set of a user's own table: delimited text, Parquet, NPZ, or a data frame.

A file is read by ``pandas.read_csv`` or pyarrow's Parquet reader with that function's own options, and from
then on every table is one pandas frame: ``columns`` finds what each column is, and
``labels`` makes classes of one. Means, scales and the
categories that are read as 0 come from each seed's training rows (``scaling``). Nothing of a file is executed.
"""

from __future__ import annotations

import fnmatch
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from vfljax.datasets import copies
from vfljax.datasets import options as loader_options
from vfljax.datasets.bins import MOST_CLASSES
from vfljax.datasets.columns import read_column
from vfljax.datasets.core import Column, Dataset, SourceColumn
from vfljax.datasets.delimited import ReadTable
from vfljax.datasets.files import MAX_BYTES
from vfljax.datasets.frames import framed, read_frame
from vfljax.datasets.labels import REGRESSION, read_labels
from vfljax.datasets.source_columns import Feature, Place, Rule, texts_of
from vfljax.datasets.table_errors import MOST_COLUMNS, fault, one_line, quoted
from vfljax.errors import Field, Text, UserError, options_in, short_path, unknown, user_path

# Version 4 reads by pandas: its words for missing values hold for labels too, categories of the test file
# alone read as none, and columns and rows without any value are left out
READER = 4
WORDS = (  # which pandas 3.1 reads as missing; here also with blanks around them
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)  # fmt: skip
BLOCK = 4096  # rows
TEST = Field("data.options.test_file")
LIMITS = {
    "encoding": ("onehot", "codes"),
    "max_categories": (1, loader_options.MOST),
    "bins": (0, MOST_CLASSES),
    "task": ("classification", REGRESSION),
}
OF_FILE = ("path", "test_file", "options")  # options of ``table`` that a frame does not have


def table(
    path: str,
    *,
    label: str,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    groups: str = "",
    test_file: str = "",
    positive: str = "",
    bins: int = 0,
    task: str = "classification",
    drop_unlabeled: bool = False,
    na_values: Sequence[str] = (),
    max_categories: int = 256,
    encoding: str = "onehot",
    options: Mapping[str, Any] | str | None = None,
) -> Dataset:
    """Reads a table's file as a data set; a fault of the file is one clear line.

    A column is a number if its values are all numbers, or all true and false, also as texts. Texts of whole
    numbers that begin with zeros or are beyond 2^53 are codes, and so a category; integers of a frame, Parquet
    or NPZ are numbers, as their type says. A column of dates becomes the days since its first one. A column
    that pandas or Arrow marks as categories is a category, also of whole numbers, and so is a column of other
    words. The label, the groups and the columns of ``categorical`` keep what a text file says, and equal
    numbers, such as 1 and 1.0, are one value. Three kinds of columns are refused, with the options that settle
    them: half numbers and half words, numbers in another notation, and texts that differ in nearly all rows
    (90 %, and more than 20). Rows and columns without any value are left out.

    Args:
        path: delimited text of any ending (also compressed, or the only file of a zip or tar archive), Parquet
            (a file, or a folder of parts), or ``.npz`` of 1-d columns or of ``x`` [R, F] and ``y``.
        label: the column of the classes, texts or whole numbers, sorted into 0..C-1, or of numbers (task).
        drop: columns to leave out; like the next two options, it takes names and globs.
        categorical: columns that are categories whatever they look like.
        numeric: columns that must be numbers.
        groups: a column that is no feature; rows of an equal value, such as a patient, stay in one part. By
            default copies of a row do; a column of row numbers lets them part.
        test_file: a second file of the same columns, by its path or its name beside the first (looked for
            there first): the published test part.
        positive: of two classes, the one that becomes class 1.
        bins: of a label of numbers: how many classes its quantiles make of it, from low to high; two bins are
            "at most the median" and "above the median". A value equal to a threshold is in the lower class.
            Quantiles are of all rows with a label outside the test file, and not of each seed's training rows,
            so that a row has the same class on all seeds. 0: each value is a class.
        task: "classification" makes classes of the label, and "regression" keeps numbers as they are.
        drop_unlabeled: whether rows without a label are left out; they are refused otherwise.
        na_values: words, or numbers, that stand for missing values, besides those of pandas, "?" and empty
            texts. A missing number is NaN (the training rows' mean replaces it later), and a missing
            category is the category "(missing)".
        max_categories: the most one-hot columns of a source column; the rarest further values become one,
            "(other)". Values are counted once, on all rows outside the test file and not on each seed's
            training rows, so that all seeds have the same columns.
        encoding: "onehot" makes a column of 0 and 1 for each category; "codes" makes one column of codes
            0, 1, ... for each source column, for networks that embed them.
        options: keyword options of ``pandas.read_csv``, such as {"sep": ";", "decimal": ",", "header": None},
            or "columns" and "filters" of ``pandas.read_parquet``; a text is read as JSON. Without "sep", a
            first line such as Excel's "sep=;" decides, else the first lines decide among , ; tab and |.
    """
    given = {name: value for name, value in locals().items() if name not in OF_FILE}
    loader_options.check_option(TEST, test_file, str)
    o, missing = _checked(given)

    def as_texts(names: Sequence[str]) -> list[str]:
        return _matching(names, o.groups, o.categorical)

    files = {path: read_frame(path, options, as_texts)}
    if test_file:
        beside, here = pathlib.Path(path).parent / test_file, user_path(test_file, TEST)
        place = beside if beside.exists() or not here.exists() else here
        if place.exists() and place.samefile(path):
            remedy = "give another file, or leave it out"
            raise UserError("is the table itself", field=TEST, value=str(place), remedy=remedy)
        files[str(place)] = read_frame(str(place), options, as_texts)
    return _dataset(files, o, missing)


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
    return _dataset(files, *_checked({"label": label, **options}))


def _dataset(files: dict[str, ReadTable], o: SimpleNamespace, missing: set[str]) -> Dataset:
    """Returns the data set of a training file and, if there is one, a test file.

    Args:
      files: by their names.
      o, missing: of ``_checked``.
    """
    (name, training), *tested = files.items()
    roles = _roles(name, [*training.frame.columns], o, training.hint)
    used = [column for column, role in roles.items() if role != "left out"]
    for test_name, test in tested:
        lacking = [repr(column) for column in used if column not in test.frame]
        more = [repr(column) for column in test.frame if column not in training.frame]
        if lacking or more:
            what = [f"lacks {', '.join(lacking[:5])}"] if lacking else []
            what += [f"has also {', '.join(more[:5])}"] if more else []
            remedy = f"give it the columns of {name}, in any order"
            raise fault(test_name, " and ".join(what), (f"{remedy}.", *test.hint))
    frame, place = _together(files, used)
    index, text, hint = training.index, training.text, training.hint
    # the frames are let go, so that their memory is free before that of the features is taken
    files.clear()
    del training, tested
    if text is not None and text.get("keep_default_na", True):
        missing |= {*WORDS}
    rule = Rule(frozenset(missing), o.encoding == "codes", o.max_categories)
    notes = [f"the frame's index is left out: {', '.join(index)}"] if index else []
    empty = np.array(frame.iloc[:, 0].isna())  # few rows, as a rule: the others need no look
    empty[empty] = np.array(frame[empty].isna()).all(axis=1)
    if empty.any():
        notes.append(f"rows without any value, left out: {empty.sum():,}")
        frame, place = _without(frame, place, empty)

    label = next(column for column in used if roles[column] == "label")
    _refuse_headers(frame, label, place)
    texts = texts_of(frame[label], label, place, rule.missing)
    classes, labels, about = read_labels(texts, label, place, o)
    sources = dict.fromkeys(roles, SourceColumn("", "left out", note="named in drop="))
    sources[label] = about
    notes += [f"the label {label!r} is {about.note}"] if about.note else []
    if about.missing:
        notes.append(f"rows without a label, left out: {about.missing:,}")
        frame, place = _without(frame, place, texts.codes < 0)
    groups = None
    for column in used:
        if roles[column] == "groups":
            groups, sources[column] = _groups(frame[column], column, place, rule)
    others = [column for column in used if roles[column] not in ("label", "groups")]
    found = _found(frame, others, place, rule, roles)
    valueless = SourceColumn("", "left out", len(frame), note="no value")
    sources |= {
        column: feature.about if feature else valueless for column, feature in found.items()
    }
    features = [feature for feature in found.values() if feature]
    if not features:
        what = f"has no column with values beside {label!r} left"
        raise fault(name, what, ("drop fewer columns.", *hint))
    del frame
    listed = [about._replace(name=column) for column, about in sources.items()]
    listed += [SourceColumn(level, "left out", note="the frame's index") for level in index]
    if names := [column.name for column in listed if column.note == "no value"]:
        more = ", ..." if len(names) > 8 else ""
        notes.append(f"columns without any value, left out: {', '.join(names[:8])}{more}")
    for test_name in place.files[1:]:
        held = f"{place.test.sum():,} of {len(place.test):,} rows"
        notes.append(f"{held} are the published test part, of {short_path(test_name)}")
    columns, matrix = _encode(features, o.encoding, len(labels))
    test = place.test if place.files[1:] else None
    values = [feature.column for feature in features]
    if groups is None and (equal := copies.equal_rows(values, labels)) is not None:
        copied = copies.are_copies(equal, values, labels)
        notes.append(copies.note(equal, copied, test).rstrip("."))
        groups = equal if copied else None
    return Dataset(
        name=one_line(pathlib.PurePath(name).name),
        features=matrix,
        labels=labels,
        num_classes=len(classes) or 1,  # 1: labels are numbers
        columns=columns,
        classes=classes,
        test=test,
        groups=groups,
        notes=tuple(one_line(note) + "." for note in notes),
        reader=READER,
        sources=tuple(listed),
    )


def _together(files: dict[str, ReadTable], used: Sequence[str]) -> tuple[Any, Place]:
    """Returns one frame of the files' rows, of some columns, and the place of each row."""
    frames = [part.frame.reindex(columns=used) for part in files.values()]
    lengths = [len(part) for part in frames]
    test = np.repeat(np.arange(len(lengths)) > 0, lengths)
    rows = np.concatenate([np.arange(1, length + 1) for length in lengths])
    first, *_ = files.values()
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    return frame, Place(tuple(files), test, rows, first.text, first.hint, first.doubt)


def _found(
    frame: pd.DataFrame, columns: Sequence[str], place: Place, rule: Rule, roles: Mapping[str, str]
) -> dict[str, Feature | None]:
    """Returns what each of some columns is; None for one that has no value at all."""

    def read_one(column: str) -> Feature | None:
        return read_column(frame[column], column, place, rule, roles[column], frame)

    # NumPy and Arrow mostly compute without Python's lock; each thread needs a few copies of its column
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(columns, pool.map(read_one, columns)))


def _without(frame: Any, place: Place, gone: np.ndarray) -> tuple[pd.DataFrame, Place]:
    """Returns the frame and the place of its rows without some of them."""
    place = place._replace(test=place.test[~gone], rows=place.rows[~gone])
    return frame[~gone].reset_index(drop=True), place


def _checked(given: dict[str, Any]) -> tuple[SimpleNamespace, set[str]]:
    """Returns all options of ``table``, and the texts that are missing values."""
    known = {k: v for k, v in loader_options.of(table).items() if k not in OF_FILE}
    for option in given:
        if option not in known:
            raise unknown("option of a table", option, known)
    o = SimpleNamespace(**known | given)
    for option in ("encoding", "max_categories", "bins", "task", "drop_unlabeled"):
        field = Field(f"data.options.{option}", option)
        loader_options.check_option(
            field, getattr(o, option), type(known[option]), LIMITS.get(option)
        )
    if o.bins == 1:
        field, remedy = Field("data.options.bins", "bins"), "give 2 or more, or 0 for none"
        raise UserError("makes one class", field=field, value=o.bins, remedy=remedy)
    for option in ("bins", "positive") if o.task == REGRESSION else ():
        if getattr(o, option):
            field = Field(f"data.options.{option}", option)
            remedy = options_in("leave it out, or leave {task}=regression out")
            what = "is of classes"
            raise UserError(what, field=field, value=getattr(o, option), remedy=remedy)
    words = [o.na_values] if isinstance(o.na_values, str | int | float) else o.na_values
    if words is None or any(isinstance(word, bool | None) for word in words):
        remedy = "give words, or numbers"
        raise UserError(field="data.options.na_values", value=o.na_values, remedy=remedy)
    return o, {"", "?", *(str(word).strip() for word in words)}


def _roles(file: str, names: Sequence[str], o: SimpleNamespace, hint: Text) -> dict[str, str]:
    """Returns each column's role: "label", "groups", "left out", or as a feature "number", "category" or "".

    Args:
      file: the table's name, for messages.
      names: its columns.
      o: the options; label, groups, drop, categorical and numeric are read.
      hint: what may be wrong with the table if a column is not there.
    """

    def columns_of(option: str, patterns: Any, globs: bool = True) -> list[str]:
        several = isinstance(patterns, Iterable) and not isinstance(patterns, str)
        matching: list[str] = []
        for pattern in patterns if several and globs else [patterns]:
            field = Field(f"data.options.{option}", option)
            if pattern is None or isinstance(pattern, bool):
                raise UserError(field=field.path, value=pattern, remedy="give the name of a column")
            name = one_line(pattern)  # the number 1 names the column "1"
            hits = [name] if name in names else fnmatch.filter(names, name) if globs else []
            if not hits:
                raise UserError(
                    (f"{file}: ", *unknown(("column in ", field, "="), name, names, hint).parts)
                )
            matching += hits
        return matching

    chosen = {"label": columns_of("label", o.label, globs=False)}
    chosen["groups"] = columns_of("groups", o.groups, globs=False) if o.groups != "" else []
    for option in ("drop", "categorical", "numeric"):
        chosen[option] = columns_of(option, getattr(o, option))
    disjoint = (
        ("label", "drop"),
        ("label", "groups"),
        ("groups", "drop"),
        ("categorical", "numeric"),
    )
    for one, other in disjoint:
        if both := {*chosen[one]} & {*chosen[other]}:
            what, field = options_in(f"is also in {{{other}}}="), f"data.options.{one}"
            raise UserError(what, field=field, value=min(both), remedy="take it out of one")
    roles = dict.fromkeys(names, "")
    kinds = {"categorical": "category", "numeric": "number", "drop": "left out"}
    for option in ("categorical", "numeric", "drop", "groups", "label"):
        roles |= dict.fromkeys(chosen[option], kinds.get(option, option))
    return roles


def _matching(names: Sequence[str], *patterns: Any) -> list[str]:
    """Returns the names that are equal to a pattern, or to one of several, or that match it as a glob."""
    several = (p if isinstance(p, Iterable) and not isinstance(p, str) else [p] for p in patterns)
    texts = [one_line(pattern) for group in several for pattern in group]
    return [n for n in names if any(n == text or fnmatch.fnmatch(n, text) for text in texts)]


def _refuse_headers(frame: pd.DataFrame, label: str, place: Place) -> None:
    """Raises UserError for a row that repeats the header, as in two files that were put together."""
    same: Any = frame[label] == label
    for row in np.flatnonzero(same.to_numpy(bool, na_value=False)):
        if all(one_line(value) == name for name, value in frame.iloc[row].items()):
            raise place.fault(
                label, "has its own name: the header is repeated", "remove that line", int(row)
            )


def _groups(column: Any, name: str, place: Place, rule: Rule) -> tuple[np.ndarray, SourceColumn]:
    texts = texts_of(column, name, place, rule.missing)
    if (texts.codes < 0).any():
        row = int(np.argmax(texts.codes < 0))
        raise place.fault(name, "names groups and has no value", "fill it", row)
    if both := {*texts.codes[~place.test]} & {*texts.codes[place.test]}:
        group, remedy = quoted(texts.values[min(both)]), "leave them out of one file"
        what = f"{group} has rows in both files, and rows of a group stay in one part"
        raise UserError((*options_in("{groups}="), f"{name!r}: {what}"), remedy=remedy)
    about = SourceColumn(name, "groups", categories=len(texts.values))
    return np.unique(texts.codes, return_inverse=True)[1].astype(np.int32), about


def _encode(
    features: Sequence[Feature], encoding: str, rows: int
) -> tuple[tuple[Column, ...], np.ndarray]:
    """Returns (columns, features [R, F] float32). Numbers stay as they are, NaN where missing. A column of
    categories becomes a column of 0 and 1 for each of its values, or one column of codes."""
    columns: list[Column] = []
    for feature in features:
        name = feature.about.name
        if feature.numbers is not None:
            columns.append(Column(name))
        elif encoding == "codes":
            columns.append(Column(name, "code", vocabulary=len(feature.values)))
        else:
            columns += [Column(name, "category", value) for value in feature.values]
    if len(columns) > MOST_COLUMNS:
        what = f"makes {len(columns):,} columns, more than {MOST_COLUMNS:,}"
        remedy = "choose 'codes', or drop columns of many categories"
        raise UserError(what, field="data.options.encoding", value="onehot", remedy=remedy)
    size = 4 * rows * len(columns)
    if size > MAX_BYTES:
        what = f"{rows:,} rows of {len(columns):,} columns take {size:,} bytes, more than {MAX_BYTES:,}"
        remedy = "choose {encoding}='codes', " if encoding == "onehot" else ""
        remedy += "name columns in {drop}=, or give fewer rows"
        raise UserError(what, remedy=options_in(remedy))
    matrix = np.zeros((rows, len(columns)), np.float32)

    def fill(start: int) -> None:
        # a block's rows stay in the cache while its columns are written
        block, first = matrix[start : start + BLOCK], 0
        begin = np.arange(len(block)) * len(columns)  # of each row in the flat block
        for feature in features:
            part = feature.column[start : start + BLOCK]
            if feature.codes is not None and encoding == "onehot":
                places = begin + first + part
                block.reshape(-1)[places if part.min() >= 0 else places[part >= 0]] = 1
                first += len(feature.values)
            else:
                block[:, first] = part
                first += 1

    with ThreadPoolExecutor() as pool:  # NumPy writes without Python's lock
        list(pool.map(fill, range(0, rows, BLOCK)))
    return tuple(columns), matrix
