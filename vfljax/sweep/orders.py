"""The order in which rows are sent, made once for all trials of a sweep."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax.federation import training
from vfljax.sweep import batch_layout
from vfljax.sweep.plan import Plan

ORDER_BYTES = 256 << 20  # orders of rows kept for the next group and shard


class Orders:
    """The order of rows of every seed and epoch: the same for all groups and shards of a sweep, so it
    is made once, and kept on the devices as far as ``ORDER_BYTES`` go (small networks train faster than rows
    sort)."""

    def __init__(self, plan: Plan) -> None:
        self._seeds, self._rows = jnp.asarray(plan.seeds), len(plan.splits[0].train)
        one = 8 * len(plan.seeds) * self._rows * jax.device_count()  # order and place, int32
        self._most = ORDER_BYTES // one
        self._kept: dict[int, training.Epoch] = {}

    def of(self, epoch: int) -> training.Epoch:
        """The orders of one epoch, as ``batch_layout.share`` places them."""
        if epoch in self._kept:
            return self._kept[epoch]
        orders = batch_layout.share(training.epoch_of(jnp.int32(epoch), self._seeds, self._rows))
        if len(self._kept) < self._most:
            self._kept[epoch] = orders
        return orders
