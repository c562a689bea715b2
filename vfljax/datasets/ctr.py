"""Click-through files: rows of text fields with a label 0 or 1, read in blocks of bounded memory.

What enters: a file (plain or gzip; tab-separated without header, or CSV with one), its fields' names
and which rows are wanted. What leaves: ``Block`` after ``Block``, each field as distinct values and
each row's place among them, so that whatever is computed of a value is computed once. What becomes
of the values is ``ctr_forms``' business.
"""

from __future__ import annotations

import collections
import csv
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from vfljax.datasets.faults import MOST_COLUMNS, too_wide
from vfljax.datasets.lines import chunks
from vfljax.errors import UserError

SIZE = 1 << 23  # bytes of text a block
LENGTH = 64  # characters of a value; the sets' own have 8


class Layout(NamedTuple):
    """The fields of one set's files."""

    name: str
    label: str
    fields: tuple[str, ...]
    ignored: str  # a CSV's column of row numbers
    headless: bool  # whether tab-separated files without header exist
    valid: Mapping[str, tuple[Callable[[str], Any], str]]  # of a field: what a value is, in words
    source: str  # where to get the files


class Field(NamedTuple):
    """One field of a block's rows: row r holds ``values[places[r]]``."""

    values: list[str]  # distinct, each of some row
    places: np.ndarray  # [r]


class Block(NamedTuple):
    """Some rows of a file."""

    fields: dict[str, Field]
    labels: np.ndarray  # [r] int32
    lines: np.ndarray  # [r] of the file, from 1


class Rows(NamedTuple):
    """Which rows are wanted: after ``offset`` rows the first ``rows`` (0: all) that count."""

    rows: int = 0
    offset: int = 0
    balanced: bool = False  # only rows whose label differs from the last kept one's, 0 first
    negatives: tuple[int, int] = (0, 0)  # (kept, of how many) rows of label 0; (0, 0): all are

    @property
    def expected(self) -> int:
        """How many rows that is; 0 where it is the file that says."""
        kept, whole = self.negatives
        return max(0, self.rows - (whole - kept))


# whether a value is an integer, or missing
integer = re.compile("(-?[0-9]{1,15})?").fullmatch


def read(path: pathlib.Path, layout: Layout, wanted: Rows, size: int = SIZE) -> Iterator[Block]:
    """The wanted rows of a file, in its order; every fault is one UserError that names the line.
    Blocks come of ``size`` bytes of text; what they hold together does not depend on it."""
    skipped = kept = 0
    last = 1  # as in Fu et al.'s released code: the first row kept is a 0
    draw = _Draw(*wanted.negatives)
    for block in _parsed(path, layout, size):
        rows = np.arange(max(0, min(wanted.offset - skipped, len(block.labels))), len(block.labels))
        skipped += len(block.labels) - len(rows)
        if wanted.balanced:
            before = np.concatenate([[last], block.labels[rows]])
            rows = rows[np.diff(before) != 0]
        if wanted.rows:
            rows = rows[: wanted.rows - kept]
        if len(rows):
            last = int(block.labels[rows[-1]])
            kept += len(rows)
            rows = draw.of(rows, block.labels[rows])
        if len(rows):
            yield _checked(path, layout, _taken(block, rows))
        if wanted.rows and kept == wanted.rows:
            return
    if not kept or kept < wanted.rows:
        which = " with alternating labels" if wanted.balanced else ""
        which += f" after the first {wanted.offset}" if wanted.offset else ""
        asked = f", and config.data.options.rows={wanted.rows} asks for more" if wanted.rows else ""
        raise UserError(f"{path} has {kept} rows{which}{asked}: correct the options or the file.")


def down_sampled(
    path: pathlib.Path, layout: Layout, wanted: Rows, positive_ratio: float, size: int = SIZE
) -> Rows:
    """``wanted`` with as many of its rows of label 0 as make the others this share of all. It takes a
    pass through the file. Raises UserError where even all of them are too few."""
    rows = positive = 0
    for block in read(path, layout, wanted, size):
        rows, positive = rows + len(block.labels), positive + int(block.labels.sum())
    kept = round(positive * (1 - positive_ratio) / positive_ratio)
    if not 0 < kept <= rows - positive:
        share = f"{positive / rows:.2%} of the {rows:,} rows read are clicks"
        enough = kept and positive < rows
        remedy = "give a larger one, for only others are left out" if enough else "read more rows"
        raise UserError(
            f"{path}: config.data.options.positive_ratio={positive_ratio:g}, and {share}: {remedy}."
        )
    return wanted._replace(negatives=(kept, rows - positive))


