"""Click-through files, as Criteo and Avazu publish them: rows of text fields with a label 0 or 1.

A file is plain or gzip, either tab-separated without a header or CSV with a header. It is read block by block,
so that memory does not grow with the number of rows. A field of a block consists of its distinct values and
each row's index into them, so that a code is computed once for each distinct value.

The only hash is CRC-32 (zlib's, polynomial 0xEDB88320) of the UTF-8 bytes ``field=value``. It is equal on every
machine, unlike Python's own hash, which each process seeds anew.
"""

from __future__ import annotations

import functools
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from vfljax.datasets.core import Block, Column
from vfljax.datasets.files import find
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import UserError

CLASSES = ("no click", "click")
PATTERNS = ("train.txt", "train.csv", "train.gz", "*.txt.gz", "*.csv.gz")
OTHER_PATTERNS = (
    "*.txt",
    "*.csv",
)  # used if no file has such a name, as for Criteo's dac_sample.txt
MAX_BUCKETS = 1 << 24  # codes that float32, which networks read, holds exactly
BLOCK_BYTES = 1 << 22  # bytes of text of a block, and the most of a line

Encoder = Callable[[list[str]], np.ndarray]  # codes [V] of a field's distinct values
Encoders = Mapping[Column, Encoder]
"""The columns of the features, which have the names of the fields that they encode, each with its encoder."""


class ClickFile(NamedTuple):
    """A file, and which of its rows are read."""

    path: pathlib.Path
    label: str  # name of the label's column
    fields: tuple[str, ...]  # names of the other columns that are read
    rows: int = 0  # the first rows; 0 reads all
    balanced: bool = False  # leave out rows that repeat the label of the last row kept
    negatives: tuple[int, int] | None = None  # rows of label 0 among them: (number kept, number)


def path_of(folder: str, source: str, file: str = "") -> pathlib.Path:
    """Returns the path of a click file.

    Args:
      folder: the file, or the folder that holds it.
      source: what is looked for, for messages.
      file: the file's name, if the folder holds several.
    """
    return find(folder, source, PATTERNS, OTHER_PATTERNS, file=file)


def read(file: ClickFile) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
    """Yields the rows of a file block by block, in their order.

    Yields:
      Arrow's dictionary array of each field, the indices into them of the rows that are read [r], and the
      labels of these rows [r] int32.

    Raises:
      UserError: for a file that cannot be read, and for fewer rows than are asked for.
    """
    kept, last_label = 0, 1  # as in Fu et al.'s released code, the first of balanced rows is a 0
    sample = _sampler(*file.negatives, np.random.default_rng(0)) if file.negatives else None
    for fields, labels in _parsed(file):
        rows = np.arange(len(labels))
        if file.balanced:
            rows = rows[np.diff(labels, prepend=last_label) != 0]
        if file.rows:
            rows = rows[: file.rows - kept]
        if len(rows):
            last_label = labels[rows[-1]]
            kept += len(rows)
            rows = rows[sample(labels[rows])] if sample else rows
        if len(rows):
            yield fields, rows, labels[rows]
        if file.rows and kept == file.rows:
            return
    if not kept:
        raise fault(file.path, "has no rows")
    if kept < file.rows:
        which = "with alternating labels " if file.balanced else ""
        what = f"are more than the {kept} rows {which}of {file.path}"
        raise UserError(
            what, field="data.options.rows", value=file.rows, remedy="give fewer, or 0 for all"
        )


def _parsed(file: ClickFile) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yields all rows of a file block by block: Arrow's dictionary array of each field, and the labels."""
    text = pa.dictionary(pa.int32(), pa.string())
    names = [file.label, *file.fields]
    with reading(file.path):
        with pa.input_stream(file.path) as stream:
            tabs = b"\t" in stream.read(1 << 16).partition(b"\n")[0]
        options = (
            pa_csv.ReadOptions(
                use_threads=False,  # so that Arrow's errors number the rows
                block_size=BLOCK_BYTES,
                column_names=names if tabs else None,
            ),
            pa_csv.ParseOptions(
                delimiter="\t" if tabs else ",",
                quote_char=False,  # Arrow joins all lines after a quote that is not closed
                ignore_empty_lines=False,
            ),
            pa_csv.ConvertOptions(
                column_types={**dict.fromkeys(names, text), file.label: pa.int32()},
                include_columns=names,
                null_values=[],
            ),
        )
        with pa.input_stream(file.path) as stream, pa_csv.open_csv(stream, *options) as batches:
            for batch in batches:
                labels = batch.column(file.label).to_numpy()
                if wrong := set(labels.tolist()) - {0, 1}:
                    raise fault(file.path, f"has {min(wrong)}, not 0 or 1", column=file.label)
                yield {name: batch.column(name) for name in file.fields}, labels


