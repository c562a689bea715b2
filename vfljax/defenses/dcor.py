"""dCor: a penalty on the distance correlation between what a party sends and the labels (Sun et al. 2022).

The label party adds to its loss, for every passive party's embedding z,

    alpha * log dCor(z, Y),   dCor(z, Y) = dCov2(z, Y) / sqrt(dCov2(z, z) dCov2(Y, Y))

with Y one-hot and dCov2 the mean product of doubly centered Euclidean distance matrices. That ratio
is the SQUARED distance correlation R2 of Szekely et al. Four readings of it circulate:

    form="log_squared"  log R2 (the paper's; default)     "squared"  R2
    form="log_root"     log R = 1/2 log R2                "root"     R

so that log_root with weight lambda is log_squared with alpha = lambda/2.

Reference: Sun, Yang, Yao, Wang. "Label Leakage and Protection from Forward Embedding in Vertical
Federated Learning", 2022, section 4; Szekely, Rizzo, Bakirov 2007.

Guarantee: none. The penalty discourages dependence of z on Y on training batches.

Scale: alpha weighs a number that does not depend on the scale of z. The paper uses .002 to .04 at
B = 8192.

Edge cases
    alpha = 0              exactly the undefended loss and gradient, also where R2 = 0
    constant embedding     R2 = 0; the log is floored, the gradient is 0
    one-class batch        R2 = 0, likewise; B = 1 likewise
    equal rows             distance 0: its gradient is taken as 0 there
    tiny or huge z         value unchanged, gradient times 1/scale (down to 1e-36)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import READING, DefenseRow, Knower, Strengths
from vfljax.types import Array

FLOOR = 1e-12  # of R2 inside the log: -27.6, far below anything a batch reaches by training

# form -> its value and its derivative at R2
FORMS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "log_squared": lambda r: (jnp.log(jnp.maximum(r, FLOOR)), 1 / jnp.maximum(r, FLOOR)),
    "squared": lambda r: (r, jnp.ones_like(r)),
    "log_root": lambda r: (jnp.log(jnp.maximum(r, FLOOR)) / 2, 0.5 / jnp.maximum(r, FLOOR)),
    "root": lambda r: (jnp.sqrt(r), 0.5 / jnp.sqrt(jnp.maximum(r, FLOOR))),
}


def _safe_sqrt(x: Array) -> Array:
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)  # double where


def _center(a: Array) -> Array:
    """A symmetric [B, B] matrix, doubly centered."""
    rows = a.mean(0)
    return a - rows[None, :] - rows[:, None] + rows.mean()


def _distances(x: Array) -> tuple[Array, Array, Array]:
    """(distances [B, B], rows [B, D], unit []) of the rows of ``x`` [B, D].

    The unit is the largest magnitude of a centered entry; the Euclidean distances and the centered rows are
    given in it. The distances come from the Gram matrix, since [B, B, D] differences do not fit at the paper's
    B = 8192. Squared distances within rounding of 0 are 0, so that equal rows have distance 0 exactly.
    """
    x = x - jnp.mean(x, axis=0, keepdims=True)
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x)))
    unit = jnp.where(largest > 1e-36, largest, 1.0)
    x = x / unit
    norms = jnp.sum(x * x, axis=1)
    pairs = norms[:, None] + norms[None, :]
    # full precision: an accelerator's default would drown small distances
    squared = pairs - 2 * jnp.matmul(x, x.T, precision="highest")
    rounding = 8 * jnp.finfo(x.dtype).eps * pairs
    # the diagonal is 0 by definition; left to rounding, its root would bias every mean
    keep = (squared > rounding) & ~jnp.eye(x.shape[0], dtype=bool)
    return _safe_sqrt(jnp.where(keep, squared, 0.0)), x, unit


def _centered_label_distances(labels: Array, num_classes: int) -> Array:
    """``_center`` of the one-hot labels' distances, in closed form: [B, B].

    The distance between two classes is sqrt(2), and that between numbers their difference."""
    if num_classes == 1:
        return _center(jnp.abs(labels[:, None] - labels[None, :]))
    members = jax.nn.one_hot(labels, num_classes)
    share = jnp.mean(members, axis=0)
    label_share = share[labels]
    same = (labels[:, None] == labels[None, :]).astype(jnp.float32)
    return jnp.sqrt(2.0) * (label_share[:, None] + label_share[None, :] - same - jnp.sum(share**2))


def _ratio(covariance: Array, variance_x: Array, variance_y: Array) -> Array:
    scale = _safe_sqrt(variance_x) * _safe_sqrt(variance_y)
    positive = (scale > 0) & (covariance > 0)
    return jnp.where(positive, covariance / jnp.where(positive, scale, 1.0), 0.0)


def _penalty_and_gradient(
    z: Array, labels: Array, num_classes: int, form: str
) -> tuple[Array, Array]:
    chex.assert_rank([z, labels], [2, 1])
    chex.assert_equal_shape_prefix([z, labels], 1)
    chex.assert_type(labels, float if num_classes == 1 else int)
    distances, x, unit = _distances(z)
    a, b = _center(distances), _centered_label_distances(labels, num_classes)
    variance_x, variance_y = jnp.mean(a * a), jnp.mean(b * b)
    r2 = _ratio(jnp.mean(a * b), variance_x, variance_y)
    value, slope = FORMS[form](r2)
    # centering is a projection and a, b are centered, so the derivative of R2 by a raw distance is
    # (b / sqrt(var_x var_y) - R2 a / var_x) / B^2; by x_i it is 2 sum_j of that times (x_i - x_j) / d_ij
    real = r2 > FLOOR
    safe_x, safe_y = jnp.where(real, variance_x, 1.0), jnp.where(real, variance_y, 1.0)
    by_distance = b / (jnp.sqrt(safe_x) * jnp.sqrt(safe_y)) - (r2 / safe_x) * a
    apart = distances > 0
    w = jnp.where(apart, by_distance / jnp.where(apart, distances, 1.0), 0.0)
    pull = jnp.sum(w, axis=1, keepdims=True) * x - jnp.matmul(w, x, precision="highest")
    factor = jnp.where(real, 2 * slope / (z.shape[0] ** 2), 0.0) / unit
    return value, factor * pull


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def penalty(z: Array, labels: Array, num_classes: int, form: str = "log_squared") -> Array:
    """The term [], without the factor alpha, of one party's ``z`` [B, D] and ``labels`` [B], integers or
    for ``num_classes`` = 1 numbers.

    ``form`` is a key of ``FORMS``. The gradient with respect to z is written out: automatic
    differentiation through root and centering costs three times as much and is not finite at
    distance zero. There is no second derivative.
    """
    return _penalty_and_gradient(z, labels, num_classes, form)[0]


def _backward(num_classes: int, form: str, gradient: Array, cotangent: Array) -> tuple:
    del num_classes, form
    # a zero weight gives a zero gradient, whatever the gradient is
    return jnp.where(cotangent == 0, 0.0, cotangent * gradient), None


penalty.defvjp(_penalty_and_gradient, _backward)


def dcor(alpha: Array | float, *, form: str = "log_squared") -> core.Defense:
    """Add alpha * log dCor(z, Y) to the loss, one term for each passive party.

    ``alpha`` >= 0 is the paper's alpha_d. Y are the labels that later slots may see: after label DP
    the randomized ones. Reduces to no defense at alpha = 0. Raises ``ValueError`` for a negative
    alpha or an unknown ``form``.
    """
    errors.check("alpha", alpha, 0.0, jnp.inf)
    errors.check_choice("form", form, tuple(FORMS))

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, state):
            value, aux = loss_fn(active, f, embeddings, targets, context, state)
            for z in embeddings:
                term: Any = penalty(z, context.labels, targets.shape[-1], form)
                value += alpha * term
            return value, aux

        return defended

    return core.Defense(loss=loss)


ROW = DefenseRow(
    factory=dcor,
    example={"alpha": 0.01},
    not_for_numbers="",
    known_by={
        # gradients still carry the label
        "no_split": (Knower("correlation"), Knower("direct", "most_negative"), *READING),
        # a party that holds a batch can compute the pull under either label
        "split": (Knower("correlation"),),
    },
    neutral={"alpha": 0.0},
    strengths=Strengths("alpha", (1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0)),
)
