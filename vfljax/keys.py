"""Random keys by name. A setting's key is ``key(seed)`` only, never its lane or place in a grid,

so that settings of one seed are paired and a result never depends on what it ran beside.
threefry only: under ``vmap`` the rbg generators draw from the first lane's key alone.
"""

from __future__ import annotations

import zlib

import jax
import jax.numpy as jnp

from vfljax.types import Array


def run_key(seed: Array | int) -> Array:
    """The key of one run: a function of the seed alone."""
    return jax.random.key(seed, impl="threefry2x32")


def fold(key: Array, *path: str | int | Array) -> Array:
    """Fold names (by CRC-32, stable between processes) and numbers into a key, in order."""
    for part in path:
        if isinstance(part, str):
            part = zlib.crc32(part.encode())
        key = jax.random.fold_in(key, jnp.asarray(part, jnp.uint32))
    return key
