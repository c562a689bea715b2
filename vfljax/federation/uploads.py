"""Uploads: what a passive party sends in place of its embeddings, by name.

An upload is a function ``(key, z [B, D], anchor [1, D], strength []) -> sent [B, D]`` of a party's embeddings
of a batch. It is part of the party's forward map, so that received gradients are pulled back through it. The
strength is traced, and 0 sends the embeddings as they are. The exchange records what was sent.

========  ===============================================================================================
name      sent
========  ===============================================================================================
honest    z. Its strength is 0
scale     (1 + strength) z
constant  z + strength (mean of the batch - z): at 1 all rows of a batch send the same embedding, so that the
          gradient of a row depends on its label and on the other parties' columns alone
repeat    with probability ``strength``, a row sends the embedding of the row before it in the batch
swap      with probability ``strength``, a row sends the ``anchor``, the embedding of one row that is the
          same for the whole run
========  ===============================================================================================

The swap is that of VILLAIN (Bai et al., USENIX Security 2023), which reads from the norm of the gradient
whether two rows have the same label (``vfljax.attacks.swapping``). There the label of the anchor is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from vfljax.errors import LARGEST
from vfljax.types import HONEST, Array


class Upload(NamedTuple):
    """How a party deviates in what it sends."""

    send: Callable[[Array, Array, Array, Array], Array]
    most: float = 1.0  # the largest strength that a config may set; the smallest is 0


def _honest(key: Array, z: Array, anchor: Array, strength: Array) -> Array:
    del key, anchor, strength
    return z


def unlearned(sent: Array, absent: Array) -> Array:
    """Returns ``sent`` [B, D] as it is. The gradient that is pulled back through it is 0 if ``absent`` [] is 1,
    of a party that takes no part, and unchanged if it is 0."""
    return sent - absent * (sent - jax.lax.stop_gradient(sent))


def _scale(key: Array, z: Array, anchor: Array, strength: Array) -> Array:
    del key, anchor
    return (1 + strength) * z


def _constant(key: Array, z: Array, anchor: Array, strength: Array) -> Array:
    del key, anchor
    mean = jax.lax.stop_gradient(jnp.mean(z, axis=0, keepdims=True))
    return z + strength * (mean - z)


def _repeat(key: Array, z: Array, anchor: Array, strength: Array) -> Array:
    del anchor
    return _replaced(key, z, jax.lax.stop_gradient(jnp.roll(z, 1, axis=0)), strength)


def _swap(key: Array, z: Array, anchor: Array, strength: Array) -> Array:
    chex.assert_shape(anchor, (1, z.shape[1]))
    return _replaced(key, z, jax.lax.stop_gradient(jnp.broadcast_to(anchor, z.shape)), strength)


def _replaced(key: Array, z: Array, other: Array, strength: Array) -> Array:
    """Returns ``z`` [B, D], with each row replaced by that of ``other`` with probability ``strength``."""
    chex.assert_rank([z, strength], [2, 0])
    drawn = jax.random.uniform(key, (len(z), 1)) < strength
    return jnp.where(drawn, other, z)


TABLE: dict[str, Upload] = {
    HONEST: Upload(_honest, most=0.0),
    "scale": Upload(_scale, LARGEST),
    "constant": Upload(_constant),
    "repeat": Upload(_repeat),
    "swap": Upload(_swap),
}