class _Draw:
    """A random sample of ``kept`` of the ``whole`` rows of label 0, all equally likely, as blocks come
    by: each next one is kept with probability (still wanted) / (still to come) (Knuth, algorithm
    3.4.2S). It is the same in every process and for every size of block."""

    def __init__(self, kept: int, whole: int) -> None:
        self._kept, self._left = kept, whole
        self._all, self._rng = not whole, np.random.default_rng(0)

    def of(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Those of ``rows`` [r] that are kept, by their ``labels`` [r]."""
        if self._all:
            return rows
        keep = labels > 0
        negatives = np.flatnonzero(~keep)
        for place, chance in zip(negatives, self._rng.random(len(negatives)), strict=True):
            keep[place] = chance * self._left < self._kept
            self._kept -= int(keep[place])
            self._left -= 1
        return rows[keep]


def _taken(block: Block, rows: np.ndarray) -> Block:
    """Some of the rows, and the values that they hold: others are not even looked at."""
    if len(rows) == len(block.labels):
        return block
    fields = {}
    for name, field in block.fields.items():
        used, places = np.unique(field.places[rows], return_inverse=True)
        fields[name] = Field([field.values[i] for i in used], places)
    return Block(fields, block.labels[rows], block.lines[rows])


def _checked(path: pathlib.Path, layout: Layout, block: Block) -> Block:
    """The block, if every value of its rows is what its field holds."""
    for name, field in block.fields.items():
        checks = [layout.valid[name]] if name in layout.valid else []
        if max(map(len, field.values)) > LENGTH:
            checks.insert(0, (_short, f"at most {LENGTH} characters long"))
        for right, words in checks:
            for place, value in enumerate(field.values):
                if not right(value):
                    line = block.lines[np.argmax(field.places == place)]
                    raise UserError(
                        f"{path} line {line}: {name} is {value[:40]!r}, not {words}; correct the "
                        "line or fetch the file again."
                    )
    return block


def _short(value: str) -> bool:
    return len(value) <= LENGTH


def _parsed(path: pathlib.Path, layout: Layout, size: int) -> Iterator[Block]:
    """All rows, labels checked, other values not yet."""
    pieces = chunks(path, size)
    line, text = next(pieces, (1, b""))
    text = text.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise UserError(f"{path} is empty or begins with an empty line: fetch the file again.")
    first, rest = text.split(b"\n", 1) if b"\n" in text else (text, b"")
    tabs = layout.headless and b"\t" in first
    names = (layout.label, *layout.fields) if tabs else _header(path, first, layout)
    if not tabs:
        line, text = line + 1, rest
    while True:
        if text:
            yield _block(path, layout, names, "\t" if tabs else ",", line, text)
        line, text = next(pieces, (0, b""))
        if not line:
            return


def _header(path: pathlib.Path, line: bytes, layout: Layout) -> tuple[str, ...]:
    """A CSV's column names, checked."""
    try:
        names = next(csv.reader([line.decode("utf-8").rstrip("\r")]))
    except (UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise UserError(
            f"{path} line 1 is not a header ({error}): fetch the file again."
        ) from error
    if len(names) > MOST_COLUMNS:
        raise too_wide(str(path), len(names))
    wanted, counted = (layout.label, *layout.fields), collections.Counter(names)
    fault = ""
    if missing := [name for name in wanted if name not in counted]:
        fault = f"names no column {missing[0]!r}"
    elif twice := [name for name, count in counted.items() if count > 1]:
        fault = f"names {twice[0][:40]!r} twice"
    elif other := [name for name in counted if name not in (*wanted, layout.ignored)]:
        fault = f"names {other[0][:40]!r}, which is no column of {layout.name}"
    if fault:
        raise UserError(f"{path} line 1 {fault}: it must be the header of {layout.source}.")
    return tuple(names)


def _block(
    path: pathlib.Path,
    layout: Layout,
    names: tuple[str, ...],
    delimiter: str,
    line: int,
    text: bytes,
) -> Block:
    """Parsed lines; raises UserError for a line with too few or too many columns."""
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    kept = [layout.label, *layout.fields]
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(text),
            # one block, so that a field has one list of values; serial, so that rows have numbers
            pa_csv.ReadOptions(
                use_threads=False, block_size=len(text) + 1, column_names=list(names)
            ),
            pa_csv.ParseOptions(
                delimiter=delimiter,
                quote_char=False if delimiter == "\t" else '"',
                ignore_empty_lines=False,
                invalid_row_handler=refuse,
            ),
            pa_csv.ConvertOptions(
                check_utf8=False,  # checked
                column_types={name: pa.dictionary(pa.int32(), pa.string()) for name in kept},
                include_columns=kept,
            ),
        )
    except pa.ArrowInvalid as error:
        if wrong:
            raise UserError(
                f"{path} line {line + wrong[0].number - 1} has {wrong[0].actual_columns} columns, not "
                f"{len(names)}: it is cut off or not {layout.name}; correct it or fetch it again."
            ) from error
        why = " ".join(str(error).split())[:200]
        raise UserError(f"{path} from line {line}: {why}; fetch the file again.") from error
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    if table.num_rows != lines:
        raise UserError(
            f"{path}: the {lines} lines from line {line} are {table.num_rows} rows: a quoted value "
            "runs over a line's end, or a line ends in a lone CR; correct it."
        )
    fields = {}
    for name, column in zip(kept, table.columns, strict=True):
        one = column.chunk(0)
        fields[name] = Field(one.dictionary.to_pylist(), one.indices.to_numpy())
    label = fields.pop(layout.label)
    codes = np.array([{"0": 0, "1": 1}.get(v, -1) for v in label.values], np.int32)[label.places]
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        value = label.values[label.places[row]]
        raise UserError(
            f"{path} line {line + row}: {layout.label} is {value[:40]!r}, not 0 or 1; correct the "
            "line or fetch the file again."
        )
    return Block(fields, codes, np.arange(line, line + len(codes)))
