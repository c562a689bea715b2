"""The layout of trials in a program: how many it takes, how many it maps at once, and on which devices.

On a CPU there is one XLA host device per core (``vfljax.use_this_machine``), and each maps few members at a
time, so that their parameters stay in cache. On an accelerator one wide ``vmap`` takes all members, or half of
them, a quarter and so on until the compiled program fits by its memory analysis. There are no collectives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from vfljax import machine
from vfljax.machine import exhausted
from vfljax.types import Array, HostArray, PyTree

AXIS = "member"  # of the mesh of devices
BY_MEMBER = PartitionSpec(AXIS)
SAME = PartitionSpec()


def default_width() -> int:
    """Returns how many trials each device maps at once: 6 on a CPU, elsewhere all, which ``halved`` lowers.

    On a CPU smaller widths repeat the cost of each small operation, and larger ones do not fit the cache. Of
    the widths 1 to 60, 1 or 2 take the least processor time for the benchmark's MLP, and 60 for a network of
    16 hidden units; 6 is within about a tenth of both (``python -m launch.benchmark --suite=grid --width=N``).
    """
    return 6 if machine.offered().cpu else 1 << 30


def dividing_width(capacity: int, width: int | None = None) -> int:
    """Returns the largest width that divides a device's members, so that arrays need no padding.

    Args:
      capacity: members on all devices.
      width: an upper bound of the result; None: ``default_width()``.
    """
    each = capacity // jax.device_count()
    most = min(default_width() if width is None else width, each)
    return next(w for w in range(most, 0, -1) if each % w == 0)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How many members a program takes, and how many of them are mapped at once on each device."""

    capacity: int  # a multiple of the width on every device
    width: int
    # whether members are dealt to the devices in turn, so that few members still use all devices. Otherwise
    # each device takes as many successive members as it can hold
    dealt: bool = False

    def pad(self, members: PyTree) -> PyTree:
        """Places ``members`` on the devices. If these are fewer than the capacity, the last is repeated."""
        count = leading(members)
        if count > self.capacity:
            raise ValueError(f"{count} members given to a program of {self.capacity}")
        by_member = NamedSharding(Mesh(jax.devices(), (AXIS,)), BY_MEMBER)
        order = np.minimum(np.argsort(self.places()), count - 1)
        as_given = np.array_equal(order, np.arange(count))

        def on_devices(a: Any) -> Any:
            if is_key(a):
                return jax.random.wrap_key_data(on_devices(np.asarray(jax.random.key_data(a))))
            # on the host, so that no program is compiled for each shape
            return jax.device_put(a if as_given else np.asarray(a)[order], by_member)

        return jax.tree.map(on_devices, members)

    def unpad(self, tree: PyTree, count: int) -> PyTree:
        """Returns the results [capacity, ...] of the first ``count`` members on the host, as NumPy arrays."""
        if not self.dealt:
            return unpad(tree, count)
        places = self.places()[:count]
        return jax.tree.map(lambda a: np.asarray(a)[places], jax.device_get(tree))

    def places(self) -> HostArray:
        """Returns the index [capacity] along the member axis at which each member lies."""
        members, devices = np.arange(self.capacity), jax.device_count()
        if not self.dealt:
            return members
        return members % devices * (self.capacity // devices) + members // devices

    def on_each(self, count: int) -> Array:
        """Returns how many of the first ``count`` members each device holds, [devices] and on the devices."""
        devices = jax.device_count()
        holders = self.places()[:count] // (self.capacity // devices)
        of_device = np.bincount(holders, minlength=devices).astype(np.int32)
        return jax.device_put(of_device, NamedSharding(Mesh(jax.devices(), (AXIS,)), BY_MEMBER))


def halved(failed: Layout, what: str, error: Exception, say: Callable[[str], None]) -> int:
    """Returns the width to go on with after a call exhausted a device's memory, or would have: at most half of
    the call's, and the one that pads the fewest members (``layout``).

    Args:
      failed: the layout of the call.
      what: the name of the computation, for the message.
      error: of the call.
      say: receives a line about it.

    Raises:
      Exception: ``error`` itself, if memory was not the reason, or if only one member was mapped at once.
    """
    devices = jax.device_count()
    if not exhausted(error) or failed.width == 1:
        raise error
    width = layout(failed.capacity, failed.width // 2).width
    before, after, why = failed.width * devices, width * devices, str(error).partition("\n")[0]
    say(f"{what}: {before} trials at once do not fit ({why}), goes on with {after}")
    return width


def share(shared: PyTree) -> PyTree:
    """Returns ``shared`` with one copy on every device."""
    return jax.device_put(shared, NamedSharding(Mesh(jax.devices(), (AXIS,)), SAME))


def layout(count: int, width: int | None = None, devices: int | None = None) -> Layout:
    """Returns the layout of some members.

    The members of a device are padded to a multiple of the width, because a remainder would be traced again.
    Of the widths from the largest down to half of it, the one that pads the fewest members is chosen.

    Args:
      count: the number of members.
      width: the largest number of members at once on each device; None: ``default_width()``.
      devices: the number of devices by which the width is chosen, which a resume on another machine keeps;
        None: that of this process.
    """
    each = -(-count // (devices or jax.device_count()))
    width = min(default_width() if width is None else width, each)
    width = min(range(width, max(width // 2 - 1, 0), -1), key=lambda w: -each % w)
    return layout_of(count, width)


def layout_of(count: int, width: int) -> Layout:
    """Returns the layout with exactly ``width`` members at once on each device, or all if there are fewer.

    Args:
      count: the number of members.
      width: the number of members at once on each device.
    """
    each = -(-count // jax.device_count())
    width = min(width, each)
    return Layout((each + -each % width) * jax.device_count(), width)


def is_key(a: Any) -> bool:
    """Returns whether an array, or its shape, is of random keys."""
    return jnp.issubdtype(a.dtype, jax.dtypes.prng_key)


def leading(tree: PyTree) -> int:
    """Returns the length of the member axis."""
    return jax.tree.leaves(tree)[0].shape[0]


def unpad(tree: PyTree, count: int) -> PyTree:
    """Returns the first members on the host, as NumPy arrays.

    Args:
      tree: of all members.
      count: how many to return.
    """
    return jax.tree.map(lambda a: a[:count], jax.device_get(tree))
