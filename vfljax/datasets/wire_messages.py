"""Brings the messages of a wire into epochs, in which attacks read what every row exchanged.

A *message* is what a party sent at once, and an *entry* is one row of it. If no party sent a row twice in one
epoch, the epochs of the view are those of the recording. Else the view is *packed*: the k-th entry of a row is
its k-th epoch, but its last entry is in the last epoch, which attacks read by default and which so has every
row. Rows with fewer entries than others are then unsent in the epochs before the last.

Entries without an answer are not in the view, if the party received any answer: attacks compare what was sent
with what came back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Entries(NamedTuple):
    """What one party exchanged, in M entries in the order of their messages."""

    steps: np.ndarray  # [M] equal in the entries of a message, rising from message to message
    rows: np.ndarray  # [M] 0..N-1
    epochs: np.ndarray  # [M]
    answered: np.ndarray | None  # [M] bool; None: all
    embeddings: np.ndarray | None  # [M, D]
    gradients: np.ndarray | None  # [M, D]

    @property
    def messages(self) -> int:
        """The number of messages."""
        return len(np.unique(self.steps))

    @property
    def unanswered(self) -> int:
        """The number of entries without an answer."""
        return 0 if self.answered is None else int((~self.answered).sum())

    def part(self, which: np.ndarray) -> Entries:
        """Returns some entries, by their places or by a bool of each."""
        return Entries._make(a if a is None else a[which] for a in self)


class Grid(NamedTuple):
    """The same by epoch."""

    embeddings: np.ndarray | None  # [E, N, D] 0 where the row was not sent
    gradients: np.ndarray | None  # likewise
    sent: np.ndarray  # [E, N] bool
    batch: np.ndarray | None  # [E, N] the number of the message in its epoch; None if packed


def entries_of(arrays: Mapping[str, Any], rows: int) -> Entries:
    """Returns the entries of a party in the order of their messages.

    Args:
      arrays: the fields of ``Entries``, in any order of the entries. If epochs are None, an epoch ends once the
        party has sent N rows.
      rows: N.
    """
    steps = arrays["steps"]
    epochs = np.zeros(len(steps), np.int32) if arrays["epochs"] is None else arrays["epochs"]
    of = Entries(**{**arrays, "epochs": epochs}).part(np.argsort(steps, kind="stable"))
    if arrays["epochs"] is not None:
        return of
    begins = np.flatnonzero(np.diff(of.steps, prepend=of.steps[0] - 1))
    before = np.repeat(begins, np.diff(begins, append=len(steps)))  # entries before the message
    return of._replace(epochs=before // rows)


def by_epoch(parties: Sequence[Entries], rows: int) -> tuple[list[Grid], np.ndarray, bool]:
    """Returns the grid of each party, the numbers of the epochs [E], and whether the view is packed.

    Args:
      parties: what each exchanged.
      rows: N.
    """
    kept = [_answered(of) for of in parties]
    # of a row in an epoch
    twice = any(len(np.unique(of.epochs * np.int64(rows) + of.rows)) < len(of.rows) for of in kept)
    if twice:
        times = [np.bincount(of.rows, minlength=rows) for of in kept]
        epochs = np.arange(max(int(t.max()) for t in times))
        places = [_packed(of.rows, t, len(epochs)) for of, t in zip(kept, times, strict=True)]
    else:
        epochs = np.unique(np.concatenate([of.epochs for of in kept]))
        places = [np.searchsorted(epochs, of.epochs) for of in kept]
    shape = len(epochs), rows
    grids = [_grid(of, at, shape, twice) for of, at in zip(kept, places, strict=True)]
    return grids, epochs, twice


def _answered(of: Entries) -> Entries:
    """Returns the entries with an answer; all of them if none has one."""
    if of.answered is None or of.answered.all() or not of.answered.any():
        return of
    return of.part(of.answered)


def _packed(rows: np.ndarray, times: np.ndarray, epochs: int) -> np.ndarray:
    """Returns the epoch of each entry [M].

    Args:
      rows: of the entries, in the order of sending [M].
      times: how often each row was sent [N].
      epochs: E.
    """
    order = np.argsort(rows, kind="stable")
    k = np.empty(len(rows), np.int64)
    k[order] = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return np.where(k == times[rows] - 1, epochs - 1, k)


def _grid(of: Entries, places: np.ndarray, shape: tuple[int, int], packed: bool) -> Grid:
    def spread(values: np.ndarray | None) -> np.ndarray | None:
        if values is None:
            return None
        out = np.zeros((*shape, values.shape[1]), np.float32)
        out[places, of.rows] = values
        return out

    sent, batch = np.zeros(shape, bool), np.zeros(shape, np.int32)
    sent[places, of.rows] = True
    for epoch in range(0 if packed else shape[0]):
        here = places == epoch
        batch[epoch, of.rows[here]] = np.unique(of.steps[here], return_inverse=True)[1]
    return Grid(spread(of.embeddings), spread(of.gradients), sent, None if packed else batch)
