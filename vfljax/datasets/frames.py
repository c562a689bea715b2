"""Reads a user's table as one pandas frame: delimited text, Parquet, NPZ, or a frame that the user read.

Text and Parquet are read with the options of ``pandas.read_csv`` and ``pandas.read_parquet`` that ``READ_CSV``
and ``READ_PARQUET`` list. Nothing of a file is executed or unpickled.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import mmap
import pathlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.datasets import formats
from vfljax.datasets.columns import WHOLE, codes_note, csv_option, is_number
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
READS = {  # what a file is, of ``formats`` -> likewise
    "a workbook of Excel (.xlsx)": "read_excel",
    "a workbook of old Excel (.xls)": "read_excel",
    "an OpenDocument file (.ods)": "read_excel",
    "an HDF5 file": "read_hdf",
    "an Arrow file": "read_feather",
    "a Feather file": "read_feather",
    "an SQLite database": "read_sql",
    "a Stata file": "read_stata",
    "an SPSS file": "read_spss",
    "a SAS file": "read_sas",
    "a SAS transport file": "read_sas",
    "a JSON file": "read_json",
    "an XML file": "read_xml",
}
FRAME = "give that frame to from_frame or audit, or write it by its to_parquet"
WRITE = "give the table as text, .parquet or .npz"
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
SEEN = 20  # lines that decide which of them separates
EXCEL = re.compile(r"sep=(.)", re.IGNORECASE)  # Excel's own first line
BLOCK = 1 << 17  # bytes: they stay in a processor's cache
Columns = Callable[[Sequence[str]], Iterable[str]]
Source = Callable[[], contextlib.AbstractContextManager[Any]]  # of a text file, or its path


class Read(NamedTuple):
    """A table as it was read."""

    frame: pd.DataFrame  # whose columns have one-line names
    index: tuple[str, ...] = ()  # names of an index that is left out
    text: Mapping[str, Any] | None = None  # the options of ``read_csv``; None for other formats
    hint: Text = ()  # what may be wrong if a column is not there


def read(
    path: str, options: Mapping[str, Any] | str | None, as_texts: Columns = lambda names: ()
) -> Read:
    """Reads the table in a file, or raises UserError.

    Args:
      path: the file, also compressed or the only file of an archive, or a folder of Parquet parts.
      options: of pandas' function that reads it; a text is read as JSON.
      as_texts: is given the columns' names in one line, and returns those whose values stay as a text file has
        them.
    """
    if not path:
        remedy = "give the table's file (text, .parquet or .npz)"
        raise UserError("is empty", field="data.dir", remedy=remedy)
    file = pathlib.Path(path).absolute()
    suffix = file.suffix.lower()
    if file.is_dir():
        if not any(part.suffix in PARQUET for part in file.rglob("part*")):
            likely = sorted(p.name for p in file.iterdir() if p.name.lower().endswith(LIKELY))
            few = ", ".join(likely[:5]) + (", ..." if len(likely) > 5 else "")
            raise fault(path, "is a folder", f"give one file of it{f' ({few})' if likely else ''}")
        return _parquet(file, path, _checked_options(options, READ_PARQUET, "pandas.read_parquet"))
    if not file.exists():
        remedy = ("put the table there, or correct ", Field("data.dir"))
        raise fault(path, "is missing", (*remedy, *options_in(" or {test_file}")))
    with reading(path, AGAIN):
        if not (start := formats.start_of(file)):
            raise fault(path, "is empty", "write the table again")
        text_of_excel = suffix == ".xls" and not formats.named(start) and b"\0" not in start
        if suffix in NOT_READ and not text_of_excel:
            what = f"is of a format that is not read (pandas.{NOT_READ[suffix]} reads it)"
            raise fault(path, what, FRAME)
        found = formats.content(file)  # whatever the option "compression" says
        what = found.what
        if what == formats.ZIP:
            with found.open() as stream:
                what = formats.of_program(formats.zip_names(stream))
    if what == formats.NPZ or (suffix == ".npz" and not what):
        _checked_options(options, (), "a .npz file")
        if found.packed:
            raise fault(path, f"holds {what} in another archive", formats.UNPACK)
        return framed(_npz(file), path)
    if what == formats.PARQUET or (suffix in PARQUET and not what):
        of_parquet = _checked_options(options, READ_PARQUET, "pandas.read_parquet")
        if found.packed:
            raise fault(path, f"holds {what} in an archive or compressed", formats.UNPACK)
        return _parquet(file, path, of_parquet)
    if what:
        reads = f" (pandas.{READS[what]} reads it)" if what in READS else ""
        raise fault(path, f"is {what}, no table that is read{reads}", FRAME if reads else WRITE)
    return _csv(file, found, path, _checked_options(options, READ_CSV, "pandas.read_csv"), as_texts)


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


def _csv(
    file: pathlib.Path, found: formats.Content, path: str, given: dict[str, Any], as_texts: Columns
) -> Read:
    options = dict[str, Any](skipinitialspace=True, index_col=False) | given | {"compression": None}
    source: Source = found.open if found.packed else functools.partial(contextlib.nullcontext, file)
    guessed = ""
    if "encoding" not in given and (encoding := _utf_16(found.start)):
        options["encoding"], guessed = encoding, f" It was read as {encoding}, by its first bytes."
    with _reading_text(path, source, options), warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # a regular expression as "sep"
        warnings.filterwarnings("error", "Length of header", pd.errors.ParserWarning)
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        names, hint = _header(source, path, options)
        hint = (*hint, guessed) if guessed else hint
        if "skipinitialspace" not in given and not found.packed:
            # pandas takes a fifth longer if it has to look for blanks
            with file.open("rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as text:
                options["skipinitialspace"] = text.find(b" ") >= 0
        options["dtype"] = _dtypes(source, options, as_texts)
        try:
            try:
                frame = _read_csv(source, options)
            except pd.errors.DtypeWarning:  # pieces of a column have different types
                options["low_memory"] = False
                frame = _read_csv(source, options)
            # not beside the reading, whose threads would hold Python's lock for most of the time
            frame = _with_codes(frame, source, options, _has_zeros(found, options))
        except pd.errors.ParserWarning as error:  # pandas would leave the last fields out
            what = f"has rows of more fields than its first line, {quoted(_first_line(source, options))}"
            remedy = ("give ", *csv_option(index_col=0), " if they begin with names of rows, or ")
            remedy = (*remedy, *csv_option(skiprows=1), " if that line is a comment.", *hint)
            raise fault(path, f"{what} ({error})", remedy) from error
    if len(frame.columns) == 1:
        hint = (*hint, " It has but one column: give ", *csv_option(sep=";"), " or the like.")
    elif numbers := [name for name in names if is_number(name)]:
        first = f" Its first line names the columns, {numbers[0]!r} one of them: give "
        hint = (*hint, first, *csv_option(header=None), " if it is a row.")
    return framed(frame, path)._replace(text=options, hint=hint)


def _read_csv(source: Source, options: Mapping[str, Any], **others: Any) -> Any:
    with source() as file:
        return pd.read_csv(file, **{**options, **others})


def _utf_16(start: bytes) -> str:
    """Returns the form of UTF-16 that a text is in, by its mark or by the zeros between ASCII letters."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = start[first::2], start[1 - first :: 2]
        if len(zeros) > 1 and not zeros.strip(b"\0") and b"\0" not in others:
            return name
    return ""


