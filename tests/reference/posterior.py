"""The posterior under randomized response (ours), fitted by SciPy, in NumPy.

    log P(y = c | noisy, x) = log p_c(x) + epsilon 1[noisy = c] + constant

p is softmax(x W + b), fitted to P(noisy | x) = sum_c p_c(x) P(noisy | c) by maximum likelihood, with a ridge
on W.
"""

import numpy as np
from scipy.optimize import minimize

from tests.reference import label_dp
from tests.reference.common import softmax

RIDGE = 3.0


def fitted(x, likelihood, weights, ridge):
    """W and b that minimize sum_i w_i (-log sum_c p_ic L_ic) + ridge / 2 |W|^2 of columns x [N, W] and the
    ``likelihood`` [N, C] of what was seen of each row, given each class, from p uniform."""
    width, classes = x.shape[1], likelihood.shape[1]

    def value_and_slope(flat):
        parameters = flat.reshape(width + 1, classes)
        p = softmax(x @ parameters[:-1] + parameters[-1])
        seen = np.sum(p * likelihood, axis=1, keepdims=True)
        by_logit = weights[:, None] * (p - p * likelihood / seen)  # by Bayes
        slope = np.vstack([x.T @ by_logit + ridge * parameters[:-1], by_logit.sum(axis=0)])
        value = -np.sum(weights * np.log(seen[:, 0])) + ridge / 2 * np.sum(parameters[:-1] ** 2)
        return value, slope.ravel()

    start = np.zeros((width + 1) * classes)
    options = {"maxiter": 5000, "ftol": 1e-14, "gtol": 1e-8}
    found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options)
    parameters = found.x.reshape(width + 1, classes)
    return parameters[:-1], parameters[-1]


def noisy_by_direction(g):
    """The noisy label of two classes [N] by the gradients [N, D] along their direction, up to its sign."""
    rows = g / np.linalg.norm(g, axis=1, keepdims=True)
    along = np.linalg.svd(rows, full_matrices=False)[2][0]
    return np.where(rows @ along > 0, 0, 1)


def opposed_by_direction(g, epsilon):
    """0 or 1 as ``noisy_by_direction``, and -1 for the rows of VLP that lie most across the direction: as many
    as have two equal bits."""
    rows = g / np.linalg.norm(g, axis=1, keepdims=True)
    cosine = np.abs(rows @ np.linalg.svd(rows, full_matrices=False)[2][0])
    kept = 1 / (1 + np.exp(-epsilon / 2))
    differ = kept**2 + (1 - kept) ** 2
    return np.where(cosine >= np.quantile(cosine, 1 - differ), noisy_by_direction(g), -1)


def columns(x, likelihood, ridge=RIDGE):
    """log p [N, C] of standardized columns x [N, W], fitted to the ``likelihood`` [N, C] of what was sent of
    each row, given each class."""
    weights, bias = fitted(x, likelihood, np.ones(len(x)), ridge)
    return np.log(softmax(x @ weights + bias))


def scores(x, noisy, classes, epsilon):
    """[N, C] of standardized columns x [N, W] and noisy labels [N]."""
    to_noisy = label_dp.response(classes, epsilon)[
        :, noisy
    ].T  # [N, C]: P(the row's noisy label | class)
    return columns(x, to_noisy) + epsilon * np.eye(classes)[noisy]


def responses(g, tau):
    """P(noisy = c | g) [N, C] of entries g [N, C], -m at the noisy label and m / (C - 1) elsewhere, plus normal
    noise of the standard deviation tau [N]; m by the second moment, and a flat prior."""
    classes = g.shape[1]
    m = np.sqrt((classes - 1) * max(np.mean(g**2) - np.mean(tau**2), 0))
    means = m * (
        np.full((classes, classes), 1 / (classes - 1)) - np.eye(classes) * classes / (classes - 1)
    )
    squares = np.sum((g[:, None] - means) ** 2, axis=2)
    return softmax(-squares / (2 * tau[:, None] ** 2))


def scores_with_noise(x, g, tau, epsilon):
    """[N, C] of columns x [N, W] and entries g [N, C] that hold noise."""
    likelihood = 1 + (np.exp(epsilon) - 1) * responses(g, tau)
    return columns(x, likelihood) + np.log(likelihood)
