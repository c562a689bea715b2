"""What becomes of click-through rows: columns of numbers and codes, or one wide row of hashes.

What enters: chunks of a file (``ctr``) and a ``ClickEncoding``. What leaves: features and labels chunk by
chunk, a whole ``Dataset``, or a prepared folder. Per distinct value and not per row, wherever it can.

The one hash is CRC-32 (zlib's, polynomial 0xEDB88320) of the UTF-8 bytes ``field=value``, modulo the
buckets: public and equal on every machine, unlike Python's own, which each process seeds anew.
"""

from __future__ import annotations

import functools
import pathlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from vfljax.datasets import ctr, prepared
from vfljax.datasets.core import Column, Dataset, classes
from vfljax.datasets.files import MAX_BYTES, find
from vfljax.errors import Field, UserError, options_in

CLASSES = ("no click", "click")
PATTERNS = ("train.txt", "train.csv", "train.gz", "*.txt.gz", "*.csv.gz")
COUNTED = 1 << 22  # buckets of the rows that are hashed at a time
EXACT = 1 << 24  # codes that float32, which networks read, holds exactly

P = ParamSpec("P")
Rewrite = Callable[[str], str]  # of a value, before it is counted and coded


class Coding(NamedTuple):
    """One column: what it is, the field it reads, and what its distinct values become."""

    column: Column
    field: str
    encoder: Callable[[list[str]], Any]


class ClickEncoding(NamedTuple):
    """How a chunk's fields become features."""

    encode: Callable[[ctr.ClickChunk], Iterator[np.ndarray]]  # [r, F], in one or several pieces
    columns: tuple[Column, ...] = ()


class ClickPlan(NamedTuple):
    """A file and which of its rows become what."""

    path: pathlib.Path
    layout: ctr.ClickLayout
    selection: ctr.RowSelection
    buckets: int

    def chunks(self, size: int = ctr.SIZE) -> Iterator[ctr.ClickChunk]:
        return ctr.read(self.path, self.layout, self.selection, size)


def loader(planned: Callable[P, tuple[ClickPlan, ClickEncoding]]) -> Callable[P, Dataset]:
    """The loader that reads what ``planned`` plans, with its options."""

    @functools.wraps(planned)
    def call(*args: P.args, **options: P.kwargs) -> Dataset:
        return load(*planned(*args, **options))

    return call


def plan_of(
    layout: ctr.ClickLayout,
    forms: Mapping[str, int],
    folder: str,
    file: str,
    form: str,
    buckets: int,
    selection: ctr.RowSelection,
) -> ClickPlan:
    """The file, and the options that Criteo and Avazu share. ``forms``: each one's own number of buckets."""
    if buckets and not forms[form]:
        remedy = f"form={form!r} has none; leave it out"
        raise UserError(field="data.options.buckets", value=buckets, remedy=remedy)
    buckets = buckets or forms[form]
    if forms[form] and buckets < 2:
        raise UserError(field="data.options.buckets", value=buckets, remedy="give at least 2")
    path = find(folder, layout.source, PATTERNS, file=file)
    return ClickPlan(path, layout, selection, buckets)


def columned(codings: Sequence[Coding], dtype: Any) -> ClickEncoding:
    """A column an entry."""
    for column, _, _ in codings:
        if column.vocabulary > EXACT:
            raise UserError(
                f"column {column.name} has {column.vocabulary:,} codes and networks can tell {EXACT:,} "
                "apart",
                remedy=options_in("choose {form}='codes' with fewer {buckets}"),
            )

    def encode(chunk: ctr.ClickChunk) -> Iterator[np.ndarray]:
        out = np.empty((len(chunk.labels), len(codings)), dtype)
        for j, (_, name, encoder) in enumerate(codings):
            field = chunk.fields[name]
            out[:, j] = ctr.spread(field, np.asarray(encoder(field.dictionary.to_pylist()), dtype))
        yield out

    return ClickEncoding(encode, tuple(coding.column for coding in codings))


def crc(field: str, values: list[str]) -> np.ndarray:
    """CRC-32 of ``field=value``, [V] int64.

    >>> (crc("C1", ["68fd1e64", ""]) % 8192).tolist()
    [8011, 296]
    """
    start = zlib.crc32(f"{field}=".encode())  # the CRC of a prefix goes on with what follows
    return np.array([zlib.crc32(value.encode(), start) for value in values], np.int64)


