"""Marvell: noise that makes the two classes' gradients hardest to tell apart (Li et al. 2022).

Positives and negatives of a batch get Gaussian noise. Its covariances are isotropic across the
direction Delta of the class-mean difference. Their eigenvalues lambda (first index: 1 along Delta, 2
across it; second: the class) minimize the symmetric KL divergence between the two perturbed class
distributions under a budget of P = power |Delta|^2:

    f = (d-1) [(l20+u)/(l21+v) + (l21+v)/(l20+u)] + (l10+u+g)/(l11+v) + (l11+v+g)/(l10+u)
    p (l11 + (d-1) l21) + (1-p) (l10 + (d-1) l20) = P,   l10 >= l20 >= 0,   l11 >= l21 >= 0

u and v are the means over coordinates of the variance of negatives and of positives, g = |Delta|^2,
and p is the share of positives. sumKL = f/2 - d.

Reference: Li, Sun, Yang, Gao, Zhang, Xie, Smith, Wang. "Label Leakage and Protection in Two-party Split
Learning", ICLR 2022, section 4.2 and theorem 2.

Guarantee: on a batch whose class gradients are Gaussian as modeled, an attack's detection error is at
least 1/2 - sqrt(sumKL)/4 and its AUC at most 1/2 + sqrt(sumKL)/2 - sumKL/8. Nothing holds beyond
the model or over many epochs: the noise has mean zero.

Edge cases
    power = 0                     changes nothing
    one class only, or Delta = 0  gradients are sent as they are
    d = 1                         only l10 and l11 matter
    u = v = 0                     l20 = l21 = 0

Solver: u <= v implies l21 = 0; otherwise l20 = 0, by exchanging the classes. For fixed l20 the best
division of the rest between l10 and l11 is known in closed form. l20 is found by a fixed number of
bisections of the slope, so that the solver is exact up to rounding and works under jit and vmap. The
released code bisects recursively, which fails on about half of random problems.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Knower, Strengths
from vfljax.types import Array, Context

DIMENSIONS = ("cut", "batch")
BUDGETS = ("fixed", "dynamic")
GROWTH, GROWTHS = 1.5, 64  # of the power, with budget="dynamic"
BISECTIONS = 26  # more than float32 has digits


class Statistics(NamedTuple):
    """Statistics of one batch of one party's gradients."""

    delta: Array  # [D] mean of positives minus mean of negatives
    u: Array  # [] mean over coordinates of the biased variance of negatives
    v: Array  # [] likewise of positives
    g: Array  # [] |delta|^2
    p: Array  # [] share of positives


