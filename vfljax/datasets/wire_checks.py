"""The record of a wire (``vfljax.datasets.wire``), and the checks of the arrays that it is made of."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes  # which JAX brings
import numpy as np

from vfljax.datasets.npz import labels_of
from vfljax.datasets.table_errors import fault, quoted
from vfljax.datasets.wire_messages import Count, Entries, by_epoch
from vfljax.datasets.wire_trees import by_round, one_hot, renumbered
from vfljax.errors import Text, argument

GRID, MESSAGES = 1, 2
"""The versions of the format: arrays by epoch and row, and arrays by message."""
EXCHANGED = ("embeddings", "gradients")
OF_MESSAGES = ("steps", "rows", "epochs", "answered")
"""The arrays of a party that say which message each of its entries is of."""
PARTS = {
    GRID: (*EXCHANGED, "columns", "nodes"),
    MESSAGES: (*EXCHANGED, *OF_MESSAGES, "columns", "nodes"),
}
"""The arrays of each party, by version."""
LEAST, LARGEST = 1e-12, 1e12  # bounds of an epoch's largest number: float32 holds its square
FEWEST = 10  # rows of a wire
AGAIN = "record the wire again"


class Form(NamedTuple):
    """What an array of a wire holds."""

    # epochs E, rows N, entries M, width D, columns F, known rows K, trees T, levels L, orders O; E may be left
    # out where it is 1
    axes: str
    low: float  # the least whole number
    most: str  # the largest whole number, or the axis that bounds it; "": any numbers


FORMS = {
    "embeddings": Form("END", 0, ""),
    "gradients": Form("END", 0, ""),
    "columns": Form("NF", 0, ""),
    "nodes": Form("TLN", -1, "2147483647"),
    "order": Form("EN", 0, "N"),
    "batch": Form("EN", 0, "N"),
    "sent": Form("EN", 0, "1"),
    "epochs": Form("E", 0, "99999"),
    "batch_size": Form("", 1, "N"),
    "labels": Form("N", 0, "N"),
    "known_rows": Form("K", 0, "N"),
    "known_labels": Form("K", 0, "N"),
    "rows": Form("N", 0, "2147483647"),
    "version": Form("", 1, "999"),
}
LABELS = ("labels", "known_rows", "known_labels", "version")
SHARED = {
    GRID: ("order", "batch", "sent", "epochs", "batch_size", "rows", *LABELS),
    MESSAGES: ("parties", "row_ids", "batch_size", *LABELS),
}
"""The arrays of all parties together, by version."""
BY_ENTRY = {
    "steps": Form("M", 0, "2147483647"),
    "rows": Form("M", 0, "2147483647"),
    "epochs": Form("M", 0, "99999"),
    "answered": Form("M", 0, "1"),
    "embeddings": Form("MD", 0, ""),
    "gradients": Form("MD", 0, ""),
}
"""The forms of a party's arrays in version 2, of M entries."""
OF_TREES = Form("TNO", 0, "")
"""The form of the gradients of a federation of trees, of first and perhaps second order."""
OF_NETWORKS = ("order", "batch", "sent", "epochs", "batch_size")
"""The shared arrays that a federation of trees has not: a tree is grown on all rows."""


class WireParty(NamedTuple):
    """One passive party's part of a wire. In a federation of trees the embeddings are the paths of rows
    (``wire_trees.one_hot``), [1, N, W], and the gradients are those of R rounds, [R, N, C]."""

    embeddings: np.ndarray | None  # [E, N, D]
    gradients: np.ndarray | None  # [E, N, D]
    columns: np.ndarray | None  # [N, F]
    nodes: np.ndarray | None = (
        None  # [T, L, N] int32 of trees, numbered by ``wire_trees.renumbered``
    )
    sent: np.ndarray | None = None  # [E, N] bool; None: what was sent is ``Wire.sent``


