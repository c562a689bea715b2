"""The progress of an unfinished shard: what is saved between epochs, and read back by a resume.

What enters: how far a shard's settings are trained. What leaves: a folder of ``store.write_partial``, of
the shard's own lanes alone, so that a resume may take more or fewer lanes at once.
"""

from __future__ import annotations

import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import store
from vfljax.training import Snapshot
from vfljax.types import HostArray, PyTree


class Saved(NamedTuple):
    """How far a shard is trained."""

    epoch: int  # epochs done
    snapshot: Snapshot  # after them, [lanes, ...]
    recorded: dict[int, dict[str, HostArray]]  # of each recorded epoch


def save(workdir: pathlib.Path, name: str, count: int, width: int, now: Saved) -> None:
    """Save how far the ``count`` settings of a shard are, ``width`` of which are trained at once on each
    device; an earlier save goes when this one is whole."""
    tree: dict[str, Any] = {"progress": _pack(now.snapshot, count)}
    if now.recorded:
        tree["recorded"] = {str(k): v for k, v in now.recorded.items()}
    store.write_partial(workdir, name, now.epoch, tree, width)


def read(workdir: pathlib.Path, name: str, count: int, like: Snapshot) -> Saved | None:
    """What was saved of a shard of ``count`` settings, whose snapshots are ``like`` this one; None where
    nothing was. Raises Damaged."""
    partial = store.read_partial(workdir, name)
    if partial is None:
        return None
    epoch, tree = partial
    recorded = {int(k): v for k, v in tree.get("recorded", {}).items()}
    return Saved(epoch, _unpack(tree["progress"], count, like), recorded)


def _is_key(a: Any) -> bool:
    return jnp.issubdtype(a.dtype, jax.dtypes.prng_key)


def _pack(tree: PyTree, count: int) -> dict[str, HostArray]:
    leaves = [jax.random.key_data(a) if _is_key(a) else a for a in jax.tree.leaves(tree)]
    return {f"{i:05d}": np.asarray(a)[:count] for i, a in enumerate(jax.device_get(leaves))}


def _unpack(packed: dict[str, HostArray], count: int, like: PyTree) -> PyTree:
    leaves, structure = jax.tree.flatten(like)
    arrays = [jnp.asarray(packed[f"{i:05d}"][:count]) for i in range(len(leaves))]
    return jax.tree.unflatten(
        structure,
        [
            jax.random.wrap_key_data(array) if _is_key(leaf) else array
            for array, leaf in zip(arrays, leaves, strict=True)
        ],
    )
