"""Makes a data set of a user's own table: delimited text, Parquet, NPZ, or a data frame.

A file is read by ``pandas.read_csv`` or pyarrow's Parquet reader with that function's own options, and from
then on every table is one pandas frame: ``columns`` finds what each column is. Means, scales and the
categories that are read as 0 come from each seed's training rows (``scaling``). Nothing of a file is executed.
"""

from __future__ import annotations

import contextlib
import csv
import fnmatch
import json
import pathlib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.datasets import options as loader_options
from vfljax.datasets.columns import (
    Feature,
    Place,
    Rule,
    Texts,
    csv_option,
    is_number,
    ordered,
    read_column,
    texts_of,
)
from vfljax.datasets.core import Column, Dataset, SourceColumn
from vfljax.datasets.files import MAX_BYTES, fits
from vfljax.datasets.npz import arrays
from vfljax.datasets.table_errors import (
    MOST_COLUMNS,
    alike,
    all_different,
    fault,
    narrow,
    one_line,
    reading,
    shown,
)
from vfljax.errors import Field, Text, UserError, options_in, unknown, user_path
from vfljax.errors import shown as short

# Version 4 reads by pandas: its words for missing values hold for labels too, categories of the test file
# alone read as none, and columns and rows without any value are left out
READER = 4
OPTIONS = Field("data.options.options", "options")
MOST_CLASSES = 100
AGAIN = "it is damaged, cut off or of another format; write it again"
CORRECT = ("correct it, or give other ", OPTIONS, "= of pandas.read_csv")
FEWER = "give fewer rows or columns"
LIKELY = (".csv", ".tsv", ".txt", ".data", ".gz", ".bz2", ".xz", ".parquet", ".pq", ".npz")
PARQUET = (".parquet", ".pq")
NOT_READ = {  # suffix -> the function of pandas that reads it
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "read_excel"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "read_json"),
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), "read_hdf"),
    **dict.fromkeys((".pkl", ".pickle"), "read_pickle"),
    **dict.fromkeys((".sas7bdat", ".xpt"), "read_sas"),
    **{".feather": "read_feather", ".arrow": "read_feather", ".dta": "read_stata"},
    **{".orc": "read_orc", ".sav": "read_spss", ".xml": "read_xml", ".html": "read_html"},
}
MAGIC = {  # first bytes -> compression, as pandas calls it
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"BZh%d1AY" % level: "bz2" for level in range(1, 10)},
    b"PK\x03\x04": "zip",
}
# options of ``pandas.read_csv`` that decide how a line becomes fields, and the others that may be given
LINES = (
    *("encoding", "encoding_errors", "compression"),
    *("skiprows", "comment", "lineterminator", "skip_blank_lines"),
)
FIELDS = (
    *("sep", "delimiter", "quotechar", "quoting"),
    *("doublequote", "escapechar", "skipinitialspace", "engine"),
)
VALUES = (
    *("header", "names", "index_col", "usecols", "nrows", "skipfooter", "on_bad_lines", "dtype"),
    *("na_values", "keep_default_na", "na_filter", "true_values", "false_values"),
    *("parse_dates", "date_format", "dayfirst", "cache_dates", "decimal", "thousands"),
    *("low_memory", "float_precision"),
)
READ_CSV, READ_PARQUET = (*LINES, *FIELDS, *VALUES), ("columns", "filters")
WORDS = (  # which pandas 3.1 reads as missing; here also with blanks around them
    *(
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
    ),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
SEPARATORS = ",;\t|"
BLOCK = 4096  # rows
TEST = Field("data.options.test_file")
LIMITS = {"encoding": ("onehot", "codes"), "max_categories": (1, loader_options.MOST)}
OF_FILE = ("path", "test_file", "options")  # options of ``table`` that a frame does not have


class Read(NamedTuple):
    """A table as it was read."""

    frame: pd.DataFrame  # whose columns have one-line names
    index: tuple[str, ...] = ()  # names of an index that is left out
    text: Mapping[str, Any] | None = None  # the options of ``read_csv``; None for other formats
    hint: Text = ()  # what may be wrong if a column is not there


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
    drop_unlabeled: bool = False,
    na_values: Sequence[str] = (),
    max_categories: int = 256,
    encoding: str = "onehot",
    options: Mapping[str, Any] | str | None = None,
) -> Dataset:
    """Reads a table's file as a data set; a fault of the file is one clear line.

    A column is a number if its values are all numbers, or all true and false, also as texts. A column of
    dates becomes the days since its first one. A column that pandas or Arrow marks as categories is a
    category, also of whole numbers, and so is a column of other words. Three kinds of columns are refused,
    with the options that settle them: half numbers and half words, numbers in another notation, and texts
    that differ in nearly all rows (90 %, and more than 20). Rows and columns without any value are left out.

    Args:
        path: delimited text of any ending (also compressed), Parquet (a file, or a folder of parts), or
            ``.npz`` of 1-d columns or of ``x`` [R, F] and ``y``.
        label: the column of the classes, texts or whole numbers, sorted into 0..C-1.
        drop: columns to leave out; like the next two options, it takes names and globs.
        categorical: columns that are categories whatever they look like.
        numeric: columns that must be numbers.
        groups: a column that is no feature; rows of an equal value, such as a patient, stay in one part.
        test_file: a second file of the same columns, by its path or its name beside the first (looked for
            there first): the published test part.
        positive: of two classes, the one that becomes class 1.
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
            or "columns" and "filters" of ``pandas.read_parquet``; a text is read as JSON. Without "sep", the
            header line decides among , ; tab and |.
    """
    given = {name: value for name, value in locals().items() if name not in OF_FILE}
    loader_options.check(TEST, test_file, str)
    files = {path: _read(path, options)}
    if test_file:
        beside, here = pathlib.Path(path).parent / test_file, user_path(test_file, TEST)
        place = beside if beside.exists() or not here.exists() else here
        if place.exists() and place.samefile(path):
            remedy = "give another file, or leave it out"
            raise UserError("is the table itself", field=TEST, value=str(place), remedy=remedy)
        files[str(place)] = _read(str(place), options)
    return _dataset(files, given)