def hashed(fields: Sequence[str], buckets: int, crosses: bool, counts: bool) -> ClickEncoding:
    """[r, buckets] uint8: which buckets the hashes of a row's fields fall into (``counts``: how many of
    them, at most 255), with ``crosses`` those of all pairwise XORs of its hashes too."""

    def encode(chunk: ctr.ClickChunk) -> Iterator[np.ndarray]:
        hashes = np.empty((len(chunk.labels), len(fields)), np.int64)
        for j, name in enumerate(fields):
            values = chunk.fields[name].dictionary.to_pylist()
            hashes[:, j] = ctr.spread(chunk.fields[name], crc(name, values) % buckets)
        pairs = np.triu_indices(len(fields), 1)
        step = max(1, min(512, COUNTED // buckets))
        for first in range(0, len(hashes), step):
            row = hashes[first : first + step]
            if crosses:
                row = np.concatenate([row, row[:, pairs[0]] ^ row[:, pairs[1]]], axis=1)
            flat = row + np.arange(len(row))[:, None] * buckets
            out = np.bincount(flat.ravel(), minlength=len(row) * buckets).reshape(len(row), buckets)
            yield np.minimum(out, 255 if counts else 1).astype(np.uint8)

    return ClickEncoding(encode)


def bucketed(name: str, buckets: int) -> Coding:
    """A field as codes 1..buckets - 1 by hash, 0 where missing."""

    def encoder(values: list[str]) -> np.ndarray:
        return np.where(np.array(values, bool), 1 + crc(name, values) % (buckets - 1), 0)

    return Coding(Column(name, "code", "", buckets), name, encoder)


def numbered(plan: ClickPlan, rewrites: Mapping[str, Rewrite], least: int = 0) -> list[Coding]:
    """Fields as their (rewritten) values' places among the field's sorted ones in the rows read, which
    takes a pass; with ``least`` those that fewer rows have share the code after the last."""

    def coding(name: str, rewrite: Rewrite, known: np.ndarray) -> Coding:
        def encoder(values: list[str]) -> np.ndarray:
            texts = _bytes(values, rewrite)
            places = np.searchsorted(known, texts)
            met = np.append(known, b"")[places] == texts  # past the end there is no value
            return np.where(met & (places < len(known)), places, len(known))

        return Coding(Column(name, "code", "", len(known) + (least > 0)), name, encoder)

    known = vocabularies(plan, rewrites, least)
    return [coding(name, rewrite, known[name]) for name, rewrite in rewrites.items()]


def number(name: str, scale: str) -> Coding:
    """A field of integers as they are ("raw") or sign(x) log(1 + |x|) ("log"); 0 where missing."""

    def encoder(values: list[str]) -> np.ndarray:
        x = np.array([int(value or 0) for value in values], np.float64)
        return np.sign(x) * np.log1p(np.abs(x)) if scale == "log" else x

    return Coding(Column(name), name, encoder)


def vocabularies(
    plan: ClickPlan, rewrites: Mapping[str, Rewrite], least: int
) -> dict[str, np.ndarray]:
    """Each field's distinct (rewritten) values that ``least`` rows or more have, as sorted bytes.
    What is held is a few times the distinct values and a chunk: new ones are merged when they
    outnumber the known ones."""
    parts = {name: [(np.array([], "S1"), np.array([], np.int64))] for name in rewrites}
    for chunk in plan.chunks():
        for name, rewrite in rewrites.items():
            field, counted = chunk.fields[name], parts[name]
            rows = np.bincount(field.indices.to_numpy(), minlength=len(field.dictionary))
            counted.append((_bytes(field.dictionary.to_pylist(), rewrite), rows))
            if sum(len(values) for values, _ in counted[1:]) > max(1 << 12, len(counted[0][0])):
                counted[:] = [_merged(counted)]
    merged = {name: _merged(counted) for name, counted in parts.items()}
    return {name: values[counts >= least] for name, (values, counts) in merged.items()}


def _merged(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, sorted, and how often they occur in all parts."""
    values, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, np.bincount(places, counts, len(distinct)).astype(np.int64)


def _bytes(values: list[str], rewrite: Rewrite) -> np.ndarray:
    return np.array([rewrite(v).encode() for v in values], "S")  # UTF-8 sorts as its characters do


def stream(
    plan: ClickPlan, form: ClickEncoding, size: int = ctr.SIZE
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(features, labels) of the plan's rows in the file's order, a chunk at a time."""
    for chunk in plan.chunks(size):
        first = 0
        for features in form.encode(chunk):
            yield features, chunk.labels[first : first + len(features)]
            first += len(features)


def load(plan: ClickPlan, form: ClickEncoding) -> Dataset:
    """The plan's rows in memory; raises UserError where they would take more than ``MAX_BYTES``."""
    kept, negatives = plan.selection.negatives
    expected = plan.selection.rows - (negatives - kept)  # below 1 where it is the file that says
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    taken = rows = 0
    for features, labels in stream(plan, form):
        parts.append((features, labels))
        taken, rows = taken + features.nbytes, rows + len(labels)
        # of the rows asked for, twice: chunks are held while they are joined
        if (whole := 2 * max(taken, taken * expected // rows)) > MAX_BYTES:
            raise UserError(
                f"{plan.path}: {max(rows, expected):,} rows {'asked for' if expected > 0 else 'read so far'}"
                f" take {whole:,} bytes, more than {MAX_BYTES:,}, in memory",
                remedy=(
                    "prepare them in a folder (`vfljax data --prepare`), or give ",
                    Field("data.options.rows"),
                ),
            )
    features, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    labels, about = classes(str(plan.path), labels, 2), _about(plan, form, rows, labels.sum())
    return Dataset(plan.layout.name, features, labels, 2, **about)


def prepare(
    make: Callable[[], tuple[ClickPlan, ClickEncoding]], out: str, options: Mapping[str, Any]
) -> Dataset:
    """A plan's rows in the new prepared folder ``out``, made with ``options``: in the memory of a few
    chunks of text and of the vocabularies, however many rows. The plan is made once ``out`` is known to be
    free: it may take a pass through the file."""
    with prepared.begin(out) as writer:
        plan, form = make()
        rows = clicks = 0
        for features, labels in stream(plan, form):
            writer.append(features, labels)
            rows, clicks = rows + len(labels), clicks + int(labels.sum())
        name, about = plan.layout.name, _about(plan, form, rows, clicks)
        return writer.finish(name, 2, **about, options=options, loader=name)


def _about(plan: ClickPlan, form: ClickEncoding, rows: int, clicks: int) -> dict[str, Any]:
    note = f"{plan.path.name}: {rows:,} rows read, {clicks / rows:.2%} clicks"
    return {"columns": form.columns, "classes": CLASSES, "notes": (note,)}
