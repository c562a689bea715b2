"""The arrays that a wire may have (``vfljax.datasets.wire``), by version, and the form that each must have."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_dtypes  # which JAX brings
import numpy as np

from vfljax.datasets.labels import REGRESSION
from vfljax.datasets.table_errors import fault
from vfljax.datasets.wire_record import EXCHANGED
from vfljax.errors import Text, argument

GRID, MESSAGES = 1, 2
"""The versions of the format: arrays by epoch and row, and arrays by message."""
OF_MESSAGES = ("steps", "rows", "epochs", "answered")
"""The arrays of a party that say which message each of its entries is of."""
PARTS = {
    GRID: (*EXCHANGED, "columns", "nodes"),
    MESSAGES: (*EXCHANGED, *OF_MESSAGES, "columns", "nodes"),
}
"""The arrays of each party, by version."""
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
LABELS = ("labels", "known_rows", "known_labels", "task", "version")
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
TASKS = ("classification", REGRESSION)
"""What ``task`` may hold: labels are classes, as by default, or numbers."""
OF_NUMBERS = {"labels": Form("N", 0, ""), "known_labels": Form("K", 0, "")}
"""The forms of labels that are numbers."""
OF_NETWORKS = ("order", "batch", "sent", "epochs", "batch_size")
"""The shared arrays that a federation of trees has not: a tree is grown on all rows."""


class Arrays(NamedTuple):
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
                    f"{remedy}; beside labels that are numbers record task='{REGRESSION}', or give ",
                    argument("bins"),
                    "=2, or more",
                )
            self.must(False, name, f"holds {array[tuple(at)]}{f' at {at}' * bool(at)}", remedy)
        return array.astype(np.int32)
