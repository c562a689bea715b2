"""Click-through files: rows of text fields with a label 0 or 1, read in chunks of bounded memory.

A file is plain or gzip, tab-separated without a header or CSV with a header. A field of a chunk is stored as
its distinct values and each row's index into them, so that a function of a value is computed once per
distinct value. ``ctr_forms`` decides what the values become.
"""

from __future__ import annotations

import csv
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv as pa_csv

from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import Field, UserError

pc: Any = pyarrow.compute  # its functions are made when imported: no type checker knows them
SIZE = 1 << 22  # bytes of text of a chunk, and the most of a line; Arrow holds 32 chunks at a time
HEADER = 1 << 16  # a header line must be shorter, in bytes
# checks of a value, with their wording; the sets' own values have 8 characters and no quotes inside
PLAIN = (lambda v: pc.match_substring_regex(v, '^[^\\x00"]{0,64}$'), "up to 64 plain characters")
INTEGER = (lambda v: pc.match_substring_regex(v, "^(-?[0-9]{1,15})?$"), "an integer or empty")


class ClickLayout(NamedTuple):
    """The fields of one set's files."""

    name: str
    label: str
    fields: tuple[str, ...]
    ignored: str  # a CSV's column of row numbers, which is not read
    headless: bool  # whether tab-separated files without header exist
    valid: Mapping[str, tuple[Callable[[Any], Any], str]]  # of a field: a check, its wording
    source: str  # where to get the files


class ClickChunk(NamedTuple):
    """Some rows of a file."""

    fields: dict[str, Any]  # Arrow's dictionary arrays of strings, by field
    labels: np.ndarray  # [r] int32
    lines: np.ndarray  # [r] line numbers in the file, from 1


class RowSelection(NamedTuple):
    """Which rows are read: ``offset`` rows are skipped, then the first ``rows`` (0: all) are read."""

    rows: int = 0
    offset: int = 0
    balanced: bool = False  # drop rows that repeat the last kept row's label; begin with a 0
    negatives: tuple[int, int] = (0, 0)  # rows of label 0: (to keep, in all); (0, 0) keeps all


def read(
    path: pathlib.Path, layout: ClickLayout, selection: RowSelection, size: int = SIZE
) -> Iterator[ClickChunk]:
    """Yields the selected rows of a file, in its order.

    Args:
      path: the file.
      layout: the fields of its set.
      selection: which rows.
      size: bytes of text of a chunk; the rows do not depend on it.

    Raises:
      UserError: for a fault in a row that is read, with its line, and for fewer rows than are asked for.
    """
    skipped = kept = 0
    last = 1  # as in Fu et al.'s released code: the first row kept is a 0
    drawn = _draw(*selection.negatives, np.random.default_rng(0))
    for chunk in _parsed(path, layout, size):
        rows = np.arange(len(chunk.labels))[max(0, selection.offset - skipped) :]
        skipped += len(chunk.labels) - len(rows)
        if selection.balanced:
            rows = rows[np.diff(chunk.labels[rows], prepend=last) != 0]
        if selection.rows:
            rows = rows[: selection.rows - kept]
        if len(rows):
            last = int(chunk.labels[rows[-1]])
            kept += len(rows)
            rows = rows[drawn(chunk.labels[rows])] if selection.negatives[1] else rows
        if len(rows):
            yield _checked(path, layout, _taken(chunk, rows))
        if selection.rows and kept == selection.rows:
            return
    if not kept or kept < selection.rows:
        which = " with alternating labels" if selection.balanced else ""
        which += f" after the first {selection.offset}" if selection.offset else ""
        what: tuple[str | Field, ...] = (f"{path} has {kept} rows{which}",)
        if selection.rows:
            what += (", and ", Field("data.options.rows"), f"={selection.rows} asks for more")
        raise UserError(what, remedy="correct the options or the file")