@contextlib.contextmanager
def _reading_text(path: str, source: Source, options: Mapping[str, Any]) -> Iterator[None]:
    try:
        with reading(path, CORRECT):
            yield
    except UserError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        encoding = options.get("encoding", "UTF-8")
        line, text = _undecoded(source, encoding)
        where = f" in line {line:,}: {quoted(text)} if it is Latin-1" if line else ""
        what = f"is not {encoding} text ({error.__cause__.reason}{where})"
        remedy = ("save it as UTF-8, or name its encoding: ", *csv_option(encoding="latin-1"))
        raise fault(path, what, remedy) from None


def _undecoded(source: Source, encoding: str) -> tuple[int, str]:
    """Returns the number of the first line that is no text in an encoding, and its part around the first wrong
    byte as Latin-1; (0, "") if no single line is wrong."""
    if encoding.lower().startswith(("utf-16", "utf_16", "utf16", "utf-32")):
        return 0, ""  # a line break is no byte of its own
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(source())
        raw = stack.enter_context(file.open("rb")) if isinstance(file, pathlib.Path) else file
        for number, line in enumerate(raw, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                around = line[max(0, error.start - 15) : error.start + 15]
                return number, one_line(around.decode("latin-1"))
            except UnicodeError:
                break
    return 0, ""


def _first_line(source: Source, options: Mapping[str, Any]) -> str:
    """Returns the first line that ``pandas.read_csv`` would read, as it is in the file."""
    lines = _lines(source, options, 1)
    return lines[0] if lines else ""


def _lines(source: Source, options: Mapping[str, Any], count: int) -> list[str]:
    """Returns the first lines that ``pandas.read_csv`` would read, as they are in the file."""
    how: dict[str, Any] = {name: options[name] for name in LINES if name in options}
    how |= {"header": None, "dtype": str, "keep_default_na": False, "nrows": count}
    return [*map(str, _read_csv(source, how, sep="\x01", quoting=csv.QUOTE_NONE)[0])]


def _header(source: Source, path: str, options: dict[str, Any]) -> tuple[list[str], Text]:
    """Returns the names of the columns, [] if no line names them, and what is to be said of the separator if
    a column is not there. Sets "sep" in ``options`` if it is not given.

    Raises:
      UserError: for two columns of one name, of which pandas would rename the second, and for numbers in
        place of names.
    """
    named = options.get("header", "infer") in ("infer", 0) and "names" not in options
    lines = _lines(source, options, SEEN)
    hint: Text = ()
    given = options.get("sep") or options.get("delimiter")
    if (
        lines
        and "skiprows" not in options
        and (excel := EXCEL.fullmatch(lines[0].strip('\ufeff"')))
    ):
        options["skiprows"] = 1
        lines = lines[1:]
        if not given:
            options["sep"] = given = excel[1]
    if not given:
        options["sep"], hint = _separator(lines, path, named)
    if not named:
        return [], hint
    raw: Any = {"header": None, "dtype": str, "keep_default_na": False, "nrows": 1}
    raw |= {name: options[name] for name in (*LINES, *FIELDS) if name in options}
    names = [one_line(name) for name in _read_csv(source, raw).iloc[0]]
    narrow(path, len(names))
    all_different([name for name in names if name], path, hint)
    counted = [[str(j + first) for j in range(len(names))] for first in (0, 1)]
    if all(map(is_number, names)) and names not in counted:
        called = f" if it is a row (the columns are then called 0 to {len(names) - 1})"
        remedy = ("give ", *csv_option(header=None), called, ", or put a header line there.", *hint)
        raise fault(path, "has numbers in its first line, not the names of columns", remedy)
    return names, hint


def _separator(lines: Sequence[str], path: str, named: bool) -> tuple[str, Text]:
    """Returns the separator of the first lines' fields, and a sentence that names it and the runner-up.

    Marks that all lines have equally often come first, then those that the first line has most often.

    Args:
      lines: the first ones of the file.
      path: the file, for messages.
      named: whether the first line names columns.
    """
    bare = [re.sub('"[^"]*"', "", line) for line in lines]
    bare = [line for line, whole in zip(bare, lines) if '"' not in line] or bare[:1]
    counts = {mark: [line.count(mark) for line in bare] for mark in SEPARATORS}
    two = {mark: count for mark, count in counts.items() if count[0] and len({*count[:2]}) == 1}
    fitting = [mark for mark in two if len({*counts[mark]}) == 1] or [*two]
    if len(fitting) > 1 and not named:
        what = (
            f"has rows that {' or '.join(map(repr, fitting))} may separate, and no header decides"
        )
        remedy = [part for mark in fitting for part in (" or ", *csv_option(sep=mark))]
        raise fault(path, what, ("give ", *remedy[1:]))
    ranked = sorted(SEPARATORS, key=lambda mark: (mark not in fitting, -counts[mark][0]))
    best, second = ranked[:2]
    if not counts[best][0]:
        return best, ()
    columns = f"{counts[best][0] + 1} columns"
    hint: Text = (f" {best!r} was taken for the separator of its {columns}",)
    if counts[second][0]:
        hint = (*hint, f"; {second!r} would make {counts[second][0] + 1}: give ")
        hint = (*hint, *csv_option(sep=second), " if that is right")
    return best, (*hint, ".")


def _dtypes(source: Source, options: Mapping[str, Any], as_texts: Columns) -> Any:
    """Returns the option "dtype" by which some columns are read as texts, if the user says no type of them."""
    given = options.get("dtype")
    if given is not None and not isinstance(given, Mapping):
        return given
    rest = {name: value for name, value in options.items() if name not in ("skipfooter", "dtype")}
    columns = _read_csv(source, rest, nrows=0).columns
    texts = {*as_texts([one_line(name) for name in columns])}
    return {name: "str" for name in columns if one_line(name) in texts} | dict(given or {})


def _has_zeros(found: formats.Content, options: Mapping[str, Any]) -> bool:
    """Returns whether some field of a text begins with a zero and another digit, and goes on with digits or
    ends: such numbers are codes, and pandas reads them without their zeros.

    Dates and times such as 01/02/2020 and 00:15 are not meant. Encodings are those that contain ASCII; zero
    bytes between letters, as in UTF-16, are skipped.
    """
    sep = str(options.get("sep") or options.get("delimiter") or ",").encode()
    marks = [*(sep if len(sep) == 1 else SEPARATORS.encode())]
    ends = [10, 13, *b'" ', *marks]
    wide = (
        str(options.get("encoding", "")).lower().startswith(("utf-16", "utf_16", "utf16", "utf-32"))
    )
    above = [mark for mark in marks if mark > ord(",")]

    def led(text: np.ndarray) -> bool:
        before, first, second, third = (text[k : len(text) - 3 + k] for k in range(4))
        possible = first == ord("0")
        possible &= second - ord("0") < 10  # unsigned: all others are larger
        # few places are left after this quick look: all ends but some separators are at most a comma
        after_end = before <= ord(",")
        for mark in above:
            after_end |= before == mark
        places = np.flatnonzero(possible & after_end)
        if not len(places):
            return False
        before, third = before[places], third[places]
        return bool(
            (np.isin(before, ends) & ((third - ord("0") < 10) | np.isin(third, ends))).any()
        )

    buffer = np.full(BLOCK + 3, ord("\n"), np.uint8)  # three bytes of the block before come first
    with found.open() as stream:
        while count := stream.readinto(buffer[3:]):
            text = buffer[: 3 + count]
            if wide:
                text = text[text > 0]
            if len(text) > 3 and led(text):
                return True
            buffer[:3] = text[-3:]
    return led(np.append(buffer[:3], buffer.dtype.type(ord("\n"))))


def _with_codes(frame: Any, source: Source, options: Mapping[str, Any], zeros: bool) -> Any:
    """Returns a frame in which whole numbers are the file's texts if they begin with a zero, or if they are so
    large that different ones may be equal as numbers.

    Args:
      frame: of ``pandas.read_csv``.
      source: the text.
      options: by which it was read.
      zeros: of ``_has_zeros``.
    """
    given = options.get("dtype")
    if given is not None and not isinstance(given, Mapping):
        return frame
    again = []
    for name in frame.columns:
        column = frame[name]
        if (
            not isinstance(column.dtype, np.dtype)
            or column.dtype.kind not in "iuf"
            or name in (given or {})
        ):
            continue
        x = column.to_numpy()
        if x.dtype.kind == "f":
            suspect = zeros or max(_most(x), _most(-x)) >= WHOLE
            if suspect and bool((np.isnan(x) | (x == np.floor(x))).all()):
                again.append(name)
        else:
            large = bool(len(x)) and (x.max() > WHOLE or (x.dtype.kind == "i" and x.min() < -WHOLE))
            if zeros or large:
                again.append(name)
    if not again:
        return frame
    texts = _read_csv(source, {**options, "dtype": dict(given or {}) | dict.fromkeys(again, "str")})
    for name in again:
        values = [*pd.unique(texts[name].dropna().str.strip())]
        if values and all(map(is_number, values)) and codes_note(values):
            frame[name] = texts[name]
    return frame


def _most(x: np.ndarray) -> float:
    """Returns the largest number but NaN; 0 if there is none."""
    largest = x.max(initial=0)  # much faster than fmax, and NaN if there is one
    return float(np.fmax.reduce(x, initial=0) if np.isnan(largest) else largest)


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
            given = _exact(given)
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


NULLABLE: Any = {
    getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
}


def _exact(table: pa.Table) -> pd.DataFrame:
    """Returns an Arrow table as a frame. Integers beside nulls do not become floats, which merge large ones."""
    frame = table.to_pandas(date_as_object=False)
    for name, column in zip(table.column_names, table.columns):
        if column.type in NULLABLE and column.null_count and name in frame:
            exact = column.to_pandas(types_mapper=NULLABLE.get)
            frame[name] = exact.set_axis(frame.index)
    return frame


def _plain(column: Any) -> Any:
    """Returns a column without Arrow's, sparse, big-endian and interval types."""
    kind = column.dtype
    if isinstance(kind, pd.ArrowDtype):
        table = pa.table({"": pa.chunked_array([column.array.__arrow_array__()])})
        column = _exact(table)[""].set_axis(column.index)
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
