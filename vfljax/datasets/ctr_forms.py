"""Encodes click-through rows as columns of numbers and codes, or as one wide row of hash buckets.

A ``ClickPlan`` holds a file, which rows of it are read and how each field is encoded, once per distinct value.
``stream`` yields features and labels chunk by chunk, from which a ``Dataset`` or a prepared folder is made.

The only hash is CRC-32 (zlib's, polynomial 0xEDB88320) of the UTF-8 bytes ``field=value``, modulo the number
of buckets. It is equal on every machine, unlike Python's own hash, which each process seeds anew.
"""

from __future__ import annotations

import functools
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from vfljax.datasets import ctr, prepared
from vfljax.datasets.core import Column, Dataset, classes
from vfljax.datasets.files import MAX_BYTES, find
from vfljax.errors import Field, UserError, options_in

CLASSES = ("no click", "click")
PATTERNS = ("train.txt", "train.csv", "train.gz", "*.txt.gz", "*.csv.gz")
OTHERS = ("*.txt", "*.csv")  # used if no file has such a name, as for Criteo's dac_sample.txt
EXACT = 1 << 24  # codes that float32, which networks read, holds exactly

P = ParamSpec("P")


class Coding(NamedTuple):
    """One column: its description, the field that it reads, and the encoder of that field's values."""

    column: Column
    field: str
    encoder: Callable[[list[str]], Any]


class ClickPlan(NamedTuple):
    """Which rows of a file are read, and how they are encoded."""

    path: pathlib.Path
    layout: ctr.ClickLayout
    selection: ctr.RowSelection
    codings: Sequence[Coding] = ()
    dtype: Any = np.float32  # of the encoded values
    # makes features [r, F] of the encoded values of up to ``rows_at_once`` rows; None: these are the features
    finish: Callable[[np.ndarray], np.ndarray] | None = None
    rows_at_once: int = 0


def loader(planned: Callable[P, ClickPlan]) -> Callable[P, Dataset]:
    """Returns the loader that reads what ``planned`` plans, and that takes the same options."""

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
) -> tuple[ClickPlan, int]:
    """Returns a plan without an encoding, and the number of buckets, by the options that all sets share.

    Args:
      layout: the fields of the set's files.
      forms: each form's default number of buckets, 0 if it has none.
      folder: the file, or the folder that holds it.
      file: the file's name, if the folder holds several.
      form: a key of ``forms``.
      buckets: the number of buckets; 0 is the form's default.
      selection: which rows are read.

    Raises:
      UserError: for a number of buckets that the form cannot have, and if the file is not found.
    """
    if buckets and not forms[form]:
        remedy = f"form={form!r} has none; leave it out"
        raise UserError(field="data.options.buckets", value=buckets, remedy=remedy)
    if buckets == 1:
        raise UserError(field="data.options.buckets", value=buckets, remedy="give at least 2")
    path = find(folder, layout.source, PATTERNS, OTHERS, file=file)
    return ClickPlan(path, layout, selection), buckets or forms[form]


def crc(field: str, values: list[str]) -> np.ndarray:
    """Returns the CRC-32 of ``field=value`` for each value, [V] int64.

    Args:
      field: the field's name.
      values: texts.

    >>> (crc("C1", ["68fd1e64", ""]) % 8192).tolist()
    [8011, 296]
    """
    start = zlib.crc32(f"{field}=".encode())  # the CRC of a prefix can be continued
    return np.array([zlib.crc32(value.encode(), start) for value in values], np.int64)


def coded(plan: ClickPlan, names: Sequence[str], buckets: int) -> list[Coding]:
    """Returns the codings of fields by the hashes of their values or, without buckets, as ``numbered`` does.

    Args:
      plan: the rows read.
      names: of the fields.
      buckets: codes are 1..buckets - 1, and 0 for a missing value; 0 for no hashes.
    """
    if not buckets:
        return numbered(plan, dict.fromkeys(names, str))

    def encode(name: str, values: list[str]) -> np.ndarray:
        return np.where(np.array(values, bool), 1 + crc(name, values) % (buckets - 1), 0)

    columns = [Column(name, "code", "", buckets) for name in names]
    return [Coding(c, c.name, functools.partial(encode, c.name)) for c in columns]


