"""Reads a user's table as one pandas frame: delimited text (also gzipped), Parquet, NPZ, or a frame.

Every column holds values of one Arrow type, with null for a missing value: texts are of type ``TEXT``, floats
have 64 bits, and other types stay as they were. All fields of a text file are texts; ``column_types`` then
finds what they are, in the same way for every format. Rows are counted from 1, without the header and blank
lines. Nothing in a file is ever executed or unpickled.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from vfljax.datasets.files import MAX_BYTES, fits
from vfljax.datasets.npz import arrays
from vfljax.datasets.number_formats import TEXT, is_number, pc
from vfljax.datasets.options import check
from vfljax.datasets.table_errors import all_different, fault, narrow, one_line, reading, shown
from vfljax.errors import Field, Text, UserError, options_in

AGAIN = "it is damaged, cut off or of another format; write it again"
WRITE = "write the table again"
FEWER = "give fewer rows or columns"
COLUMNAR = (".parquet", ".pq", ".npz")
LIKELY = (".csv", ".tsv", ".txt", ".data", ".gz", *COLUMNAR)  # suggested if a folder is given
DELIMITERS = ",;\t|"
LONGEST_HEADER = 64 << 20  # bytes
MOST_TEXT = MAX_BYTES // 4  # bytes decompressed; a table of these texts takes many times that
PIECE = 1 << 24  # bytes decompressed at a time
ROWS = 1 << 14  # rows parsed at a time


class Read(NamedTuple):
    """A table as it was read."""

    frame: pd.DataFrame  # whose columns have one-line names
    marked: frozenset[str]  # columns that pandas or Arrow marks as categories
    nameless: Sequence[str]  # columns without name and value, left out
    hint: Text = ()  # for messages: what may be wrong with the header


def read(
    path: str, delimiter: str = "auto", header: bool = True, file_encoding: str = "utf-8"
) -> Read:
    """Reads the table in a file, or raises UserError.

    Args:
      path: the file.
      delimiter, header, file_encoding: of a text file, as of ``user_table.table``.
    """
    if not path:
        remedy = "give the table's file (text, .parquet or .npz)"
        raise UserError("is empty", field="data.dir", remedy=remedy)
    file = pathlib.Path(path)
    if file.is_dir():
        likely = sorted(p.name for p in file.iterdir() if p.name.lower().endswith(LIKELY))
        few = ", ".join(likely[:5]) + (", ..." if len(likely) > 5 else "")
        raise fault(path, "is a folder", f"give one file of it{f' ({few})' if likely else ''}")
    if not file.is_file():
        remedy = ("put the table there, or correct ", Field("data.dir"))
        raise fault(path, "is missing", (*remedy, *options_in(" or {test_file}")))
    with reading(path, AGAIN), file.open("rb") as stream:
        start = stream.read(4)
    if not start:
        raise fault(path, "is empty", WRITE)
    if path.lower().endswith(".npz"):
        return framed(_npz(file), path)
    if path.lower().endswith(COLUMNAR) or start == b"PAR1":
        return framed(_parquet(path), path)
    if start[:2] == b"PK":
        what = "is a ZIP archive or an Excel workbook"
        raise fault(path, what, "save the table as CSV or Parquet")
    opened: Any = gzip.open if start[:2] == b"\x1f\x8b" else open
    data = _utf8(path, _bounded(path, opened), file_encoding)
    table = framed(_text(path, data, delimiter, header), path)
    names = [*table.frame.columns, *table.nameless]
    odd = [name for name in names if is_number(name)]
    if len(names) == 1:
        return table._replace(hint=options_in(" It has but one column: give {delimiter}=."))
    if not header or not odd or _counted(names):
        return table
    first = f" Its first line names the columns, {shown(odd[0])} one of them: "
    return table._replace(hint=(first, *options_in("{header}=False if it is a row.")))


def framed(table: Any, place: str) -> Read:
    """Turns a table into a frame of uniform columns, as this module's docstring describes them.

    Args:
      table: an Arrow table, or a pandas ``DataFrame``, whose index is left out.
      place: what messages call it.

    Raises:
      UserError: for a table without rows or columns, with too many columns, or two of one name.
    """
    table = arrow_of(table, place)
    narrow(place, table.num_columns)
    with reading(place, AGAIN):
        about = (table.schema.pandas_metadata or {}).get("columns", [])
        marked = {c["field_name"] for c in about if c["pandas_type"] == "categorical"}
    names = [one_line(name) or f"Unnamed: {j}" for j, name in enumerate(table.column_names)]
    all_different(names, place)
    if not names or table.num_rows == 0:
        raise fault(place, f"has {len(names)} columns and no row", WRITE)
    columns, categories, nameless = {}, set(), []
    for name, old, column in zip(names, table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if getattr(kind, "extension_name", "").startswith("pandas."):  # no type of Arrow's own
            remedy = "make it texts, in pandas by .astype(str)"
            what = f"is of type {kind.extension_name}, neither number nor text"
            raise fault(place, what, remedy, column=name)
        values = pd.Series(pd.arrays.ArrowExtensionArray(_uniform(column)))
        present = values.notna() & (values != "") if values.dtype == TEXT else values.notna()
        if name.startswith("Unnamed: ") and not present.any():
            nameless.append(name)
            continue
        columns[name] = values
        if pa.types.is_dictionary(column.type) or old in marked:
            categories.add(name)
    return Read(pd.DataFrame(columns), frozenset(categories), nameless)


def arrow_of(frame: Any, place: str) -> pa.Table:
    """Returns an Arrow table of a pandas ``DataFrame`` without its index, or raises UserError. Intervals, as
    ``pd.cut`` makes them, become categories that are named by texts such as "(0, 30]".

    Args:
      frame: a ``DataFrame``, or an Arrow table, which is returned as it is.
      place: what messages call it.
    """
    if isinstance(frame, pa.Table):
        return frame
    if not isinstance(frame, pd.DataFrame):
        raise UserError(f"{place} is of type {type(frame).__name__}: give a pandas DataFrame.")
    names = [one_line(name) for name in frame.columns]
    all_different(names, place)
    with reading(place, "give each column values of one type"):
        frame = frame.set_axis(names, axis=1)
        for name, kind in frame.dtypes.items():
            of = kind.categories.dtype if isinstance(kind, pd.CategoricalDtype) else kind
            if isinstance(of, pd.IntervalDtype):  # Arrow has no such type
                values: Any = frame[name].astype("category")
                frame[name] = values.cat.rename_categories([*map(str, values.cat.categories)])
        return pa.Table.from_pandas(frame, preserve_index=False)


def _uniform(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns texts as ``TEXT``, floats as float64 with null for NaN, and other types as they are."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _uniform(column.cast(kind.value_type))
    if pa.types.is_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_null(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
    return column


def _parquet(path: str) -> pa.Table:
    with reading(path, AGAIN), open(path, "rb") as stream:
        file = pyarrow.parquet.ParquetFile(stream, page_checksum_verification=True)
        width = file.metadata.num_columns
        narrow(path, width)
        # a table that repeats one value may exceed memory though its file is small
        fits(path, (file.metadata.num_rows, width), 8, MAX_BYTES, FEWER)
        table = file.read()
        table.validate(full=True)  # offsets within bounds, texts UTF-8
        return table


def _npz(path: pathlib.Path) -> pa.Table:
    columns: dict[str, np.ndarray] = {}
    for name, array in arrays(path, max_bytes=MAX_BYTES).items():
        if array.dtype.kind not in "biufUSM":
            what = f"is of type {array.dtype}"
            raise fault(f"{path}: array {name!r}", what, "give numbers or texts")
        matrix = name == "x" and array.ndim == 2
        if not matrix and array.ndim != 1:
            remedy = "give equally long 1-d arrays, one a column, or one 2-d array x and y"
            raise fault(f"{path}: array {name!r}", f"has shape {array.shape}", remedy)
        if matrix:
            narrow(path, array.shape[1])
        columns |= {f"x{j}": x for j, x in enumerate(array.T)} if matrix else {name: array}
    arrow = {}
    with reading(path, AGAIN):
        for name, array in columns.items():
            if array.dtype.kind == "S":
                array = np.char.decode(array, "utf-8")
            kind = np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("=")
            arrow[name] = pa.array(array.astype(kind))
        return pa.table(arrow)


def _text(path: str, data: bytes, delimiter: str, header: bool) -> pa.Table:
    """Returns a table of texts, named by the header (names may repeat) or, without one, "0", "1", ..."""
    delimiter = "\t" if delimiter == "tab" else delimiter
    single = isinstance(delimiter, str) and len(delimiter) == 1
    if delimiter != "auto" and not (single and delimiter.isascii() and delimiter not in '"\r\n'):
        remedy = "give one character, 'tab' or 'auto'"
        raise UserError(field="data.options.delimiter", value=delimiter, remedy=remedy)
    check(Field("data.options.header"), header, bool)
    mark = re.match(rb'"?sep=([^\r\n"])"?\r?\n', data, re.IGNORECASE)  # for Excel only
    if mark:
        delimiter = mark[1].decode() if delimiter == "auto" else delimiter
        data = data[mark.end() :].lstrip(b"\r\n")
    if not data:
        raise fault(path, "is empty", WRITE)
    if header and not re.search(rb"[\r\n]", data[: LONGEST_HEADER + 1].rstrip()):
        if len(data) > LONGEST_HEADER:
            raise fault(path, "has a first line of more than 64 MiB", "no table starts so")
        raise fault(path, "has a header and no row", WRITE)
    first, delimiter, same = _cut(path, data, delimiter, header)
    if first[0].lstrip().startswith("#") and (len(first) == 1 or not same):
        what = f"begins with a comment, {shown(delimiter.join(first))}, and no row"
        raise fault(path, what, "remove the lines that begin with #")
    names = first if header else [str(j) for j in range(len(first))]
    if header and all(map(is_number, names)) and not _counted(names):
        what = "has numbers in its first line, not the names of columns"
        called = f"the columns are then called 0 to {len(names) - 1}"
        remedy = f"{{header}}=False if it is a row ({called}), or put a header line there"
        raise fault(path, what, options_in(remedy))
    rows = _rows(path, data, delimiter, len(names), header)
    pieces: list[list[pa.Array]] = [[] for _ in names]
    while batch := list(itertools.islice(rows, ROWS)):
        for chunks, values in zip(pieces, zip(*batch, strict=True), strict=True):
            chunks.append(pa.array(values, pa.large_string()))
    columns = [pa.chunked_array(chunks, pa.large_string()) for chunks in pieces]
    if not header and not any(columns[-1].unique().to_pylist()):
        names[-1] = ""  # each row ends in a delimiter
    return pa.Table.from_arrays(columns, names)


def _counted(names: list[str]) -> bool:
    """Returns True if the names of the columns are their numbers, from 0 or from 1."""
    return names in ([str(j + first) for j in range(len(names))] for first in (0, 1))


def _bounded(path: str, opened: Callable[..., Any]) -> bytes:
    """Returns a file's decompressed bytes; raises UserError for more than ``MOST_TEXT``, because a few
    kilobytes of gzip can hold more text than there is memory."""
    out = io.BytesIO()
    with reading(path, AGAIN), opened(path, "rb") as stream:
        while piece := stream.read(PIECE):
            out.write(piece)
            if out.tell() > MOST_TEXT:
                what = f"holds more than {MOST_TEXT:,} bytes of text"
                raise fault(path, what, f"{FEWER}, or write the table as Parquet")
    return out.getvalue()


def _utf8(path: str, data: bytes, encoding: str) -> bytes:
    """Returns the text as UTF-8, without a byte order mark and blank lines before it."""
    field = Field("data.options.file_encoding")
    check(field, encoding, str)
    if encoding == "utf-8" and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        what = f"is not {encoding.upper()} text, by byte {data[error.start]:#04x}"
        example = "such as {file_encoding}='latin-1' or 'cp1252'"
        remedy = options_in(f"save it as UTF-8, or name its encoding, {example}")
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(path, what, remedy, line=line) from None
    except (LookupError, ValueError) as error:
        what = f"is no encoding that Python knows ({error})"
        raise UserError(what, field=field, value=encoding, remedy="try 'latin-1'") from None
    nul = text.find("\0")
    if nul >= 0:
        remedy = (
            "it is damaged, no text, or of another encoding, such as {file_encoding}='utf-16-le'"
        )
        line = text.count("\n", 0, nul) + 1
        raise fault(path, "holds a NUL byte", options_in(remedy), line=line)
    data = data if encoding == "utf-8" else text.encode("utf-8", "replace")
    return data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")


def _fields(data: bytes, delimiter: str, strict: bool = False) -> Iterator[list[str]]:
    """Yields the fields of each line that is not blank."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    return filter(None, csv.reader(text, delimiter=delimiter, strict=strict))


