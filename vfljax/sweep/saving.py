"""Saves the progress of an unfinished shard between epochs, and reads it back for a resume.

Only the shard's trials are saved, without padding, so that a resume may map more or fewer members at once.
"""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import store
from vfljax.federation.training import Snapshot
from vfljax.sweep.batch_layout import is_key
from vfljax.types import HostArray

# fields of a record with the last epoch's exchange; the next epoch overwrites them without reading them
EXCHANGE = ("embeddings", "gradients", "order", "sent", "inputs")
PIECE = 64 << 20  # bytes


class Saved(NamedTuple):
    """How far a shard is trained."""

    epoch: int  # epochs done
    snapshot: Snapshot  # after them, [members, ...]
    recorded: dict[int, dict[str, HostArray]]  # the exchange of each recorded epoch so far


def save(workdir: pathlib.Path, name: str, count: int, width: int, now: Saved) -> None:
    """Saves how far a shard is trained. An earlier save is deleted once this one is complete.

    The last epoch's exchange is saved only if that epoch is a recorded one.

    Args:
      name: of the shard.
      count: the number of its trials, which are the first members of the snapshot.
      width: how many are trained at once on each device.
      now: what to save.
    """
    leaves = _numbered(now.snapshot)
    raw = {k: jax.random.key_data(a) if is_key(a) else a for k, a in leaves.items()}
    progress = {k: np.asarray(a)[:count] for k, a in jax.device_get(raw).items()}
    tree: dict[str, Any] = {"progress": progress}
    if now.recorded:
        tree["recorded"] = {str(k): v for k, v in now.recorded.items()}
    store.write_partial(workdir, name, now.epoch, {"pieces": jax.tree.map(_pieces, tree)}, width)


def read(workdir: pathlib.Path, name: str, count: int, like: Snapshot) -> Saved | None:
    """Returns what was saved of a shard, None if nothing was. Raises Damaged for a damaged save.

    Args:
      name: of the shard.
      count: the number of its trials.
      like: a snapshot of the same structure.
    """
    partial = store.read_partial(workdir, name)
    if partial is None:
        return None
    epoch, tree = partial
    tree = jax.tree.map(lambda a: a.reshape(count, *a.shape[2:]), tree["pieces"])
    recorded = {int(k): v for k, v in tree.get("recorded", {}).items()}
    leaves, structure = jax.tree.flatten(like)
    saved = _numbered(like)

    def restored(place: str, leaf: Any) -> Any:
        if place not in saved:
            return np.zeros((count, *leaf.shape[1:]), leaf.dtype)
        array = jax.device_put(tree["progress"][place][:count])
        return jax.random.wrap_key_data(array) if is_key(leaf) else array

    every = [restored(f"{i:05d}", leaf) for i, leaf in enumerate(leaves)]
    return Saved(epoch, jax.tree.unflatten(structure, every), recorded)


def _pieces(a: HostArray) -> HostArray:
    """Reshapes an array [members, ...] to [pieces, members per piece, ...], with pieces of at most about
    ``PIECE`` bytes. A chunk is written for each entry of the first axis, and writing a chunk for each of
    thousands of trials would take longer than training them."""
    count = len(a)
    number = next(
        n for n in range(1, count + 1) if (count % n == 0 and a.nbytes <= n * PIECE) or n == count
    )
    return a.reshape(number, count // number, *a.shape[1:])


def _numbered(snapshot: Snapshot) -> dict[str, Any]:
    """Returns the leaves that are saved, by their number among all leaves."""
    leaves, structure = jax.tree.flatten(snapshot)
    record = jax.tree.unflatten(structure, range(len(leaves))).record
    exchange = set(jax.tree.leaves([getattr(record, field) for field in EXCHANGE]))
    return {f"{i:05d}": leaf for i, leaf in enumerate(leaves) if i not in exchange}
