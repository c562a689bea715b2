"""What an attacker sees of a stored run, and what only the judge may: where labels stop.

What enters: a setting's arrays as a sweep stored them. What leaves: a ``View`` without labels, and the
``Known`` rows. True labels stay in ``Ground``, which no attack is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from vfljax.rows import scaled
from vfljax.training import Table
from vfljax.types import Array, Known, PyTree, Sums, View

EXCHANGE = (
    *("embeddings", "gradients", "order", "sent", "epochs"),
    *("sum_gradient", "sum_sign", "sum_square", "sum_count"),
)


class Target(NamedTuple):
    """One attack on one setting, as arrays; stacked to [L, ...] for a block."""

    seed: Array  # [] uint32
    seed_index: Array  # [] int32
    key_name: Array  # [] uint32, folded into the seed's key: the attack, never the lane
    knobs: dict[str, Array]
    exchange: dict[str, Array]
    bottom: PyTree


class Ground(NamedTuple):
    """What all settings share: the attacker's own columns, and the true labels for the judge."""

    features: Array  # [R, ...] the attacker's own columns
    mean: Array  # [Q, ...]
    scale: Array
    train: Array  # [Q, N]
    test: Array  # [Q, M]
    labels: Array  # [R] for the judge, and for the known rows
    known_order: Array  # [Q, N] training rows, classes in turn: the first n are known
    selects: Array  # [Q, N] bool: rows on which the worst attack is chosen


def ground_of(table: Table, arrays: Mapping[str, np.ndarray], party: int) -> Ground:
    return Ground(
        features=table.features[party],
        mean=table.mean[party],
        scale=table.scale[party],
        train=table.train,
        test=table.test,
        labels=table.labels,
        known_order=jnp.asarray(arrays["known_order"]),
        selects=jnp.asarray(arrays["selects"]),
    )


def known_rows(ground: Ground, seed_index: Array, count: Array) -> Known:
    """The first ``count`` rows of the seed's order with their labels; -1 for all others."""
    order = ground.known_order[seed_index]
    labels = ground.labels[ground.train[seed_index]][order]
    count = jnp.minimum(count.astype(jnp.int32), len(order))
    return Known(order, jnp.where(jnp.arange(len(order)) < count, labels, -1), count)


def view_of(target: Target, ground: Ground) -> View:
    """One attacker's sight; true labels do not enter it."""

    def own_columns(rows: Array) -> Array:
        i = target.seed_index
        return scaled(ground.features[rows], ground.mean[i], ground.scale[i])

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
        bottom=target.bottom,
    )