class Wire(NamedTuple):
    """A checked wire. ``order`` is None if it is not known which rows shared a batch, and if batches have
    different sizes, as those of Poisson sampling do. ``batch_size`` is then the mean size of a batch."""

    name: str
    parties: tuple[WireParty, ...]
    order: np.ndarray | None  # [E, N] int32
    sent: np.ndarray  # [E, N] bool
    epochs: np.ndarray  # [E] int32, rising
    batch_size: int
    labels: np.ndarray | None  # [N] int32
    known_rows: np.ndarray  # [K] int32
    known_labels: np.ndarray  # [K] int32
    equal_batches: bool = True  # all but one an epoch
    rows: np.ndarray | None = None  # [N] numbers or texts, the same for the same person in all runs
    names: tuple[str, ...] = ()  # of the parties; () if they have none
    counts: tuple[
        Count, ...
    ] = ()  # of each party's messages; () if they were not recorded one by one
    packed: bool = False  # whether epochs are ``wire_messages.by_epoch``'s own
    silent: int = 0  # epochs without any gradient, or any row, which are left out

    @property
    def shape(self) -> tuple[int, int, int]:
        """E, N and D; 1, N and C in a federation of trees."""
        embeddings, gradients, _, nodes, _ = self.parties[0]
        if nodes is not None:
            return 1, nodes.shape[2], self.classes
        either = gradients if embeddings is None else embeddings
        assert either is not None
        return either.shape

    @property
    def trees(self) -> tuple[int, int] | None:
        """T and L of a federation of trees; None for networks."""
        nodes = self.parties[0].nodes
        return None if nodes is None else (nodes.shape[0], nodes.shape[1])

    @property
    def missing(self) -> tuple[str, ...]:
        """What was not recorded: fields of ``types.View``, and "columns" if those of a party are missing."""
        recorded = self.parties[0]._asdict() | {"order": self.order}
        unknown = ["columns"] * any(party.columns is None for party in self.parties)
        return (*(n for n in (*EXCHANGED, "order") if recorded[n] is None), "bottoms", *unknown)

    @property
    def classes(self) -> int:
        """The number of classes of the labels that were given, at least 2."""
        given = self.known_labels if self.labels is None else self.labels
        return int(given.max(initial=1)) + 1


class _Arrays(NamedTuple):
    """The arrays of a possible wire, and their checks."""

    place: pathlib.Path
    by_name: Mapping[str, np.ndarray]
    sizes: dict[str, int]  # of the axes of the arrays seen so far

    def must(self, right: Any, name: str, what: str, remedy: Text = AGAIN) -> None:
        """Raises a ``fault`` of the array ``name``, or of the whole wire (""), unless ``right``."""
        if not right:
            raise fault(f"{self.place}: {name}" if name else self.place, what, remedy)

    def get(self, name: str, form: str | Form = "") -> Any:
        """Returns an array with all axes, once it passes its form's checks; None if it is not there.

        Args:
          name: of the array.
          form: its form, or the name of one in ``FORMS``; by default that of its name.
        """
        axes, low, most = FORMS[form or name] if isinstance(form, str) else form
        if name not in self.by_name:
            return None
        array = self.by_name[name]
        if array.dtype.kind == "V" and array.dtype.itemsize == 2 and not array.dtype.names:
            # numpy.save drops the name of bfloat16, the only such type of JAX
            array = array.view(ml_dtypes.bfloat16).astype(np.float32)
        self.must(array.dtype.kind in "biuf", name, f"holds {array.dtype}", "give numbers")
        present = axes[1:] if axes[:1] == "E" and array.ndim == len(axes) - 1 else axes
        be = ", ".join(f"{a}={self.sizes[a]}" if a in self.sizes else a for a in axes)
        fits = array.ndim == len(present) or (not axes and array.size == 1)
        fits &= present == axes or self.sizes.setdefault("E", 1) == 1
        fits = fits and all(self.sizes.setdefault(a, n) == n for a, n in zip(present, array.shape))
        remedy = f"it must be [{be}], of at least one number"
        self.must(fits and array.size, name, f"is of shape {list(array.shape)}", remedy)
        array = array.reshape([self.sizes[axis] for axis in axes])
        if not most:
            return array
        high = int(most) if most.isdecimal() else self.sizes[most] - (low == 0)
        with np.errstate(invalid="ignore"):
            right = (array == np.floor(array)) & (array >= low) & (array <= high)
        for at in np.argwhere(~right)[:1].tolist():
            remedy = f"give whole numbers from {low:g} to {high}"
            if name in ("labels", "known_labels"):
                remedy = (
                    f"{remedy}, or ",
                    argument("bins"),
                    "=2, or more, for labels that are numbers",
                )
            self.must(False, name, f"holds {array[tuple(at)]}{f' at {at}' * bool(at)}", remedy)
        return array.astype(np.int32)