def numbered(
    plan: ClickPlan, rewrites: Mapping[str, Callable[[str], str]], least: int = 0
) -> list[Coding]:
    """Returns codings by a value's place among its field's sorted values, after a pass through the file.

    Args:
      plan: the rows read.
      rewrites: for each field, the function that its values pass before they are counted and coded.
      least: if > 0, values that fewer rows have share one more code, the last.

    Raises:
      UserError: for a field with more than ``EXACT`` codes, which networks cannot tell apart.
    """

    def encode(known: np.ndarray, rewrite: Callable[[str], str], values: list[str]) -> np.ndarray:
        texts = _bytes(map(rewrite, values))
        places = np.searchsorted(known, texts)
        met = np.append(known, b"")[places] == texts  # b"" stands past the end
        return np.where(met & (places < len(known)), places, len(known))

    codings = []
    for name, known in _vocabularies(plan, rewrites, least).items():
        codes = len(known) + (least > 0)
        if codes > EXACT:
            what = f"column {name} has {codes:,} codes and networks can tell {EXACT:,} apart"
            remedy = options_in("choose {form}='codes' with fewer {buckets}")
            raise UserError(what, remedy=remedy)
        encoder = functools.partial(encode, known, rewrites[name])
        codings.append(Coding(Column(name, "code", "", codes), name, encoder))
    return codings


def _vocabularies(
    plan: ClickPlan, rewrites: Mapping[str, Callable[[str], str]], least: int
) -> dict[str, np.ndarray]:
    """Returns each field's distinct (rewritten) values that at least ``least`` rows have, as sorted bytes.
    Memory holds a few times the distinct values and a chunk: new values are merged once they outnumber
    the known ones."""
    parts = {name: [(np.array([], "S1"), np.array([], np.int64))] for name in rewrites}
    for chunk in ctr.read(plan.path, plan.layout, plan.selection):
        for name, rewrite in rewrites.items():
            field, counted = chunk.fields[name], parts[name]
            rows = np.bincount(field.indices.to_numpy(), minlength=len(field.dictionary))
            counted.append((_bytes(map(rewrite, field.dictionary.to_pylist())), rows))
            if sum(len(values) for values, _ in counted[1:]) > max(1 << 12, len(counted[0][0])):
                counted[:] = [_merged(counted)]
    merged = {name: _merged(counted) for name, counted in parts.items()}
    return {name: values[counts >= least] for name, (values, counts) in merged.items()}


def _merged(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sorted distinct values of all parts, and their counts."""
    values, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, np.bincount(places, counts, len(distinct)).astype(np.int64)


def _bytes(values: Iterable[str]) -> np.ndarray:
    return np.array([value.encode() for value in values], "S")  # UTF-8 sorts as its characters do


def stream(plan: ClickPlan, size: int = ctr.SIZE) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields features and labels of the plan's rows in the file's order, a chunk at a time.

    Args:
      plan: the rows and their encoding.
      size: bytes of text of a chunk.
    """
    for fields, labels, _ in ctr.read(plan.path, plan.layout, plan.selection, size):
        codes = np.empty((len(labels), len(plan.codings)), plan.dtype)
        for j, (_, name, encoder) in enumerate(plan.codings):
            distinct = np.asarray(encoder(fields[name].dictionary.to_pylist()), plan.dtype)
            codes[:, j] = distinct[fields[name].indices.to_numpy()]
        if plan.finish is None:
            yield codes, labels
            continue
        for first in range(0, len(codes), plan.rows_at_once):
            rows = slice(first, first + plan.rows_at_once)
            yield plan.finish(codes[rows]), labels[rows]


def _load(plan: ClickPlan) -> Dataset:
    """Reads the plan's rows into memory; raises UserError if they would take more than ``MAX_BYTES``."""
    kept, negatives = plan.selection.negatives
    expected = plan.selection.rows - (negatives - kept)  # below 1 if all rows are read
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    taken = rows = 0
    for features, labels in stream(plan):
        parts.append((features, labels))
        taken, rows = taken + features.nbytes, rows + len(labels)
        # twice the bytes of all rows: the chunks are still held while they are joined
        if (whole := 2 * max(taken, taken * expected // rows)) > MAX_BYTES:
            which = "asked for" if expected > 0 else "read so far"
            remedy = "prepare them in a folder (`vfljax data --prepare`), or give "
            raise UserError(
                f"{plan.path}: {max(rows, expected):,} rows {which} take {whole:,} bytes, more than "
                f"{MAX_BYTES:,}, in memory",
                remedy=(remedy, Field("data.options.rows")),
            )
    features, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    labels = classes(str(plan.path), labels, 2)
    return Dataset(plan.layout.name, features, labels, 2, **_about(plan, rows, labels.sum()))


def prepare(make: Callable[[], ClickPlan], out: str, options: Mapping[str, Any]) -> Dataset:
    """Writes a plan's rows to a new prepared folder; memory holds only a few chunks and the vocabularies.

    Args:
      make: returns the plan. It may take a pass through the file, so ``out`` is checked before it is called.
      out: the folder.
      options: the loader's options, which are recorded.
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
    columns = () if plan.finish else tuple(coding.column for coding in plan.codings)
    return {"columns": columns, "classes": CLASSES, "notes": (note,)}
