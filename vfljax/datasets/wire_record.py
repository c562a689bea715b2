"""The record of a checked wire (``vfljax.datasets.wire``): what crossed, as attacks read it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

EXCHANGED = ("embeddings", "gradients")


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
    # how many messages were recorded, and rows of them without an answer; None if not one by one
    messages: int | None = None
    unanswered: int | None = None


class Wire(NamedTuple):
    """A checked wire. ``order`` is None if it is not known which rows shared a batch, and if batches have
    different sizes, as those of Poisson sampling do. ``batch_size`` is then the mean size of a batch."""

    name: str
    parties: tuple[WireParty, ...]
    order: np.ndarray | None  # [E, N] int32
    sent: np.ndarray  # [E, N] bool
    epochs: np.ndarray  # [E] int32, rising
    batch_size: int
    labels: np.ndarray | None  # [N] int32 classes, or float32 numbers
    known_rows: np.ndarray  # [K] int32
    known_labels: np.ndarray  # [K] likewise
    equal_batches: bool = True  # all but one an epoch
    rows: np.ndarray | None = None  # [N] numbers or texts, the same for the same person in all runs
    names: tuple[str, ...] = ()  # of the parties; () if they have none
    packed: bool = False  # whether epochs are ``wire_messages.by_epoch``'s own
    silent: int = 0  # epochs without any gradient, or any row, which are left out

    @property
    def shape(self) -> tuple[int, int, int]:
        """E, N and D; 1, N and C in a federation of trees."""
        first = self.parties[0]
        if first.nodes is not None:
            return 1, first.nodes.shape[2], self.classes
        either = first.gradients if first.embeddings is None else first.embeddings
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
        """The number of classes of the labels that were given, at least 2; 1 if they are numbers."""
        given = self.known_labels if self.labels is None else self.labels
        return 1 if given.dtype.kind == "f" else int(given.max(initial=1)) + 1
