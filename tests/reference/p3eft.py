"""P3EFT in float64: the mixture, the fit in each batch, what is added to the loss, and its gradient."""

import numpy as np

from tests.reference.common import softmax


def mixed(z, xi):
    """(1/2 + xi) z1 + (1/2 - xi) z2 of z [B, 2D], a party's."""
    first, second = np.split(z, 2, axis=1)
    return (0.5 + xi) * first + (0.5 - xi) * second


def fit(z, targets, steps=30, free=1e-3):
    """Weights [D, C] and intercepts [C], by the bound of the Hessian."""
    x, ridge = np.c_[z, np.ones(len(z))], 2.0 if targets.shape[1] == 2 else 1.0
    penalty = np.diag([*[ridge] * z.shape[1], free])
    weights = np.zeros((x.shape[1], targets.shape[1]))
    for _ in range(steps):
        slope = x.T @ (targets - softmax(x @ weights)) - penalty @ weights
        weights = weights + np.linalg.inv(x.T @ x / 2 + penalty) @ slope
    return weights[:-1], weights[-1]


def regularizer(z, targets):
    """(mean CE of the targets under the negated fit, its gradient [B, D] with the fit held)."""
    weights, intercept = fit(z, targets)
    chances = softmax(-(z @ weights + intercept))
    value = -np.mean(np.sum(targets * np.log(chances), axis=1))
    return value, (targets - chances) @ weights.T / len(z)