def from_frame(frame: Any, *, label: str, test: Any = None, **options: Any) -> Dataset:
    """Makes a data set of a data frame; a fault of the frame is one clear line.

    Args:
      frame: a pandas ``DataFrame``, whose index is left out, or an Arrow table.
      label: the column of the classes.
      test: a frame of the same columns, the published test part.
      **options: the other options of ``table``, except those of files (``OF_FILE``).
    """
    files = {"the frame": _framed(frame, "the frame")}
    if test is not None:
        files["the test frame"] = _framed(test, "the test frame")
    return _dataset(files, {"label": label, **options})


def read_frame(path: str, options: Mapping[str, Any] | str | None = None) -> pd.DataFrame:
    """Reads a file as ``table`` does before it looks at the columns, whose names are as the loader's."""
    return _read(path, options).frame


def arrow_of(frame: Any, place: str) -> pa.Table:
    """Returns an Arrow table of a frame as ``from_frame`` reads it, without its index.

    Args:
      frame: a pandas ``DataFrame``, or an Arrow table.
      place: what messages call it.
    """
    with reading(place, "give each column values of one type"):
        return pa.Table.from_pandas(_framed(frame, place).frame, preserve_index=False)


# ------------------------------------------------------------- files


def _read(path: str, options: Mapping[str, Any] | str | None) -> Read:
    if not path:
        remedy = "give the table's file (text, .parquet or .npz)"
        raise UserError("is empty", field="data.dir", remedy=remedy)
    file = pathlib.Path(path).absolute()
    suffix = file.suffix.lower()
    if file.is_dir() and not any(part.suffix in PARQUET for part in file.rglob("part*")):
        likely = sorted(p.name for p in file.iterdir() if p.name.lower().endswith(LIKELY))
        few = ", ".join(likely[:5]) + (", ..." if len(likely) > 5 else "")
        raise fault(path, "is a folder", f"give one file of it{f' ({few})' if likely else ''}")
    if not file.exists():
        remedy = ("put the table there, or correct ", Field("data.dir"))
        raise fault(path, "is missing", (*remedy, *options_in(" or {test_file}")))
    if suffix in NOT_READ:
        what = f"is of a format that is not read (pandas.{NOT_READ[suffix]} reads it)"
        raise fault(
            path, what, "give that frame to from_frame or audit, or write it by its to_parquet"
        )
    with reading(path, AGAIN):
        start = b"PAR1" if file.is_dir() else file.open("rb").read(16)
    if not start:
        raise fault(path, "is empty", "write the table again")
    if suffix == ".npz":
        _checked_options(options, (), "a .npz file")
        return _framed(_npz(file), path)
    if suffix in PARQUET or start.startswith(b"PAR1"):
        return _parquet(file, path, _checked_options(options, READ_PARQUET, "pandas.read_parquet"))
    return _csv(file, path, start, _checked_options(options, READ_CSV, "pandas.read_csv"))


