"""Reads a user's table as one pandas frame: delimited text, Parquet, NPZ, or a frame that the user read.

Text and Parquet are read with the options of ``pandas.read_csv`` and ``pandas.read_parquet`` that
``delimited.READ_CSV`` and ``READ_PARQUET`` list. Nothing of a file is executed or unpickled.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.datasets import formats
from vfljax.datasets.delimited import OPTIONS, READ_CSV, Columns, ReadTable, read_text
from vfljax.datasets.files import MAX_BYTES, fits
from vfljax.datasets.npz import arrays
from vfljax.datasets.table_errors import all_different, fault, narrow, one_line, reading
from vfljax.errors import Field, UserError, options_in, unknown

AGAIN = "it is damaged, cut off or of another format; write it again"
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
OF_TEXT = (
    ".json",
    ".jsonl",
    ".ndjson",
    ".pkl",
    ".pickle",
    ".xpt",
    ".xml",
    ".html",
)  # also if it is text
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
READ_PARQUET = "columns", "filters"


def read_frame(
    path: str, options: Mapping[str, Any] | str | None, as_texts: Columns = lambda names: ()
) -> ReadTable:
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
        named = formats.named(start)
        text = not named and formats.is_text(start)
        if suffix in NOT_READ and named != formats.PARQUET and not (text and suffix not in OF_TEXT):
            what = f"is of a format that is not read (pandas.{NOT_READ[suffix]} reads it)"
            raise fault(path, what, FRAME)
        found = formats.content(file)  # whatever the option "compression" says
        what = found.what
        if what == formats.ZIP:
            with found.open() as stream:
                what = formats.of_program(formats.zip_names(stream))
    by_name = "" if what or formats.is_text(found.start) else suffix
    if what == formats.NPZ or by_name == ".npz":
        _checked_options(options, (), "a .npz file")
        if found.packed:
            raise fault(path, f"holds {what} in another archive", formats.UNPACK)
        return framed(_npz(file), path)
    if what == formats.PARQUET or by_name in PARQUET:
        of_parquet = _checked_options(options, READ_PARQUET, "pandas.read_parquet")
        if found.packed:
            raise fault(path, f"holds {what} in an archive or compressed", formats.UNPACK)
        return _parquet(file, path, of_parquet)
    if what:
        reads = f" (pandas.{READS[what]} reads it)" if what in READS else ""
        raise fault(path, f"is {what}, no table that is read{reads}", FRAME if reads else WRITE)
    given = _checked_options(options, READ_CSV, "pandas.read_csv")
    text = read_text(file, found, path, given, as_texts)
    read = framed(text.frame, path)
    return text._replace(frame=read.frame, index=read.index)


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


def _parquet(file: pathlib.Path, path: str, options: Mapping[str, Any]) -> ReadTable:
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


def framed(given: Any, place: str) -> ReadTable:
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
    return ReadTable(frame.reset_index(drop=True), index)


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
