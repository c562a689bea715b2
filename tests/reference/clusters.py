"""The attack by clusters of columns, in NumPy, one map at a time."""

import itertools

import numpy as np

from tests.reference.enumeration import row_gradients


def cosine(x, y):
    return np.sum(x * y) / np.linalg.norm(x) / np.linalg.norm(y)


def best_map(w, z, g, clusters, count):
    """The map whose simulated gradients have the largest cosine with g, and that cosine."""
    maps = itertools.product(range(w.shape[1]), repeat=count)
    d, rows = np.array([row_gradients(w, 0 * w[0], x) for x in z]), np.arange(len(z))
    found = [(cosine(d[rows, np.array(m)[clusters]], g), m) for m in maps]
    return max(found)[::-1]


def scores(w, z, g, x, clusters, classes, weight):
    """s [N, C] under a map ``classes`` [K]."""
    means = np.array([x[clusters == k].mean(axis=0) for k in range(len(classes))])
    apart = ((x[:, None] - means[None]) ** 2).sum(axis=2)
    powers = np.exp(-apart / np.mean(apart[np.arange(len(x)), clusters]))
    shares = powers / powers.sum(axis=1, keepdims=True)
    out = np.array([shares[:, np.array(classes) == c].sum(axis=1) for c in range(w.shape[1])]).T
    rows = [[cosine(d, g[i]) for d in row_gradients(w, 0 * w[0], z[i])] for i in range(len(z))]
    return out + weight * np.array(rows)