def _checked_options(
    options: Mapping[str, Any] | str | None, allowed: Sequence[str], function: str
) -> dict[str, Any]:
    """Returns the options of pandas' function; raises UserError for others, and for values that are no JSON:
    an option that is a function would be run, and some options change what is returned."""
    try:
        if isinstance(options, str):
            options = json.loads(options) if options.strip() else {}
        options = json.loads(json.dumps(dict(options or {})))
    except (TypeError, ValueError) as error:
        what = f"is no JSON object of options ({one_line(error)[:100]})"
        remedy = 'write {"sep": ";", "decimal": ","}'
        raise UserError(what, field=OPTIONS, value=options, remedy=remedy) from error
    for name, value in options.items():
        if name not in allowed:
            raise unknown(f"option of {function}", name, allowed)
        texts = ("compression", "encoding", "sep", "delimiter", "on_bad_lines")
        remedy = "give a text" if name in texts and not isinstance(value, str | None) else ""
        if name == "engine" and value not in ("c", "python", "pyarrow"):
            remedy = "give 'c', 'python' or 'pyarrow'"
        if name == "encoding" and not remedy and not _is_encoding(value):
            remedy = "give an encoding that Python knows, such as 'latin-1'"
        if remedy:
            raise UserError((OPTIONS, f": {name}={value!r}"), remedy=remedy)
    return options


def _is_encoding(name: str | None) -> bool:
    try:
        return name is None or bool("a".encode(name))
    except (LookupError, ValueError):
        return False


def _csv(file: pathlib.Path, path: str, start: bytes, options: dict[str, Any]) -> Read:
    options = {"skipinitialspace": True, "index_col": False} | options
    for magic, compression in MAGIC.items():
        if start.startswith(magic):
            options.setdefault("compression", compression)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        options.setdefault("encoding", "utf-16")
    with _reading_text(path, options), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        names = _header(file, path, options)
        try:
            frame = pd.read_csv(file, **options)
        except pd.errors.DtypeWarning:  # pieces of a column have different types
            frame = pd.read_csv(file, **{**options, "low_memory": False})
        except pd.errors.ParserWarning as error:  # pandas would leave the last fields out
            first = shown(",".join(names))
            what = f"has rows of more fields than its first line, {first} ({error})"
            remedy = ("give ", *csv_option(index_col=0), " if they begin with names of rows, or ")
            remedy = (*remedy, *csv_option(skiprows=1), " if that line is a comment")
            raise fault(path, what, remedy) from error
    hint: Text = ()
    if len(frame.columns) == 1:
        hint = (" It has but one column: give ", *csv_option(sep=";"), " or the like.")
    elif any(map(is_number, names)):
        hint = (" Its first line names the columns, one of them by a number: give ",)
        hint = (*hint, *csv_option(header=None), " if it is a row.")
    return _framed(frame, path)._replace(text=options, hint=hint)


@contextlib.contextmanager
def _reading_text(path: str, options: Mapping[str, Any]) -> Iterator[None]:
    try:
        with reading(path, CORRECT):
            yield
    except UserError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        what = f"is not {options.get('encoding', 'UTF-8')} text ({error.__cause__.reason})"
        remedy = ("save it as UTF-8, or name its encoding: ", *csv_option(encoding="latin-1"))
        raise fault(path, what, remedy) from None


