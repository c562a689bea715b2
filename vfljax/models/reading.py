"""Rows for networks: kept on the host until a batch needs them, scaled, and evaluated in chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.buffer_callback import buffer_callback

from vfljax import machine
from vfljax.types import CHUNK, Array, PyTree


@jax.tree_util.register_static
class Streamed:
    """Rows [R, ...] that stay on the host, such as a file mapped into memory. An object equals only itself.

    ``streamed[rows]`` fetches these rows only, in compiled programs too, so that training needs memory for
    its batches only.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, self.shape, self.dtype = rows, rows.shape, rows.dtype
        # ``take`` is several times as fast, but it first copies all rows if they are not contiguous
        self._together = isinstance(rows, np.ndarray) and rows.flags.c_contiguous

    def __len__(self) -> int:
        return self.shape[0]

    def _fetch(self, which: Array | np.ndarray) -> np.ndarray:
        rows, which = self._rows, np.asarray(which)
        return np.take(rows, which, axis=0) if self._together else np.asarray(rows[which])

    def _write(self, _: Any, out: Any, which: Any) -> None:
        rows, which, out = self._rows, np.asarray(which), np.asarray(out)
        if self._together:  # mode "raise", the default, would fill a copy of ``out`` first
            np.take(rows, which, axis=0, out=out, mode="wrap")
        else:
            out[...] = rows[which]

    def __getitem__(self, which: Array | np.ndarray) -> Any:
        if isinstance(which, np.ndarray):
            return self._fetch(which)

        @jax.custom_batching.custom_vmap
        def fetch(rows: Array) -> Array:
            out = jax.ShapeDtypeStruct((*rows.shape, *self.shape[1:]), self.dtype)
            if machine.offered().cpu:  # rows are written directly to where the program reads them
                return buffer_callback(self._write, out)(rows)
            return jax.pure_callback(self._fetch, out, rows)

        @fetch.def_vmap
        def _(_: int, __: Any, rows: Array) -> tuple[Array, bool]:
            return self[rows], True  # all members of a call share one callback to the host

        return fetch(which)


def scaled_rows(features: Any, mean: Array, scale: Array, seed: Any, rows: Any) -> Array:
    """Returns rows of one party's raw features as networks read them: (x - mean) / scale, float32 [n, ...].

    Args:
      features: [R, ...]; a missing number (NaN) becomes the mean, which is 0 in the result.
      mean: [Q, ...] of every seed, per column, or [Q] for all columns.
      scale: likewise, in the shape of ``mean``.
      seed: [] the seed whose statistics are used.
      rows: [n] int.
    """
    chex.assert_rank([seed, rows], [0, 1])
    chex.assert_equal_shape([mean, scale])
    x, mean, scale = features[rows], mean[seed], scale[seed]
    chex.assert_shape(mean, x.shape[x.ndim - mean.ndim :])
    lead = (1,) * (x.ndim - mean.ndim)
    mean, scale = mean.reshape(lead + mean.shape), scale.reshape(lead + scale.shape)
    out = (x.astype(jnp.float32) - mean) / scale
    return jnp.where(jnp.isnan(out), 0.0, out) if jnp.issubdtype(x.dtype, jnp.floating) else out


def over_chunks(fn: Callable[[Array], PyTree], rows: Array, chunk: int = CHUNK) -> PyTree:
    """Returns ``fn(rows)``, computed in chunks of rows.

    Args:
      fn: a function from rows [n] to arrays [n, ...] that treats each row by itself (evaluation mode).
      rows: [n] int.
      chunk: rows at a time on a CPU; an accelerator takes more (``machine.rows_at_once``).
    """
    chex.assert_rank(rows, 1)
    chunk = machine.rows_at_once(chunk)
    if len(rows) <= chunk:
        return fn(rows)
    count = -(-len(rows) // chunk)
    padded = jnp.concatenate([rows, jnp.broadcast_to(rows[:1], (count * chunk - len(rows),))])
    out = jax.lax.map(fn, padded.reshape(count, chunk))
    return jax.tree.map(lambda a: a.reshape(count * chunk, *a.shape[2:])[: len(rows)], out)
