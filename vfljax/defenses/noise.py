"""Noisy gradients: noise on what each party receives (Fu et al. 2022; Li et al. 2022).

    laplace    g <- g + scale * Laplace(0, 1)                        default, Fu et al.
    gaussian   g <- g + scale * N(0, 1)
    isotropic  g <- g + scale * max_j |g_j|_2 / sqrt(D) * N(0, 1)    relative to the batch

The draws are independent between elements, parties and steps.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 6 (after Zhu et al. 2019), scales 1e-4 .. 1e-1; isotropic: Li et al. "Label
Leakage and Protection in Two-party Split Learning", ICLR 2022, section 4.

Guarantee: none. Gradients are not clipped, so no differential privacy follows.

Scale: ``scale`` is absolute, on cut gradients of the batch-MEAN loss, which carry a factor 1/B. For
isotropic noise it is a ratio.

Edge cases: scale = 0 changes nothing; isotropic noise on zero gradients is zero.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Strengths
from vfljax.types import Array


def laplace(key: Array, g: Array, scale: Array | float) -> Array:
    """``g`` [B, D] plus i.i.d. Laplace(0, scale) noise, of variance 2 scale^2."""
    chex.assert_rank([g, scale], [2, 0])
    return g + scale * jax.random.laplace(key, g.shape, g.dtype)


def gaussian(key: Array, g: Array, scale: Array | float) -> Array:
    """``g`` [B, D] plus i.i.d. N(0, scale^2) noise."""
    chex.assert_rank([g, scale], [2, 0])
    return g + scale * jax.random.normal(key, g.shape, g.dtype)


def isotropic(key: Array, g: Array, scale: Array | float) -> Array:
    """``g`` [B, D] plus i.i.d. N(0, s^2) noise with s = scale * max_j |g_j|_2 / sqrt(D).

    The expected squared length of a row's noise is the square of ``scale`` times the longest row of ``g``.
    """
    chex.assert_rank([g, scale], [2, 0])
    largest = jnp.max(jnp.abs(g))
    unit = g / jnp.where(largest > 0, largest, 1.0)  # squares of 1e-30 and 1e30 stay finite
    longest = largest * jnp.sqrt(jnp.max(jnp.sum(unit * unit, axis=-1)))
    return gaussian(key, g, scale * (longest / jnp.sqrt(g.shape[-1])))


LAWS = {"laplace": laplace, "gaussian": gaussian, "isotropic": isotropic}


def noise(scale: Array | float, *, law: str = "laplace") -> core.Defense:
    """Noise of ``scale`` >= 0 and of a ``law``, "laplace", "gaussian" or "isotropic".

    Reduces to no defense at scale = 0. Raises ``ValueError`` for a negative scale or an unknown law.
    """
    errors.check("scale", scale, 0.0, jnp.inf)
    errors.check_choice("law", law, tuple(LAWS))
    return core.Defense(gradient=core.per_party(lambda key, g, context: LAWS[law](key, g, scale)))


ROW = DefenseRow(
    factory=noise,
    example={"scale": 1e-3},
    not_for_numbers="",
    known_by={"no_split": READING, "split": AVERAGING},
    neutral={"scale": 0.0},
    strengths=Strengths("scale", (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1), faint=(0.03, 0.1)),
)
