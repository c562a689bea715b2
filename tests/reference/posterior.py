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


THETA = np.linspace(-6, 6, 1201)
"""Where densities of numbers are added up, in standard deviations of noisy labels about m(x)."""


def ridge_of_numbers(x, n, ridge=RIDGE):
    """m(x) [N] of columns x [N, W], by the normal equations."""
    ones = np.column_stack([x, np.ones(len(x))])
    penalty = ridge * np.diag([*np.ones(x.shape[1]), 0])
    return ones @ np.linalg.solve(ones.T @ ones + penalty, ones.T @ n)


def of_theta(mean, spread, law):
    """The likelihood [N] and E[theta] [N] of theta ~ N(mean, spread^2), by a sum; ``law(rows, theta)`` is the
    likelihood of what was seen of some rows."""
    found = []
    for k in range(len(mean)):
        theta = mean[k] + spread * THETA
        density = np.exp(-(THETA**2) / 2) / np.sqrt(2 * np.pi) * (THETA[1] - THETA[0])
        joint = density * law(k, theta)
        found.append((joint.sum(), (joint * theta).sum() / joint.sum()))
    return np.array(found).T


def of_laplace(x, n, epsilon, spread):
    """[N] of noisy numbers n [N] with Laplace noise, of labels of this spread of their range; and log f."""
    n = (n - n.mean()) / n.std()
    mean = ridge_of_numbers(x, n)
    b = 1 / np.sqrt(2 + (epsilon * spread) ** 2)
    tau = np.sqrt(max(np.var(n - mean) - 2 * b**2, 1e-3))
    seen, theta = of_theta(mean, tau, lambda k, t: np.exp(-np.abs(n[k] - t) / b) / (2 * b))
    return theta, np.log(seen).sum()


def of_bins(x, n, epsilon, spread):
    """[N] of numbers n [N] after randomized response on bins, that is, on the values that they have; and the
    likelihood."""
    n = (n - n.mean()) / n.std()
    mean = ridge_of_numbers(x, n)
    values, place = np.unique(np.round(n, 5), return_inverse=True)
    keep = np.exp(epsilon) / (np.exp(epsilon) + len(values) - 1)
    other = (1 - keep) / (len(values) - 1)
    mu = values.mean() + (mean - values.mean()) / (keep - other)

    def law(k, theta):
        own = np.abs(theta[:, None] - values).argmin(axis=1) == place[k]
        return np.where(own, keep, other)

    seen, theta = of_theta(mu, spread * np.ptp(values), law)
    return theta, np.log(seen).sum()


def of_numbers(x, n, epsilon, spreads, law):
    """[N] by the ``law`` of the likeliest of ``spreads``, which is returned too."""
    found = [law(x, n, epsilon, spread) for spread in spreads]
    best = int(np.argmax([likelihood for _, likelihood in found]))
    return found[best][0], spreads[best]
