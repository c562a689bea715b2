"""Reads a user's table as one pandas frame: delimited text, Parquet, NPZ, or a frame that the user read.

Text and Parquet are read with the options of ``pandas.read_csv`` and ``pandas.read_parquet`` that ``READ_CSV``
and ``READ_PARQUET`` list. Nothing of a file is executed or unpickled.
"""

from __future__ import annotations

import contextlib
import csv
import json
import mmap
import pathlib
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.datasets.columns import csv_option, is_number
from vfljax.datasets.files import MAX_BYTES, fits
from vfljax.datasets.npz import arrays
from vfljax.datasets.table_errors import all_different, fault, narrow, one_line, quoted, reading
from vfljax.errors import Field, Text, UserError, options_in, unknown

OPTIONS = Field("data.options.options", "options")
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
SEPARATORS = ",;\t|"


class Read(NamedTuple):
    """A table as it was read."""

    frame: pd.DataFrame  # whose columns have one-line names
    index: tuple[str, ...] = ()  # names of an index that is left out
    text: Mapping[str, Any] | None = None  # the options of ``read_csv``; None for other formats
    hint: Text = ()  # what may be wrong if a column is not there


def read(path: str, options: Mapping[str, Any] | str | None) -> Read:
    """Reads the table in a file, or raises UserError.

    Args:
      path: the file, or a folder of Parquet parts.
      options: of pandas' function that reads it; a text is read as JSON.
    """
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
        remedy = "give that frame to from_frame or audit, or write it by its to_parquet"
        raise fault(path, what, remedy)
    start = b"PAR1"
    if not file.is_dir():
        with reading(path, AGAIN), file.open("rb") as stream:
            start = stream.read(16)
    if not start:
        raise fault(path, "is empty", "write the table again")
    if suffix == ".npz":
        _checked_options(options, (), "a .npz file")
        return framed(_npz(file), path)
    if suffix in PARQUET or start.startswith(b"PAR1"):
        return _parquet(file, path, _checked_options(options, READ_PARQUET, "pandas.read_parquet"))
    return _csv(file, path, start, _checked_options(options, READ_CSV, "pandas.read_csv"))


def _checked_options(
    options: Mapping[str, Any] | str | None, allowed: Sequence[str], function: str
) -> dict[str, Any]:
    """Returns the options of pandas' function; raises UserError for others, and for values that are no JSON:
    an option that is a function would be run, and some options change what is returned."""
    try:
        plain: Any = json.loads(options or "{}") if isinstance(options, str) else options
        given: dict[str, Any] = json.loads(json.dumps(dict(plain or {})))
    except (TypeError, ValueError) as error:
        what = f"is no JSON object of options ({one_line(error)[:100]})"
        remedy = 'write {"sep": ";", "decimal": ","}'
        raise UserError(what, field=OPTIONS, value=options, remedy=remedy) from error
    for name, value in given.items():
        if name not in allowed:
            raise unknown(f"option of {function}", name, allowed)
        if name == "engine" and value not in ("c", "python"):
            raise UserError((OPTIONS, f": engine={value!r}"), remedy="give 'c' or 'python'")
    return given


def _csv(file: pathlib.Path, path: str, start: bytes, given: dict[str, Any]) -> Read:
    options = dict[str, Any](skipinitialspace=True, index_col=False) | given
    for magic, compression in MAGIC.items():
        if start.startswith(magic):
            options.setdefault("compression", compression)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        options.setdefault("encoding", "utf-16")
    with _reading_text(path, options), warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # a regular expression as "sep"
        warnings.filterwarnings("error", "Length of header", pd.errors.ParserWarning)
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        names = _header(file, path, options)
        if "skipinitialspace" not in given and "compression" not in options:
            # pandas takes a fifth longer if it has to look for blanks
            with file.open("rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as text:
                options["skipinitialspace"] = text.find(b" ") >= 0
        try:
            frame = pd.read_csv(file, **options)
        except pd.errors.DtypeWarning:  # pieces of a column have different types
            options["low_memory"] = False
            frame = pd.read_csv(file, **options)
        except pd.errors.ParserWarning as error:  # pandas would leave the last fields out
            first = quoted(",".join(names))
            what = f"has rows of more fields than its first line, {first} ({error})"
            remedy = ("give ", *csv_option(index_col=0), " if they begin with names of rows, or ")
            remedy = (*remedy, *csv_option(skiprows=1), " if that line is a comment")
            raise fault(path, what, remedy) from error
    hint: Text = ()
    if len(frame.columns) == 1:
        hint = (" It has but one column: give ", *csv_option(sep=";"), " or the like.")
    elif numbers := [name for name in names if is_number(name)]:
        hint = (f" Its first line names the columns, {numbers[0]!r} one of them: give ",)
        hint = (*hint, *csv_option(header=None), " if it is a row.")
    return framed(frame, path)._replace(text=options, hint=hint)


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
    """Returns the names of the columns; [] if no line names them. Sets "sep" in ``options`` if it is not given.

    Raises:
      UserError: for two columns of one name, of which pandas would rename the second, and for numbers in
        place of names.
    """
    named = options.get("header", "infer") in ("infer", 0) and "names" not in options
    raw: Any = {"header": None, "dtype": str, "keep_default_na": False}
    raw |= {name: options[name] for name in LINES if name in options}
    if not options.get("sep") and not options.get("delimiter"):
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
        what = (
            f"has rows that {' or '.join(map(repr, fitting))} may separate, and no header decides"
        )
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
    return framed(stored, path)


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


def framed(given: Any, place: str) -> Read:
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


def arrow_of(frame: Any, place: str) -> pa.Table:
    """Returns an Arrow table of a frame as ``from_frame`` reads it, without its index.

    Args:
      frame: a pandas ``DataFrame``, or an Arrow table.
      place: what messages call it.
    """
    with reading(place, "give each column values of one type"):
        return pa.Table.from_pandas(framed(frame, place).frame, preserve_index=False)
