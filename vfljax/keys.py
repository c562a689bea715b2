"""Random keys by name.

A run's key depends on its seed alone, never on its place in a batch or a grid. Trials of one seed are
therefore paired, and no result depends on what ran beside it.

All keys are threefry keys, because under ``vmap`` the rbg generators draw from the first member's key alone.
"""

from __future__ import annotations

import zlib

import jax
import jax.numpy as jnp
from jax import Array


def run_key(seed: Array | int) -> Array:
    """The key of one run: a function of the seed alone."""
    return jax.random.key(jnp.asarray(seed).astype(jnp.uint32), impl="threefry2x32")


def fold(key: Array, *path: str | int | Array) -> Array:
    """Fold names (by CRC-32, stable between processes) and numbers into a key, in order.

    Args:
      key: [] the key of a run, or a folded key.
      path: the names and numbers to fold in.

    >>> key = run_key(0)
    >>> bool(fold(key, "step", 3) == fold(fold(key, "step"), 3))
    True
    >>> bool(fold(key, "step", 3) == fold(key, 3, "step"))
    False
    """
    for part in path:
        if isinstance(part, str):
            part = zlib.crc32(part.encode())
        key = jax.random.fold_in(key, jnp.asarray(part, jnp.uint32))
    return key
