"""The progress of an unfinished shard: what is saved between epochs, and read back by a resume.

It is of the shard's own members alone, so that a resume may take more or fewer members at once.
"""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import store
from vfljax.federation.training import Snapshot
from vfljax.types import HostArray

# the last epoch's exchange, which the next epoch writes anew: nothing of a record goes on from it
EXCHANGE = ("embeddings", "gradients", "order", "sent", "inputs")
PIECE = 64 << 20  # bytes


class Saved(NamedTuple):
    """How far a shard is trained."""

    epoch: int  # epochs done
    snapshot: Snapshot  # after them, [members, ...]
    recorded: dict[int, dict[str, HostArray]]  # of each recorded epoch


def save(workdir: pathlib.Path, name: str, count: int, width: int, now: Saved) -> None:
    """Save how far a shard is; an earlier save goes when this one is whole.

    The last epoch's exchange is not saved but where it was recorded.

    Args:
      workdir: the folder of the sweep.
      name: of the shard.
      count: its trials, the first members of the snapshot.
      width: how many are trained at once on each device.
      now: what to save.
    """
    leaves = _numbered(now.snapshot)
    raw = {k: jax.random.key_data(a) if _is_key(a) else a for k, a in leaves.items()}
    progress = {k: np.asarray(a)[:count] for k, a in jax.device_get(raw).items()}
    tree: dict[str, Any] = {"progress": progress}
    if now.recorded:
        tree["recorded"] = {str(k): v for k, v in now.recorded.items()}
    store.write_partial(workdir, name, now.epoch, {"pieces": jax.tree.map(_pieces, tree)}, width)


def read(workdir: pathlib.Path, name: str, count: int, like: Snapshot) -> Saved | None:
    """Returns what was saved of a shard; None where nothing was. Raises Damaged.

    Args:
      workdir: the folder of the sweep.
      name: of the shard.
      count: its trials.
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
        array = jnp.asarray(tree["progress"][place][:count])
        return jax.random.wrap_key_data(array) if _is_key(leaf) else array

    every = [restored(f"{i:05d}", leaf) for i, leaf in enumerate(leaves)]
    return Saved(epoch, jax.tree.unflatten(structure, every), recorded)


def _pieces(a: HostArray) -> HostArray:
    """An array [members, ...] as [pieces, members of one, ...], of at most about ``PIECE`` bytes each: a store
    writes a chunk for each entry of the first axis, and a chunk for each of thousands of trials takes
    longer than to train them."""
    count = len(a)
    number = next(
        n for n in range(1, count + 1) if (count % n == 0 and a.nbytes <= n * PIECE) or n == count
    )
    return a.reshape(number, count // number, *a.shape[1:])


def _is_key(a: Any) -> bool:
    return jnp.issubdtype(a.dtype, jax.dtypes.prng_key)


def _numbered(snapshot: Snapshot) -> dict[str, Any]:
    """The leaves that are saved, by their place among all."""
    leaves, structure = jax.tree.flatten(snapshot)
    record = jax.tree.unflatten(structure, range(len(leaves))).record
    exchange = set(jax.tree.leaves([getattr(record, field) for field in EXCHANGE]))
    return {f"{i:05d}": leaf for i, leaf in enumerate(leaves) if i not in exchange}
