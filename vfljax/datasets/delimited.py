"""Text files as Arrow tables of texts: plain or gzipped, any delimiter, quoted fields, any encoding.

What enters: a path and how its text is laid out. What leaves: a ``pyarrow.Table`` of texts. Rows count
from 1, without the header and blank lines.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv

from vfljax.datasets.faults import MOST_COLUMNS, damaged, shown, too_wide
from vfljax.datasets.given import MAX_BYTES
from vfljax.datasets.notations import is_number
from vfljax.errors import UserError

DELIMITERS = ",;\t|"
LONGEST_HEADER = 64 << 20  # bytes
BLOCK = 1 << 26  # bytes pyarrow parses at a time; a longer row is refused
MOST_TEXT = MAX_BYTES // 4  # bytes decompressed: as a table of texts they take many times that
PIECE = 1 << 24  # bytes decompressed at a time


def read_text(path: str, delimiter: str, header: bool, file_encoding: str) -> pa.Table:
    """Its names from the header (they may repeat; without one, "0", "1", ...), all its fields as texts."""
    if delimiter == "tab":
        delimiter = "\t"
    one = isinstance(delimiter, str) and len(delimiter) == 1
    if delimiter != "auto" and not (one and delimiter.isascii() and delimiter not in '"\r\n'):
        raise UserError(f"delimiter={delimiter!r}: give one character, 'tab' or 'auto'.")
    if not isinstance(header, bool):
        raise UserError(f"header={header!r}: give True or False.")
    data = _utf8(path, _bounded(path), file_encoding)
    mark = re.match(rb'"?sep=([^\r\n"])"?\r?\n', data, re.IGNORECASE)  # for Excel alone
    if mark:
        delimiter = mark[1].decode() if delimiter == "auto" else delimiter
        data = data[mark.end() :].lstrip(b"\r\n")
    if not data:
        raise UserError(f"{path} is empty: write the table again.")
    if header and not re.search(rb"[\r\n]", data[: LONGEST_HEADER + 1].rstrip()):
        if len(data) > LONGEST_HEADER:
            raise UserError(f"{path}: its first line is longer than 64 MiB: no table starts so.")
        raise UserError(f"{path} has a header and no row: write the table again.")
    first, delimiter, same = _cut(path, data, delimiter, header)
    if first[0].lstrip().startswith("#") and (len(first) == 1 or not same):
        raise UserError(
            f"{path}: its first line, {shown(delimiter.join(first))}, is a comment and no row: remove the "
            "lines that begin with #."
        )
    names = first if header else [str(j) for j in range(len(first))]
    if header and all(map(is_number, names)) and not counted(names):
        raise UserError(
            f"{path}: its first line holds numbers, not the names of columns: header=False if it is a row "
            f"(the columns are then called 0 to {len(names) - 1}), or put a header line there."
        )
    records = _records(path, data, delimiter, header) if b'"' in data else None
    table = _rows(path, data, delimiter, len(names), header)
    if records is not None and table.num_rows != records:
        raise UserError(
            f"{path} reads as {table.num_rows:,} rows or as {records:,}, by how its quotes are taken: "
            "write the table again with quotes around whole fields only."
        )
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
    try:
        with _opened(path) as stream:
            while piece := stream.read(PIECE):
                out.write(piece)
                if out.tell() > MOST_TEXT:
                    raise UserError(
                        f"{path} holds more than {MOST_TEXT:,} bytes of text: give fewer rows or columns, "
                        "or write the table as Parquet."
                    )
    except (OSError, EOFError, zlib.error, MemoryError) as error:
        raise damaged(path, error) from error
    return out.getvalue()


def _utf8(path: str, data: bytes, encoding: str) -> bytes:
    """The text as UTF-8 without a byte order mark or blank lines before it."""
    if not isinstance(encoding, str) or not encoding:
        raise UserError(f"file_encoding={encoding!r}: give a name, such as 'utf-8' or 'latin-1'.")
    if encoding == "utf-8" and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path} is not {encoding.upper()} text: byte {data[error.start]:#04x} at position "
            f"{error.start}, line {line}; save it as UTF-8, or name its encoding, such as "
            "file_encoding='latin-1' or 'cp1252'."
        ) from None
    except (LookupError, ValueError) as error:
        raise UserError(
            f"file_encoding={encoding!r} is no encoding that Python knows ({error}): try 'latin-1'."
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        raise UserError(
            f"{path} holds a NUL byte at position {nul}, line {text.count(chr(10), 0, nul) + 1}: it is "
            "damaged, no text, or of another encoding, such as file_encoding='utf-16-le'."
        )
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
        if width > MOST_COLUMNS:
            raise too_wide(path, width)
        records = _fields(data, one)
        try:
            names = next(records)
        except csv.Error as error:  # a long header is one field to a delimiter it does not have
            wrong = error
            continue
        cuts.append((len(names), len(names) == _width(records), names, one))
    if not cuts:
        raise UserError(
            f"{path}: its header cannot be parsed ({wrong}): check quotes, or give delimiter=."
        )
    good = [repr(one) for count, same, _, one in cuts if count > 1 and same]
    if len(good) > 1 and not header:
        raise UserError(
            f"{path}: {' or '.join(good)} may cut its rows, and no header tells: give delimiter=."
        )
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
        where = f"row {row}" if row else "its header"
        raise UserError(
            f"{path}: {where} has a quote that is not closed at the end of its field, or a field of more "
            f"than {csv.field_size_limit():,} characters ({error}): close the quote, double one that is "
            "meant."
        ) from error
    return row - 1


def _rows(path: str, data: bytes, delimiter: str, width: int, header: bool) -> pa.Table:
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    places = [str(j) for j in range(width)]  # names may repeat: told apart later
    try:
        return pyarrow.csv.read_csv(
            io.BytesIO(data),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False,  # row numbers are known to one thread only
                column_names=places,
                skip_rows_after_names=int(header),
                block_size=BLOCK,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()),
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, OSError, MemoryError) as error:
        if wrong:
            row = wrong[0]
            raise UserError(
                f"{path} row {row.number - header} has {row.actual_columns} values for "
                f"{row.expected_columns} columns: correct it (a field that holds {delimiter!r} needs "
                "quotes), or give delimiter= if that is another."
            ) from error
        raise damaged(path, error) from error
