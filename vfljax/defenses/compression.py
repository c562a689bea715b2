"""Gradient compression: send only the largest entries (Fu et al. 2022).

Over a party's whole [B, D] tensor keep the fraction ``keep_rate`` with the largest |g|, set the
others to zero.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 6 (after Lin et al. 2018); rates .75, .5, .25, .1.

Guarantee: none. The kept entries are exact.
Deviation: the released code keeps strictly above the floor(pn)-th value, hence floor(pn) - 1
entries; this keeps floor(pn), and all entries that tie with the last one kept.
Known limit: the tolerance that keeps whole numbers whole in float32 can keep one entry too many on
large tensors (seen at 8192 x 128: 314,573 of 314,572 at rate .3).
Edge cases: keep_rate = 1 changes nothing; floor(pn) = 0 sends zeros.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax.defenses import core
from vfljax.types import Array


def keep_largest(g: Array, keep_rate: Array | float) -> Array:
    """``g`` with all but its floor(keep_rate * size) largest-magnitude entries set to 0.

    The threshold is found exactly, without a sort: |g| of a float32 orders like its bits read
    as an integer, so 31 steps of bisection on the bits end at the last kept value.
    """
    bits = jax.lax.bitcast_convert_type(jnp.abs(g.astype(jnp.float32)), jnp.int32)
    # 2e-7: float32 rounding of keep_rate * size must not lose an entry at whole numbers
    wanted = jnp.floor(keep_rate * g.size + 2e-7 * g.size).astype(jnp.int32)

    def add_bit(i: Array, threshold: Array) -> Array:
        candidate = threshold | (jnp.int32(1) << (30 - i))
        return jnp.where(jnp.sum(bits >= candidate) >= wanted, candidate, threshold)

    threshold = jax.lax.fori_loop(0, 31, add_bit, jnp.int32(0))
    return jnp.where(bits >= threshold, g, jnp.zeros_like(g))


def compression(keep_rate: Array | float) -> core.Defense:
    """Gradient compression with ``keep_rate`` in [0, 1]; reduces to no defense at 1."""
    core.check("keep_rate", keep_rate, 0.0, 1.0)
    return core.Defense(gradient=core.per_party(lambda key, g: keep_largest(g, keep_rate)))