def _header(file: pathlib.Path, path: str, options: dict[str, Any]) -> list[str]:
    """Returns the names of the columns; () if no line names them. Sets the option "sep" if it is not given.

    Raises:
      UserError: for two columns of one name, of which pandas would rename the second, and for numbers in
        place of names.
    """
    named = options.get("header", "infer") in ("infer", 0) and "names" not in options
    raw: Any = {"header": None, "dtype": str, "keep_default_na": False}
    raw |= {name: options[name] for name in LINES if name in options}
    if "sep" not in options and "delimiter" not in options:
        lines = pd.read_csv(file, sep="\x01", nrows=2, quoting=csv.QUOTE_NONE, **raw)
        options["sep"] = _separator([*lines[0]], path, named)
    if not named:
        return []
    raw |= {name: options[name] for name in FIELDS if name in options}
    names = [one_line(name) for name in pd.read_csv(file, nrows=1, **raw).iloc[0]]
    narrow(path, len(names))
    all_different([name for name in names if name], path)
    counted = [[str(j + first) for j in range(len(names))] for first in (0, 1)]
    if all(map(is_number, names)) and names not in counted:
        called = f" if it is a row (the columns are then called 0 to {len(names) - 1})"
        remedy = ("give ", *csv_option(header=None), called, ", or put a header line there")
        raise fault(path, "has numbers in its first line, not the names of columns", remedy)
    return names


def _separator(lines: Sequence[str], path: str, named: bool) -> str:
    """Returns the separator of the first lines' fields; ``named``: whether the first one names columns."""
    bare = [re.sub('"[^"]*"', "", str(line)) for line in lines]
    counts = {mark: [line.count(mark) for line in bare] for mark in SEPARATORS}
    fitting = [mark for mark, count in counts.items() if count[0] and len({*count}) == 1]
    if len(fitting) > 1 and not named:
        what = f"has rows that {' or '.join(map(repr, fitting))} may separate, and no header tells"
        remedy = [part for mark in fitting for part in (" or ", *csv_option(sep=mark))]
        raise fault(path, what, ("give ", *remedy[1:]))
    return max(SEPARATORS, key=lambda mark: (counts[mark][0], mark in fitting))


def _parquet(file: pathlib.Path, path: str, options: Mapping[str, Any]) -> Read:
    with reading(path, AGAIN):
        filters = options.get("filters")
        parts = pq.ParquetDataset(file, filters=filters, page_checksum_verification=True)
        all_different([one_line(name) for name in parts.schema.names], path)
        narrow(path, len(parts.schema))
        rows = sum(part.metadata.num_rows for part in parts.fragments)
        # a table that repeats one value may exceed memory though its file is small
        fits(path, (rows, len(parts.schema)), 8, MAX_BYTES, FEWER)
        stored = parts.read(columns=options.get("columns"), use_pandas_metadata=True)
        stored.validate(full=True)  # offsets within bounds, texts UTF-8
    return _framed(stored, path)


def _npz(file: pathlib.Path) -> pd.DataFrame:
    columns: dict[str, np.ndarray] = {}
    for name, array in arrays(file, max_bytes=MAX_BYTES).items():
        if array.dtype.kind not in "biufUSM":
            what = f"is of type {array.dtype}"
            raise fault(f"{file}: array {name!r}", what, "give numbers or texts")
        matrix = name == "x" and array.ndim == 2
        if not matrix and array.ndim != 1:
            remedy = "give equally long 1-d arrays, one a column, or one 2-d array x and y"
            raise fault(f"{file}: array {name!r}", f"has shape {array.shape}", remedy)
        if matrix:
            narrow(file, array.shape[1])
        columns |= {f"x{j}": x for j, x in enumerate(array.T)} if matrix else {name: array}
    with reading(file, AGAIN):
        return pd.DataFrame(
            {
                c: np.char.decode(x, "utf-8") if x.dtype.kind == "S" else x
                for c, x in columns.items()
            }
        )


