"""dCor: distance correlation between what a party sends and the labels (Sun et al. 2022).

The label party adds to its loss, for every passive party's embedding z,

    alpha * log dCor(z, Y),   dCor(z, Y) = dCov2(z, Y) / sqrt(dCov2(z, z) dCov2(Y, Y))

with Y one-hot and dCov2 the mean product of doubly centered Euclidean distance matrices. That
ratio is the SQUARED distance correlation R2 of Szekely et al.; log of its root with weight
lambda is this with alpha = lambda/2.

Reference: Sun, Yang, Yao, Wang. "Label Leakage and Protection from Forward Embedding in Vertical
Federated Learning", 2022, section 4.

Guarantee: none; it discourages dependence of z on Y on training batches.

Edge cases
    alpha = 0              exactly the undefended loss and gradient, also where dCor = 0
    constant embedding     dCor = 0; the log is floored, its gradient is 0
    one-class batch        dCor = 0, likewise; B = 1 likewise
    equal rows             distance 0: the root's gradient is taken as 0 there
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax.defenses import core
from vfljax.types import Array

FLOOR = 1e-12  # of dCor inside the log: -27.6, far below anything a batch reaches by training


def _safe_sqrt(x: Array) -> Array:
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)  # double where


def _centered_distances(x: Array) -> Array:
    """Doubly centered Euclidean distances, [B, D] -> [B, B]. Via the Gram matrix, since
    [B, B, D] differences do not fit at the paper's B = 8192; rows are centered first and
    squared distances within rounding of 0 are 0, so equal rows have distance 0 exactly."""
    x = x - jnp.mean(x, axis=0, keepdims=True)
    norms = jnp.sum(x * x, axis=1)
    pairs = norms[:, None] + norms[None, :]
    squared = pairs - 2 * (x @ x.T)
    rounding = 8 * jnp.finfo(x.dtype).eps * pairs
    # the diagonal is 0 by definition; left to rounding, its root would bias every mean
    keep = (squared > rounding) & ~jnp.eye(x.shape[0], dtype=bool)
    a = _safe_sqrt(jnp.where(keep, squared, 0.0))
    return a - a.mean(0, keepdims=True) - a.mean(1, keepdims=True) + a.mean()


def distance_correlation(x: Array, y: Array, root: bool = False) -> Array:
    """Distance correlation of two samples [B, D1], [B, D2]: the R2 form in [0, 1], a scalar.

    ``root=True`` gives R, the usual definition's square root. 0 when either is constant.
    O(B^2) time and memory; scale invariant in each argument.
    """
    if x.ndim != 2 or y.ndim != 2 or x.shape[0] != y.shape[0]:
        raise ValueError(f"x {x.shape} and y {y.shape} must be [B, D1] and [B, D2].")
    a, b = _centered_distances(x), _centered_distances(y)
    covariance = jnp.mean(a * b)
    scale = _safe_sqrt(jnp.mean(a * a)) * _safe_sqrt(jnp.mean(b * b))
    positive = (scale > 0) & (covariance > 0)
    value = jnp.where(positive, covariance / jnp.where(positive, scale, 1.0), 0.0)
    return _safe_sqrt(value) if root else value


def dcor(alpha: Array | float) -> core.Defense:
    """Add alpha * log dCor(z_p, Y), one term a passive party. ``alpha`` >= 0 is the paper's
    alpha_d (0.002 to 0.04 there, batch 8192). Y are the labels later slots may see."""
    core.check("alpha", alpha, 0.0, jnp.inf)

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, state):
            value, aux = loss_fn(active, f, embeddings, targets, context, state)
            y = jax.nn.one_hot(context.labels, targets.shape[-1])
            terms = [jnp.log(jnp.maximum(distance_correlation(z, y), FLOOR)) for z in embeddings]
            return value + alpha * sum(terms), aux

        return defended

    return core.Defense(loss=loss)
