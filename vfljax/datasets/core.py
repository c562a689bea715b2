"""The records that a loader returns. They hold plain NumPy arrays on the host.

``splits`` draws rows for each seed, ``partition`` divides features between parties, and ``scaling`` computes
statistics of the features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vfljax.datasets.npy import pieces
from vfljax.errors import Field, UserError

if TYPE_CHECKING:
    from vfljax.types import Input  # it imports JAX, which no data set needs


class Column(NamedTuple):
    """One column of a table's features: a number; one category of a source column, as 0 or 1; or a
    whole source column as a code 0..vocabulary-1. NaN is a missing number."""

    name: str  # of the source column; columns of one name go to one party
    kind: str = "number"  # or "category", "code"
    value: str = ""  # which category, if the kind is "category"
    vocabulary: int = 0  # the number of codes, if the kind is "code"


class SourceColumn(NamedTuple):
    """How one column of a user's table was read. Several features may come from one source column."""

    name: str
    read_as: str  # "number", "boolean", "date", "category", "label", "groups" or "left out"
    missing: int = 0  # rows without a value
    categories: int = (
        0  # categories that are kept, "(missing)" and "(other)" included; 0 of a number
    )
    pooled: int = 0  # rare categories that "(other)" stands for
    note: str = ""  # what a person should know about it, such as the first day of dates


class Block(NamedTuple):
    """Some rows of a data set, as a converter makes them."""

    features: Any  # [r, ...], or a ``Ragged``
    labels: np.ndarray  # [r]
    test: np.ndarray | None = None  # [r] bool, the published test part; of all blocks or of none
    groups: np.ndarray | None = None  # [r]; likewise


class Conversion(NamedTuple):
    """The rows of a published data set, block by block, as a converter of ``datasets.converters`` returns
    them."""

    name: str
    num_classes: int
    blocks: Iterable[Block]  # read once, in order; a generator may read the file meanwhile
    about: Mapping[str, Any] = MappingProxyType({})  # the fields of ``prepared.ABOUT``


class Vocabulary(NamedTuple):
    """What a network must know of token ids: their number, and the special ones."""

    size: int
    pad: int
    cls: int
    sep: int


class Ragged(NamedTuple):
    """R rows of different lengths, one after another: row r is values[offsets[r] : offsets[r + 1]]."""

    values: np.ndarray  # [total] int32
    offsets: np.ndarray  # [R + 1] int64, from 0 to total


class Recording(NamedTuple):
    """Describes a federation that was trained elsewhere (``vfljax.datasets.wire``). The data set's rows are
    the training rows of the first run, then those of the second, and so on."""

    known: np.ndarray  # [runs, K] known rows, counted within a run; K is 0 if they are drawn
    missing: tuple[str, ...]  # what was not recorded: ``Wire.missing``
    labeled: bool = True  # False: only the labels of the known rows are true
    trees: bool = False  # whether nodes of trees were recorded
    rows: np.ndarray | None = (
        None  # [R] int32, the same number for the same person; None: not recorded
    )


class Dataset(NamedTuple):
    """One set of rows before any split.

    ``features`` by ``kind``: "table" [R, F] numbers or codes, described by ``columns``; "image"
    [R, H, W] or [R, H, W, channels]; "patches" [R, G, H, W, channels], G images a row; "text" a
    ``Ragged`` of token ids without special tokens.
    """

    name: str
    features: Any
    labels: np.ndarray  # [R] int32 in 0..C-1, or float32 numbers
    num_classes: int  # C, or 1 if labels are numbers
    kind: str = "table"
    columns: tuple[Column, ...] = ()  # of a table, one for each feature; () if unnamed
    classes: tuple[str, ...] = ()  # names of the classes; () where unnamed
    test: np.ndarray | None = None  # [R] bool, the published test part; None where there is none
    groups: np.ndarray | None = None  # [R] int32: rows of a group (a patient) stay in one part
    tokens: Vocabulary | None = None  # of a text
    length: int = 128  # of a text: tokens each party reads, special ones included
    notes: tuple[str, ...] = ()  # what the loader found and did, for a person to read
    reader: int = 1  # version of the loader's rules; a new one reads the same files differently
    recording: Recording | None = None  # of a federation that was trained elsewhere
    sources: tuple[SourceColumn, ...] = ()  # of a user's table, one for each of its columns


class PartyColumns(NamedTuple):
    """One party's columns."""

    features: Any  # [R, ...] an array, or a ``npy.Part`` of one that is mapped from disk
    input: Input
    columns: tuple[Column, ...] = ()  # of a table
    about: str = ""  # what the columns are, for a person to read


def classes(name: str, labels: np.ndarray, num_classes: int | None = None) -> np.ndarray:
    """Checks labels.

    Args:
      name: what messages call the data set.
      labels: numbers [R].
      num_classes: C, or None if it is not known.

    Returns:
      The classes 0..C-1, [R] int32.

    Raises:
      UserError: for a label that is no such class, or if all labels are equal.
    """
    labels = np.asarray(labels)
    try:
        numbers = labels.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        why = " ".join(str(error).split())[:100]
        raise UserError(f"{name}: labels are not numbers ({why}): give 0, 1, 2, ....") from error
    most = np.iinfo(np.int32).max if num_classes is None else num_classes - 1
    wrong = ~np.isfinite(numbers) | (numbers != np.floor(numbers)) | (numbers < 0)
    wrong |= numbers > most
    if wrong.any():
        row = int(np.argmax(wrong))
        allowed = f"0, 1, 2, ... up to {most:,}" if num_classes is None else f"0..{most}"
        what = f"{name}: label {labels[row]} in row {row + 1} is not an integer class"
        raise UserError(what, remedy=f"labels must be {allowed}")
    out = numbers.astype(np.int32)
    if len(np.unique(out)) < 2:
        raise UserError(f"{name}: all labels are {out[0]}: at least two classes are needed.")
    return out


