"""What an attacker sees of a stored run: where labels stop.

What enters: a setting's arrays as a sweep stored them. What leaves: a ``View`` without labels, and the
``Known`` rows. True labels stay in ``Ground``, which no attack is given.
"""

from __future__ import annotations

import functools
import pathlib
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import checkpoint
from vfljax.rows import scaled
from vfljax.training import Table
from vfljax.types import Agreed, Array, HostArray, Known, PyTree, Sums, View, Weights

OWN = ("embeddings", "gradients", "sum_gradient", "sum_sign", "sum_square")  # one a party
EXCHANGE = (*OWN, "sum_count", "order", "sent", "epochs")


class Target(NamedTuple):
    """One attack on one setting, as arrays; stacked to [L, ...] for a block."""

    seed: Array  # [] uint32
    seed_index: Array  # [] int32
    key_name: Array  # [] uint32, folded into the seed's key: the attack, never the lane
    knobs: dict[str, Array]
    exchange: dict[str, Array]  # of colluders: concatenated
    bottoms: tuple[PyTree, ...]  # the attackers'
    weights: Weights | None = None  # the whole federation's, for what is ``inside`` it


class Ground(NamedTuple):
    """What all settings share: the attackers' own columns, and labels of which they are given few."""

    features: tuple[Array, ...]  # one an attacker, [R, ...]
    mean: tuple[Array, ...]  # [Q, ...]
    scale: tuple[Array, ...]
    train: Array  # [Q, N]
    test: Array  # [Q, M]
    labels: Array  # [R] for the known rows
    known_order: Array  # [Q, N] training rows, classes in turn: the first n are known
    whole: Table | None = None  # everyone's columns, for what is ``inside`` the federation


def ground_of(table: Table, arrays: Mapping[str, np.ndarray], attackers: tuple[int, ...]) -> Ground:
    def own(parts: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(parts[p] for p in attackers)

    return Ground(
        features=own(table.features),
        mean=own(table.mean),
        scale=own(table.scale),
        train=table.train,
        test=table.test,
        labels=table.labels,
        known_order=jnp.asarray(arrays["known_order"]),
    )


def known_rows(ground: Ground, seed_index: Array, count: Array) -> Known:
    """The first ``count`` rows of the seed's order with their labels; -1 for all others."""
    order = ground.known_order[seed_index]
    labels = ground.labels[ground.train[seed_index]][order]
    count = jnp.minimum(count.astype(jnp.int32), len(order))
    return Known(order, jnp.where(jnp.arange(len(order)) < count, labels, -1), count)


@functools.lru_cache(maxsize=2)  # settings of a structure follow each other by shard
def _shard(folder: pathlib.Path) -> tuple[PyTree, dict[str, HostArray]]:
    """A shard's weights, and its exchange arrays by memory map."""
    exchange = {
        path.stem: np.load(path, mmap_mode="r", allow_pickle=False)
        for path in (folder / "exchange").glob("*.npy")
    }
    return checkpoint.load(folder / "checkpoint"), exchange


def target_of(
    workdir: pathlib.Path,
    row: Mapping[str, Any],
    name: str,
    knobs: Mapping[str, float],
    attackers: tuple[int, ...],
    whole: bool,
) -> Target:
    """One stored setting's exchange and bottoms, as the attack ``name`` is given them; ``whole``: all
    weights too."""
    weights, exchange = _shard(workdir / "shards" / row["shard"])
    lane = row["lane"]

    def number(value: float, dtype: Any) -> HostArray:
        return np.asarray(value, dtype)

    def crossed(name: str) -> HostArray:
        if name not in OWN:  # the same for every party
            first = f"party{attackers[0]}_{name}"
            return exchange[first if first in exchange else name][lane]
        parts = [exchange[f"party{p}_{name}"][lane] for p in attackers]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    own = jax.tree.map(lambda a: a[lane], weights)
    count = len(own["bottoms"])
    every = tuple(own["bottoms"][str(p)] for p in range(count))
    return Target(
        seed=number(row["seed"], np.uint32),
        seed_index=number(row["seed"], np.int32),
        key_name=number(zlib.crc32(name.encode()), np.uint32),
        knobs={k: number(v, np.float32) for k, v in knobs.items()},
        exchange={name: crossed(name) for name in EXCHANGE},
        bottoms=tuple(every[p] for p in attackers),
        weights=Weights(every, own["active"]) if whole else None,
    )


def view_of(
    target: Target, ground: Ground, agreed: Agreed, inside: Mapping[str, Array] | None = None
) -> View:
    """One attacker's sight; true labels do not enter it. ``inside``: what a diagnostic is given."""

    def own_columns(rows: Array) -> tuple[Array, ...]:
        i = target.seed_index
        return tuple(
            scaled(x[rows], mean[i], scale[i])
            for x, mean, scale in zip(ground.features, ground.mean, ground.scale, strict=True)
        )

    e = target.exchange
    return View(
        embeddings=e["embeddings"],
        gradients=e["gradients"],
        order=e["order"],
        sent=e["sent"],
        sums=Sums(e["sum_gradient"], e["sum_sign"], e["sum_square"], e["sum_count"]),
        epochs=e["epochs"],
        features=own_columns(ground.train[target.seed_index]),
        test_features=own_columns(ground.test[target.seed_index]),
        bottoms=target.bottoms,
        agreed=agreed,
        inside=dict(inside or {}),
    )
