"""Functions of rows that training, teachers and attacks share: scaling, evaluation in chunks, and rows
that stay on the host until a batch needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import machine
from vfljax.types import CHUNK, Array, PyTree

FETCHED = 8192  # rows a callback is asked for


@jax.tree_util.register_static
class Streamed:
    """Rows that stay on the host (a file mapped into memory): ``streamed[rows]`` fetches those rows
    alone, in compiled programs too, so that training needs memory for its batches only.

    Stands where an array [R, ...] of raw features would; equal only to itself. Many rows are fetched
    ``FETCHED`` at a time: JAX copies larger arguments of a callback by a task of their own, which
    waits forever where every device's thread is inside a program (jax 0.10.2, several host devices).
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, self.shape, self.dtype = rows, rows.shape, rows.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def _fetch(self, which: Array | np.ndarray) -> np.ndarray:
        return np.asarray(self._rows[np.asarray(which)])

    def __getitem__(self, which: Array | np.ndarray) -> Any:
        if isinstance(which, np.ndarray):
            return self._fetch(which)

        def fetch(some: Array) -> Array:
            out = jax.ShapeDtypeStruct((*some.shape, *self.shape[1:]), self.dtype)
            # on an accelerator the lanes of a call share one way to the host and back
            method = "sequential" if machine.offered().cpu else "expand_dims"
            return jax.pure_callback(self._fetch, out, some, vmap_method=method)

        flat = which.reshape(-1)
        if len(flat) <= FETCHED:
            return fetch(which)
        pieces = jnp.pad(flat, (0, -len(flat) % FETCHED)).reshape(-1, FETCHED)
        fetched = jax.lax.map(fetch, pieces).reshape(-1, *self.shape[1:])
        return fetched[: len(flat)].reshape(*which.shape, *self.shape[1:])


def scaled(x: Array, mean: Array, scale: Array) -> Array:
    """(x - mean) / scale in float32, statistics per column or one for the whole block. A missing
    number (NaN) reads as the mean: 0."""
    chex.assert_equal_shape([mean, scale])
    chex.assert_shape(mean, x.shape[x.ndim - mean.ndim :])
    lead = (1,) * (x.ndim - mean.ndim)
    out = (x.astype(jnp.float32) - mean.reshape(lead + mean.shape)) / scale.reshape(
        lead + scale.shape
    )
    return jnp.where(jnp.isnan(out), 0.0, out) if jnp.issubdtype(x.dtype, jnp.floating) else out


def scaled_rows(features: Any, mean: Array, scale: Array, seed: Any, rows: Any) -> Array:
    """Rows of one party's raw ``features`` [R, ...] as networks read them: ``scaled`` by the
    statistics ``mean`` and ``scale`` [Q, ...] of one ``seed``. ``rows`` [n] gives [n, ...]."""
    chex.assert_rank([seed, rows], [0, 1])
    chex.assert_equal_shape([mean, scale])
    return scaled(features[rows], mean[seed], scale[seed])


def over_chunks(fn: Callable[[Array], PyTree], rows: Array, chunk: int = CHUNK) -> PyTree:
    """``fn`` (rows -> arrays with a leading row axis) over ``rows`` in chunks; equal to
    ``fn(rows)`` for a function that treats rows [n] alone (evaluation mode). ``chunk`` is a CPU's:
    an accelerator takes as many more rows at a time as ``rows_at_once`` says."""
    chex.assert_rank(rows, 1)
    chunk = machine.rows_at_once(chunk)
    if len(rows) <= chunk:
        return fn(rows)
    count = -(-len(rows) // chunk)
    padded = jnp.concatenate([rows, jnp.broadcast_to(rows[:1], (count * chunk - len(rows),))])
    out = jax.lax.map(fn, padded.reshape(count, chunk))
    return jax.tree.map(lambda a: a.reshape(count * chunk, *a.shape[2:])[: len(rows)], out)
