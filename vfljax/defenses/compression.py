"""Gradient compression: send only the largest entries (Fu et al. 2022).

Over a party's whole [B, D] tensor keep the fraction ``keep_rate`` with the largest |g|, set the
others to zero.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 6 (after Lin et al. 2018); rates .75, .5, .25, .1.

Guarantee: none. The kept entries are exact.
Deviation: the released code keeps strictly above the floor(pn)-th value, hence floor(pn) - 1
entries; this keeps floor(pn), and all entries that tie with the last one kept.
Edge cases: keep_rate = 1 changes nothing; floor(pn) = 0 sends zeros.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax.defenses import core
from vfljax.types import Array


def quota(rate: Array | float, size: int) -> Array:
    """floor(rate * size) in whole numbers, for a ``rate`` in [0, 1] that may be traced and a
    static ``size`` up to 2**30: [] int32.

    A float32 stands for every real number that rounds to it. If one of these has at most four
    decimals it is meant, and counted exactly: .7 of 10 is 7. Else the largest count among them is
    taken, in 30-bit fixed point, so that 1/49 of 49 is 1. (Float32 products lose whole numbers.)
    """
    rate = jnp.asarray(rate, jnp.float32)
    half = (jnp.nextafter(rate, jnp.float32(2)) - rate) / 2  # of a unit in the last place
    decimals = jnp.round(rate * 10_000).astype(jnp.int32)
    decimal = decimals * (size // 10_000) + decimals * (size % 10_000) // 10_000

    parts = jnp.ceil(rate * 2.0**30).astype(jnp.uint32) + jnp.ceil(half * 2.0**30).astype(
        jnp.uint32
    )
    high, low = parts >> 15, parts & 0x7FFF
    n_high, n_low = jnp.uint32(size >> 15), jnp.uint32(size & 0x7FFF)
    cross = high * n_low + low * n_high + (low * n_low >> 15)
    other = jnp.minimum(high * n_high + (cross >> 15), size).astype(jnp.int32)
    # within a tolerance: compilers turn the division into a product with the reciprocal
    meant = jnp.abs(decimals.astype(jnp.float32) / 10_000 - rate) <= 2 * half
    return jnp.where(meant, decimal, other)


def keep_largest(g: Array, keep_rate: Array | float) -> Array:
    """``g`` with all but its floor(keep_rate * size) largest-magnitude entries set to 0.

    The threshold is found exactly, without a sort: |g| of a float32 orders like its bits read
    as an integer, so 31 steps of bisection on the bits end at the last kept value.
    """
    bits = jax.lax.bitcast_convert_type(jnp.abs(g.astype(jnp.float32)), jnp.int32)
    wanted = quota(keep_rate, g.size)

    def add_bit(i: Array, threshold: Array) -> Array:
        candidate = threshold | (jnp.int32(1) << (30 - i))
        return jnp.where(jnp.sum(bits >= candidate) >= wanted, candidate, threshold)

    threshold = jax.lax.fori_loop(0, 31, add_bit, jnp.int32(0))
    # nothing wanted: the bisection ends above every value, NaN and infinity included
    return jnp.where(bits >= threshold, g, jnp.zeros_like(g))


def compression(keep_rate: Array | float) -> core.Defense:
    """Gradient compression with ``keep_rate`` in [0, 1]; reduces to no defense at 1."""
    core.check("keep_rate", keep_rate, 0.0, 1.0)
    return core.Defense(gradient=core.per_party(lambda key, g, context: keep_largest(g, keep_rate)))
