"""A user's file as an Arrow table: delimited text (also gzipped), Parquet, NPZ.

What enters: a path, and how a text file is laid out. What leaves: a ``pyarrow.Table``; fields of a text file
are all texts (``vfljax.datasets.column_types`` finds their types, alike for every format), and what pandas
marked as categories is of Arrow's dictionary type. Rows count from 1, without the header and blank lines.
Nothing in a file is ever executed or unpickled.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from vfljax.datasets.files import MAX_BYTES, fits
from vfljax.datasets.npz import arrays
from vfljax.datasets.number_formats import is_number
from vfljax.datasets.table_errors import all_different, fault, narrow, one_line, reading, shown
from vfljax.errors import Field, UserError, options_in

AGAIN = "it is damaged, cut off or of another format; write it again"
FEWER = "give fewer rows or columns"
COLUMNAR = (".parquet", ".pq", ".npz")
LIKELY = (".csv", ".tsv", ".txt", ".data", ".gz", *COLUMNAR)  # named where a folder is given
DELIMITERS = ",;\t|"
LONGEST_HEADER = 64 << 20  # bytes
BLOCK = 1 << 26  # bytes pyarrow parses at a time; a longer row is refused
MOST_TEXT = MAX_BYTES // 4  # bytes decompressed: as a table of texts they take many times that
PIECE = 1 << 24  # bytes decompressed at a time


def is_text(path: str) -> bool:
    """Whether ``read`` takes the file for delimited text."""
    return not path.lower().endswith(COLUMNAR) and _start(path) != b"PAR1"


def _start(path: str) -> bytes:
    with reading(path, AGAIN), open(path, "rb") as file:
        return file.read(4)


def read(
    path: str, delimiter: str = "auto", header: bool = True, file_encoding: str = "utf-8"
) -> pa.Table:
    """The table in a file; raises UserError for any fault of it. Options are ``own.table``'s."""
    if not path:
        remedy = "give the table's file (text, .parquet or .npz)"
        raise UserError("is empty", field="data.dir", remedy=remedy)
    file = pathlib.Path(path)
    if file.is_dir():
        likely = sorted(one.name for one in file.iterdir() if one.name.lower().endswith(LIKELY))
        few = ", ".join(likely[:5]) + (", ..." if len(likely) > 5 else "")
        raise fault(path, "is a folder", f"give one file of it{f' ({few})' if likely else ''}")
    if not file.is_file():
        raise fault(
            path,
            "is missing",
            ("put the table there, or correct ", Field("data.dir"), *options_in(" or {test_file}")),
        )
    if not _start(path):
        raise fault(path, "is empty", "write the table again")
    if not is_text(path):
        return _npz(file) if file.suffix.lower() == ".npz" else _parquet(path)
    if _start(path)[:2] == b"PK":
        what = "is a ZIP archive or an Excel workbook"
        raise fault(path, what, "save the table as CSV or Parquet")
    return read_text(path, delimiter, header, file_encoding)


def named(table: pa.Table, place: str) -> tuple[pa.Table, list[str]]:
    """(``table`` with one-line names, all different, at least one row and column, and what pandas
    marked as categories as dictionaries; the nameless columns without any value, left out)."""
    narrow(place, table.num_columns)
    with reading(place, AGAIN):
        about = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
        marked = [one for one in about.get("columns", []) if one["pandas_type"] == "categorical"]
        marked = {one["field_name"] for one in marked}
    names = [one_line(name) or f"Unnamed: {j}" for j, name in enumerate(table.column_names)]
    all_different(names, place)
    if not names or table.num_rows == 0:
        raise fault(place, f"has {len(names)} columns and no row", "write the table again")
    columns: dict[str, Any] = {}
    for name, old, column in zip(names, table.column_names, table.columns, strict=True):
        flat = not pa.types.is_nested(column.type) and not pa.types.is_dictionary(column.type)
        columns[name] = column.dictionary_encode() if old in marked and flat else column
    empty = [n for n in names if n.startswith("Unnamed: ") and _nothing(columns[n])]
    return pa.table({name: columns[name] for name in names if name not in empty}), empty


def _nothing(column: pa.ChunkedArray) -> bool:
    text = pa.types.is_string(column.type)
    return column.null_count == len(column) or (text and not any(column.unique().to_pylist()))


