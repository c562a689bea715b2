"""PELoss: embeddings of one class repel each other like equal charges (Zheng et al. 2024).

The label party adds to its loss, for every passive party's embeddings z_1, ..., z_B of a batch,

    alpha * sum_c (1 / n_c) sum_{i != j in class c} 1 / |z_i - z_j|

with n_c rows of class c in the batch. A class is driven apart, towards its boundary, where
clustering and a head fitted on few labels find it hardest. Distances are Euclidean, or angles:

    distance="euclidean"  |z_i - z_j|                                       default
    distance="angular"    the angle in radians between z_i and z_j, each minus the mean of its
                          own entries (layer norm, then unit length)

Here 1/d is 1 / sqrt(d^2 + softening^2), as in simulations of charges: equal rows have a finite energy
and do not push each other. A port of the paper (SecretFlow) adds its epsilon outside the fraction,
so that two equal rows make its loss infinite.

Reference: Zheng, Chen, Lyu, Fu, Fu, Wang, Zheng, Yin. "Protecting Split Learning by Potential Energy
Loss", IJCAI 2024 (arXiv 2210.09617), where alpha is 2 in the port.

Guarantee: none. Gradients still carry the label, beside the forces between embeddings, and the forces
carry it too: with the embeddings of whole batches ``vfljax.attacks.charge`` reads it from them.

Scale: alpha has the unit of a loss times a distance, or times an angle. With Euclidean distances
larger embeddings lower the energy. For given distances the energy of a class grows with n_c - 1,
hence with the batch. The softening is in the units of the distance.

Edge cases
    alpha = 0                       exactly the undefended loss and gradient
    a class of one row              no energy
    equal rows                      1 / softening, without a gradient
    angular, all entries equal      the row has no direction: its pairs count nothing (always so for D = 1)
    angular, D = 2                  angles are 0 or pi, hence without a gradient
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import READING, DefenseRow, Knower, Strengths
from vfljax.types import Array

ANTIPODAL = 4 - 1e-6  # largest squared chord of unit vectors: the angle's slope is infinite at 4


@jax.custom_vjp
def squared_distances(x: Array) -> Array:
    """|x_i - x_j|^2 [B, B] of the rows of ``x`` [B, D].

    They are computed from differences, as a Gram matrix would lose small distances. The gradient is
    written out so that it needs no [B, B, D] array.
    """
    return jnp.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=-1)


def _distances_backward(x: Array, cotangent: Array) -> tuple[Array]:
    weights = 2 * (cotangent + cotangent.T)
    return (jnp.sum(weights[:, :, None] * (x[:, None, :] - x[None, :, :]), axis=1),)


squared_distances.defvjp(lambda x: (squared_distances(x), x), _distances_backward)


def _directions(z: Array) -> tuple[Array, Array]:
    """(unit rows [B, D], whether a row has a direction [B]) of ``z`` minus its rows' means."""
    x = z - jnp.mean(z, axis=1, keepdims=True)
    # a mean of equal entries rounds: what is left of them must not become a direction
    rounding = 8 * jnp.finfo(z.dtype).eps * jnp.max(jnp.abs(z), axis=1, keepdims=True)
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis=1, keepdims=True))
    directed = largest > jnp.maximum(rounding, 1e-36)
    x = jnp.where(directed, x, 1.0) / jnp.where(directed, largest, 1.0)
    return x / jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True)), directed[:, 0]


def _squared_angles(unit: Array) -> Array:
    """Squared angles [B, B] of unit rows [B, D]; below pi^2, and without a gradient at 0."""
    chord = jnp.minimum(squared_distances(unit), ANTIPODAL)
    apart = chord > 0
    return jnp.where(apart, 2 * jnp.arcsin(jnp.sqrt(jnp.where(apart, chord, 1.0)) / 2), 0.0) ** 2


def energy(
    z: Array, labels: Array, softening: Array | float = 1e-3, distance: str = "euclidean"
) -> Array:
    """The term [], without the factor alpha, of one party's ``z`` [B, D] and integer ``labels`` [B]."""
    chex.assert_rank([z, labels, softening], [2, 1, 0])
    chex.assert_equal_shape_prefix([z, labels], 1)
    chex.assert_type(labels, int)
    same = labels[:, None] == labels[None, :]
    pairs = same & ~jnp.eye(len(labels), dtype=bool)
    if distance == "angular":
        unit, directed = _directions(z)
        pairs &= directed[:, None] & directed[None, :]
        squared = _squared_angles(unit)
    else:
        squared = squared_distances(z)
    weights = pairs / jnp.sum(same, axis=1)[:, None]
    return jnp.sum(weights * jax.lax.rsqrt(squared + jnp.square(softening)))


def pe_loss(
    alpha: Array | float, softening: Array | float = 1e-3, *, distance: str = "euclidean"
) -> core.Defense:
    """Add alpha times the potential ``energy`` to the loss, one term for each passive party.

    ``alpha`` >= 0 (published 2), ``softening`` >= 1e-6. Classes are those of the labels that later
    slots may see: after label DP the randomized ones. Reduces to no defense at alpha = 0. Raises
    ``ValueError`` for a knob out of range or an unknown ``distance``.
    """
    errors.check("alpha", alpha, 0.0, jnp.inf)
    errors.check("softening", softening, 1e-6, jnp.inf)
    errors.check_choice("distance", distance, ("euclidean", "angular"))

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, state):
            value, aux = loss_fn(active, f, embeddings, targets, context, state)
            for z in embeddings:
                value += alpha * energy(z, context.labels, softening, distance)
            return value, aux

        return defended

    return core.Defense(loss=loss)


ROW = DefenseRow(
    factory=pe_loss,
    example={"alpha": 2.0, "softening": 1e-3},
    known_by={
        # gradients still carry the label, beside the forces
        "no_split": (Knower("charge"), Knower("direct", "most_negative"), *READING),
        # a party that holds a batch can compute its forces under either label
        "split": (Knower("charge"),),
    },
    neutral={"alpha": 0.0, "softening": 1e-3},
    strengths=Strengths("alpha", (1e-3, 1e-2, 0.1, 0.5, 2.0)),
)