def _framed(given: Any, place: str) -> Read:
    """Returns a frame with one-line names and columns of pandas' ordinary types, without its index.

    Args:
      given: a pandas ``DataFrame``, or an Arrow table.
      place: what messages call it.
    """
    if isinstance(given, pa.Table):
        all_different([one_line(name) for name in given.column_names], place)
        with reading(place, "write it by pandas' to_parquet from columns of ordinary types"):
            about = (given.schema.pandas_metadata or {}).get("columns", [])
            given = given.to_pandas(date_as_object=False)
            marked = [c["name"] for c in about if c["pandas_type"] == "categorical"]
            given = given.astype(dict.fromkeys(set(marked) & {*given.columns}, "category"))
    if not isinstance(given, pd.DataFrame):
        raise UserError(f"{place} is of type {type(given).__name__}: give a pandas DataFrame.")
    if isinstance(given.columns, pd.MultiIndex):
        remedy = "make it one level: frame.columns = frame.columns.map('_'.join)"
        raise fault(place, f"has column names of {given.columns.nlevels} levels", remedy)
    names = [one_line(name) or f"Unnamed: {j}" for j, name in enumerate(given.columns)]
    narrow(place, len(names))
    all_different(names, place)
    if not names or not len(given):
        raise fault(place, f"has {len(names)} columns and no row", "write the table again")
    plain = isinstance(given.index, pd.RangeIndex) or given.index.equals(pd.RangeIndex(len(given)))
    index = () if plain else tuple(one_line(n or "unnamed") for n in given.index.names)
    with reading(place, "give each column values of one ordinary type"):
        columns = [_plain(given.iloc[:, j]) for j in range(len(names))]
        frame = pd.concat(columns, axis=1, keys=range(len(names))).set_axis(names, axis=1)
    return Read(frame.reset_index(drop=True), index)


def _plain(column: Any) -> Any:
    """Returns a column without Arrow's, sparse, big-endian and interval types."""
    kind = column.dtype
    if isinstance(kind, pd.ArrowDtype):
        chunks = pa.chunked_array([column.array.__arrow_array__()])
        column = chunks.to_pandas(date_as_object=False).set_axis(column.index)
    elif isinstance(kind, pd.SparseDtype):
        column = column.sparse.to_dense()
    elif isinstance(kind, np.dtype) and kind.byteorder not in "=|":
        column = column.astype(kind.newbyteorder("="))
    if isinstance(column.dtype, pd.IntervalDtype):
        column = column.astype("category")
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = column.cat.categories
        if isinstance(categories.dtype, pd.IntervalDtype):
            column = column.cat.rename_categories([*map(str, categories)])
    return column


# ------------------------------------------------------------- the data set


def _dataset(files: dict[str, Read], given: dict[str, Any]) -> Dataset:
    """Returns the data set of a training file and, if there is one, a test file."""
    o, missing = _checked(given)
    (name, training), *tested = files.items()
    roles = _roles(name, [*training.frame.columns], o, training.hint)
    for test_name, test in tested:
        lacking = [
            repr(c) for c in training.frame if c not in test.frame and roles[c] != "left out"
        ]
        more = [repr(column) for column in test.frame if column not in training.frame]
        if lacking or more:
            what = [f"lacks {', '.join(lacking[:5])}"] if lacking else []
            what += [f"has also {', '.join(more[:5])}"] if more else []
            remedy = f"give it the columns of {name}, in any order"
            raise fault(test_name, " and ".join(what), remedy)
    used = [column for column in training.frame if roles[column] != "left out"]
    frames = [read.frame.reindex(columns=used) for read in files.values()]
    frame = frames[0] if not tested else pd.concat(frames, ignore_index=True)
    lengths = [len(part) for part in frames]
    frames.clear()
    place = Place(
        files=tuple(files),
        test=np.repeat(np.arange(len(lengths)) > 0, lengths),
        rows=np.concatenate([np.arange(1, length + 1) for length in lengths]),
        text=training.text,
    )
    if training.text is not None:
        missing |= {*(WORDS if training.text.get("keep_default_na", True) else ())}
    notes = []
    gone = frame.iloc[:, 0].isna().to_numpy().copy()  # few rows, as a rule: the others need no look
    gone[gone] = frame[gone].isna().all(axis=1).to_numpy()
    frame, place, empty = _without(frame, place, gone)
    if empty:
        notes.append(f"rows without any value, left out: {empty:,}")
    label = next(column for column in used if roles[column] == "label")
    _refuse_headers(frame, label, place)
    texts = texts_of(frame[label], label, place, frozenset(missing))
    unlabeled = texts.codes < 0
    classes, codes, target = _labels(texts, label, place, o)
    if unlabeled.any():
        frame, place, count = _without(frame, place, unlabeled)
        notes.append(f"rows without a label, left out: {count:,}")
    sources, features = {label: target}, []
    groups = None
    rule = Rule(frozenset(missing), o.encoding == "codes", o.max_categories)
    for column in used:
        if column == label:
            continue
        if roles[column] == "groups":
            groups, sources[column] = _groups(frame[column], column, place, rule)
            continue
        feature = read_column(frame[column], column, place, rule, roles[column], frame)
        if feature is None:
            sources[column] = SourceColumn(column, "left out", len(frame), note="no value")
        else:
            sources[column] = feature.about
            features.append(feature)
    if not features:
        raise fault(name, f"has no column with values beside {label!r} left", "drop fewer columns")
    for column in training.frame:
        if roles[column] == "left out":
            sources[column] = SourceColumn(column, "left out", note="named in drop=")
    listed = [sources[column] for column in training.frame]
    if training.index:
        listed += [
            SourceColumn(index, "left out", note="the frame's index") for index in training.index
        ]
        notes.append(f"the frame's index is left out: {', '.join(training.index)}")
    if valueless := [c.name for c in listed if c.note == "no value"]:
        more = ", ..." if len(valueless) > 8 else ""
        notes.append(f"columns without any value, left out: {', '.join(valueless[:8])}{more}")
    for test_name, _ in tested:
        held = f"{int(place.test.sum()):,} of {len(place.test):,} rows"
        notes.append(f"{held} are the published test part, of {short(test_name)}")
    columns, matrix = _encode(features, o.encoding, len(frame))
    return Dataset(
        name=one_line(pathlib.PurePath(name).name),
        features=matrix,
        labels=codes,
        num_classes=len(classes),
        columns=columns,
        classes=classes,
        test=place.test if tested else None,
        groups=groups,
        notes=tuple(one_line(note) + "." for note in notes),
        reader=READER,
        sources=tuple(listed),
    )


