"""Brings the messages of a wire into epochs, in which attacks read what every row exchanged.

A *message* is what a party sent at once, and an *entry* is one row of it. If no party sent a row twice in one
epoch, the epochs of the view are those of the recording. Else the view is *packed*: the k-th entry of a row is
its k-th epoch, but its last entry is in the last epoch, which attacks read by default and which so has every
row. Rows with fewer entries than others are then unsent in the epochs before the last.

Entries without an answer are not in the view, if the party received any answer: attacks compare what was sent
with what came back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Entries(NamedTuple):
    """What one party exchanged, in M entries in any order."""

    steps: np.ndarray  # [M] equal in the entries of a message, rising from message to message
    rows: np.ndarray  # [M] 0..N-1
    epochs: np.ndarray | None  # [M] None: an epoch ends once the party has sent N rows
    embeddings: np.ndarray | None  # [M, D]
    gradients: np.ndarray | None  # [M, D]
    answered: np.ndarray | None  # [M] bool; None: all


class Grid(NamedTuple):
    """The same by epoch."""

    embeddings: np.ndarray | None  # [E, N, D] 0 where the row was not sent
    gradients: np.ndarray | None  # likewise
    sent: np.ndarray  # [E, N] bool
    batch: np.ndarray | None  # [E, N] the number of the message in its epoch; None if packed


class Count(NamedTuple):
    """How much of one party was recorded."""

    messages: int
    entries: int
    unanswered: int  # entries without an answer
    never: int  # rows that the party never sent, or that were never answered


def by_epoch(
    parties: Sequence[Entries], rows: int
) -> tuple[list[Grid], np.ndarray, list[Count], bool]:
    """Returns the grid of each party, the numbers of the epochs [E], the counts of each party, and whether the
    view is packed.

    Args:
      parties: what each exchanged.
      rows: N.
    """
    every = [_sorted(of, rows) for of in parties]
    kept = [_answered(of) for of in every]
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
    counts = [
        Count(
            messages=len(np.unique(of.steps)),
            entries=len(of.rows),
            unanswered=0 if of.answered is None else int((~of.answered).sum()),
            never=int((~grid.sent.any(axis=0)).sum()),
        )
        for of, grid in zip(every, grids, strict=True)
    ]
    return grids, epochs, counts, twice


class _Sorted(NamedTuple):
    """Entries in the order of their messages, each with its epoch."""

    steps: np.ndarray
    rows: np.ndarray
    epochs: np.ndarray
    embeddings: np.ndarray | None
    gradients: np.ndarray | None
    answered: np.ndarray | None


def _sorted(of: Entries, rows: int) -> _Sorted:
    order = np.argsort(of.steps, kind="stable")
    steps = of.steps[order]
    begins = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1))
    before = np.repeat(begins, np.diff(begins, append=len(steps)))  # entries before the message
    epochs = before // rows if of.epochs is None else of.epochs[order]
    others = (a if a is None else a[order] for a in of[3:])
    return _Sorted(steps, of.rows[order], epochs, *others)


def _answered(of: _Sorted) -> _Sorted:
    if of.answered is None or of.answered.all() or not of.answered.any():
        return of
    here = of.answered
    others = (a if a is None else a[here] for a in of[3:])
    return _Sorted(of.steps[here], of.rows[here], of.epochs[here], *others)


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


def _grid(of: _Sorted, places: np.ndarray, shape: tuple[int, int], packed: bool) -> Grid:
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