def moments_by_class(g: Array, labels: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """(mean [D], biased variance [D]) of the rows of ``g`` [B, D] of label 0, and of those of label 1.

    Those of a class that is absent are 0.
    """
    chex.assert_rank([g, labels], [2, 1])
    chex.assert_equal_shape_prefix([g, labels], 1)

    def moments(weights: Array) -> tuple[Array, Array]:
        weights = weights / jnp.maximum(jnp.sum(weights), 1.0)
        mean = weights @ g
        return mean, weights @ (g - mean[None, :]) ** 2

    positive = (labels == 1).astype(g.dtype)
    return moments(1 - positive), moments(positive)


def statistics(gradients: Array, labels: Array) -> Statistics:
    """``Statistics`` of ``gradients`` [B, D] with ``labels`` [B] in {0, 1}.

    A class that is absent has mean and variance 0.
    """
    (mean0, variance0), (mean1, variance1) = moments_by_class(gradients, labels)
    delta = mean1 - mean0
    p = jnp.mean((labels == 1).astype(gradients.dtype))
    return Statistics(delta, jnp.mean(variance0), jnp.mean(variance1), jnp.sum(delta**2), p)


def sum_kl(lambdas: tuple[Array, ...], u: Array, v: Array, g: Array, d: Array | int) -> Array:
    """KL(P1 || P0) + KL(P0 || P1) of the perturbed class distributions, in nats: [].

    It is f/2 - d, written without cancellation, for scalar ``lambdas`` (l10, l20, l11, l21), ``u``,
    ``v``, ``g`` and ``d``. It is infinite where a perturbed variance that matters is 0.
    """
    chex.assert_rank([*lambdas, u, v, g, d], 0)
    l10, l20, l11, l21 = lambdas
    x, w, y, z = l10 + u, l20 + u, l11 + v, l21 + v

    def apart(a: Array, b: Array) -> Array:
        product = a * b
        same = a == b
        return jnp.where(same, 0.0, (a - b) ** 2 / jnp.where(same, 1.0, product))

    def mean_term(a: Array) -> Array:
        return jnp.where(g > 0, g / jnp.where((a > 0) | (g > 0), a, 1.0), 0.0)

    across = jnp.where(d > 1, (d - 1) * apart(w, z), 0.0)
    return (across + apart(x, y) + mean_term(x) + mean_term(y)) / 2


class _Problem(NamedTuple):
    """A problem with u <= v, in units of its largest number. p and q = 1 - p both keep all their digits."""

    u: Array
    v: Array
    g: Array
    d: Array
    p: Array
    q: Array
    power: Array


def _split(c: Array, a: _Problem) -> tuple[Array, Array, Array, Array]:
    """(l10, l20, l11, l21) with l20 = c, l21 = 0 and the best l10 and l11 for the rest of the budget.

    With X = l10 + u, Y = l11 + v, R = pY + qX and rho = X/Y the objective is, up to a constant,
    rho (1 + q g/R) + (1 + p g/R) / rho. Its minimum has a closed form, and it is convex, so that
    the bounds l10 >= c and l11 >= 0 clip the minimum. The rarer class's eigenvalue is taken from the
    minimum and the other class's from the budget; the other way round, a small difference would be
    divided by a small share.
    """
    p, q = a.p, a.q
    rest = jnp.maximum(a.power - q * (a.d - 1) * c, 0.0)  # = p l11 + q l10
    total = rest + p * a.v + q * a.u
    below = total + q * a.g
    ratio = jnp.where(below > 0, jnp.sqrt((total + p * a.g) / jnp.where(below > 0, below, 1)), 1.0)
    y = total / (p + q * ratio)
    from_y = jnp.clip(y - a.v, 0.0, jnp.maximum(rest - q * c, 0.0) / p)
    from_x = jnp.maximum(jnp.clip(ratio * y - a.u, 0.0, rest / q), c)
    rare = p < q
    l11 = jnp.where(rare, from_y, jnp.maximum(rest - q * from_x, 0.0) / p)
    l10 = jnp.where(rare, jnp.maximum((rest - p * from_y) / q, c), from_x)
    return l10, c, l11, jnp.zeros_like(c)


def optimal_noise(
    u: Array, v: Array, g: Array, d: Array | int, p: Array, power: Array
) -> tuple[Array, Array, Array, Array]:
    """The eigenvalues (l10, l20, l11, l21), scalars >= 0, of minimal sumKL (theorem 2 of the paper).

    All arguments are scalars and may be traced. ``power`` is the budget P, not the ratio s = P/g.
    The solution is free of scale: c times u, v, g and P give c times the eigenvalues.
    """
    chex.assert_rank([u, v, g, d, p, power], 0)
    u, v, g, d, p, power = (jnp.asarray(a, jnp.float32) for a in (u, v, g, d, p, power))
    unit = jnp.maximum(jnp.maximum(u, v), jnp.maximum(g, power))
    unit = jnp.where(unit > 0, unit, 1.0)
    u, v, g, power = u / unit, v / unit, g / unit, power / unit
    p = jnp.clip(p, 1e-7, 1 - 1e-7)
    q = 1 - p
    exchanged = u > v  # then l20 = 0: solve with the classes' roles exchanged
    u, v = jnp.where(exchanged, v, u), jnp.where(exchanged, u, v)
    p, q = jnp.where(exchanged, q, p), jnp.where(exchanged, p, q)
    problem = _Problem(u, v, g, d, p, q, power)

    # l20 <= v - u, as more of it hurts, and the budget must pay for d l20 q
    most = jnp.minimum(v - u, power / (q * d))
    most = jnp.where(d > 1, most, 0.0)

    def value(c: Array) -> Array:
        return sum_kl(_split(c, problem), u, v, g, d)

    # log(u + c) is the scale on which the objective is smooth; with u = 0 start far below `most`
    low = jnp.log(jnp.maximum(u, 1e-12 * most) + 1e-37)
    high = jnp.log(jnp.maximum(u + most, 1e-37))

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        # the slope and not the value, which is flat there: half the digits would be lost
        rises = jax.grad(value)(jnp.clip(jnp.exp(middle) - u, 0.0, most)) > 0
        return jnp.where(rises, low, middle), jnp.where(rises, middle, high)

    # unimodal: the minimum is where the slope turns positive
    low, high = jax.lax.fori_loop(0, BISECTIONS, halve, (low, high))
    inner = jnp.clip(jnp.exp((low + high) / 2) - u, 0.0, most)
    # the ends exactly, too: exp(log(u)) - u is not 0
    candidates = jnp.stack([inner, jnp.zeros_like(most), most])
    values = jax.vmap(value)(candidates)
    c = candidates[jnp.argmin(jnp.where(jnp.isfinite(values), values, jnp.inf))]
    l10, l20, l11, l21 = (a * unit for a in _split(c, problem))
    return (
        jnp.where(exchanged, l11, l10),
        jnp.where(exchanged, l21, l20),
        jnp.where(exchanged, l10, l11),
        jnp.where(exchanged, l20, l21),
    )


def perturb(
    key: Array,
    gradients: Array,
    labels: Array,
    power: Array | float,
    dimension: Array | int | None = None,
    error: Array | float | None = None,
) -> Array:
    """``gradients`` [B, D] with Marvell's noise of budget ``power`` |Delta|^2 for ``labels`` [B].

    ``dimension`` is the solver's d, D by default. With ``error`` the power is multiplied by 1.5
    until sumKL <= (2 - 4 error)^2, which bounds an attack's detection error from below by ``error``.
    """
    chex.assert_rank([gradients, labels, power], [2, 1, 0])
    chex.assert_equal_shape_prefix([gradients, labels], 1)
    d = gradients.shape[-1] if dimension is None else dimension
    largest = jnp.max(jnp.abs(gradients))
    unit = jnp.where(largest > 0, largest, 1.0)
    s = statistics(gradients / unit, labels)
    if error is not None:
        powers = power * GROWTH ** jnp.arange(GROWTHS)

        def reached(candidate: Array) -> Array:
            lambdas = optimal_noise(s.u, s.v, s.g, d, s.p, candidate * s.g)
            return sum_kl(lambdas, s.u, s.v, s.g, d) <= (2 - 4 * error) ** 2

        private = jax.vmap(reached)(powers)
        power = powers[jnp.where(jnp.any(private), jnp.argmax(private), GROWTHS - 1)]
    l10, l20, l11, l21 = optimal_noise(s.u, s.v, s.g, d, s.p, power * s.g)

    positive = (labels == 1)[:, None]
    along = jnp.sqrt(jnp.where(positive, jnp.maximum(l11 - l21, 0), jnp.maximum(l10 - l20, 0)))
    across = jnp.sqrt(jnp.where(positive, l21, l20))
    xi = jax.random.normal(keys.fold(key, "along"), (len(labels), 1))
    noise = jax.random.normal(keys.fold(key, "across"), gradients.shape)
    direction = s.delta / jnp.sqrt(jnp.where(s.g > 0, s.g, 1.0))
    sent = gradients + unit * (along * xi * direction[None, :] + across * noise)
    both = (s.p > 0) & (s.p < 1) & (s.g > 0)
    return jnp.where(both, sent, gradients)


def marvell(
    power: Array | float,
    error: Array | float = 0.25,
    *,
    dimension: str = "cut",
    budget: str = "fixed",
) -> core.Defense:
    """Marvell with the power ratio s = ``power`` >= 0 (papers: .1 to 25), for two classes.

    dimension="batch" solves with d = B, as GAFM's released comparison does on its one-number cut;
    about a tenth of the budget is added then. budget="dynamic" multiplies s, at least 1e-6, by 1.5
    until the bound of the detection error reaches ``error`` in [0, .5); after 64 steps, 1e11 times
    the start, it takes the last. With budget="fixed" ``error`` does not matter.

    Reduces to no defense at power = 0. Raises ``ValueError`` for a knob out of range or an unknown
    option; ``init`` does for more than two classes.
    """
    errors.check("power", power, 0.0, jnp.inf)
    errors.check("error", error, 0.0, 0.4999)
    errors.check_choice("dimension", dimension, DIMENSIONS)
    errors.check_choice("budget", budget, BUDGETS)
    if budget == "dynamic":
        errors.check(
            "power", power, 1e-6, jnp.inf, remedy=" A dynamic budget grows by factors from it."
        )

    def rule(key: Array, g: Array, context: Context) -> Array:
        d = g.shape[0] if dimension == "batch" else None
        bound = error if budget == "dynamic" else None
        return perturb(key, g, context.labels, power, d, bound)

    init = core.stateless(lambda data: core.require_two_classes("marvell", data))
    return core.Defense(init=init, gradient=core.per_party(rule))


ROW = DefenseRow(
    factory=marvell,
    example={"power": 1.0, "error": 0.25},
    known_by={
        "no_split": READING,
        # gradients are noised, embeddings are not (Sun et al. 2022)
        "split": (*AVERAGING, Knower("probe"), Knower("spectral")),
    },
    neutral={"power": 0.0, "error": 0.25},
    two_classes=True,
    strengths=Strengths("power", (0.25, 1.0, 4.0, 10.0, 25.0), faint=(25.0,)),
)
