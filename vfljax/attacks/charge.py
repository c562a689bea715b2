"""Attacks on defenses in the loss slot (ours): a row's force under every label, compared with what it received.

Both compute the gradient that a defense of known formula adds, and find the labels that explain what was
received (``vfljax.attacks.divisions``, whose symbols these are).

``charge``: PELoss (Zheng et al. 2024, ``vfljax.defenses.pe_loss``) adds to the gradient of z_i the force of the
rows of its class in the batch. With n_c = sum_j p_jc,

    U_ij = (z_i - z_j) / (|z_i - z_j|^2 + s^2)^1.5,   w_jc = -2 p_jc / n_c,   v_jc = 4 p_jc (1 - p_jc) / n_c^2.

``correlation``: dCor (Sun et al. 2022, ``vfljax.defenses.dcor``) adds, in every form and with factors c, c' > 0
of the batch, unit vectors u_ij from z_j to z_i, weighed by doubly centered distances of labels and of rows:

    sum_j (c b_ij - c' a_ij) u_ij,   b_ij = -sqrt(2) sum_c (y_ic - m_c) (y_jc - m_c),   m_c = sum_j p_jc / n.

The attacker knows u and a. It leaves out the direction of sum_j a_ij u_ij. With the unit vector e_c of c,

    U_ij = u_ij,   w_jc = -(e_c - m) . (p_j - m),   v_jc = sum_k (e_c - m)_k^2 p_jk - ((e_c - m) . p_j)^2.

Distances are Euclidean and softened, so that equal rows have no force on each other.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from vfljax.attacks import core, divisions
from vfljax.attacks.core import Attack, AttackRow, Bottoms
from vfljax.attacks.divisions import Formula, Pushes
from vfljax.types import Array


def _apart(z: Array, softening: Array) -> tuple[list[Array], Array, Array]:
    """The differences of all pairs, one [B, B] a column, their squared lengths, and these plus s^2."""
    # a product of matrices would lose the differences of near rows, whose forces are the largest
    apart = [x[:, None] - x[None] for x in z.T]
    squared = sum((x * x for x in apart), jnp.zeros(()))
    return apart, squared, squared + softening**2


def charges(z: Array, sent: Array, softening: Array) -> Pushes:
    """U of PELoss in a batch z [B, D]; ``softening`` [] is its s, in the units of z."""
    apart, squared, near = _apart(z, softening)
    weight = jnp.where(sent[None], 1 / (near * jnp.sqrt(near)), 0.0)
    weight = jax.lax.optimization_barrier(weight)  # computed once and not again for each use
    between = jnp.stack([x * weight for x in apart])
    return Pushes(between, weight * weight * squared, jnp.zeros_like(z))


def charge_weights(p: Array) -> tuple[Array, Array]:
    """w and v [B, C] of PELoss."""
    count = jnp.maximum(jnp.sum(p, axis=0, keepdims=True), 1.0)
    return -2 * p / count, 4 * p * (1 - p) / count**2


def directions(z: Array, sent: Array, softening: Array) -> Pushes:
    """u of dCor in a batch z [B, D], and the direction that is left out because no label decides it."""
    apart, squared, near = _apart(z, softening)
    pairs = (sent[:, None] & sent[None]).astype(z.dtype)
    distance, count = jnp.sqrt(near) * pairs, jnp.maximum(jnp.sum(sent), 1)
    mean = jnp.sum(distance, axis=1, keepdims=True) / count
    centered = pairs * (distance - mean - mean.T + jnp.sum(mean) / count)
    between = jnp.stack([x * pairs * jax.lax.rsqrt(near) for x in apart])
    return Pushes(between, pairs * squared / near, jnp.sum(centered[None] * between, axis=-1).T)


def direction_weights(p: Array) -> tuple[Array, Array]:
    """w and v [B, C] of dCor."""
    real = jnp.any(p > 0, axis=1, keepdims=True)
    share = jnp.sum(p, axis=0, keepdims=True) / jnp.maximum(jnp.sum(real), 1)
    away = (jnp.eye(p.shape[1]) - share).T
    w = core.multiply(jnp.where(real, p - share, 0.0), away)
    return -w, core.multiply(p, away**2) - core.multiply(p, away) ** 2


def charge(
    bottoms: Bottoms, num_classes: int, *, names: str = "known", rounds: int = 5, starts: int = 4
) -> Attack:
    """Score each class of a row by how well its forces under PELoss explain the gradients received (ours).

    Knobs, options, scores and errors are those of ``divisions.attack_of``; ``softening`` is the defense's.
    """
    formula = Formula(charges, charge_weights, 1e-3)
    return divisions.attack_of(formula, bottoms, num_classes, names, rounds, starts)


@functools.wraps(charge, assigned=())  # the same options
def correlation(bottoms: Bottoms, num_classes: int, **options: Any) -> Attack:
    """Score each row by how well its class's pull under dCor explains the gradients it received, as ``charge``
    does; ``softening`` is the attacker's own."""
    formula = Formula(directions, direction_weights, 1e-6)
    return divisions.attack_of(formula, bottoms, num_classes, **{**ROW.options, **options})


ROW = AttackRow(charge, rule=2, cost=core.WHOLE, whole_batches=True)
CORRELATION = AttackRow(correlation, cost=core.WHOLE, whole_batches=True)
