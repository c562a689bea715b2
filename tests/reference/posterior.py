"""The posterior under randomized response (ours), fitted by AdamW, in NumPy.

    log P(y = c | noisy, x) = log p_c(x) + epsilon 1[noisy = c] + constant

p is softmax(x W + b), fitted to P(noisy | x) = sum_c p_c(x) P(noisy | c) by maximum likelihood.
"""

import numpy as np

from tests.reference import label_dp
from tests.reference.common import adam, softmax

EPS = 1e-6  # the laboratory's; Loshchilov and Hutter's is 1e-8


def adamw(gradient, parameters, steps, learning_rate, weight_decay):
    """A list of arrays after some steps; ``gradient(parameters)`` is a list of the same shapes."""
    state = None
    for _ in range(steps):
        slopes = gradient(parameters)
        parameters, state = adam(parameters, slopes, state, learning_rate, EPS, weight_decay)
    return parameters


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


def columns(x, likelihood, steps=500, learning_rate=1e-2, weight_decay=1e-2):
    """log p [N, C] of standardized columns x [N, W], fitted to the ``likelihood`` [N, C] of what was sent of
    each row, given each class."""

    def gradient(parameters):
        p = softmax(x @ parameters[0] + parameters[1])
        after = p * likelihood / np.sum(p * likelihood, axis=1, keepdims=True)  # by Bayes
        by_logit = (p - after) / len(x)
        return [x.T @ by_logit, by_logit.sum(axis=0)]

    start = [np.zeros((x.shape[1], likelihood.shape[1])), np.zeros(likelihood.shape[1])]
    weights, bias = adamw(gradient, start, steps, learning_rate, weight_decay)
    return np.log(softmax(x @ weights + bias))


def scores(x, noisy, classes, epsilon, steps=500):
    """[N, C] of standardized columns x [N, W] and noisy labels [N]."""
    to_noisy = label_dp.response(classes, epsilon)[
        :, noisy
    ].T  # [N, C]: P(the row's noisy label | class)
    return columns(x, to_noisy, steps) + epsilon * np.eye(classes)[noisy]
