"""CSV files as Arrow tables of texts: plain or gzipped, any delimiter, quoted fields, UTF-8.

What enters: a path and a delimiter. What leaves: a ``pyarrow.Table`` of texts. Rows count from 1,
without the header and blank lines.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv

from vfljax.datasets.columns_of import is_number
from vfljax.datasets.faults import MOST_COLUMNS, damaged, too_wide
from vfljax.datasets.given import MAX_BYTES
from vfljax.errors import UserError

TEXTS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
DELIMITERS = ",;\t|"
LONGEST_HEADER = 64 << 20  # bytes
BLOCK = 1 << 26  # bytes pyarrow parses at a time; a longer row is refused
MOST_TEXT = MAX_BYTES // 4  # bytes decompressed: as a table of texts they take many times that
PIECE = 1 << 24  # bytes decompressed at a time


def read_csv(path: str, delimiter: str) -> pa.Table:
    """A CSV, its names from the header (they may repeat) and all its fields as texts."""
    if delimiter == "tab":
        delimiter = "\t"
    one = isinstance(delimiter, str) and len(delimiter) == 1
    if delimiter != "auto" and not (one and delimiter.isascii() and delimiter not in '"\r\n'):
        raise UserError(f"delimiter={delimiter!r}: give one character, 'tab' or 'auto'.")
    try:
        with _opened(path) as stream:
            start = stream.readline(LONGEST_HEADER + 1)
            if len(start) > LONGEST_HEADER:
                raise UserError(
                    f"{path}: its first line is longer than 64 MiB: no table starts so."
                )
            widest = max(start.count(c.encode()) for c in DELIMITERS)
            if widest >= MOST_COLUMNS and delimiter == "auto":
                raise too_wide(path, widest + 1)
            data = _bounded(path, start, stream)
    except (OSError, EOFError, zlib.error, MemoryError) as error:
        raise damaged(path, error) from error
    if data.startswith(b"\x1f\x8b"):
        raise UserError(f"{path} is compressed by gzip: give it a name that ends in .gz.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(f"{path} is UTF-16 text: save it as UTF-8.")
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    if not data:
        raise UserError(f"{path} is empty: write the table again.")
    names, delimiter = _header(path, data, delimiter)
    if len(names) > MOST_COLUMNS:
        raise too_wide(path, len(names))
    nul = data.find(b"\0")
    if nul >= 0:
        raise UserError(
            f"{path} holds a NUL byte at position {nul}, line {_line(data, nul)}: it is damaged or no "
            "text; write it again as UTF-8."
        )
    counted = [[str(j + first) for j in range(len(names))] for first in (0, 1)]
    if all(map(is_number, names)) and names not in counted:
        raise UserError(
            f"{path}: its first line holds numbers, not the names of columns: put a header line there "
            f"(0 to {len(names) - 1} in order will do)."
        )
    records = _records(path, data, delimiter) if b'"' in data else None
    table = _rows(path, data, delimiter, names)
    if records is not None and table.num_rows != records:
        raise UserError(
            f"{path} reads as {table.num_rows:,} rows or as {records:,}, by how its quotes are taken: "
            "write the table again with quotes around whole fields only."
        )
    return table


def _opened(path: str) -> BinaryIO:
    opened = gzip.open if path.lower().endswith(".gz") else open
    return cast(BinaryIO, opened(path, "rb"))


def _bounded(path: str, start: bytes, stream: BinaryIO) -> bytes:
    """``start`` and what follows, unless that is more than ``MOST_TEXT``: a few kilobytes of gzip can
    hold more text than there is memory."""
    out = io.BytesIO()
    piece = start
    while piece:
        out.write(piece)
        if out.tell() > MOST_TEXT:
            raise UserError(
                f"{path} holds more than {MOST_TEXT:,} bytes of text: give fewer rows or columns, or "
                "write the table as Parquet."
            )
        piece = stream.read(PIECE)
    return out.getvalue()


def _header(path: str, data: bytes, delimiter: str) -> tuple[list[str], str]:
    """(names, delimiter); raises UserError where nothing follows the header."""
    found: list[tuple[list[str], bool, str]] = []  # names, whether row 1 has as many, delimiter
    wrong = None
    try:
        for one in DELIMITERS if delimiter == "auto" else delimiter:
            text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
            records = csv.reader(text, delimiter=one)
            try:
                names = next(records)
            except csv.Error as error:  # a long header is one field to a delimiter it does not have
                wrong = error
                continue
            found.append((names, len(names) == _width(records), one))
        if not data[: LONGEST_HEADER + 1].strip().count(b"\n") and not data.strip().count(b"\r"):
            raise UserError(f"{path} has a header and no row: write the table again.")
    except UnicodeDecodeError:
        raise _no_text(path, data) from None
    if not found:
        raise UserError(
            f"{path}: its header cannot be parsed ({wrong}): check quotes, or give delimiter=."
        )
    names, _, delimiter = max(found, key=lambda one: (len(one[0]), one[1]))  # the first, of equals
    return names, delimiter


def _width(records: Iterator[list[str]]) -> int:
    """Fields of the first row, 0 where it is none."""
    try:
        return len(next(filter(None, records), []))
    except csv.Error:
        return 0


def _records(path: str, data: bytes, delimiter: str) -> int:
    """How many rows follow the header; raises UserError for a quote that is not closed where its
    field ends: pyarrow reads on, and the rows up to the next quote or the file's end would vanish in
    one field."""
    row = 0
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8", newline="")
    try:
        for fields in csv.reader(text, delimiter=delimiter, strict=True):
            row += bool(fields)  # the header is row 1 here, and its next row 2
    except UnicodeDecodeError:
        raise _no_text(path, data) from None
    except csv.Error as error:
        where = f"row {row}" if row else "its header"
        raise UserError(
            f"{path}: {where} has a quote that is not closed at the end of its field, or a field of more "
            f"than {csv.field_size_limit():,} characters ({error}): close the quote, double one that is "
            "meant."
        ) from error
    return row - 1


def _no_text(path: str, data: bytes) -> UserError:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return UserError(
            f"{path} is not UTF-8 text: byte {data[error.start]:#04x} at position {error.start}, line "
            f"{_line(data, error.start)}; save it as UTF-8."
        )
    return UserError(f"{path} is not UTF-8 text: save it as UTF-8.")


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _rows(path: str, data: bytes, delimiter: str, names: Sequence[str]) -> pa.Table:
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    places = [str(j) for j in range(len(names))]  # names may repeat: told apart later
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(data),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False,  # row numbers are known to one thread only
                column_names=places,
                skip_rows_after_names=1,
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
                f"{path} row {row.number - 1} has {row.actual_columns} values for "
                f"{row.expected_columns} columns: correct it (a field that holds {delimiter!r} needs "
                "quotes), or give delimiter= if that is another."
            ) from error
        if "invalid UTF8" in str(error):
            raise _no_text(path, data) from error
        raise damaged(path, error) from error
    return table.rename_columns(list(names))
