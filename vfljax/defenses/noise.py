"""Noisy gradients: Laplace noise on what each party receives (Fu et al. 2022).

    g <- g + scale * Laplace(0, 1), independent for every element, party and step

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 6 (after Zhu et al. 2019); scales 1e-4 .. 1e-1.

Guarantee: none; gradients are not clipped, so no differential privacy follows.
Scale: absolute, on cut gradients of the batch-MEAN loss (they carry 1/B).
Edge cases: scale = 0 changes nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax.defenses import core
from vfljax.types import Array


def laplace(key: Array, g: Array, scale: Array | float) -> Array:
    """``g`` plus i.i.d. Laplace(0, scale) noise (variance 2 scale^2), same shape."""
    return g + scale * jax.random.laplace(key, g.shape, g.dtype)


def noise(scale: Array | float) -> core.Defense:
    """Noisy gradients with Laplace ``scale`` >= 0; reduces to no defense at 0."""
    core.check("scale", scale, 0.0, jnp.inf)
    return core.Defense(gradient=core.per_party(lambda key, g: laplace(key, g, scale)))
