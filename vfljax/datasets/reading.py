"""A user's file as an Arrow table: delimited text (also gzipped), Parquet, NPZ.

What enters: a path. What leaves: a ``pyarrow.Table``; fields of a text file are all texts
(``vfljax.datasets.columns_of`` finds their types, alike for every format), and what pandas marked as
categories is of Arrow's dictionary type. Rows count from 1, without the header and blank lines.
Nothing in a file is ever executed or unpickled.
"""

from __future__ import annotations

import json
import math
import pathlib
import statistics
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from vfljax.datasets.delimited import read_text
from vfljax.datasets.faults import MOST_COLUMNS, all_different, damaged, one_line, too_wide
from vfljax.datasets.given import MAX_BYTES, fits
from vfljax.datasets.npz import header as header_of
from vfljax.errors import UserError

FEWER = "give fewer rows or columns"
COLUMNAR = (".parquet", ".pq", ".npz")
LIKELY = (".csv", ".tsv", ".txt", ".data", ".gz", *COLUMNAR)  # named where a folder is given


def is_text(path: str) -> bool:
    """Whether ``read`` takes the file for delimited text."""
    return not path.lower().endswith(COLUMNAR) and _start(path) != b"PAR1"


def _start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(4)
    except OSError as error:
        raise damaged(path, error) from error


def read(
    path: str, delimiter: str = "auto", header: bool = True, file_encoding: str = "utf-8"
) -> pa.Table:
    """The table in a file; raises UserError for any fault of it. Options are ``own.table``'s."""
    if not path:
        raise UserError("data.dir is empty: give the table's file (text, .parquet or .npz).")
    file = pathlib.Path(path)
    if file.is_dir():
        likely = sorted(one.name for one in file.iterdir() if one.name.lower().endswith(LIKELY))
        few = ", ".join(likely[:5]) + (", ..." if len(likely) > 5 else "")
        raise UserError(f"{path} is a folder: give one file of it{f' ({few})' if likely else ''}.")
    if not file.is_file():
        raise UserError(
            f"{path} is missing: put the table there, or correct data.dir or test_file."
        )
    if not _start(path):
        raise UserError(f"{path} is empty: write the table again.")
    if is_text(path):
        if _start(path)[:2] == b"PK":
            raise UserError(
                f"{path} is a ZIP archive or an Excel workbook: save the table as CSV or Parquet."
            )
        return read_text(path, delimiter, header, file_encoding)
    return _npz(path) if file.suffix.lower() == ".npz" else _parquet(path)


def named(table: pa.Table, place: str) -> tuple[pa.Table, list[str]]:
    """(``table`` with one-line names, all different, at least one row and column, and what pandas
    marked as categories as dictionaries; the nameless columns without any value, left out)."""
    if table.num_columns > MOST_COLUMNS:
        raise too_wide(place, table.num_columns)
    marked = _marked(table, place)
    names = [one_line(name) or f"Unnamed: {j}" for j, name in enumerate(table.column_names)]
    all_different(names, place)
    if not names or table.num_rows == 0:
        raise UserError(f"{place} has {len(names)} columns and no row: write the table again.")
    columns: dict[str, Any] = {}
    for name, old, column in zip(names, table.column_names, table.columns, strict=True):
        flat = not pa.types.is_nested(column.type) and not pa.types.is_dictionary(column.type)
        columns[name] = column.dictionary_encode() if old in marked and flat else column
    empty = [n for n in names if n.startswith("Unnamed: ") and _nothing(columns[n])]
    kept = [name for name in names if name not in empty]
    return pa.table({name: columns[name] for name in kept}), empty


def _nothing(column: pa.ChunkedArray) -> bool:
    text = pa.types.is_string(column.type)
    return column.null_count == len(column) or (text and not any(column.unique().to_pylist()))


def _marked(table: pa.Table, place: str) -> set[str]:
    """The columns that pandas' note in the schema calls categorical."""
    note = (table.schema.metadata or {}).get(b"pandas", b"{}")
    try:
        about = json.loads(note).get("columns", [])
        return {one["field_name"] for one in about if one["pandas_type"] == "categorical"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise damaged(place, error) from error


def _parquet(path: str) -> pa.Table:
    try:
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        width = file.metadata.num_columns
        if width > MOST_COLUMNS:
            raise too_wide(path, width)
        # of what little a file may hold (one value, repeated) the table can be any size
        fits(path, (file.metadata.num_rows, width), 8, MAX_BYTES, FEWER)
        table = file.read()
        table.validate(full=True)  # offsets within bounds, texts UTF-8
    except UserError:
        raise
    except Exception as error:  # whatever a reader meets in a damaged file
        raise damaged(path, error) from error
    return table


def _npz(path: str) -> pa.Table:
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = [_size(archive, one) for one in archive.infolist()]
            fits(path, (sum(sizes),), 1, MAX_BYTES, FEWER)
            broken = archive.testzip()  # before any array is made of what a damaged header says
            members = archive.namelist()
        if broken is not None:
            raise ValueError(f"wrong checksum of {broken}")
        if len(members) > MOST_COLUMNS:
            raise too_wide(path, len(members))
        with np.load(path, allow_pickle=False) as arrays:
            arrays_of = {name: arrays[name] for name in arrays.files}
    except UserError:
        raise
    except Exception as error:
        raise damaged(path, error) from error
    columns: dict[str, np.ndarray] = {}
    for name, array in arrays_of.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufUSM":
            kind = getattr(array, "dtype", "no array")
            raise UserError(f"{path}: array {name!r} is of type {kind}: give numbers or texts.")
        if name == "x" and array.ndim == 2:
            if array.shape[1] > MOST_COLUMNS:
                raise too_wide(path, array.shape[1])
            columns |= {f"x{j}": array[:, j] for j in range(array.shape[1])}
        elif array.ndim == 1:
            columns[name] = array
        else:
            raise UserError(
                f"{path}: array {name!r} has shape {array.shape}: give equally long 1-d arrays, one a "
                "column, or one 2-d array x and y."
            )
    lengths = {name: len(array) for name, array in columns.items()}
    usual = statistics.mode(lengths.values()) if lengths else 0
    odd = [f"{one_line(name)} ({length})" for name, length in lengths.items() if length != usual]
    if odd:
        raise UserError(
            f"{path}: its arrays are not equally long: most have {usual} entries, {', '.join(odd[:3])} not: "
            "write them with one entry a row."
        )
    try:
        return pa.table({name: _arrow(array) for name, array in columns.items()})
    except (pa.ArrowException, UnicodeDecodeError, ValueError, OverflowError) as error:
        raise damaged(path, error) from error


def _size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Bytes that a member becomes: what its header and the archive's own list say, the larger."""
    if not member.filename.endswith(".npy"):
        return member.file_size
    shape, dtype = header_of(archive, member.filename)
    return max(member.file_size, math.prod(shape) * dtype.itemsize)


def _arrow(array: np.ndarray) -> pa.Array:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    return pa.array(array.astype(array.dtype.newbyteorder("=")))
