"""Makes NumPy arrays of what a recorder is given: numbers of any library, ids of rows, labels and columns."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any

import numpy as np

from vfljax.errors import UserError, argument

MOST_NAMED = 3  # ids that a message names at most
TASKS = CLASSIFICATION, REGRESSION = "classification", "regression"
"""What labels are for: classes, or numbers."""


def numbers(values: Any, who: str) -> np.ndarray:
    """Returns an array of any library and numeric type as float32.

    Args:
      values: an array or tensor, also one of bfloat16, on a GPU, or with a gradient.
      who: begins the message of an error.
    """
    if hasattr(values, "detach"):  # of PyTorch, whose bfloat16 and GPU tensors NumPy refuses
        values = values.detach().float().cpu()
    try:
        array = np.from_dlpack(values) if _by_dlpack_alone(values) else np.asarray(values)
    except (TypeError, BufferError, RuntimeError) as error:  # of an array on a GPU
        what = f"{who} a {type(values).__name__} that NumPy cannot read"
        raise UserError(what, remedy="copy it to the host's memory first") from error
    if array.dtype.kind not in "biuf" and "float" not in array.dtype.name:
        raise UserError(f"{who} {array.dtype}", remedy="give numbers")
    with np.errstate(over="ignore"):  # what float32 cannot hold is found by ``remarks``
        return array.astype(np.float32)


def _by_dlpack_alone(values: Any) -> bool:
    """Returns whether an array is read by DLPack: NumPy would make one object of it."""
    read_by_numpy = ("__array__", "__array_interface__", "__buffer__")
    return hasattr(values, "__dlpack__") and not any(hasattr(values, n) for n in read_by_numpy)


def ids_of(rows: Any, party: Hashable = None) -> np.ndarray:
    """Returns ids of rows [m], int64 or texts."""
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
    ids = np.asarray(rows)
    if ids.dtype.kind == "O" and all(isinstance(i, str) for i in ids.ravel()):
        ids = ids.astype(str)
    who = "" if party is None else f"party {party!r}: "
    if ids.ndim != 1:
        what = f"{who}ids of rows have the shape {list(ids.shape)}"
        raise UserError(what, remedy="give one for each row")
    if not ids.size:
        return ids.astype(np.int64)
    if ids.dtype.kind == "U":
        return ids.copy()  # the caller may write over what it gave
    if ids.dtype.kind not in "iu" or int(ids.max()) > np.iinfo(np.int64).max:
        what = f"{who}ids of rows are {ids.dtype}, such as {ids.flat[0]!r}"
        raise UserError(what, remedy="give whole numbers or texts")
    return ids.astype(np.int64)


def places(rows: np.ndarray, ids: np.ndarray, where: str) -> np.ndarray:
    """Returns the place of each of the ``rows`` [m] among the ``ids`` [N], which are all different."""
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids, rows, sorter=order), len(ids) - 1)
    found = order[at]
    same_kind = rows.dtype.kind == ids.dtype.kind
    unknown = rows[np.not_equal(ids[found], rows)] if same_kind else rows
    if len(unknown):
        named = ", ".join(map(repr, np.unique(unknown)[:MOST_NAMED].tolist()))
        what = (
            f"{where} has rows that are not among the {len(ids)} rows of the wire, such as {named}"
        )
        raise UserError(what, remedy="give row_ids, the id of each row of labels and columns")
    return found


def of_rows(name: str, values: Any, rows: int, axes: int, which: str = "rows") -> np.ndarray:
    """Returns labels or columns as an array with one entry for each of so many rows, which a message names."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    array = np.asarray(values)
    if array.dtype.kind == "O":
        with contextlib.suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        classes = ", such as np.unique(labels, return_inverse=True)[1]" if name == "labels" else ""
        raise UserError(f"{name} holds {array.dtype}", remedy=f"give numbers{classes}")
    if axes == 2 and array.ndim != 2:
        array = array.reshape(len(array), -1) if array.ndim else array
    if array.ndim != axes or len(array) != rows:
        remedy = f"give {'one number' if axes == 1 else 'F numbers'} for each of the {rows} {which}"
        raise UserError(f"{name} has the shape {list(array.shape)}", remedy=remedy)
    return array


def labels_of(labels: np.ndarray, task: str) -> np.ndarray:
    """Returns labels that are what a task says, or raises UserError.

    Args:
      labels: numbers [N].
      task: one of ``TASKS``.
    """
    if task not in TASKS:
        raise UserError(
            "is unknown", field=argument("task"), value=task, remedy=f"choose {' or '.join(TASKS)}"
        )
    right = np.isfinite(labels)
    remedy = "give a finite number for each row"
    if task == CLASSIFICATION:
        right = right & (labels >= 0) & (labels == np.floor(labels))
        remedy = f"give classes 0, 1, 2, ..., or task='{REGRESSION}' for labels that are numbers"
    if not right.all():
        row = int(np.argmin(right))
        what = f"labels are of the task {task}, and hold {labels[row]} in row {row}, counted from 0"
        raise UserError(what, remedy=remedy)
    return labels
