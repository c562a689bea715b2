"""Reads a wire: the exchange of a federation that was trained elsewhere, recorded to be attacked.

A wire is an .npz file, a folder of .npy files or a Parquet file (``analysis/reference/wire_format.md``), by its
content and not by its name. Of N rows, version 2 has these arrays, which ``vfljax.Recorder`` writes. An *entry*
is a row in a message, and party p has M of them. One of the first two may be missing, and all others but steps
and rows may be:

    party<p>_embeddings  [M, D] of passive party p as the label party received them
    party<p>_gradients   likewise, the cut gradients that came back, of the mean loss of a batch
    party<p>_steps       [M] the number of the entry's message, rising in time
    party<p>_rows        [M] the entry's row, 0..N-1
    party<p>_epochs      [M] the entry's epoch. Without it an epoch ends once the party has sent N rows
    party<p>_answered    [M] whether gradients came back; by default all did
    party<p>_columns     [N, F] the party's own columns, NaN where a number is missing
    batch_size           [] the number that losses were divided by, if messages differ in size
    parties              [P] names of the parties
    row_ids              [N] numbers or texts, the same for the same person in all runs (``records``)
    labels               [N] true classes 0..C-1, to score with; any numbers with ``bins``, or of the task
                         "regression"
    known_rows, known_labels  [K] rows whose labels the attackers know
    task                 [] "regression" if labels are numbers, else "classification", also by default
    version              [] 2

Version 1 has arrays by epoch and row in their place, of E epochs, beside columns, labels and known rows:

    party<p>_embeddings  [E, N, D] or [N, D], and likewise party<p>_gradients
    order, batch_size    [E, N] place of a row in its epoch's sending order, 0..N-1; [] rows of a batch
    batch                [E, N] number of a row's batch, in place of ``order``. Attacks that read which rows
                         shared a batch need batches of one size, of which one an epoch may be smaller
    sent                 [E, N] whether the row was sent; all rows by default. A row that was not sent is in no
                         batch, whatever ``batch`` holds for it
    epochs               [E] which epochs those are; 0, 1, ... by default
    rows                 [N] whole numbers, the same one for the same person in all runs
    version              [] 1

A federation of trees has these arrays of T trees and L levels in place of embeddings, gradients, messages and
epochs, in both versions:

    party<p>_nodes       [T, L, N] node of each row at each level, any whole numbers, -1 where it is not told
    party<p>_gradients   [T, N, 1 or 2] of first (and second) order, if they were sent without encryption
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vfljax.datasets import formats
from vfljax.datasets.bins import MOST_CLASSES, classes_of, most_often, names_of, thresholds
from vfljax.datasets.core import Column, Dataset, Recording
from vfljax.datasets.npz import arrays as arrays_of
from vfljax.datasets.options import check_option
from vfljax.datasets.table_errors import fault, reading
from vfljax.datasets.wire_checks import checked_wire
from vfljax.datasets.wire_forms import AGAIN
from vfljax.datasets.wire_record import Wire
from vfljax.errors import Field, UserError, short_path, user_path


def wire(folder: str, *, runs: tuple[str, ...] = (), bins: int = 0) -> Dataset:
    """Reads recorded wires, run after run: the passive parties' own columns, and labels to score with.

    Args:
      folder: the first run, a file or folder.
      runs: the other runs, which must have the same numbers of rows, parties, columns and known labels.
      bins: of labels that are numbers: how many classes their quantiles make, see ``cut_at``. 0: labels are
        classes.
    """
    runs = tuple(str(user_path(path, Field("data.options.runs"))) for path in runs)
    cut = cut_at((folder, *runs), bins, Field("data.options.bins", "bins"))
    wires = [read_wire(path, cut) for path in (folder, *runs)]
    first = wires[0]
    for path, run in zip(runs, wires[1:]):
        for what in (
            name
            for name, value in equal_in_all_runs(run).items()
            if value != equal_in_all_runs(first)[name]
        ):
            raise fault(path, f"differs from {folder} in {what}", "runs are recorded alike")
    parts, columns = [], []
    for number, party in enumerate(first.parties):
        # a party whose columns were not recorded gets one column of zeros
        width = 1 if party.columns is None else party.columns.shape[1]
        columns += [Column(f"party {number} column {j}") for j in range(width)]
        values = [run.parties[number].columns for run in wires]
        parts.append([np.zeros((first.shape[1], 1)) if v is None else v for v in values])
    features = np.concatenate([np.concatenate(of_run, axis=1) for of_run in zip(*parts)])
    ids = [run.rows for run in wires if run.rows is not None]
    return Dataset(
        name=first.name,
        features=features.astype(np.float32),
        labels=np.concatenate([_labels(run) for run in wires]),
        num_classes=first.classes,
        columns=tuple(columns),
        classes=() if cut is None else tuple(names_of(cut)),
        notes=(f"read {', '.join(map(short_path, (folder, *runs)))}",),
        recording=Recording(
            known=np.stack([run.known_rows for run in wires]),
            missing=first.missing,
            labeled=first.labels is not None,
            trees=first.trees is not None,
            rows=_persons(np.concatenate(ids)) if ids else None,
        ),
    )


def _persons(ids: np.ndarray) -> np.ndarray:
    """Returns a number for each person [R] int32, of ids that are numbers or texts."""
    if ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() <= np.iinfo(np.int32).max:
        return ids.astype(np.int32)
    return np.unique(ids, return_inverse=True)[1].astype(np.int32)


def _labels(run: Wire) -> np.ndarray:
    """Returns a run's true labels. If only known rows have any, the others are made up and never scored: every
    class occurs among them, and numbers have the mean and scale of the known ones."""
    if run.labels is not None:
        return run.labels
    made_up = np.arange(run.classes) if run.classes > 1 else run.known_labels
    labels = np.resize(made_up, run.shape[1]).astype(run.known_labels.dtype)
    labels[run.known_rows] = run.known_labels
    return labels


def equal_in_all_runs(run: Wire) -> dict[str, Any]:
    """Returns what must be equal in all runs, by its name in messages. How often rows were sent need not be, if
    the view is packed."""
    widths = [0 if p.columns is None else p.columns.shape[1] for p in run.parties]
    return {
        "its shape": run.shape[run.packed :],
        "its parties": len(run.parties),
        "its trees and levels": run.trees,
        "what is recorded": (*run.missing, run.labels is None),
        "the width of its columns": widths,
        "its classes": run.classes,
        "its batch size": run.batch_size if run.equal_batches else None,
        "its epochs": "packed" if run.packed else run.epochs.tolist(),
        "its known labels": len(run.known_rows),
        "the names of its parties": run.names,
        "whether its rows have numbers": run.rows is not None,
    }


def cut_at(paths: Sequence[str], bins: int, field: Field) -> np.ndarray | None:
    """Returns the thresholds that make classes of labels that are numbers; None for labels that are classes.

    They are quantiles of the labels of all runs together, or of the known labels if there are no others, so
    that a row has the same class in every run.

    Args:
      paths: of the runs.
      bins: the number of classes K, 0 for labels that are classes.
      field: the option, for messages.

    Raises:
      UserError: for labels that are no finite numbers, and if a class would have no row.
    """
    check_option(field, bins, int, (0, MOST_CLASSES))
    if bins == 1:
        raise UserError("makes one class", field=field, value=bins, remedy="give 2 or more")
    if not bins:
        return None
    found = []
    for path in paths:
        arrays = _arrays(path)
        labels = np.asarray(arrays.get("labels", arrays.get("known_labels", ())))
        if labels.dtype.kind not in "biuf" or not labels.size or not np.isfinite(labels).all():
            remedy = ("record them, or leave ", field, " out")
            raise fault(path, "has no labels that are finite numbers", remedy)
        found.append(labels.ravel().astype(float))
    values = np.concatenate(found)
    cut = thresholds(values, bins)
    if cut is None:
        what = f"makes classes without rows: {most_often(values)}"
        raise UserError(what, field=field, value=bins, remedy="give fewer")
    return cut


def read_wire(path: str, cut: np.ndarray | None = None) -> Wire:
    """Reads and checks a wire.

    Args:
      path: an .npz or Parquet file, or a folder of .npy files, which are mapped from disk.
      cut: of ``cut_at``, for labels that are numbers.

    Raises:
      UserError: with one line, for anything that is no wire.
    """
    arrays = _arrays(path)
    if cut is not None:
        arrays.pop("task", None)  # the labels are classes now
        for name in {"labels", "known_labels"} & {*arrays}:
            arrays[name] = classes_of(np.asarray(arrays[name], float), cut)
    return checked_wire(pathlib.Path(path), arrays)


def _arrays(path: str) -> dict[str, Any]:
    """Returns the arrays of a file or folder by their names, unchecked."""
    place, remedy = pathlib.Path(path), "give an .npz or .parquet file, or a folder of .npy files"
    with reading(path or "the wire", remedy):  # also for names that no file system allows
        if not path or not (place.is_dir() or place.is_file()):
            raise fault(path or "the wire", "is missing", remedy)
        if place.is_dir():
            # names that begin with a dot are those of macOS, beside the files that it copies
            files = sorted(f for f in place.glob("*.npy") if not f.name.startswith("."))
            arrays = {f.stem: np.load(f, mmap_mode="r", allow_pickle=False) for f in files}
        else:
            what = formats.named(formats.start_of(place))
            if what not in (formats.PARQUET, formats.ZIP):
                what = f"is {what or 'of an unknown format'} and no wire"
                raise fault(path, what, f"{remedy} (numpy.savez writes one)")
            parquet = what == formats.PARQUET
            arrays = _parquet(place) if parquet else arrays_of(place, of_rows=False)
    return arrays


def _parquet(path: pathlib.Path) -> dict[str, Any]:
    """Returns the arrays of a Parquet file with a line per row. Its columns hold E lists of D numbers, E
    numbers, F columns, a label, or known_label, which is null if the label is not known."""
    with reading(path, AGAIN), path.open("rb") as file:
        table = pq.read_table(file)
        about = table.schema.metadata or {}
        arrays: dict[str, Any] = {
            name: np.array(about[name.encode()].decode().split(","), np.int64)
            for name in ("epochs", "batch_size", "version")
            if name.encode() in about
        }
        if b"task" in about:
            arrays["task"] = np.array(about[b"task"].decode())
        for name, chunks in zip(table.column_names, table.columns):
            column, shape = chunks.combine_chunks(), [len(table)]
            while pa.types.is_nested(column.type):
                lengths = pc.call_function("list_value_length", [column]).unique().to_pylist()
                if len(lengths) != 1 or lengths == [None]:
                    raise fault(path, "holds lists of different lengths", AGAIN, column=name)
                column, shape = column.flatten(), [*shape, *lengths]
            if column.null_count and name != "known_label":
                raise fault(path, "holds nulls", "give a number in every row", column=name)
            values = column.to_numpy(zero_copy_only=False).reshape(shape)
            if name.endswith("_nodes") and len(shape) == 3:  # a row's trees, and their levels
                arrays[name] = np.moveaxis(values, 0, 2)
                continue
            of_epochs = len(shape) == 3 or (len(shape) == 2 and name in ("order", "batch", "sent"))
            arrays[name] = np.moveaxis(values, 1, 0) if of_epochs else values
        if "known_label" in arrays:
            labels = np.asarray(arrays.pop("known_label"), float)
            arrays["known_rows"] = np.flatnonzero(~np.isnan(labels))
            arrays["known_labels"] = labels[arrays["known_rows"]]
    return arrays