ROUNDED = 1e-3  # the most that float32 may move a label that is a number, in standard deviations
TOO_NEAR = "differ by too little for float32"
APART = "subtract their mean, or choose another unit"


def rounds_off(labels: np.ndarray) -> bool:
    """Returns whether float32 cannot tell labels [R] float64 apart well enough, as times since 1970 that differ
    by seconds."""
    moved, spread = np.abs(labels.astype(np.float32) - labels).max(), labels.std()
    return bool(moved > ROUNDED * spread or spread < np.finfo(np.float32).tiny)


def number_labels(name: str, labels: np.ndarray) -> np.ndarray:
    """Checks labels that are numbers, and returns them [R] float32.

    Args:
      name: what messages call the data set.
      labels: [R].

    Raises:
      UserError: for a label that is not finite in float32, or if all labels are equal or it rounds them off.
    """
    with np.errstate(over="ignore"):
        out = np.asarray(labels).astype(np.float32)
    if not np.isfinite(out).all():
        row = int(np.argmin(np.isfinite(out)))
        what = f"{name}: label {labels[row]} in row {row + 1} is no finite number of float32"
        raise UserError(what, remedy="correct it, or leave the row out")
    exact = np.asarray(labels, np.float64)
    if (exact == exact[0]).all():
        raise UserError(f"{name}: all labels are {out[0]:g}: at least two numbers are needed.")
    if rounds_off(exact):
        raise UserError(f"{name}: labels {TOO_NEAR}", remedy=APART)
    return out


def clipped(dataset: Dataset, label_range: Sequence[float]) -> Dataset:
    """Returns a data set of numbers with labels clipped to bounds that the user gives.

    Args:
      dataset: any, if there are no bounds.
      label_range: (low, high), or () for labels as they are.

    Raises:
      UserError: for bounds that are none, of classes, and outside of which all labels lie.
    """
    if not label_range:
        return dataset
    field, given = Field("data.label_range"), tuple(label_range)
    if len(given) != 2 or not np.isfinite(given).all() or not given[0] < given[1]:
        remedy = "give (low, high), the bounds of labels"
        raise UserError("is no range", field=field, value=given, remedy=remedy)
    if dataset.num_classes != 1:
        what = "is of numbers, and these labels are classes"
        raise UserError(what, field=field, value=given, remedy="leave it out")
    labels = np.clip(dataset.labels, np.float32(given[0]), np.float32(given[1]))
    if labels.min() == labels.max():
        remedy = "give bounds within which labels lie"
        raise UserError("makes all labels equal", field=field, value=given, remedy=remedy)
    # which labels are clipped, and the least and the largest, depends on labels, and notes go to reports
    bounds = f"clipped to {given[0]:g} to {given[1]:g}"
    of_label = [s for s in dataset.sources if s.read_as == "label"]
    private = {f"the label {s.name!r} is {s.note}" for s in of_label}
    sources = [
        s._replace(note=f"of numbers, {bounds}") if s in of_label else s for s in dataset.sources
    ]
    note_of_bounds = f"Labels are {bounds}, also those of validation and test rows."
    notes = (*(of for of in dataset.notes if of.removesuffix(".") not in private), note_of_bounds)
    return dataset._replace(labels=labels, notes=notes, sources=tuple(sources))


def checksum(dataset: Dataset) -> str:
    """Returns the SHA-256 of features and labels, types and shapes included; it is equal for equal data."""
    features = dataset.features if dataset.kind == "text" else (dataset.features,)
    return sum_of_arrays((*features, dataset.labels))


def sum_of_arrays(arrays: Iterable[np.ndarray]) -> str:
    """Returns the SHA-256 of arrays, types and shapes included."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype}{array.shape}".encode())
        for piece in pieces(array):
            digest.update(piece)
            del piece  # before the next piece is made
    return digest.hexdigest()


def identity(dataset: Dataset, values: str = "") -> str:
    """Returns the SHA-256 of everything in a data set that a split or a network reads.

    Args:
      dataset: all of it counts except its notes, its reader's version, and the names of the set and classes.
      values: its ``checksum``, if that is known already.
    """
    digest = hashlib.sha256((values or checksum(dataset)).encode())
    described = (dataset.kind, dataset.num_classes, dataset.columns, dataset.tokens, dataset.length)
    digest.update(repr([tuple(x) if isinstance(x, tuple) else x for x in described]).encode())
    for array in (dataset.test, dataset.groups):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    if dataset.recording is not None:
        known, *others, trees, rows = dataset.recording
        digest.update(repr((known.tolist(), *others, *["trees"] * trees)).encode())
        digest.update(b"" if rows is None else np.ascontiguousarray(rows).tobytes())
    return digest.hexdigest()


def spread(labels: np.ndarray, rows: int) -> np.ndarray:
    """Chooses rows evenly, so that the shares of classes do not depend on the order of a file.

    Args:
      labels: [R] int32.
      rows: number of rows to choose; 0 is all.

    Returns:
      The places of the rows, rising. Classes keep their shares (largest remainders; a tie goes to the larger
      class), and within each class the rows are evenly spread.
    """
    if rows == 0 or rows >= len(labels):
        return np.arange(len(labels))
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    quotas, rest = np.divmod(counts * rows, len(labels))
    quotas[np.lexsort((-counts, -rest))[: rows - quotas.sum()]] += 1
    kept = [
        np.flatnonzero(place == c)[np.arange(quota) * count // max(quota, 1)]
        for c, (quota, count) in enumerate(zip(quotas, counts))
    ]
    return np.sort(np.concatenate(kept))
