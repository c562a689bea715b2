"""Brings recorded messages into the arrays of a wire: which parties and rows there are, and what each sent."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from vfljax.errors import UserError
from vfljax.recorder.conversion import ids_of, places


@dataclasses.dataclass
class KeptMessage:
    """A message as it is kept until ``Recorder.save``."""

    party: Hashable
    rows: np.ndarray  # [m] ids
    embeddings: np.ndarray | None  # [m, D] float32
    epoch: int
    gradients: np.ndarray | None = None  # [m, D] float32


def numbered(found: Sequence[Hashable], given: Sequence[Hashable]) -> list[Hashable]:
    """Returns the parties in the order in which they are numbered.

    Args:
      found: those that sent anything or were told of nodes, each once, as they first did.
      given: those that the recorder was given; () if none.
    """
    if not found:
        raise UserError("nothing was recorded, so that there is no wire to save.")
    if not given:
        with contextlib.suppress(TypeError):  # of names that have no order
            return sorted(found, key=lambda party: (isinstance(party, str), party))
        return list(found)
    if silent := [party for party in given if party not in found]:
        what = f"party {silent[0]!r} sent nothing"
        raise UserError(what, remedy="leave it out of the recorder's parties")
    return list(given)


def ids_of_wire(
    recorded: Sequence[np.ndarray],
    row_ids: Any,
    labels: Any,
    columns: Sequence[Any] | Mapping[Hashable, Any],
) -> np.ndarray:
    """Returns the ids of all rows [N], which every recorded row is among.

    Args:
      recorded: the ids of the rows of each message or node.
      row_ids, labels, columns: of ``Recorder.save``.
    """
    kinds = {rows.dtype.kind for rows in recorded if len(rows)}
    if len(kinds) > 1:
        raise UserError("ids of rows are numbers and texts: use one kind.")
    every = np.unique(np.concatenate(recorded))
    if row_ids is not None:
        ids = ids_of(row_ids)
        if len(np.unique(ids)) < len(ids):
            raise UserError("row_ids has an id twice: give every row its own.")
    else:
        tables = columns.values() if isinstance(columns, Mapping) else columns
        given = [x for x in (labels, *tables) if x is not None]
        if not given:
            return every
        ids = np.arange(len(given[0]))
    if ids.dtype.kind != every.dtype.kind and len(every):
        kind = "numbers" if every.dtype.kind == "i" else "texts"
        raise UserError(f"recorded rows have ids that are {kind}: give such row_ids.")
    places(every, ids, "the recording")
    return ids


def entries(
    messages: Sequence[tuple[int, KeptMessage]],
    ids: np.ndarray,
    width: int | None,
    answers: bool,
    epochs: bool,
) -> tuple[dict[str, np.ndarray], tuple[int, int]]:
    """Returns the arrays of a party's messages, of M rows in all, and how many rows were left out because what
    was sent, or received, is not finite.

    Args:
      messages: of the party, each beside its number among those of all parties.
      ids: of all rows of the wire [N].
      width: D; None if no array was recorded of the party.
      answers: whether any party received an answer.
      epochs: whether the recorder was told where epochs end.
    """
    kept = [m for _, m in messages]
    party, counts = kept[0].party, [len(m.rows) for m in kept]
    arrays: dict[str, np.ndarray] = {
        "steps": np.repeat([k for k, _ in messages], counts),
        "rows": places(np.concatenate([m.rows for m in kept]), ids, "the recording"),
    }
    if epochs:
        arrays["epochs"] = np.repeat([m.epoch for m in kept], counts)
    bare = [m.embeddings is None for m in kept]
    if any(bare) and not all(bare):
        raise UserError(f"party {party!r} sends messages with and without an array.")
    if width is None or (bare[0] and not answers):
        raise UserError(f"of party {party!r} neither arrays nor answers are recorded.")
    whole = np.ones(sum(counts), bool)
    if not bare[0]:
        z = np.concatenate([m.embeddings for m in kept if m.embeddings is not None])
        arrays["embeddings"], whole = z, np.asarray(np.isfinite(z).all(axis=1))
    broken = 0  # answers that are not finite
    if answers:
        nothing = [np.zeros((count, width), np.float32) for count in counts]
        parts = [m.gradients for m in kept]
        g = np.concatenate([n if part is None else part for n, part in zip(nothing, parts)])
        finite = np.asarray(np.isfinite(g).all(axis=1))
        answered = np.asarray(np.repeat([part is not None for part in parts], counts))
        broken = int((answered & whole & ~finite).sum())
        arrays["gradients"] = np.where(finite[:, None], g, 0)
        arrays["answered"] = np.logical_and(answered, finite)
    kept_entries = np.flatnonzero(whole)
    if not len(kept_entries):
        raise UserError(f"all that party {party!r} sends holds NaN or infinity.")
    left_out = len(whole) - len(kept_entries)
    return {name: array[kept_entries] for name, array in arrays.items()}, (left_out, broken)
