"""ProjPert, isotropic form: noise that gives both classes' gradients one Gaussian spread (IEEE TKDE 2024).

Marvell's criterion without its solver. Take the gradients of the two classes of a batch as Gaussian
with independent coordinates. If both have variance v_i in coordinate i, their symmetric KL divergence
is sum_i Delta_i^2 / v_i, where Delta is the positives' mean minus the negatives'. So each class gets
Gaussian noise of mean zero that raises its variance to the target

    v_i = D Delta_i^2 / K,   noise_ci ~ N(0, max(v_i - var_ci, 0))   for class c and coordinate i

which spends K / D of the bound K on each of the D coordinates.

Reference: ProjPert, IEEE TKDE 2024, written from released code (the library fdl, ``iso_proj=True``).
Its other form, ``iso_proj=False``, which seeks the least noise, is not here.

Guarantee: on a batch whose class gradients are Gaussian as modeled and nowhere more spread than the
target, sumKL is at most K, an attack's detection error at least 1/2 - sqrt(K)/4, and its AUC at most
1/2 + sqrt(K)/2 - K/8, as for Marvell. Where var_ci > v_i the classes stay unequal and sumKL may
exceed K. Nothing holds beyond the model or over many epochs: the noise has mean zero.

Scale: the knob is 1/K, free of the scale of gradients. K = 4, the knob at .25, bounds no detection
error; K = 1 bounds it by .25; K = .16, the knob at 6.25, by .4.

Edge cases
    1/K = 0                       changes nothing
    one class only, or Delta = 0  gradients are sent as they are
    Delta_i = 0                   coordinate i is sent as it is
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.marvell import moments_by_class
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Knower, Strengths
from vfljax.types import Array, Context


def noise_deviations(
    gradients: Array, labels: Array, inverse_sum_kl: Array | float
) -> tuple[Array, Array]:
    """The noise's standard deviations [D] of class 0 and of class 1.

    ``gradients`` are [B, D] with ``labels`` [B] in {0, 1}; variances are biased, as released. All
    deviations are 0 if a class is absent.
    """
    chex.assert_rank(inverse_sum_kl, 0)
    (mean0, variance0), (mean1, variance1) = moments_by_class(gradients, labels)
    both = jnp.any(labels == 1) & jnp.any(labels != 1)
    target = gradients.shape[1] * (mean1 - mean0) ** 2 * inverse_sum_kl

    def missing(variance: Array) -> Array:
        return jnp.sqrt(jnp.where(both, jnp.maximum(target - variance, 0.0), 0.0))

    return missing(variance0), missing(variance1)


def perturb(key: Array, gradients: Array, labels: Array, inverse_sum_kl: Array | float) -> Array:
    """``gradients`` [B, D] with ProjPert's noise for ``labels`` [B] in {0, 1}."""
    largest = jnp.max(jnp.abs(gradients))
    unit = jnp.where(largest > 0, largest, 1.0)  # squares of 1e-30 and 1e30 stay finite
    negative, positive = noise_deviations(gradients / unit, labels, inverse_sum_kl)
    deviations = jnp.where((labels == 1)[:, None], positive[None, :], negative[None, :])
    return gradients + unit * (deviations * jax.random.normal(key, gradients.shape))


def proj_pert(inverse_sum_kl: Array | float) -> core.Defense:
    """ProjPert with 1/K = ``inverse_sum_kl`` >= 0, for two classes.

    Reduces to no defense at 0. Raises ``ValueError`` for a negative knob; ``init`` does for more
    than two classes.
    """
    errors.check("inverse_sum_kl", inverse_sum_kl, 0.0, jnp.inf)

    def rule(key: Array, g: Array, context: Context) -> Array:
        return perturb(key, g, context.labels, inverse_sum_kl)

    init = core.stateless(lambda data: core.require_two_classes("proj_pert", data))
    return core.Defense(init=init, gradient=core.per_party(rule))


ROW = DefenseRow(
    factory=proj_pert,
    example={"inverse_sum_kl": 1.0},
    known_by={
        # as Marvell's: the noise averages out, and embeddings have none
        "no_split": READING,
        "split": (*AVERAGING, Knower("probe"), Knower("spectral")),
    },
    neutral={"inverse_sum_kl": 0.0},
    two_classes=True,
    strengths=Strengths("inverse_sum_kl", (0.25, 1.0, 6.25, 25.0, 100.0), faint=(25.0, 100.0)),
)
