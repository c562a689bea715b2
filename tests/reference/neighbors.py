"""Propagation of labels on a graph of nearest neighbors, from its formulas, in float64."""

import numpy as np


def block(x):
    """x centered, with variances that sum to 1."""
    x = x - x.mean(axis=0)
    return x / np.sqrt(np.mean(np.sum(x**2, axis=1)))


def similarity(x, k):
    """S [n, n] of the rows of x [n, W]."""
    n = len(x)
    distances = np.array([[np.sum((a - b) ** 2) for b in x] for a in x])
    np.fill_diagonal(distances, np.inf)
    k = min(k, n - 1)
    near = np.argsort(distances, axis=1)[:, :k]
    mean = np.mean(np.take_along_axis(distances, near, axis=1))
    w = np.zeros((n, n))
    for i in range(n):
        for j in near[i]:
            weight = max(np.exp(-distances[i, j] / mean), 1e-3)
            w[i, j] += weight
            w[j, i] += weight
    root = np.sqrt(w.sum(axis=1))
    return w / np.outer(root, root)


def propagate(s, y, alpha):
    return (1 - alpha) * np.linalg.solve(np.eye(len(s)) - alpha * s, y)


def seeds(known, labels, rows, classes):
    """Y [n, C] of known rows [K] and their labels [K]."""
    y = np.zeros((rows, classes))
    y[known, labels] = 1
    y[known] -= y[known].mean(axis=0)
    return y
