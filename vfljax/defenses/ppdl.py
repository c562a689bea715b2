"""PPDL: differentially private selection of gradients (Shokri and Shmatikov 2015).

The n entries of a party's [B, D] tensor are visited in random order. An entry is accepted when its clipped
magnitude, with noise, reaches a noisy threshold. It is then sent with noise, and clipped. With the quota c =
floor(theta n), sigma(x) = 2 c S / x, and epsilon_1 = 8/9 and epsilon_2 = 2/9 of epsilon:

    accept i when |clip(g_i, gamma)| + Lap(2 sigma(epsilon_1)) >= tau + rho
    send  clip(g_i + Lap(sigma(epsilon_2)), gamma)  and draw  rho ~ Lap(sigma(epsilon_1))  anew

until c entries are accepted. All other entries are sent as zero.

Reference: Shokri, Shmatikov. "Privacy-Preserving Deep Learning", CCS 2015; as used by Fu et al.,
USENIX Security 2022, section 6 (epsilon 1.8, S 1, gamma 1e-3, tau 1e-4; theta .75, .5, .25, .1).

Guarantee: epsilon is spent on one tensor of one step, so nothing useful holds for a training run.
With on_exhaustion="keep" nothing holds at all: entries that are passed over are sent exactly.

Edge cases
    noise >> gamma        the usual case: about .36 of the visited entries are accepted, and most of
                          them are sent as +-gamma
    accepted < c          with on_exhaustion="zero" (the paper's rule) the others are zero; with "keep"
                          (the released code, which runs out of entries at theta .75 and .5) the
                          others, about .64 of all, are sent as they are
    floor(theta n) = 0    zeros are sent
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.compression import quota
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Strengths
from vfljax.types import Array


class LaplaceDraws(NamedTuple):
    """Standard Laplace draws by visiting position, for n entries."""

    threshold: Array  # [n + 1]: entry 0 serves at the start, entry t + 1 once t is accepted
    query: Array  # [n]
    value: Array  # [n]


def treat(
    g: Array,
    order: Array,
    draws: LaplaceDraws,
    theta: Array | float,
    epsilon: Array | float = 1.8,
    gamma: Array | float = 1e-3,
    tau: Array | float = 1e-4,
    sensitivity: Array | float = 1.0,
    on_exhaustion: str = "zero",
) -> Array:
    """What is sent of ``g`` [B, D] for these draws: [B, D], deterministic.

    The n = B * D entries are visited in ``order`` [n], a permutation in int32. The knobs are those of ``ppdl``.
    """
    chex.assert_rank(g, 2)
    chex.assert_shape(
        [order, draws.threshold, draws.query, draws.value],
        [(g.size,), (g.size + 1,), (g.size,), (g.size,)],
    )
    chex.assert_type(order, int)
    count = quota(theta, g.size)
    spread = 2.0 * count * sensitivity / epsilon  # sigma(x) = spread * epsilon / x
    visited = g.reshape(-1)[order]
    query = jnp.abs(jnp.clip(visited, -gamma, gamma)) + 2 * spread * 9 / 8 * draws.query
    thresholds = tau + spread * 9 / 8 * draws.threshold

    accepted = accept(query, thresholds, count)
    left = count - jnp.sum(accepted)
    noisy = jnp.clip(visited + spread * 9 / 2 * draws.value, -gamma, gamma)
    others = jnp.where(left > 0, visited, 0.0) if on_exhaustion == "keep" else 0.0
    sent = jnp.where(accepted, noisy, others)
    return jnp.zeros_like(sent).at[order].set(sent, unique_indices=True).reshape(g.shape)


def accept(query: Array, thresholds: Array, count: Array) -> Array:
    """Which visits are accepted: [n] bool.

    ``query`` [n] are the noisy magnitudes by visiting position and ``count`` the quota. Entry 0 of
    ``thresholds`` [n + 1] serves at the start, entry t + 1 once t is accepted. Compiled for a CPU it is
    ``by_visits`` and for any other device ``by_jumps``, which accepts the same.
    """
    chex.assert_shape([query, thresholds, count], [(None,), (query.size + 1,), ()])
    return jax.lax.platform_dependent(query, thresholds, count, cpu=by_visits, default=by_jumps)


def by_visits(query: Array, thresholds: Array, count: Array) -> Array:
    """``accept`` as the algorithm has it: n steps, each of which needs the one before. That is a tight
    loop on CPU, where the indexing of ``by_jumps`` takes many times as long."""

    def visit(carry: tuple[Array, Array], entry: tuple[Array, Array]) -> tuple[tuple, Array]:
        (threshold, left), (magnitude, renewed) = carry, entry
        accepted = (magnitude >= threshold) & (left > 0)
        return (jnp.where(accepted, renewed, threshold), left - accepted), accepted

    return jax.lax.scan(visit, (thresholds[0], count), (query, thresholds[1:]))[1]


def by_jumps(query: Array, thresholds: Array, count: Array) -> Array:
    """``accept`` in about 3 log2 n operations on all n entries at once.

    Which visit is accepted next depends on the last accepted one alone: it is the first at or after t
    that reaches ``thresholds[t]``, where t - 1 is the last. That visit is found for every t, by bisection
    over tables of the largest query among 2^k visits in a row. Jumps of 1, 2, 4, ... acceptances
    then follow by squaring, and the m-th acceptance is reached by the binary digits of m. Memory is
    n log2 n numbers. Equal to ``by_visits``, unless a query is NaN and its threshold minus infinity.
    """
    n, bits = query.size, query.size.bit_length()
    largest = [jnp.append(jnp.where(jnp.isnan(query), -jnp.inf, query), -jnp.inf)]
    for k in range(bits - 1):
        later = jnp.pad(largest[k][2**k :], (0, 2**k), constant_values=-jnp.inf)
        largest.append(jnp.maximum(largest[k], later))
    reaching = jnp.arange(n + 1)  # becomes the first visit from t on that reaches, or n
    for k in reversed(range(bits)):
        none = ~(largest[k][reaching] >= thresholds)
        reaching = jnp.minimum(reaching + none * 2**k, n)
    jump = jnp.append(reaching + 1, n + 1)  # from the t after an acceptance to the next such t
    nth, visit = jnp.arange(1, n + 1), jnp.zeros(n, jnp.int32)
    for k in range(bits):
        visit = jnp.where((nth >> k) & 1 == 1, jump[visit], visit)
        jump = jump[jump]
    place = jnp.where(nth <= count, visit - 1, n)
    return jnp.zeros(n, bool).at[place].set(True, mode="drop")


def visiting_order(key: Array, n: int) -> Array:
    """A random permutation of 0..n-1: [n] int32.

    Up to 65,536 entries take ONE sort of numbers that hold random bits above the index. Sorting keys beside
    values, twice, is ten times slower on CPU and was nine tenths of this defense's cost. Entries that draw the
    same bits are in index order. About n^2 / 2^(33 - log2 n) pairs do, which are 8 pairs for n = 4,096.
    """
    width = max(1, (n - 1).bit_length())
    if width > 16:
        return jax.random.permutation(key, n)
    drawn = jax.random.bits(key, (n,), jnp.uint32) >> width << width
    ordered = jax.lax.sort(drawn | jnp.arange(n, dtype=jnp.uint32), is_stable=False)
    return (ordered & ((1 << width) - 1)).astype(jnp.int32)


def ppdl_gradient(
    key: Array, g: Array, *knobs: Array | float, on_exhaustion: str = "zero"
) -> Array:
    """What is sent of ``g`` [B, D]: ``treat`` in a random order, with draws from ``key`` and its ``knobs``."""
    n = g.size
    order = visiting_order(keys.fold(key, "order"), n)
    draws = jax.random.laplace(keys.fold(key, "noise"), (3 * n + 1,))
    cut = LaplaceDraws(draws[: n + 1], draws[n + 1 : 2 * n + 1], draws[2 * n + 1 :])
    return treat(g, order, cut, *knobs, on_exhaustion=on_exhaustion)


def ppdl(
    theta: Array | float,
    epsilon: Array | float = 1.8,
    gamma: Array | float = 1e-3,
    tau: Array | float = 1e-4,
    sensitivity: Array | float = 1.0,
    *,
    on_exhaustion: str = "zero",
) -> core.Defense:
    """PPDL that sends at most the share ``theta`` in [0, 1] of a tensor's entries.

    ``epsilon`` >= 1e-6 is the privacy budget of one tensor and ``sensitivity`` is S. The clip
    ``gamma``, the threshold ``tau`` and the noise are absolute, on cut gradients of the batch-MEAN
    loss. ``on_exhaustion`` is "zero" or "keep". PPDL never reduces to no defense. Raises
    ``ValueError`` for a knob out of range or an unknown option.
    """
    errors.check("theta", theta, 0.0, 1.0)
    errors.check("epsilon", epsilon, 1e-6, jnp.inf)
    errors.check("gamma", gamma, 0.0, jnp.inf)
    errors.check("tau", tau, 0.0, jnp.inf)
    errors.check("sensitivity", sensitivity, 0.0, jnp.inf)
    errors.check_choice("on_exhaustion", on_exhaustion, ("zero", "keep"))

    def rule(key: Array, g: Array, context: object) -> Array:
        del context
        knobs = theta, epsilon, gamma, tau, sensitivity
        return ppdl_gradient(key, g, *knobs, on_exhaustion=on_exhaustion)

    return core.Defense(gradient=core.per_party(rule))


THETAS = (0.75, 0.5, 0.25, 0.1, 0.03)
ROW = DefenseRow(
    factory=ppdl,
    example={"theta": 0.25, "epsilon": 1.8, "gamma": 1e-3, "tau": 1e-4, "sensitivity": 1.0},
    not_for_numbers="",
    known_by={"no_split": READING, "split": AVERAGING},
    strengths=Strengths("theta", THETAS, faint=THETAS),
)
