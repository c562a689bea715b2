"""Trials in one program: how many it takes, how many of them are mapped at once, and on which devices.

On CPU: one XLA host device a core (``vfljax.use_this_machine``) and few members at a time within each,
so that a member's parameters stay in cache; on an accelerator: one wide ``vmap``, of so many members as the
compiled program's memory analysis says fit. No collectives.
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
from vfljax.machine import bytes_text, exhausted
from vfljax.types import PyTree

AXIS = "member"  # of the mesh of devices
BY_MEMBER = PartitionSpec(AXIS)
SAME = PartitionSpec()


def default_width() -> int:
    """Trials mapped at once on each device: about 6 on CPU, elsewhere all, or as many as fit (``TooLarge``).

    On CPU fewer pay for each small operation again, more fall out of the cache. Measured by processor time for
    widths of 1 to 60: the benchmark's MLP is fastest at 1 or 2, a network of 16 hidden units at 60, and 6
    is within about a tenth of both (``vfljax benchmark --suite=grid --width=N``).
    """
    return 6 if machine.offered().cpu else 1 << 30


def dividing_width(capacity: int, width: int | None = None) -> int:
    """Returns the largest width that divides a device's members, so that arrays need no padding.

    Args:
      capacity: members on all devices.
      width: the largest that it may be; None: the backend's.
    """
    each = capacity // jax.device_count()
    most = min(default_width() if width is None else width, each)
    return next(w for w in range(most, 0, -1) if each % w == 0)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How many members a program takes, and how many of them are mapped at once on each device."""

    capacity: int  # a multiple of the width on every device
    width: int

    def pad(self, members: PyTree) -> PyTree:
        """``members`` on the devices, the last one repeated where there are fewer than ``capacity``."""
        count = leading(members)
        if count > self.capacity:
            raise ValueError(f"{count} members given to a program of {self.capacity}")
        by_member = NamedSharding(Mesh(jax.devices(), (AXIS,)), BY_MEMBER)

        def on_devices(a: Any) -> Any:
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(on_devices(np.asarray(jax.random.key_data(a))))
            if count < self.capacity:
                a = np.asarray(a)  # on the host: nothing to compile for each shape
                a = np.concatenate([a, np.repeat(a[-1:], self.capacity - count, axis=0)])
            return jax.device_put(a, by_member)

        return jax.tree.map(on_devices, members)


class TooLarge(jax.errors.JaxRuntimeError):
    """A program would exhaust a device's memory, and was not run; ``width`` members at once would fit."""

    def __init__(self, needed: int, width: int) -> None:
        self.width = width
        self.memory = f"{bytes_text(needed)} of a device's {bytes_text(machine.offered().memory)}"
        super().__init__(f"RESOURCE_EXHAUSTED: the program needs {self.memory}")


def fewer(layout: Layout, what: str, error: Exception, say: Callable[[str], None]) -> int:
    """Returns a smaller width to go on with after a call exhausted a device's memory, or would have.

    Args:
      layout: of the call.
      what: was computed, for the message.
      error: of the call. After ``TooLarge`` the width is the one that it names, else half of the layout's.
      say: is given a line about it.

    Raises:
      Exception: ``error``, if it is another one, or if only one member was mapped at once.
    """
    width, devices = layout.width // 2, jax.device_count()
    why = "exhaust the device's memory"
    if isinstance(error, TooLarge):
        width, why = error.width, f"need {error.memory}"
    elif not exhausted(error) or not width:
        raise error
    say(f"{what}: {layout.width * devices} trials at once {why}, goes on with {width * devices}")
    return width


def share(shared: PyTree) -> PyTree:
    """``shared`` on every device, once."""
    return jax.device_put(shared, NamedSharding(Mesh(jax.devices(), (AXIS,)), SAME))


def layout(count: int, width: int | None = None, devices: int | None = None) -> Layout:
    """Returns the layout of some members.

    Members of a device are a multiple of the width (a remainder would be traced a second time): a width
    up to half as large that pads fewer members is taken instead.

    Args:
      count: how many they are.
      width: of them at once on each device, at most; None: the backend's.
      devices: of the machine whose choice it is, so that figures do not depend on where they are computed;
        None: those of this process.
    """
    each = -(-count // (devices or jax.device_count()))
    width = min(default_width() if width is None else width, each)
    width = min(range(width, max(width // 2 - 1, 0), -1), key=lambda w: -each % w)
    return layout_of(count, width)


def layout_of(count: int, width: int) -> Layout:
    """Returns the layout of some members, just ``width`` of them at once on each device, if there are so many.

    Args:
      count: how many they are.
      width: of them at once on each device.
    """
    each = -(-count // jax.device_count())
    width = min(width, each)
    return Layout((each + -each % width) * jax.device_count(), width)


def leading(tree: PyTree) -> int:
    """Length of the member axis."""
    return jax.tree.leaves(tree)[0].shape[0]


def unpad(tree: PyTree, count: int) -> PyTree:
    """Returns the first members on the host, as NumPy arrays.

    Args:
      tree: of all members.
      count: how many to return.
    """
    return jax.tree.map(lambda a: a[:count], jax.device_get(tree))
