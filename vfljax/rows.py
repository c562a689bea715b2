"""Functions of rows that training, teachers and attacks share: scaling, and evaluation in chunks."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from vfljax.types import Array, PyTree

CHUNK = 1024  # rows evaluated at a time, so that test sets need no more memory than batches


def scaled(x: Array, mean: Array, scale: Array) -> Array:
    """(x - mean) / scale in float32, statistics per column or one for the whole block. A missing
    number (NaN) reads as the mean: 0."""
    lead = (1,) * (x.ndim - mean.ndim)
    out = (x.astype(jnp.float32) - mean.reshape(lead + mean.shape)) / scale.reshape(
        lead + scale.shape
    )
    return jnp.where(jnp.isnan(out), 0.0, out) if jnp.issubdtype(x.dtype, jnp.floating) else out


def over_chunks(fn: Callable[[Array], PyTree], rows: Array, chunk: int = CHUNK) -> PyTree:
    """``fn`` (rows -> arrays with a leading row axis) over ``rows`` in chunks; equal to
    ``fn(rows)`` for a function that treats rows alone (evaluation mode)."""
    if len(rows) <= chunk:
        return fn(rows)
    count = -(-len(rows) // chunk)
    padded = jnp.concatenate([rows, jnp.broadcast_to(rows[:1], (count * chunk - len(rows),))])
    out = jax.lax.map(fn, padded.reshape(count, chunk))
    return jax.tree.map(lambda a: a.reshape(count * chunk, *a.shape[2:])[: len(rows)], out)
