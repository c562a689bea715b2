"""What becomes of click-through rows: columns of numbers and codes, or one wide row of hashes.

What enters: chunks of a file (``ctr``), by a ``ClickPlan``. What leaves: features and labels chunk by chunk, a
whole ``Dataset``, or a prepared folder. Per distinct value and not per row, wherever it can.

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
Encode = Callable[[ctr.ClickChunk], Iterator[np.ndarray]]  # [r, F], in one or several pieces
Rewrite = Callable[[str], str]  # of a value, before it is counted and coded


class Coding(NamedTuple):
    """One column: what it is, the field it reads, and what its distinct values become."""

    column: Column
    field: str
    encoder: Callable[[list[str]], Any]


class ClickPlan(NamedTuple):
    """A file and which of its rows become what."""

    path: pathlib.Path
    layout: ctr.ClickLayout
    selection: ctr.RowSelection
    buckets: int
    encode: Encode  # a chunk's fields as features
    columns: tuple[Column, ...] = ()

    def chunks(self, size: int = ctr.SIZE) -> Iterator[ctr.ClickChunk]:
        """The rows, in chunks of so many bytes of text."""
        return ctr.read(self.path, self.layout, self.selection, size)


def loader(planned: Callable[P, ClickPlan]) -> Callable[P, Dataset]:
    """The loader that reads what ``planned`` plans, with its options."""

    @functools.wraps(planned)
    def call(*args: P.args, **options: P.kwargs) -> Dataset:
        return _load(planned(*args, **options))

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
    """Returns a plan without an encoding, by the options that Criteo and Avazu share.

    Args:
      layout: of the set's files.
      forms: each form's own number of buckets.
      folder: the file, or what holds it.
      file: its name, where the folder holds several.
      form: what the rows become.
      buckets: 0 for the form's own number.
      selection: which rows are read.

    Raises:
      UserError: for a number of buckets that the form cannot have, and where the file is not found.
    """
    if buckets and not forms[form]:
        remedy = f"form={form!r} has none; leave it out"
        raise UserError(field="data.options.buckets", value=buckets, remedy=remedy)
    buckets = buckets or forms[form]
    if forms[form] and buckets < 2:
        raise UserError(field="data.options.buckets", value=buckets, remedy="give at least 2")
    path = find(folder, layout.source, PATTERNS, file=file)
    return ClickPlan(path, layout, selection, buckets, encode=lambda chunk: iter(()))


def columned(plan: ClickPlan, codings: Sequence[Coding], dtype: Any) -> ClickPlan:
    """Returns the plan with a column for each coding.

    Args:
      plan: what is read.
      codings: of the columns, in order.
      dtype: of the features.

    Raises:
      UserError: for a column of more codes than networks can tell apart.
    """
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

    return plan._replace(encode=encode, columns=tuple(coding.column for coding in codings))


def crc(field: str, values: list[str]) -> np.ndarray:
    """CRC-32 of ``field=value``, [V] int64.

    >>> (crc("C1", ["68fd1e64", ""]) % 8192).tolist()
    [8011, 296]
    """
    start = zlib.crc32(f"{field}=".encode())  # the CRC of a prefix goes on with what follows
    return np.array([zlib.crc32(value.encode(), start) for value in values], np.int64)


def hashed(plan: ClickPlan, crosses: bool, counts: bool) -> ClickPlan:
    """Returns the plan with features [r, buckets] uint8: into which buckets the hashes of a row's fields fall.

    Args:
      plan: what is read.
      crosses: whether all pairwise XORs of a row's hashes are added.
      counts: whether features say how many hashes fall into a bucket, at most 255, and not only if any does.
    """
    fields, buckets = plan.layout.fields, plan.buckets

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

    return plan._replace(encode=encode)


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

    known = _vocabularies(plan, rewrites, least)
    return [coding(name, rewrite, known[name]) for name, rewrite in rewrites.items()]


def number(name: str, scale: str) -> Coding:
    """A field of integers as they are ("raw") or sign(x) log(1 + |x|) ("log"); 0 where missing."""

    def encoder(values: list[str]) -> np.ndarray:
        x = np.array([int(value or 0) for value in values], np.float64)
        return np.sign(x) * np.log1p(np.abs(x)) if scale == "log" else x

    return Coding(Column(name), name, encoder)


def _vocabularies(
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


def stream(plan: ClickPlan, size: int = ctr.SIZE) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields features and labels of the plan's rows in the file's order, a chunk at a time.

    Args:
      plan: what is read.
      size: bytes of text of a chunk.
    """
    for chunk in plan.chunks(size):
        first = 0
        for features in plan.encode(chunk):
            yield features, chunk.labels[first : first + len(features)]
            first += len(features)


def _load(plan: ClickPlan) -> Dataset:
    """The plan's rows in memory; raises UserError where they would take more than ``MAX_BYTES``."""
    kept, negatives = plan.selection.negatives
    expected = plan.selection.rows - (negatives - kept)  # below 1 where it is the file that says
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    taken = rows = 0
    for features, labels in stream(plan):
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
    labels, about = classes(str(plan.path), labels, 2), _about(plan, rows, labels.sum())
    return Dataset(plan.layout.name, features, labels, 2, **about)


def prepare(make: Callable[[], ClickPlan], out: str, options: Mapping[str, Any]) -> Dataset:
    """Writes a plan's rows to a new prepared folder, in the memory of a few chunks and of the vocabularies.

    Args:
      make: returns the plan; called once ``out`` is known to be free, for it may take a pass through the file.
      out: the folder.
      options: of the loader, which are recorded.
    """
    with prepared.begin(out) as writer:
        plan = make()
        rows = clicks = 0
        for features, labels in stream(plan):
            writer.append(features, labels)
            rows, clicks = rows + len(labels), clicks + int(labels.sum())
        name, about = plan.layout.name, _about(plan, rows, clicks)
        return writer.finish(name, 2, **about, options=options, loader=name)


def _about(plan: ClickPlan, rows: int, clicks: int) -> dict[str, Any]:
    note = f"{plan.path.name}: {rows:,} rows read, {clicks / rows:.2%} clicks"
    return {"columns": plan.columns, "classes": CLASSES, "notes": (note,)}
