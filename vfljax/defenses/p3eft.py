"""P3EFT: two adapters a party, mixed in secret, with embeddings trained to hide labels (Zmushko et al. 2024).

Every party sends embeddings twice as wide, z = [z1, z2]: those of two adapters. The label party reads

    (1/2 + xi) * z1 + (1/2 - xi) * z2,    xi ~ N(0, deviation^2) [D], secret and drawn once

(``vfljax.models.mixing``) and adds to its loss, for every passive party and each of its adapters,

    alpha * CE(y, softmax(-(z W* + b*)))        two classes: BCE(w*^T z, 1 - y)

where W*, b* is the logistic regression of the batch's targets on its z_i, fitted anew in each batch and held
constant. Neither adapter then predicts the labels linearly, while their secret mixture does. The fit
minimizes sum CE + |w|^2 / 2 by ``STEPS`` steps with Boehning's bound of the Hessian, which is the same for
all classes and in all steps, so that one factorization serves. The fit is within some 5 % of the optimum.

Reference: Zmushko, Mansurov, Svirschevski, Kuznedelev, Ryabinin, Beznosikov. "Label Privacy in Split Learning
for Large Models with Parameter-Efficient Training", arXiv 2412.16669, after its released code. There adapters
are low-rank changes of one pretrained model, n of them, and xi may be trained. Here two adapters are the halves
of a party's last layer, what lies before it is shared, and xi stays as drawn. The paper hides gradients too, by
a backpropagation that several servers share; here they cross the wire as they are.

Guarantee: none. (1/2 + xi) g and (1/2 - xi) g, what the loss sends back, sum to the gradient g that crosses
the wire without the defense, and the added term sends back a gradient of its own that depends on the label.

Edge cases
    alpha = 1        each adapter's term weighs as much as the federation's cross entropy
    deviation = 0    the label party reads the mean of the adapters
    alpha = 0        mixing alone

It is not trained without model splitting. FedPass may be listed before or after it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import DefenseRow, Knower, Strengths
from vfljax.models.mixing import Mixed
from vfljax.types import Array, Spec

STEPS = 30  # of the fit
RIDGE, FREE = 1.0, 1e-3  # penalties: of the weights, as released, and of the intercept


def logistic_regression(x: Array, targets: Array) -> Array:
    """The weights [D + 1, C] of the multinomial logistic regression of ``targets`` [B, C] on ``x`` [B, D + 1],
    whose last column is 1.

    Each step solves (X^T X / 2 + R) dW = X^T (Y - P) - R W, whose matrix is at least the Hessian for any number
    of classes (Boehning 1992): the objective falls at every step.
    """
    chex.assert_rank([x, targets], 2)
    chex.assert_equal_shape_prefix([x, targets], 1)
    # of two classes the single w that the released code fits is the difference of two columns
    ridge = jnp.full(x.shape[1], RIDGE * (1 + (targets.shape[1] == 2))).at[-1].set(FREE)
    factor = jax.scipy.linalg.cho_factor(x.T @ x / 2 + jnp.diag(ridge))

    def step(weights: Array, _: Any) -> tuple[Array, None]:
        slope = x.T @ (targets - jax.nn.softmax(x @ weights)) - ridge[:, None] * weights
        return weights + jax.scipy.linalg.cho_solve(factor, slope), None

    return jax.lax.scan(step, jnp.zeros((x.shape[1], targets.shape[1])), None, length=STEPS)[0]


def regularizer(z: Array, targets: Array) -> Array:
    """The term [], without the factor alpha, of one adapter's ``z`` [B, D] and ``targets`` [B, C]."""
    x = jnp.pad(z, ((0, 0), (0, 1)), constant_values=1.0)  # of the intercept
    weights = jax.lax.stop_gradient(logistic_regression(x, targets))
    return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(-(x @ weights)), axis=1))


def p3eft(alpha: Array | float, *, deviation: float = 1.0) -> core.Defense:
    """P3EFT, with model splitting.

    ``alpha`` >= 0 weighs the terms added to the loss, and ``deviation`` in [0, 1000], static, is that of xi.
    The targets are those that reach the loss: in a chain with label DP or KDk, the targets that these make.

    Raises ``ValueError`` for a number out of range; ``init`` does without a top model.
    """
    errors.check("alpha", alpha, 0.0, jnp.inf)
    errors.check("deviation", deviation, 0.0, 1000.0)

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, state):
            value, aux = loss_fn(active, f, embeddings, targets, context, state)
            # targets of class splitting may be those of two heads side by side, which sum to 2
            shares = targets / jnp.sum(targets, axis=1, keepdims=True)
            for z in embeddings:
                for adapter in jnp.split(z, 2, axis=1):
                    value += alpha * regularizer(adapter, shares)
            return value, aux

        return defended

    init = core.stateless(
        lambda data: core.require_top_model("p3eft", "mixture stands before", data)
    )
    return core.Defense(init=init, loss=loss)


def network(spec: Spec, *, deviation: float = 1.0) -> Spec:
    """The ``spec`` with bottoms of twice the width and mixtures before its top model; without a top model it
    stays as it is."""
    if spec.top is None:
        return spec
    bottoms: Any = spec.bottoms
    wide = tuple(dataclasses.replace(bottom, out=2 * bottom.out) for bottom in bottoms)
    weights = getattr(spec.top, "weights", "default")
    top = Mixed(spec.top, wide[0].out, float(deviation), weights)
    return dataclasses.replace(spec, bottoms=wide, top=top)


ROW = DefenseRow(
    factory=p3eft,
    example={"alpha": 1.0},
    known_by={
        # rows of one class still receive like gradients
        "split": (Knower("similarity"), Knower("mean"), Knower("probe"), Knower("joint"))
    },
    needs_top=True,
    network=network,
    strengths=Strengths("alpha", (0.01, 0.1, 0.3, 1.0, 3.0)),
)
