"""What becomes of click-through rows: columns of numbers and codes, or one wide row of hashes.

What enters: blocks of a file (``ctr``) and a ``Form``. What leaves: features and labels block by
block, a whole ``Dataset``, or a prepared folder. Per distinct value and not per row, wherever it can.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import ctr, hashing, prepared
from vfljax.datasets.columns import Column
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.given import MAX_BYTES
from vfljax.errors import UserError, unknown

CLASSES = ("no click", "click")
WIDE = 512  # rows of hashes at a time, and their buckets together
COUNTED = 1 << 22
EXACT = 1 << 24  # codes that float32, which networks read, holds exactly

Encoder = Callable[[list[str]], np.ndarray]  # distinct values -> a number each
Rewrite = Callable[[str], str]  # of a value, before it is counted and coded
Features = Iterator[tuple[np.ndarray, np.ndarray]]


class Form(NamedTuple):
    """How a block's fields become features."""

    encode: Callable[[ctr.Block], Iterator[np.ndarray]]  # [r, F], in one or several pieces
    columns: tuple[Column, ...] = ()


class Plan(NamedTuple):
    """A file and everything its loader's options say about it."""

    path: pathlib.Path
    layout: ctr.Layout
    wanted: ctr.Rows
    form: Form
    options: Mapping[str, Any]


def columned(encoders: Sequence[tuple[Column, str, Encoder]], dtype: Any) -> Form:
    """One column an entry: what it is, the field it reads, and what its values become."""
    for column, _, _ in encoders:
        if column.vocabulary > EXACT:
            raise UserError(
                f"column {column.name} has {column.vocabulary:,} codes and networks can tell {EXACT:,} "
                "apart: choose form='codes' with fewer buckets."
            )

    def encode(block: ctr.Block) -> Iterator[np.ndarray]:
        out = np.empty((len(block.labels), len(encoders)), dtype)
        for j, (_, name, encoder) in enumerate(encoders):
            field = block.fields[name]
            out[:, j] = np.asarray(encoder(field.values), dtype)[field.places]
        yield out

    return Form(encode, tuple(column for column, _, _ in encoders))


