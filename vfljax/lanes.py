"""A pure function of one setting, mapped over many settings and over the machine's devices.

On CPU: one XLA host device a core (``use_all_cores``) and few lanes at a time within each, so
that a lane's parameters stay in cache; on an accelerator: one wide ``vmap``. No collectives.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from vfljax.types import PyTree

LANE = PartitionSpec("lane")
SAME = PartitionSpec()


def cores() -> int:
    """Cores this process may use (not those the machine has)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_all_cores() -> None:
    """One XLA host device a core. Call before JAX's first computation; no effect on GPUs."""
    jax.config.update("jax_num_cpu_devices", cores())


def default_width() -> int:
    """Settings mapped at once on each device: about 6 on CPU (measured: fewer pay for each small
    operation again, more fall out of the cache), all elsewhere."""
    return 6 if jax.default_backend() == "cpu" else 1 << 30


def dividing_width(block: int, width: int | None = None) -> int:
    """The largest width up to ``width`` (None: the backend's) that divides a device's lanes of
    ``block``: a ``Program`` of it takes the block as it is, arrays already on the devices included.
    """
    each = block // jax.device_count()
    most = min(default_width() if width is None else width, each)
    return next(w for w in range(most, 0, -1) if each % w == 0)


class Program:
    """``one(own, shared) -> out`` compiled once for blocks of lanes.

    ``own`` has a leading axis of any length up to ``block``, ``shared`` is the same for every lane.
    Short blocks are padded with copies of their last lane, whose results are dropped.
    ``traces`` counts how often it was traced: more than one compile a program is a defect, and
    raises.
    """

    def __init__(
        self,
        one: Callable[[PyTree, PyTree], PyTree],
        block: int,
        width: int | None = None,
    ) -> None:
        devices = jax.devices()
        each = -(-block // len(devices))
        width = min(default_width() if width is None else width, each)
        # lanes of a device are a multiple of the width (a remainder would be traced a second time):
        # a width up to half as large that pads fewer lanes is taken instead
        width = min(range(width, max(width // 2 - 1, 0), -1), key=lambda w: -each % w)
        local = each + -each % width
        self.block, self.width, self.traces = local * len(devices), width, 0

        def over_local_lanes(own: PyTree, shared: PyTree) -> PyTree:
            self.traces += 1
            if self.traces > 1:
                raise AssertionError("a program was traced twice: a knob became a static value")
            if width == local:
                return jax.vmap(one, in_axes=(0, None))(own, shared)
            grouped = jax.tree.map(lambda a: a.reshape(local // width, width, *a.shape[1:]), own)
            out = jax.lax.map(lambda o: jax.vmap(one, in_axes=(0, None))(o, shared), grouped)
            return jax.tree.map(lambda a: a.reshape(local, *a.shape[2:]), out)

        mesh = Mesh(devices, ("lane",))
        self._lane, self._same = NamedSharding(mesh, LANE), NamedSharding(mesh, SAME)
        self._call = jax.jit(
            jax.shard_map(
                over_local_lanes,
                mesh=mesh,
                in_specs=(LANE, SAME),
                out_specs=LANE,
                check_vma=False,
            ),
        )
        self._compiled: Future[Any] | None = None

    def pad(self, own: PyTree) -> PyTree:
        """``own`` on the devices, padded to the block."""
        count = leading(own)
        if count > self.block:
            raise ValueError(f"{count} lanes given to a block of {self.block}")

        def one(a: Any) -> Any:
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                raw = np.asarray(jax.random.key_data(a))
                return jax.random.wrap_key_data(one(raw))
            if count < self.block:
                a = np.asarray(a)  # on the host: nothing to compile for each shape
                a = np.concatenate([a, np.repeat(a[-1:], self.block - count, axis=0)])
            return jax.device_put(a, self._lane)

        return jax.tree.map(one, own)

    def share(self, shared: PyTree) -> PyTree:
        """``shared`` on every device, once."""
        return jax.device_put(shared, self._same)

    def compile_ahead(self, own: PyTree, shared: PyTree, pool: Executor) -> None:
        """Trace now and compile in ``pool`` for these arguments' shapes, while others run."""
        if self._compiled is None and not self.traces:
            self._compiled = pool.submit(self._call.lower(own, shared).compile)

    def __call__(self, own: PyTree, shared: PyTree) -> PyTree:
        """Results of all lanes of the block, copies included: call ``unpad`` on what is kept.
        Arguments come from ``pad`` and ``share``."""
        return (self._compiled.result() if self._compiled else self._call)(own, shared)


def leading(tree: PyTree) -> int:
    """Length of the lane axis."""
    return jax.tree.leaves(tree)[0].shape[0]


def unpad(tree: PyTree, count: int) -> PyTree:
    """The first ``count`` lanes, on the host, as NumPy arrays."""
    return jax.tree.map(lambda a: a[:count], jax.device_get(tree))