def checked_wire(place: pathlib.Path, arrays: Mapping[str, Any]) -> Wire:
    """Returns the wire of these arrays.

    Args:
      place: the file or folder, for messages.
      arrays: the arrays by their names.

    Raises:
      UserError: with one line, for anything that is no wire.
    """
    raw = _Arrays(place, {name: np.asanyarray(array) for name, array in arrays.items()}, {})
    version = _version(raw)
    parts, shared = PARTS[version], SHARED[version]
    of_party = re.compile(rf"party(\d|[1-9]\d)_({'|'.join(parts)})")
    matches = {name: of_party.fullmatch(name) for name in arrays}
    for name, match in matches.items():
        known = ", ".join((*(f"party0_{part}" for part in parts), *shared))
        remedy = f"rename it, or leave it out; in version {version} there are {known}"
        raw.must(match or name in shared, "", f"has an unknown array {quoted(name)}", remedy)
    numbers = sorted({int(match[1]) for match in matches.values() if match})
    remedy = "record one of them, or party0_nodes of a federation of trees"
    present = any(f"_{part}" in name for part in (*EXCHANGED, "nodes") for name in arrays)
    raw.must(present, "", "has neither embeddings nor gradients", remedy)
    rising = numbers == list(range(len(numbers)))
    raw.must(rising, "", f"has parties {numbers}", "number them from 0: party0_embeddings")
    for part in (*EXCHANGED, "nodes"):
        has = sum(f"party{p}_{part}" in arrays for p in numbers)
        what = f"has {part} of {has} of {len(numbers)} parties"
        raw.must(has in (0, len(numbers)), "", what, "of every party, or of none")
    if "party0_nodes" in arrays:
        return _of_trees(raw, len(numbers))
    read = _of_messages if version == MESSAGES else _of_grid
    return _answered(raw, read(raw, len(numbers)))


def _version(raw: _Arrays) -> int:
    """Returns the version of a wire; one that does not say it has that of its arrays."""
    version = raw.get("version")
    if version is None:
        return MESSAGES if any(name.endswith("_steps") for name in raw.by_name) else GRID
    reads = f"this vfljax reads the versions {GRID} and {MESSAGES} of the format"
    raw.must(int(version) in PARTS, "version", f"is {version}", reads)
    return int(version)


def _of_grid(raw: _Arrays, count: int) -> Wire:
    """Returns the wire of arrays by epoch and row, of so many passive parties."""
    exchanged = [[raw.get(f"party{p}_{part}", part) for part in EXCHANGED] for p in range(count)]
    columns = [_columns(raw, p) for p in range(count)]
    epochs, rows = raw.sizes["E"], raw.sizes["N"]
    raw.must(rows >= FEWEST, "", f"has {rows} rows", f"give at least {FEWEST}")
    sent = raw.get("sent")
    sent = np.ones((epochs, rows), bool) if sent is None else sent.astype(bool)
    raw.must(sent.any(), "sent", "has no row that was sent")
    parties = [
        WireParty(
            embeddings=_real(raw, f"party{p}_embeddings", z, sent),
            gradients=_real(raw, f"party{p}_gradients", g, sent),
            columns=columns[p],
        )
        for p, (z, g) in enumerate(exchanged)
    ]
    numbered = raw.get("epochs")
    numbered = np.arange(epochs, dtype=np.int32) if numbered is None else numbered
    raw.must((np.diff(numbered) > 0).all(), "epochs", "do not rise", "give them in order")
    order, size, equal = _order(raw, sent)
    found = (
        raw.place.stem,
        tuple(parties),
        order,
        sent,
        numbered,
        size,
        *_labels(raw),
        equal,
        _rows(raw),
    )
    return Wire(*found)