def _without(
    frame: pd.DataFrame, place: Place, gone: np.ndarray
) -> tuple[pd.DataFrame, Place, int]:
    """Returns the frame and its rows' numbers without some rows, and the number of these."""
    if not gone.any():
        return frame, place, 0
    place = place._replace(test=place.test[~gone], rows=place.rows[~gone])
    return frame[~gone].reset_index(drop=True), place, int(gone.sum())


def _checked(given: dict[str, Any]) -> tuple[SimpleNamespace, set[str]]:
    """Returns all options of ``table``, and the texts that are missing values."""
    known = {k: v for k, v in loader_options.of(table).items() if k not in OF_FILE}
    for option in given:
        if option not in known:
            raise unknown("option of a table", option, known)
    o = SimpleNamespace(**known | given)
    for option in ("encoding", "max_categories", "drop_unlabeled"):
        field = Field(f"data.options.{option}", option)
        loader_options.check(field, getattr(o, option), type(known[option]), LIMITS.get(option))
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

    given = {"label": columns_of("label", o.label, globs=False)}
    given["groups"] = columns_of("groups", o.groups, globs=False) if o.groups != "" else []
    given |= {
        option: columns_of(option, getattr(o, option))
        for option in ("drop", "categorical", "numeric")
    }
    roles = dict.fromkeys(names, "")
    said: dict[str, str] = {}
    called = {"drop": "left out", "categorical": "category", "numeric": "number"}
    for option in ("categorical", "numeric", "drop", "groups", "label"):
        for column in given[option]:
            before = said.get(column, option)
            if (
                before != option
                and (before, option) != ("categorical", "drop")
                and option != "label"
            ):
                what = options_in(f" is in {{{before}}}= and in {{{option}}}=.")
                raise UserError((f"column {column!r}", *what))
            if option == "label" and before in ("drop", "groups"):
                what, field = options_in(f"is also in {{{before}}}="), "data.options.label"
                raise UserError(what, field=field, value=column, remedy="take it out of one")
            said[column], roles[column] = option, called.get(option, option)
    return roles


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
        group, remedy = shown(texts.values[min(both)]), "leave them out of one file"
        what = f"{group} has rows in both files, and rows of a group stay in one part"
        raise UserError((*options_in("{groups}="), f"{name!r}: {what}"), remedy=remedy)
    about = SourceColumn(name, "groups", categories=len(texts.values))
    return np.unique(texts.codes, return_inverse=True)[1].astype(np.int32), about


