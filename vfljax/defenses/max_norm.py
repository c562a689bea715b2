"""MaxNorm: every gradient is made to look as long as the longest (Li et al. 2022).

    g_j <- g_j (1 + sigma_j xi_j),   sigma_j = sqrt(max_i |g_i|^2 / |g_j|^2 - 1),   xi_j ~ N(0, 1)

There is ONE draw xi_j for a row, so that E |g_j|^2 is the same for all rows and the norm reveals less.

Reference: Li et al. "Label Leakage and Protection in Two-party Split Learning", ICLR 2022,
section 4.1 ("max_norm").

Guarantee: none. The direction of every gradient is exact up to its sign, which survives with probability
Phi(1 / sigma_j) > 1/2. Without model splitting, any multiple of softmax - target names the label if there are
more than two classes (``direct``, rule="largest"). The defense needs no labels and has no knob.

Edge cases: a zero row is left alone; rows of the same length, or a batch of 1, are sent as they are.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax.defenses import core
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Knower
from vfljax.types import Array


def scales(gradients: Array) -> Array:
    """sigma_j >= 0 of every row of ``gradients`` [B, D]: [B], a ratio without unit.

    It is 0 for zero rows and for the longest row.
    """
    chex.assert_rank(gradients, 2)
    # each row in its own units, sqrt(r^2 - 1) as a product: squares over- and underflow, norms do not
    largest = jnp.max(jnp.abs(gradients), axis=-1)
    unit = gradients / jnp.where(largest > 0, largest, 1.0)[:, None]
    norms = largest * jnp.sqrt(jnp.sum(unit * unit, axis=-1))
    longest = jnp.max(norms)
    ratio = jnp.minimum(longest / jnp.where(norms > 0, norms, 1.0), 1e38)
    sigma = jnp.sqrt(jnp.maximum(ratio - 1, 0)) * jnp.sqrt(ratio + 1)
    # on a GPU a number divided by itself is not always 1, and sigma of the longest would be 5e-4
    return jnp.where((norms > 0) & (norms < longest), sigma, 0.0)


def perturb(key: Array, gradients: Array) -> Array:
    """``gradients`` [B, D] after MaxNorm: every row times a scalar of mean 1."""
    chex.assert_rank(gradients, 2)
    xi = jax.random.normal(key, gradients.shape[:1], gradients.dtype)
    # a short row times its large sigma first: sigma xi alone may overflow
    return gradients + gradients * scales(gradients)[:, None] * xi[:, None]


def max_norm() -> core.Defense:
    """MaxNorm. It has no knob, and it never reduces to no defense."""
    return core.Defense(gradient=core.per_party(lambda key, g, context: perturb(key, g)))


ROW = DefenseRow(
    factory=max_norm,
    example={},
    not_for_numbers="",
    known_by={
        # of more than two classes the entry of largest magnitude is the label's, whatever the draw
        "no_split": (Knower("direct", "largest"), *READING),
        # gradients are noised, embeddings are not (Sun et al. 2022)
        "split": (*AVERAGING, Knower("probe"), Knower("spectral")),
    },
)