def _draw(kept: int, whole: int, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that is called with the labels [r] of each chunk in turn and tells which rows stay.
    Of the ``whole`` rows of label 0, ``kept`` stay, all samples being equally likely: each stays with
    probability (rows still to keep) / (rows still to come) (Knuth, algorithm 3.4.2S), whatever the chunks."""

    def stay(labels: np.ndarray) -> np.ndarray:
        nonlocal kept, whole
        out = labels > 0
        negatives = np.flatnonzero(~out)
        for place, chance in zip(negatives, rng.random(len(negatives)), strict=True):
            out[place] = chance * whole < kept
            kept, whole = kept - int(out[place]), whole - 1
        return out

    return stay


def _taken(chunk: ClickChunk, rows: np.ndarray) -> ClickChunk:
    """Returns the chunk with these rows only; values of no other rows are kept, so none are checked."""
    if len(rows) == len(chunk.labels):
        return chunk
    fields = {
        name: field.take(pa.array(rows)).dictionary_decode().dictionary_encode()
        for name, field in chunk.fields.items()
    }
    return ClickChunk(fields, chunk.labels[rows], chunk.lines[rows])


def _checked(path: pathlib.Path, layout: ClickLayout, chunk: ClickChunk) -> ClickChunk:
    """Returns the chunk; raises UserError for a value that its field may not have."""
    for name, field in chunk.fields.items():
        for right, words in {PLAIN, layout.valid.get(name, PLAIN)}:
            right_values = np.asarray(right(field.dictionary))
            if not right_values.all():
                row = int(np.argmin(right_values[field.indices.to_numpy()]))
                what = f"is {field[row].as_py()[:40]!r}, not {words}"
                raise fault(path, what, line=chunk.lines[row], column=name)
    return chunk


def _parsed(path: pathlib.Path, layout: ClickLayout, size: int) -> Iterator[ClickChunk]:
    """Yields all rows in chunks. Labels are checked, other values are not.

    Arrow silently joins lines if a quote is not closed. Its quoting is therefore switched off, so that every
    line is a row, and the quotes around a CSV's values are removed in ``_chunk``."""
    names = _header(path, layout)
    tabs, line = not names, 2 if names else 1
    kept = [layout.label, *layout.fields]
    names = names or kept
    types = {name: pa.dictionary(pa.int32(), pa.string()) for name in kept}
    options = (
        pa_csv.ReadOptions(
            use_threads=False,  # so that Arrow's errors number the rows
            block_size=size,
            column_names=names,
            skip_rows=line - 1,
        ),
        pa_csv.ParseOptions(
            delimiter="\t" if tabs else ",", quote_char=False, ignore_empty_lines=False
        ),
        pa_csv.ConvertOptions(column_types=types, include_columns=kept),
    )
    with reading(path):
        try:
            with _opened(path) as file, pa_csv.open_csv(file, *options) as batches:
                for batch in batches:
                    yield _chunk(path, layout, batch, line, quotes=not tabs)
                    line += batch.num_rows
        except pa.ArrowInvalid as error:
            column, why = "", str(error)
            if place := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", why):
                line, why = int(place[1]), f"has {place[3]} columns, not {place[2]}"
            elif place := re.search(r"column #(\d+): Row #(\d+): (.*)", why):
                line, column, why = int(place[2]), names[int(place[1])], f"is wrong ({place[3]})"
            elif "straddling" in why:
                why = f"or a later one has over {size:,} bytes"
            else:
                why = f"cannot be read ({why})"
            raise fault(path, why, line=line, column=column) from error


def _opened(path: pathlib.Path) -> Any:
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return pa.input_stream(str(path), compression="gzip" if zipped else None)


def _header(path: pathlib.Path, layout: ClickLayout) -> list[str]:
    """Returns a CSV's column names; [] for a tab-separated file, which has no header."""
    with reading(path), _opened(path) as file:
        start = file.read(HEADER)
        first = re.split(rb"[\r\n]", start.removeprefix(b"\xef\xbb\xbf"), maxsplit=1)[0]
        if layout.headless and b"\t" in first:
            return []
        names = next(csv.reader([first.decode()]), [])
    required, present = Counter([layout.label, *layout.fields]), Counter(names)
    why = f"is longer than {HEADER:,} bytes" if len(first) == HEADER else ""
    if lacking := list(required - present):
        why = f"lacks the column {lacking[0]!r}"
    elif more := list(present - required - Counter([layout.ignored])):
        why = f"has {more[0][:40]!r} too often, or as no column of {layout.name}"
    if why:
        raise fault(path, why if start.strip() else "is empty", f"give {layout.source}", line=1)
    return names


def _chunk(
    path: pathlib.Path, layout: ClickLayout, batch: Any, line: int, quotes: bool
) -> ClickChunk:
    fields = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, field in fields.items() if quotes else ():
        values = pc.replace_substring_regex(field.dictionary, '^"(.*)"$', r"\1")
        fields[name] = pa.DictionaryArray.from_arrays(field.indices, values)
    label = fields.pop(layout.label)
    codes = pc.index_in(label.dictionary, value_set=pa.array(["0", "1"])).fill_null(-1)
    labels = codes.to_numpy()[label.indices.to_numpy()]
    if len(labels) and labels.min() < 0:
        row = int(np.argmin(labels))
        what = f"is {label[row].as_py()[:40]!r}, not 0 or 1"
        raise fault(path, what, line=line + row, column=layout.label)
    return ClickChunk(fields, labels, np.arange(line, line + len(labels)))
