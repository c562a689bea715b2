"""A linear softmax with a ridge, fitted by a fixed number of accelerated gradient steps.

    l_i = W^T x_i + b,   p_i = softmax(l_i),   minimize over W and b

        sum_i w_i (-log sum_c p_ic L_ic) + ridge / 2 || W ||^2

L_ic is the likelihood of what was seen of row i if its class is c. A row whose label is known has the
likelihood 1 of its label and 0 of the others, which makes its term the cross-entropy. A row of which nothing
is known has equal likelihoods, and its term is constant. The gradient of a row by l is w_i (p_i - q_i), where
q_i, its posterior, is p_i L_i normalized.

The Hessian of a term is the covariance of a one-hot draw from p_i, which is at most 1/2, less that from q_i.
Hence 1/2 the largest eigenvalue of sum_i w_i [x_i, 1] [x_i, 1]^T, plus the ridge, bounds the curvature
(Boehning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical Mathematics
1992), and steps of its inverse need no line search. They are accelerated (Nesterov 1983), and start afresh
where a step points against the gradient (O'Donoghue and Candes, "Adaptive restart for accelerated gradient
schemes", Foundations of Computational Mathematics 2015, section 3.2, the gradient scheme).

All starts are 0. The sum is convex where labels are known; else it has local minima, and that is found to
which the steps lead from p uniform. L-BFGS with a backtracking line search may leave for a worse one: of ten
fits of ``posterior`` on Spambase one then had an AUC of about .43 in place of .98 (25 steps).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax.attacks import core
from vfljax.types import Array, HostArray

POWERS = 15  # products by which the largest eigenvalue is estimated, from below
ABOVE = 1.1  # by what the estimate is multiplied


MOST_ROWS = 8192  # more do not make a better fit of a few columns


def some_rows(count: int) -> HostArray:
    """The places of all of ``count`` rows, or of ``MOST_ROWS`` that are evenly spaced. Rows are in a random
    order, by which they were divided into training, validation and test rows."""
    return np.linspace(0, count - 1, min(count, MOST_ROWS)).astype(np.int32)


class Linear(NamedTuple):
    """The parameters of a linear softmax, or of a linear model of numbers."""

    weights: Array  # [W, C]
    bias: Array  # [C]

    def logits(self, x: Array) -> Array:
        """The logits [C, n] of the rows of x [W, n], which lie along the last axis."""
        return core.multiply(self.weights.T, x) + self.bias[:, None]


def fitted(x: Array, likelihood: Array, weights: Array, ridge: Array | float, steps: int) -> Linear:
    """The parameters after ``steps`` from 0 on the sum of the module's docstring.

    Args:
      x: [W, n] columns of similar scale, rows along the last axis: there are thousands of them and few
        classes, so that this is the order in which a processor's vector units are full.
      likelihood: [C, n] of what was seen of a row given each class, at least 0, and with a positive sum in
        rows with a weight; a row's factor does not matter.
      weights: [n] of the rows, at least 0.
      ridge: of the weights; the bias has none.
      steps: how many.
    """
    chex.assert_rank([x, likelihood, weights], [2, 2, 1])
    chex.assert_equal_shape_suffix([x, likelihood, weights], 1)
    likelihood = jnp.where(weights[None] > 0, likelihood, 1.0)
    likelihood = likelihood / jnp.max(likelihood, axis=0, keepdims=True)
    classes = len(likelihood)
    if classes > 2:
        residual = functools.partial(_of_many, likelihood)
        return _descended(x, weights, ridge, steps, Loss(residual, 1 / 2, classes))
    # the second column alone: the first one is minus it
    second = _descended(x, weights, ridge, steps, Loss(_of_two(likelihood), 1 / 2, 1))
    return Linear(*(jnp.concatenate([-part, part], axis=-1) for part in second))


def least_squares(
    x: Array, targets: Array, weights: Array, ridge: Array | float, steps: int
) -> Linear:
    """The parameters after ``steps`` from 0 on sum_i w_i |l_i - y_i|^2 / 2 + ridge / 2 || W ||^2.

    Args:
      x: [W, n] columns of similar scale, rows along the last axis.
      targets: y, [C, n].
      weights, ridge, steps: as of ``fitted``.
    """
    chex.assert_rank([x, targets, weights], [2, 2, 1])
    chex.assert_equal_shape_suffix([x, targets, weights], 1)

    def residual(outputs: Array) -> Array:
        return outputs - targets

    return _descended(x, weights, ridge, steps, Loss(residual, 1.0, len(targets)))


def linear_model(
    x: Array, targets: Array, weights: Array, ridge: Array | float, steps: int
) -> Linear:
    """``fitted`` to one-hot targets [C, n] of classes, or ``least_squares`` of numbers [1, n]."""
    fit = least_squares if len(targets) == 1 else fitted
    return fit(x, targets, weights, ridge, steps)


class Loss(NamedTuple):
    """A loss of a row's linear outputs."""

    residual: Callable[[Array], Array]  # of outputs [C, n]: the derivatives of the loss [C, n]
    curvature: float  # the most that a second derivative is
    width: int  # C