def _labels(
    texts: Texts, name: str, place: Place, o: SimpleNamespace
) -> tuple[tuple[str, ...], np.ndarray, SourceColumn]:
    """Returns the classes, the labels of the rows that have one, and what is said of the column.

    Raises:
      UserError: for labels that are missing, that are no classes, or that only the test file has.
    """
    gone = texts.codes < 0
    for rows in (~place.test, place.test):
        if (missing := int((gone & rows).sum())) and (
            not o.drop_unlabeled or missing == rows.sum()
        ):
            first = int(np.argmax(gone & rows))
            count = (
                f"missing in {missing:,} of {rows.sum():,} rows, first in row {place.rows[first]}"
            )
            remedy = options_in("fill it, or {drop_unlabeled}=True leaves such rows out")
            if place.text is not None and place.text.get("keep_default_na", True):
                words = (
                    " (pandas reads NA and None as missing: ",
                    *csv_option(keep_default_na=False),
                )
                remedy = (*remedy, *words, " reads them as classes)")
            file = place.files[int(place.test[first])]
            raise fault(file, f"is the label and is {count}", remedy, column=name)
    numeric = all(map(is_number, texts.values))
    spelled = [_whole(value) for value in texts.values] if numeric else texts.values
    training = {*texts.codes[~place.test & ~gone].tolist()}
    names = ordered({value for code, value in enumerate(spelled) if code in training})
    _refuse_labels(texts, names, numeric, name, place)
    if o.positive != "":
        positive = _whole(str(o.positive)) if numeric else str(o.positive)
        if len(names) != 2:
            what = f"{positive!r}: label {name!r} has {len(names)} classes, not two."
            raise UserError((*options_in("{positive}="), what))
        if positive not in names:
            raise unknown("class (positive=)", positive, names)
        names = [*(value for value in names if value != positive), positive]
    number = {value: k for k, value in enumerate(names)}
    for code, value in enumerate(spelled):
        if value not in number:
            remedy = f"a test row needs one of the training file's {len(names)} classes"
            raise place.fault(name, f"has the label {shown(value)}", remedy, texts.row(code))
    codes = np.asarray([number[value] for value in spelled], np.int32)[texts.codes[~gone]]
    return tuple(names), codes, SourceColumn(name, "label", int(gone.sum()), len(names))


def _whole(value: str) -> str:
    """Returns a whole number as plain digits ("+1", "01" and "1e0" as "1"), and any other text as it is."""
    if not is_number(value) or len(value) > 30 or not float(value).is_integer():
        return value
    return str(int(value) if re.fullmatch(r"[+-]?\d+", value) else int(float(value)))


def _refuse_labels(texts: Texts, names: list[str], numeric: bool, name: str, place: Place) -> None:
    same = {}
    distinct = f"is the label and has {len(names):,} distinct values"
    for value in () if numeric else names:
        if (other := same.setdefault(alike(value), value)) != value:
            what = f"has the labels {shown(other)} and {shown(value)}, which look alike"
            raise place.fault(name, what, "write one class in one way")
    if numeric and not all(float(value).is_integer() for value in names):
        what = f"{distinct} that are not all whole numbers, a regression target"
        raise place.fault(name, what, "cut it into classes first")
    if len(names) > MOST_CLASSES:
        what = f"{distinct}, more than {MOST_CLASSES} classes"
        raise place.fault(name, what, "name another column, or cut it into classes first")
    if len(names) == 1:
        what = f"is the label and is {shown(names[0])} in all rows"
        raise place.fault(name, what, "at least two classes are needed")


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
    for start in range(
        0, rows, BLOCK
    ):  # a block's rows stay in the cache while its columns are written
        block, first = matrix[start : start + BLOCK], 0
        begin = np.arange(len(block)) * len(columns)  # of each row in the flat block
        for feature in features:
            values = feature.codes if feature.numbers is None else feature.numbers
            assert values is not None
            part = values[start : start + BLOCK]
            if feature.codes is not None and encoding == "onehot":
                places = begin + first + part
                block.reshape(-1)[places if part.min() >= 0 else places[part >= 0]] = 1
                first += len(feature.values)
            else:
                block[:, first] = part
                first += 1
    return tuple(columns), matrix