def _answered(raw: _Arrays, wire: Wire) -> Wire:
    """Returns a wire without the epochs in which no row was sent, and without those of which all gradients are
    0: their messages were never answered."""
    kept: np.ndarray = np.any(wire.sent, axis=1)
    if wire.parties[0].gradients is not None:
        received = [g for g in (party.gradients for party in wire.parties) if g is not None]
        answered = [any(np.any(g[e]) for g in received) for e in range(len(wire.epochs))]
        kept = kept & np.array(answered)
        raw.must(kept.any(), "party0_gradients", "holds nothing but 0", "leave gradients out")
    if kept.all():
        return wire

    def among(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else array[kept]

    parties = tuple(
        party._replace(
            embeddings=among(party.embeddings),
            gradients=among(party.gradients),
            sent=among(party.sent),
        )
        for party in wire.parties
    )
    return wire._replace(
        parties=parties,
        order=among(wire.order),
        sent=wire.sent[kept],
        epochs=wire.epochs[kept],
        silent=int((~kept).sum()),
    )


def _of_messages(raw: _Arrays, count: int) -> Wire:
    """Returns the wire of arrays by message, of so many passive parties."""
    entries, columns = [], {}
    for p in range(count):
        for axis in "MDF":  # parties differ in them
            raw.sizes.pop(axis, None)
        of = {part: raw.get(f"party{p}_{part}", form) for part, form in BY_ENTRY.items()}
        for part in ("steps", "rows"):
            raw.must(of[part] is not None, "", f"has no party{p}_{part}", "version 2 needs it")
        for part in EXCHANGED:
            finite = of[part] is None or np.isfinite(np.asarray(of[part], np.float32)).all()
            raw.must(finite, f"party{p}_{part}", "holds NaN or infinity", "leave such entries out")
        answered = None if of["answered"] is None else of["answered"].astype(bool)
        steps, rows, epochs, _, z, g = of.values()
        entries.append(Entries(steps, rows, epochs, z, g, answered))
        if f"party{p}_columns" in raw.by_name:
            columns[f"party{p}_columns"] = raw.by_name[f"party{p}_columns"]
    most = max(int(of.rows.max()) for of in entries)
    of_rows = [raw.by_name[name] for name in ("labels", "row_ids") if name in raw.by_name]
    rows = next((len(a) for a in (*of_rows, *columns.values()) if a.ndim), most + 1)
    raw.sizes["N"] = rows
    raw.must(most < rows, "", f"has a message of row {most} and {rows} rows", "count them from 0")
    grids, epochs, counts, packed = by_epoch(entries, rows)
    sent = [grid.sent for grid in grids]
    kept = (*LABELS[:-1], "batch_size")
    arrays = {name: raw.by_name[name] for name in kept if name in raw.by_name} | columns
    arrays |= {"epochs": epochs, "sent": np.any(sent, axis=0)}
    together = all(np.array_equal(of, sent[0]) for of in sent)
    batch = [grid.batch for grid in grids if grid.batch is not None]
    if together and batch and all(np.array_equal(of, batch[0]) for of in batch):
        arrays["batch"] = batch[0]
    widest = max(a.shape[2] for grid in grids for a in grid[:2] if a is not None)
    for p, grid in enumerate(grids):
        for name, values in zip(EXCHANGED, grid[:2], strict=True):
            if values is not None:  # columns of zeros tell an attack nothing
                padding = (0, 0), (0, 0), (0, widest - values.shape[2])
                arrays[f"party{p}_{name}"] = np.pad(values, padding)
    wire = _of_grid(_Arrays(raw.place, arrays, {"N": rows}), count)
    if not together:
        parties = zip(wire.parties, sent, strict=True)
        wire = wire._replace(parties=tuple(party._replace(sent=of) for party, of in parties))
    names = _names(raw, count)
    return wire._replace(rows=_rows(raw), names=names, counts=tuple(counts), packed=packed)


def _names(raw: _Arrays, count: int) -> tuple[str, ...]:
    """Returns the names of the parties; () if they have none."""
    names = tuple(map(str, raw.by_name.get("parties", ())))
    right = len(names) in (0, count) and len(set(names)) == len(names)
    raw.must(right, "parties", f"are {list(names)}", "give each party a name of its own")
    return names


def _of_trees(raw: _Arrays, count: int) -> Wire:
    """Returns the wire of a federation of trees with so many passive parties."""
    for name in ("party0_embeddings", *(f"party0_{of}" for of in OF_MESSAGES), *OF_NETWORKS):
        raw.must(name not in raw.by_name, name, "is beside nodes of trees", "leave it out")
    nodes = [renumbered(raw.get(f"party{p}_nodes", "nodes")) for p in range(count)]
    rows = raw.sizes["N"]
    raw.must(rows >= FEWEST, "", f"has {rows} rows", f"give at least {FEWEST}")
    gradients = [raw.get(f"party{p}_gradients", OF_TREES) for p in range(count)]
    columns = [_columns(raw, p) for p in range(count)]
    labels = _labels(raw)
    given = labels[2] if labels[0] is None else labels[0]
    classes, trees = int(given.max(initial=1)) + 1, raw.sizes["T"]
    for p, g in enumerate(gradients):
        if g is not None:
            name = f"party{p}_gradients"
            raw.must(
                np.isfinite(g).all(), name, "holds NaN or infinity", "give 0 where none was sent"
            )
            what, remedy = (
                f"has {trees} trees for {classes} classes",
                "give a tree a class and round",
            )
            raw.must(classes == 2 or trees % classes == 0, name, what, remedy)
    parties = tuple(
        WireParty(one_hot(told)[None], None if g is None else by_round(g, classes), x, told)
        for told, g, x in zip(nodes, gradients, columns, strict=True)
    )
    sent, first = np.ones((1, rows), bool), np.zeros(1, np.int32)
    size = min(32, rows)
    found = Wire(raw.place.stem, parties, None, sent, first, size, *labels, True, _rows(raw))
    return found._replace(names=_names(raw, count))


def _real(raw: _Arrays, name: str, array: np.ndarray | None, sent: np.ndarray) -> np.ndarray | None:
    """Returns the checked array of what a party sent or received, 0 where it sent nothing; None if it was not
    recorded."""
    if array is None:
        return None
    if not sent.all():  # else an array that is mapped from disk stays there
        array = np.where(sent[..., None], array, np.zeros((), array.dtype))
    nothing = name.endswith("embeddings") and not np.any(array)
    raw.must(not nothing, name, "holds nothing but 0", "leave embeddings out")
    for epoch, numbers in enumerate(array):
        with np.errstate(over="ignore"):
            values = np.asarray(numbers, np.float32)
        finite = np.isfinite(values).all(axis=1)
        what = f"holds NaN or infinity in epoch {epoch}, row {np.argmin(finite)}, counted from 0"
        raw.must(finite.all(), name, what, "give finite numbers")
        if not np.any(numbers):
            continue  # the party sent nothing, or its messages had no answer
        largest = float(np.abs(values).max())
        remedy = f"rescale all by one factor, to between {LEAST:g} and {LARGEST:g}"
        what = f"has {largest:.3g} as its largest number in epoch {epoch}"
        raw.must(LEAST < largest < LARGEST, name, what, remedy)
    return array


def _columns(raw: _Arrays, party: int) -> np.ndarray | None:
    """Returns the checked columns of a party, which has a number of them of its own; None if they were not
    recorded."""
    name = f"party{party}_columns"
    raw.sizes.pop("F", None)
    array = raw.get(name, "columns")
    if array is None:
        return None
    array = np.asarray(array, np.float64)
    wrong = (np.abs(array) >= LARGEST).any(axis=1)
    remedy = f"give numbers below {LARGEST:g}, or NaN for missing ones"
    where = f"holds a large number in row {int(np.argmax(wrong))}, counted from 0"
    raw.must(not wrong.any(), name, where, remedy)
    return array


def _order(raw: _Arrays, sent: np.ndarray) -> tuple[np.ndarray | None, int, bool]:
    """Returns the places of rows in the order of sending (None if not known), the size of a batch, and whether
    all batches but one an epoch have this size. Attacks read batches as consecutive parts of the order, so
    batches of different sizes have none. Rows that were not sent are in none, and come last in the order."""
    numbers = raw.by_name.get("batch")
    if (
        numbers is not None and numbers.size == sent.size
    ):  # of rows that were not sent they mean nothing
        numbers = np.where(sent, numbers.reshape(sent.shape), 0)
        if numbers.dtype.kind in "iu":  # counted through all epochs, they may be larger than N
            ranked = [np.unique(of[was], return_inverse=True)[1] for of, was in zip(numbers, sent)]
            numbers = np.zeros(sent.shape, np.int32)
            numbers[sent] = np.concatenate(ranked)
        raw = raw._replace(by_name={**raw.by_name, "batch": numbers})
    order, batch, size = (raw.get(name) for name in ("order", "batch", "batch_size"))
    rows, given = raw.sizes["N"], 0 if size is None else int(size)
    remedy = "they say the same: give one"
    raw.must(order is None or batch is None, "", "has both order and batch", remedy)
    if order is not None:
        raw.must(given, "", "has order and no batch_size", "give both, or batch in their place")
        once = all(len(np.unique(places)) == rows for places in order)
        raw.must(once, "order", "has a place twice in an epoch", "every row has its own")
        return (order if sent.all() else _sent_first(raw, order, sent, given)), given, True
    if batch is None:
        return None, given or min(32, rows), True
    counts = np.stack([np.bincount(of[was], minlength=rows) for of, was in zip(batch, sent)])
    size = given or int(counts.max())
    smaller = (counts > 0) & (counts < size)  # [E, N] by number of the batch
    if counts.max() > size or smaller.sum(axis=1).max() > 1:
        return None, given or round(sent.sum() / (counts > 0).sum()), False
    places = [
        _in_order(of, last[of], ~was) for of, last, was in zip(batch, smaller, sent, strict=True)
    ]
    return np.stack(places), size, True


def _sent_first(raw: _Arrays, order: np.ndarray, sent: np.ndarray, size: int) -> np.ndarray:
    """Returns the order with the rows at its end that were not sent. Raises UserError if it makes a difference
    for the batches whether such rows have places among the others: some recorders count them, others do not."""
    out = np.empty_like(order)
    for places, was, moved in zip(order, sent, out, strict=True):
        moved[:] = _in_order(np.where(was, places, 0), ~was)
        before, after = places[was] // size, moved[was] // size
        both = np.unique(before * np.int64(len(was)) + after)
        same = len(both) == len(np.unique(before)) == len(np.unique(after))
        remedy = "give such rows the last places, or batch in place of order"
        raw.must(same, "order", "has places for rows that were not sent amid a batch", remedy)
    return out


def _in_order(*keys: np.ndarray) -> np.ndarray:
    """Returns each row's place [N] int32 if rows are sorted by the last key, ties by the key before."""
    places = np.empty(len(keys[0]), np.int32)
    places[np.lexsort(keys)] = np.arange(len(places))
    return places


def _rows(raw: _Arrays) -> np.ndarray | None:
    """Returns what identifies each row's person in all runs, numbers or texts; None if it was not recorded."""
    name, ids = "rows", raw.get("rows")
    if "row_ids" in raw.by_name:
        name, ids = "row_ids", raw.by_name["row_ids"]
        raw.must(ids.dtype.kind in "iuU", name, f"holds {ids.dtype}", "give whole numbers or texts")
        what, remedy = (
            f"is of shape {list(ids.shape)}",
            f"give one for each of {raw.sizes['N']} rows",
        )
        raw.must(ids.shape == (raw.sizes["N"],), name, what, remedy)
    once = ids is None or len(np.unique(ids)) == len(ids)
    raw.must(once, name, "has an id twice", "give the rows of a run different ids")
    return ids


def _labels(raw: _Arrays) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Returns the true labels (None if not recorded), and the known rows with their labels."""
    labels, rows, of_rows = (raw.get(n) for n in ("labels", "known_rows", "known_labels"))
    if labels is not None:
        labels = labels_of(raw.place, "labels", labels)
    if rows is None:
        raw.must(of_rows is None, "", "has known_labels and no known_rows", "give both")
        return labels, np.zeros(0, np.int32), np.zeros(0, np.int32)
    once, all_known = len(np.unique(rows)) == len(rows), len(rows) >= raw.sizes["N"]
    raw.must(once, "known_rows", "names a row twice", "name each once, by its place")
    raw.must(not all_known, "known_rows", "names all rows", "leave some to be read")
    if of_rows is None:
        raw.must(labels is not None, "", "has known_rows and no labels", "give known_labels")
        of_rows = np.asarray(labels)[rows]
    agree = labels is None or (of_rows == labels[rows]).all()
    raw.must(agree, "known_labels", "differ from labels in some row", "make them agree")
    classes = int((of_rows if labels is None else labels).max()) + 1
    every = len(np.unique(of_rows)) == max(2, classes)
    raw.must(every, "known_labels", "lack a class", "name rows of every class")
    return labels, rows, of_rows