def _parquet(path: str) -> pa.Table:
    with reading(path, AGAIN):
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        width = file.metadata.num_columns
        narrow(path, width)
        # of what little a file may hold (one value, repeated) the table can be any size
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
        if name == "x" and array.ndim == 2:
            narrow(path, array.shape[1])
            columns |= {f"x{j}": array[:, j] for j in range(array.shape[1])}
        elif array.ndim == 1:
            columns[name] = array
        else:
            remedy = "give equally long 1-d arrays, one a column, or one 2-d array x and y"
            raise fault(f"{path}: array {name!r}", f"has shape {array.shape}", remedy)
    with reading(path, AGAIN):
        return pa.table({name: _arrow(array) for name, array in columns.items()})


def _arrow(array: np.ndarray) -> pa.Array:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    return pa.array(array.astype(array.dtype.newbyteorder("=")))


def read_text(path: str, delimiter: str, header: bool, file_encoding: str) -> pa.Table:
    """Its names from the header (they may repeat; without one, "0", "1", ...), all its fields as texts."""
    if delimiter == "tab":
        delimiter = "\t"
    one = isinstance(delimiter, str) and len(delimiter) == 1
    if delimiter != "auto" and not (one and delimiter.isascii() and delimiter not in '"\r\n'):
        remedy = "give one character, 'tab' or 'auto'"
        raise UserError(field=Field("data.options.delimiter"), value=delimiter, remedy=remedy)
    if not isinstance(header, bool):
        raise UserError(field="data.options.header", value=header, remedy="give True or False")
    data = _utf8(path, _bounded(path), file_encoding)
    mark = re.match(rb'"?sep=([^\r\n"])"?\r?\n', data, re.IGNORECASE)  # for Excel alone
    if mark:
        delimiter = mark[1].decode() if delimiter == "auto" else delimiter
        data = data[mark.end() :].lstrip(b"\r\n")
    if not data:
        raise fault(path, "is empty", "write the table again")
    if header and not re.search(rb"[\r\n]", data[: LONGEST_HEADER + 1].rstrip()):
        if len(data) > LONGEST_HEADER:
            raise fault(path, "has a first line of more than 64 MiB", "no table starts so")
        raise fault(path, "has a header and no row", "write the table again")
    first, delimiter, same = _cut(path, data, delimiter, header)
    if first[0].lstrip().startswith("#") and (len(first) == 1 or not same):
        what = f"begins with a comment, {shown(delimiter.join(first))}, and no row"
        raise fault(path, what, "remove the lines that begin with #")
    names = first if header else [str(j) for j in range(len(first))]
    if header and all(map(is_number, names)) and not counted(names):
        called = f"the columns are then called 0 to {len(names) - 1}"
        raise fault(
            path,
            "has numbers in its first line, not the names of columns",
            (
                *options_in("{header}=False if it is a row"),
                f" ({called}), or put a header line there",
            ),
        )
    records = _records(path, data, delimiter, header) if b'"' in data else None
    table = _rows(path, data, delimiter, len(names), header)
    if records is not None and table.num_rows != records:
        what = f"reads as {table.num_rows:,} rows or as {records:,}, by how its quotes are taken"
        raise fault(path, what, "write the table again with quotes around whole fields only")
    if not header and not any(table.column(len(names) - 1).unique().to_pylist()):
        names[-1] = ""  # each row ends in a delimiter
    return table.rename_columns(names)


def counted(names: list[str]) -> bool:
    """Whether the names of columns just count them."""
    return names in ([str(j + first) for j in range(len(names))] for first in (0, 1))


def _opened(path: str) -> BinaryIO:
    with open(path, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, (gzip.open if packed else open)(path, "rb"))


def _bounded(path: str) -> bytes:
    """The file's bytes, unless those are more than ``MOST_TEXT``: a few kilobytes of gzip can hold more
    text than there is memory."""
    out = io.BytesIO()
    with reading(path, AGAIN), _opened(path) as stream:
        while piece := stream.read(PIECE):
            out.write(piece)
            if out.tell() > MOST_TEXT:
                what = f"holds more than {MOST_TEXT:,} bytes of text"
                raise fault(path, what, f"{FEWER}, or write the table as Parquet")
    return out.getvalue()


