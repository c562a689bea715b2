"""Checks the arrays of a wire (``vfljax.datasets.wire``), and makes its record of them."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from vfljax.datasets import core
from vfljax.datasets.labels import REGRESSION
from vfljax.datasets.npz import array_labels
from vfljax.datasets.table_errors import quoted
from vfljax.datasets.wire_forms import (
    BY_ENTRY,
    FORMS,
    GRID,
    LABELS,
    MESSAGES,
    OF_MESSAGES,
    OF_NETWORKS,
    OF_NUMBERS,
    OF_TREES,
    PARTS,
    SHARED,
    TASKS,
    Arrays,
)
from vfljax.datasets.wire_messages import by_epoch, entries_of
from vfljax.datasets.wire_order import order_of
from vfljax.datasets.wire_record import EXCHANGED, Wire, WireParty
from vfljax.datasets.wire_trees import by_round, one_hot, renumbered

LEAST, LARGEST = 1e-12, 1e12  # bounds of an epoch's largest number: float32 holds its square
FEWEST = 10  # rows of a wire


def checked_wire(place: pathlib.Path, arrays: Mapping[str, Any]) -> Wire:
    """Returns the wire of these arrays.

    Args:
      place: the file or folder, for messages.
      arrays: the arrays by their names.

    Raises:
      UserError: with one line, for anything that is no wire.
    """
    raw = Arrays(place, {name: np.asanyarray(array) for name, array in arrays.items()}, {})
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
    task = raw.by_name.get("task")
    known = task is None or (task.size == 1 and str(task.item()) in TASKS)
    raw.must(known, "task", f"is {task}", f"give {' or '.join(TASKS)}")
    if "party0_nodes" in arrays:
        return _of_trees(raw, len(numbers))
    read = _of_messages if version == MESSAGES else _of_grid
    return _answered(raw, read(raw, len(numbers)))


def _of_numbers(raw: Arrays) -> bool:
    """Returns whether the labels of a wire are numbers."""
    task = raw.by_name.get("task")
    return task is not None and str(task.item()) == REGRESSION


def _version(raw: Arrays) -> int:
    """Returns the version of a wire; one that does not say it has that of its arrays."""
    version = raw.get("version")
    if version is None:
        return MESSAGES if any(name.endswith("_steps") for name in raw.by_name) else GRID
    reads = f"this vfljax reads the versions {GRID} and {MESSAGES} of the format"
    raw.must(int(version) in PARTS, "version", f"is {version}", reads)
    return int(version)


def _of_grid(raw: Arrays, count: int) -> Wire:
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
    order, size, equal = order_of(raw, sent)
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


def _answered(raw: Arrays, wire: Wire) -> Wire:
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


def _of_messages(raw: Arrays, count: int) -> Wire:
    """Returns the wire of arrays by message, of so many passive parties."""
    given: list[dict[str, Any]] = []
    columns = {}
    for p in range(count):
        for axis in "MDF":  # parties differ in them
            raw.sizes.pop(axis, None)
        of = {part: raw.get(f"party{p}_{part}", form) for part, form in BY_ENTRY.items()}
        for part in ("steps", "rows"):
            raw.must(of[part] is not None, "", f"has no party{p}_{part}", "version 2 needs it")
        for part in EXCHANGED:
            finite = of[part] is None or np.isfinite(np.asarray(of[part], np.float32)).all()
            raw.must(finite, f"party{p}_{part}", "holds NaN or infinity", "leave such entries out")
        if of["answered"] is not None:
            of["answered"] = of["answered"].astype(bool)
        given.append(of)
        if f"party{p}_columns" in raw.by_name:
            columns[f"party{p}_columns"] = raw.by_name[f"party{p}_columns"]
    most = max(int(of["rows"].max()) for of in given)
    of_rows = [raw.by_name[name] for name in ("labels", "row_ids") if name in raw.by_name]
    rows = next((len(a) for a in (*of_rows, *columns.values()) if a.ndim), most + 1)
    raw.sizes["N"] = rows
    raw.must(most < rows, "", f"has a message of row {most} and {rows} rows", "count them from 0")
    entries = [entries_of(of, rows) for of in given]
    grids, epochs, packed = by_epoch(entries, rows)
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
    wire = _of_grid(Arrays(raw.place, arrays, {"N": rows}), count)
    parties = tuple(
        party._replace(
            sent=None if together else grid.sent, messages=of.messages, unanswered=of.unanswered
        )
        for party, grid, of in zip(wire.parties, grids, entries, strict=True)
    )
    names = _names(raw, count)
    return wire._replace(parties=parties, rows=_rows(raw), names=names, packed=packed)


def _names(raw: Arrays, count: int) -> tuple[str, ...]:
    """Returns the names of the parties; () if they have none."""
    names = tuple(map(str, raw.by_name.get("parties", ())))
    right = len(names) in (0, count) and len(set(names)) == len(names)
    raw.must(right, "parties", f"are {list(names)}", "give each party a name of its own")
    return names


def _of_trees(raw: Arrays, count: int) -> Wire:
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
    of_numbers = _of_numbers(raw)
    classes, trees = 1 if of_numbers else int(given.max(initial=1)) + 1, raw.sizes["T"]
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
    # the gradients of numbers are those of one batch of all rows
    order, size = (
        (np.arange(rows, dtype=np.int32)[None], rows) if of_numbers else (None, min(32, rows))
    )
    found = Wire(raw.place.stem, parties, order, sent, first, size, *labels, True, _rows(raw))
    return found._replace(names=_names(raw, count))


def _real(raw: Arrays, name: str, array: np.ndarray | None, sent: np.ndarray) -> np.ndarray | None:
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


def _columns(raw: Arrays, party: int) -> np.ndarray | None:
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


def _rows(raw: Arrays) -> np.ndarray | None:
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


def _labels(raw: Arrays) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Returns the true labels (None if not recorded), and the known rows with their labels."""
    of_numbers, rows = _of_numbers(raw), raw.get("known_rows")
    forms = OF_NUMBERS if of_numbers else FORMS
    labels, of_rows = (raw.get(name, forms[name]) for name in ("labels", "known_labels"))
    if labels is not None:
        name = f"{raw.place}: labels"
        labels = (
            core.number_labels(name, labels)
            if of_numbers
            else array_labels(raw.place, "labels", labels)
        )
    if of_numbers and of_rows is not None:
        of_rows = core.number_labels(f"{raw.place}: known_labels", of_rows)
    if rows is None:
        raw.must(of_rows is None, "", "has known_labels and no known_rows", "give both")
        none = np.zeros(0, np.float32 if of_numbers else np.int32)
        return labels, np.zeros(0, np.int32), none
    once, all_known = len(np.unique(rows)) == len(rows), len(rows) >= raw.sizes["N"]
    raw.must(once, "known_rows", "names a row twice", "name each once, by its place")
    raw.must(not all_known, "known_rows", "names all rows", "leave some to be read")
    if of_rows is None:
        raw.must(labels is not None, "", "has known_rows and no labels", "give known_labels")
        of_rows = np.asarray(labels)[rows]
    agree = labels is None or (of_rows == labels[rows]).all()
    raw.must(agree, "known_labels", "differ from labels in some row", "make them agree")
    if of_numbers:
        return labels, rows, of_rows
    classes = int((of_rows if labels is None else labels).max()) + 1
    every = len(np.unique(of_rows)) == max(2, classes)
    raw.must(every, "known_labels", "lack a class", "name rows of every class")
    return labels, rows, of_rows