def _cut(path: str, data: bytes, delimiter: str, header: bool) -> tuple[list[str], str, bool]:
    """Returns the first line's fields, the delimiter, and whether the next row has as many fields."""
    cuts: list[tuple[int, bool, list[str], str]] = []  # fields, whether row 1 has as many
    wrong = None
    line = re.match(rb"[^\r\n]*", data)
    for candidate in DELIMITERS if delimiter == "auto" else delimiter:
        narrow(path, line[0].count(candidate.encode()) + 1 if line else 0)
        rows = []
        try:
            for fields in itertools.islice(_fields(data, candidate), 2):
                rows.append(fields)
        except csv.Error as error:  # a delimiter not in a long header leaves it one field
            wrong = error
        if rows:
            same = len(rows) == 2 and len(rows[0]) == len(rows[1])
            cuts.append((len(rows[0]), same, rows[0], candidate))
    fitting = [repr(candidate) for count, same, _, candidate in cuts if count > 1 and same]
    if not cuts:
        what = f"has a header that cannot be parsed ({wrong})"
        raise fault(path, what, options_in("check quotes, or give {delimiter}="))
    if len(fitting) > 1 and not header:
        what = f"has rows that {' or '.join(fitting)} may cut, and no header tells"
        raise fault(path, what, options_in("give {delimiter}="))
    _, same, names, delimiter = max(cuts, key=lambda cut: cut[:2])  # the first, of equals
    return names, delimiter, same


def _rows(path: str, data: bytes, delimiter: str, width: int, header: bool) -> Iterator[list[str]]:
    """Yields every row's fields. Raises UserError for a row with another number of fields, and for a quote
    that is not closed at its field's end, as the rows up to the next quote would become one field."""
    row = 0 if header else 1  # number of the next row; the header is 0
    try:
        for fields in _fields(data, delimiter, strict=True):
            if row and len(fields) != width:
                what = f"has {len(fields)} values for {width} columns"
                quotes = f"a field that holds {delimiter!r} needs quotes"
                other = options_in(", or give {delimiter}= if that is another")
                raise fault(path, what, (f"correct it ({quotes})", *other), row=row)
            if row:
                yield fields
            row += 1
    except csv.Error as error:
        what = (
            f"{'has' if row else 'has in its header'} a quote that is not closed at the end of its field, or "
            f"a field of more than {csv.field_size_limit():,} characters ({error})"
        )
        raise fault(path, what, "close the quote, double one that is meant", row=row) from error