def _utf8(path: str, data: bytes, encoding: str) -> bytes:
    """The text as UTF-8 without a byte order mark or blank lines before it."""
    if not isinstance(encoding, str) or not encoding:
        remedy = "give a name, such as 'utf-8' or 'latin-1'"
        raise UserError(field="data.options.file_encoding", value=encoding, remedy=remedy)
    if encoding == "utf-8" and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        what = f"is not {encoding.upper()} text, by byte {data[error.start]:#04x}"
        remedy = options_in(
            "save it as UTF-8, or name its encoding, such as {file_encoding}='latin-1' or 'cp1252'"
        )
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(path, what, remedy, line=line) from None
    except (LookupError, ValueError) as error:
        raise UserError(
            f"is no encoding that Python knows ({error})",
            field="data.options.file_encoding",
            value=encoding,
            remedy="try 'latin-1'",
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        remedy = options_in(
            "it is damaged, no text, or of another encoding, such as {file_encoding}='utf-16-le'"
        )
        raise fault(path, "holds a NUL byte", remedy, line=text.count("\n", 0, nul) + 1)
    data = data if encoding == "utf-8" else text.encode("utf-8", "replace")
    return data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")


def _fields(data: bytes, delimiter: str, strict: bool = False) -> Iterator[list[str]]:
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    return csv.reader(text, delimiter=delimiter, strict=strict)


def _cut(path: str, data: bytes, delimiter: str, header: bool) -> tuple[list[str], str, bool]:
    """(the first line's fields, the delimiter, whether the next row has as many)."""
    cuts: list[tuple[int, bool, list[str], str]] = []  # fields, whether row 1 has as many
    wrong = None
    line = re.match(rb"[^\r\n]*", data)
    for one in DELIMITERS if delimiter == "auto" else delimiter:
        width = line[0].count(one.encode()) + 1 if line else 0
        narrow(path, width)
        records = _fields(data, one)
        try:
            names = next(records)
        except csv.Error as error:  # a long header is one field to a delimiter it does not have
            wrong = error
            continue
        cuts.append((len(names), len(names) == _width(records), names, one))
    if not cuts:
        what = f"has a header that cannot be parsed ({wrong})"
        raise fault(path, what, options_in("check quotes, or give {delimiter}="))
    good = [repr(one) for count, same, _, one in cuts if count > 1 and same]
    if len(good) > 1 and not header:
        what = f"has rows that {' or '.join(good)} may cut, and no header tells"
        raise fault(path, what, options_in("give {delimiter}="))
    best = max(cuts, key=lambda one: one[:2])  # the first, of equals
    return best[2], best[3], best[1]


def _width(records: Iterator[list[str]]) -> int:
    """Fields of the next row, 0 where it is none."""
    try:
        return len(next(filter(None, records), []))
    except csv.Error:
        return 0


def _records(path: str, data: bytes, delimiter: str, header: bool) -> int:
    """How many rows there are; raises UserError for a quote that is not closed where its field ends:
    pyarrow reads on, and the rows up to the next quote or the file's end would vanish in one field."""
    row = 0 if header else 1  # the one that comes next; the header is 0
    try:
        for fields in _fields(data, delimiter, strict=True):
            row += bool(fields)
    except csv.Error as error:
        what = (
            f"{'has' if row else 'has in its header'} a quote that is not closed at the end of its field, or "
            f"a field of more than {csv.field_size_limit():,} characters ({error})"
        )
        raise fault(path, what, "close the quote, double one that is meant", row=row) from error
    return row - 1


def _rows(path: str, data: bytes, delimiter: str, width: int, header: bool) -> pa.Table:
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    places = [str(j) for j in range(width)]  # names may repeat: told apart later
    with reading(path, AGAIN):
        try:
            return pyarrow.csv.read_csv(
                io.BytesIO(data),
                pyarrow.csv.ReadOptions(
                    use_threads=False,  # row numbers are known to one thread only
                    column_names=places,
                    skip_rows_after_names=int(header),
                    block_size=BLOCK,
                ),
                pyarrow.csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
                ),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(places, pa.string()),
                    null_values=[],
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            if not wrong:
                raise
            row, quotes = wrong[0], f"a field that holds {delimiter!r} needs quotes"
            what = f"has {row.actual_columns} values for {row.expected_columns} columns"
            other = options_in(", or give {delimiter}= if that is another")
            remedy = (f"correct it ({quotes})", *other)
            raise fault(path, what, remedy, row=row.number - header) from error