def keep_positive_ratio(file: ClickFile, ratio: float) -> ClickFile:
    """Returns the file with a random sample of its rows of label 0, drawn with a fixed seed, left out, so that
    clicks are the share ``ratio`` of its rows. It takes a pass through the file.

    Raises:
      UserError: if that needs more rows of label 0 than there are, or none.
    """
    counts: Any = sum(np.bincount(labels, minlength=2) for _, _, labels in read(file))
    negatives, clicks = counts.tolist()
    kept = round(clicks * (1 - ratio) / ratio)
    if not 0 < kept <= negatives:
        what = f"needs {kept:,} rows without a click, and {file.path} has {negatives:,}"
        remedy = f"give more than {clicks / (clicks + negatives):.2%}"
        raise UserError(what, field="data.options.positive_ratio", value=ratio, remedy=remedy)
    return file._replace(negatives=(kept, negatives))


def _sampler(kept: int, count: int, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that is called with the labels [r] of each block in turn, and returns which rows stay.

    All rows of label 1 stay. Of the ``count`` rows of label 0, ``kept`` stay, and all samples are equally
    likely: each stays with probability (rows still to keep) / (rows still to come) (Knuth, algorithm 3.4.2S).
    """

    def sample(labels: np.ndarray) -> np.ndarray:
        nonlocal kept, count
        stays = labels > 0
        negatives = np.flatnonzero(~stays)
        for row, uniform in zip(negatives, rng.random(len(negatives)), strict=True):
            stays[row] = uniform * count < kept
            kept, count = kept - int(stays[row]), count - 1
        return stays

    return sample


def crc(field: str, values: list[str]) -> np.ndarray:
    """Returns the CRC-32 of ``field=value`` for each value, [V] int64.

    >>> (crc("C1", ["68fd1e64", ""]) % 8192).tolist()
    [8011, 296]
    """
    start = zlib.crc32(f"{field}=".encode())  # the CRC of a prefix can be continued
    return np.array([zlib.crc32(value.encode(), start) for value in values], np.int64)


def hashed_codes(fields: Sequence[str], buckets: int) -> Encoders:
    """Returns encoders of fields by hashes: 1..buckets - 1, and 0 for the empty value."""

    def encode(field: str, values: list[str]) -> np.ndarray:
        return np.where(np.array(values, bool), 1 + crc(field, values) % (buckets - 1), 0)

    return {
        Column(field, "code", "", buckets): functools.partial(encode, field) for field in fields
    }


def sorted_codes(
    file: ClickFile, rewrites: Mapping[str, Callable[[str], str]], least: int = 0
) -> Encoders:
    """Returns encoders by a value's place among the sorted values of its field.

    It takes a pass through the file.

    Args:
      file: the file.
      rewrites: for each field, the function that is applied to its values first.
      least: if > 0, values that fewer rows have share one more code, the last.
    """

    def encode(known: np.ndarray, rewrite: Callable[[str], str], values: list[str]) -> np.ndarray:
        texts = _bytes(map(rewrite, values))
        places = np.searchsorted(known, texts)
        found = np.append(known, b"")[places] == texts  # b"" stands past the end
        return np.where(found & (places < len(known)), places, len(known))

    return {
        Column(field, "code", "", len(known) + (least > 0)): functools.partial(
            encode, known, rewrites[field]
        )
        for field, known in _vocabularies(file, rewrites, max(least, 1)).items()
    }


def _vocabularies(
    file: ClickFile, rewrites: Mapping[str, Callable[[str], str]], least: int
) -> dict[str, np.ndarray]:
    """Returns the distinct (rewritten) values of each field that at least ``least`` rows have, as sorted bytes.

    Memory holds a few times the distinct values: new ones are merged once they outnumber the known ones.
    """
    counted = {field: [(np.array([], "S1"), np.array([], np.int64))] for field in rewrites}
    for fields, rows, _ in read(file):
        for field, rewrite in rewrites.items():
            array, parts = fields[field], counted[field]
            counts = np.bincount(array.indices.to_numpy()[rows], minlength=len(array.dictionary))
            with reading(f"{file.path}: column {field!r}"):
                parts.append((_bytes(map(rewrite, array.dictionary.to_pylist())), counts))
            if sum(len(values) for values, _ in parts[1:]) > len(parts[0][0]):
                parts[:] = [_merged(parts)]
    merged = {field: _merged(parts) for field, parts in counted.items()}
    return {field: values[counts >= least] for field, (values, counts) in merged.items()}


def _merged(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sorted distinct values of all parts, and their counts."""
    values, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, np.bincount(places, counts, len(distinct)).astype(np.int64)


def _bytes(values: Iterable[str]) -> np.ndarray:
    return np.array([value.encode() for value in values], "S")  # UTF-8 sorts as its characters do


def blocks(file: ClickFile, encoders: Encoders, dtype: Any) -> Iterator[Block]:
    """Yields the rows of a file with features [r, F] of type ``dtype``, one column for each encoder."""
    for fields, rows, labels in read(file):
        features = np.empty((len(rows), len(encoders)), dtype)
        for j, (column, encoder) in enumerate(encoders.items()):
            array = fields[column.name]
            with reading(f"{file.path}: column {column.name!r}"):
                codes = np.asarray(encoder(array.dictionary.to_pylist()), dtype)
            features[:, j] = codes[array.indices.to_numpy()[rows]]
        yield Block(features, labels)
