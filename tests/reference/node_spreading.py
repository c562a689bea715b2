"""A graph of rows by their paths through trees, from the equations of ``vfljax.attacks.node_spreading`` and
``node_posterior``."""

import numpy as np

from tests.reference import neighbors
from tests.reference.common import softmax


def paths(nodes, first, deep, a_round=1):
    """Paths [N, W] of length 1 from nodes [T, L, N], negative where they are not told."""
    out = []
    for t, tree in enumerate(nodes):
        for level, of in enumerate(tree):
            weight = first ** (t // a_round) * deep**level
            out += [np.sqrt(weight) * (of == node) for node in np.unique(of[of >= 0])]
    out = np.stack(out, axis=1)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return out / np.where(length > 0, length, 1)


def similarity(blocks, k=7):
    """S [N, N] of blocks [N, W] that are joined at total variance 1 each."""
    return neighbors.similarity(np.concatenate([neighbors.block(x) for x in blocks], axis=1), k)


def evidence(average, noisy, fold, folds):
    """h [N, C] of one-hot noisy labels [N, C]: each fold's by ``average`` of those of the other folds."""
    h = np.zeros(noisy.shape)
    for f in range(folds):
        teachers = (noisy - noisy.mean(axis=0)) * (fold != f)[:, None]
        h[fold == f] = average(teachers)[fold == f]
    h -= h.mean(axis=0)
    return h / h.std()


def log_likelihood(a, h, noisy, epsilon):
    """Of a, up to a constant, with the classes' shares of the noisy labels [N, C] one-hot."""
    classes = noisy.shape[1]
    share = (noisy.mean(axis=0) * (np.exp(epsilon) + classes - 1) - 1) / (np.exp(epsilon) - 1)
    share = np.clip(share, 0.1 / classes, 1)
    p = softmax(a * h + np.log(share / share.sum()))
    return np.sum(np.log(np.sum(p * np.exp(epsilon * noisy), axis=1)))