def hashed(fields: Sequence[str], buckets: int, crosses: bool, counts: bool) -> Form:
    """[r, buckets] uint8: which buckets the hashes of a row's fields fall into (``counts``: how many
    of them), with ``crosses`` those of all pairwise XORs of its hashes too."""

    def encode(block: ctr.Block) -> Iterator[np.ndarray]:
        found = [
            hashing.buckets(name, block.fields[name].values, buckets)[block.fields[name].places]
            for name in fields
        ]
        hashes = np.stack(found, axis=1)
        step = max(1, min(WIDE, COUNTED // buckets))
        for first in range(0, len(hashes), step):
            row = hashes[first : first + step]
            row = np.concatenate([row, hashing.crosses(row)], axis=1) if crosses else row
            out = hashing.occurrences(row, buckets)
            yield out if counts else np.minimum(out, 1)

    return Form(encode)


def bucketed(name: str, buckets: int) -> tuple[Column, str, Encoder]:
    """A field as codes 1..buckets - 1 by hash, 0 where missing."""
    column = Column(name, "code", "", buckets)
    return column, name, lambda values: hashing.codes(name, values, buckets)


def numbered(
    name: str, vocabulary: np.ndarray, rewrite: Rewrite = str, rest: bool = False
) -> tuple[Column, str, Encoder]:
    """A field as its (rewritten) values' places among the sorted ``vocabulary``; with ``rest`` those
    that are not in it share the code after the last."""

    def encoder(values: list[str]) -> np.ndarray:
        texts = _bytes(values, rewrite)
        places = np.searchsorted(vocabulary, texts)
        if not rest:
            return places
        met = np.append(vocabulary, b"")[places] == texts  # past the end there is no value
        return np.where(met & (places < len(vocabulary)), places, len(vocabulary))

    return Column(name, "code", "", len(vocabulary) + rest), name, encoder


def number(name: str, scale: str) -> tuple[Column, str, Encoder]:
    """A field of integers as they are ("raw") or sign(x) log(1 + |x|) ("log"); 0 where missing."""

    def encoder(values: list[str]) -> np.ndarray:
        x = np.array([int(value or 0) for value in values], np.float64)
        return np.sign(x) * np.log1p(np.abs(x)) if scale == "log" else x

    return Column(name), name, encoder


def vocabularies(
    blocks: Iterable[ctr.Block], rewrites: Mapping[str, Rewrite], least: int = 1
) -> dict[str, np.ndarray]:
    """Each field's distinct (rewritten) values that ``least`` rows or more have, as sorted bytes.
    What is held is a few times the distinct values and a block: new ones are merged when they
    outnumber the known ones."""
    known = {name: (np.array([], "S1"), np.array([], np.int64)) for name in rewrites}
    new: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in rewrites}
    for block in blocks:
        for name, rewrite in rewrites.items():
            field = block.fields[name]
            new[name].append((_bytes(field.values, rewrite), np.bincount(field.places)))
            if sum(len(values) for values, _ in new[name]) > max(1 << 12, len(known[name][0])):
                known[name] = _merged([known[name], *new[name]])
                new[name].clear()
    merged = {name: _merged([known[name], *new[name]]) for name in rewrites}
    return {name: values[counts >= least] for name, (values, counts) in merged.items()}


def _merged(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, sorted, and how often they occur in all parts."""
    values, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, np.bincount(places, counts, len(distinct)).astype(np.int64)


def _bytes(values: list[str], rewrite: Rewrite) -> np.ndarray:
    texts = values if rewrite is str else map(rewrite, values)
    return np.array([text.encode() for text in texts], "S")  # UTF-8 sorts as its characters do


def stream(plan: Plan, size: int = ctr.SIZE) -> Features:
    """(features, labels) of the plan's rows in the file's order, a block at a time."""
    for block in ctr.read(plan.path, plan.layout, plan.wanted, size):
        first = 0
        for features in plan.form.encode(block):
            yield features, block.labels[first : first + len(features)]
            first += len(features)


def load(plan: Plan) -> Dataset:
    """The plan's rows in memory; raises UserError where they would take more than ``MAX_BYTES``."""
    features, labels = zip(*_bounded(plan), strict=True)
    whole = classes(str(plan.path), np.concatenate(labels), 2)
    return Dataset(
        plan.layout.name,
        np.concatenate(features),
        whole,
        2,
        columns=plan.form.columns,
        classes=CLASSES,
        notes=_notes(plan, len(whole), int(whole.sum())),
    )


def _bounded(plan: Plan) -> Features:
    taken = rows = 0
    for features, labels in stream(plan):
        taken, rows = taken + features.nbytes, rows + len(labels)
        # of the rows asked for, twice: blocks are held while they are joined
        whole = 2 * max(taken, taken * plan.wanted.expected // rows)
        if whole > MAX_BYTES:
            held = "rows asked for" if plan.wanted.rows else "rows read so far"
            raise UserError(
                f"{plan.path}: {max(rows, plan.wanted.expected):,} {held} take {whole:,} bytes, more than "
                f"{MAX_BYTES:,}, in memory: prepare them in a folder (launch.data --prepare), or give "
                "config.data.options.rows."
            )
        yield features, labels


def prepare(make: Callable[[], Plan], out: str) -> Dataset:
    """A plan's rows in the new prepared folder ``out``; memory of a block, however many rows. The
    plan is made once ``out`` is known to be free: it may take a pass through the file."""
    with prepared.begin(out) as writer:
        plan = make()
        rows = clicks = 0
        for features, labels in stream(plan):
            writer.append(features, labels)
            rows, clicks = rows + len(labels), clicks + int(labels.sum())
        return writer.finish(
            plan.layout.name,
            2,
            columns=plan.form.columns,
            classes=CLASSES,
            notes=_notes(plan, rows, clicks),
            options=plan.options,
            loader=plan.layout.name,
        )


def _notes(plan: Plan, rows: int, clicks: int) -> tuple[str, ...]:
    return (f"{plan.path.name}: {rows:,} rows read, {clicks / rows:.2%} clicks",)


def count(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """An option that is a count; raises UserError for anything else."""
    if type(value) is not int or value < least or (most is not None and value > most):
        end = "" if most is None else f" to {most}"
        raise UserError(f"config.data.options.{name}={value!r}: give an integer from {least}{end}.")
    return value


def file(value: Any) -> str:
    """The option ``file``, a name."""
    if not isinstance(value, str):
        raise UserError(f"config.data.options.file={value!r}: give the name of a file.")
    return value


def share(name: str, value: Any) -> float:
    """An option that is a share of rows below 1, 0 for none; raises UserError for anything else."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < 1:
        raise UserError(
            f"config.data.options.{name}={value!r}: give a share above 0 and below 1, or 0 for none."
        )
    return float(value)


def flag(name: str, value: Any) -> bool:
    """An option that is True or False."""
    if type(value) is not bool:
        raise UserError(f"config.data.options.{name}={value!r}: give True or False.")
    return value


def choice(name: str, value: Any, known: Sequence[str]) -> str:
    """An option that is one of a few words."""
    if value not in known:
        raise unknown(f"config.data.options.{name}", str(value), known)
    return value
