"""Gradient compression: send only the largest entries (Fu et al. 2022).

Of the n entries of a party's whole [B, D] tensor, the floor(pn) with the largest magnitudes are
sent as they are, and all others as zero; p is ``keep_rate``.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 6 (after Lin et al. 2018). Published rates: .75, .5, .25, .1.

Guarantee: none. The entries that are kept are exact.

Deviation: the released code keeps the entries strictly above the floor(pn)-th value, hence
floor(pn) - 1 of them. Ours keeps floor(pn), and all entries that tie with the smallest of these.

Edge cases: keep_rate = 1 changes nothing; floor(pn) = 0 sends zeros.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Strengths
from vfljax.types import Array


def quota(rate: Array | float, size: int) -> Array:
    """floor(rate * size), exact in whole numbers: [] int32.

    ``rate`` [] is in [0, 1] and may be traced; ``size`` is static and at most 2**30. A product in
    float32 may miss a whole number, so the rate stands for all real numbers that round to it. If one
    of these numbers has at most four decimals, it gives the count: .7 of 10 is 7. Otherwise the count
    is the largest that any of them gives, in 30-bit fixed point: 1/49 of 49 is 1.
    """
    chex.assert_rank(rate, 0)
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
    fixed_point = jnp.minimum(high * n_high + (cross >> 15), size).astype(jnp.int32)
    # within a tolerance: compilers turn the division into a product with the reciprocal
    is_decimal = jnp.abs(decimals.astype(jnp.float32) / 10_000 - rate) <= 2 * half
    return jnp.where(is_decimal, decimal, fixed_point)


def keep_largest(g: Array, keep_rate: Array | float) -> Array:
    """``g`` [B, D] with all but its floor(keep_rate * B * D) largest-magnitude entries set to 0.

    The threshold is found exactly and without a sort. Magnitudes of float32 order like their bits
    read as integers, so 31 steps of bisection on the bits end at the smallest value that is kept.
    """
    chex.assert_rank([g, keep_rate], [2, 0])
    bits = jax.lax.bitcast_convert_type(jnp.abs(g.astype(jnp.float32)), jnp.int32)
    count = quota(keep_rate, g.size)

    def add_bit(i: Array, threshold: Array) -> Array:
        candidate = threshold | (jnp.int32(1) << (30 - i))
        return jnp.where(jnp.sum(bits >= candidate) >= count, candidate, threshold)

    threshold = jax.lax.fori_loop(0, 31, add_bit, jnp.int32(0))
    # for a count of 0 the bisection ends above every value, NaN and infinity included
    return jnp.where(bits >= threshold, g, jnp.zeros_like(g))


def compression(keep_rate: Array | float) -> core.Defense:
    """Gradient compression that keeps the share ``keep_rate`` in [0, 1] of each party's entries.

    Reduces to no defense at 1. Raises ``ValueError`` for a rate out of range.
    """
    errors.check("keep_rate", keep_rate, 0.0, 1.0)
    return core.Defense(gradient=core.per_party(lambda key, g, context: keep_largest(g, keep_rate)))


ROW = DefenseRow(
    factory=compression,
    example={"keep_rate": 0.25},
    not_for_numbers="",
    known_by={"no_split": READING, "split": AVERAGING},
    neutral={"keep_rate": 1.0},
    strengths=Strengths("keep_rate", (0.75, 0.5, 0.25, 0.1, 0.03)),
)