def _descended(x: Array, weights: Array, ridge: Array | float, steps: int, loss: Loss) -> Linear:
    """The parameters after ``steps`` from 0 on the weighted sum of the rows' losses, with a ridge."""
    ones = jnp.concatenate([x, jnp.ones((1, x.shape[1]))])
    penalty = ridge * jnp.concatenate([jnp.ones((len(x), 1)), jnp.zeros((1, 1))])
    size = 1 / (ABOVE * loss.curvature * _largest_eigenvalue(ones, weights) + ridge + 1e-6)

    def gradient(parameters: Array) -> Array:
        outputs = core.multiply(parameters.T, ones)
        slopes = weights[None] * loss.residual(outputs)
        return core.multiply(ones, slopes.T) + penalty * parameters

    def step(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        last, ahead, t = carry
        slope = gradient(ahead)
        new = ahead - size * slope
        against = jnp.sum(slope * (new - last)) > 0
        following = jnp.where(against, 1.0, (1 + jnp.sqrt(1 + 4 * t * t)) / 2)
        momentum = jnp.where(against, 0.0, (t - 1) / following)
        return (new, new + momentum * (new - last), following), None

    start = jnp.zeros((len(ones), loss.width))
    end = jax.lax.scan(step, (start, start, jnp.float32(1.0)), length=steps)[0][0]
    return Linear(end[:-1], end[-1])


def _of_two(likelihood: Array) -> Callable[[Array], Array]:
    """Returns what maps the second class's logits [1, n], to which the first one's are opposite, to its p - q.

    The steps are those of ``_of_many``, and take half of the time.
    """
    odds = jnp.log(likelihood[1:]) - jnp.log(likelihood[:1])
    return lambda logits: jax.nn.sigmoid(2 * logits) - jax.nn.sigmoid(2 * logits + odds)


def _of_many(likelihood: Array, logits: Array) -> Array:
    """p - q [C, n] of logits [C, n]."""
    odds = jnp.exp(logits - jnp.max(logits, axis=0, keepdims=True))
    likely = odds * likelihood
    p = odds / jnp.sum(odds, axis=0, keepdims=True)
    # where p of all classes with a likelihood is 0 in float32, the likelihood alone decides
    sums = jnp.sum(likely, axis=0, keepdims=True)
    return p - jnp.where(sums > 0, likely / jnp.where(sums > 0, sums, 1.0), likelihood)


def _largest_eigenvalue(x: Array, weights: Array) -> Array:
    """The largest eigenvalue of sum_i w_i x_i x_i^T [W, W] of rows x [W, n], by power iterations."""

    def product(direction: Array, _: None) -> tuple[Array, Array]:
        image = core.multiply(x, weights[:, None] * core.multiply(x.T, direction))
        length = jnp.linalg.norm(image)
        return image / jnp.where(length > 0, length, 1.0), length

    # a start that is orthogonal to no vector that the columns of a table are likely to have
    start = jnp.cos(jnp.arange(len(x), dtype=jnp.float32))[:, None]
    return jax.lax.scan(product, start / jnp.linalg.norm(start), length=POWERS)[1][-1]
