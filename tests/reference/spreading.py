"""Propagation of labels in all that an attacker has, from its formulas, in float64."""

import numpy as np

from tests.reference import neighbors


def standardized(x):
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(spread > 1e-6, spread, np.inf)


def unit(x):
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def scores(columns, z, g, sent, y, alpha):
    """Scores [N, C] of columns [N, W], of embeddings and gradients [E, N, D] of rows sent [E, N] bool, and of
    Y [N, C]; NaN for rows never sent."""
    g = np.where(sent[:, :, None], g, 0.0)
    ever, last = sent.any(axis=0), np.zeros_like(z[-1])
    last[sent[-1]] = standardized(z[-1][sent[-1]])
    mean = g.sum(axis=0) / np.maximum(sent.sum(axis=0), 1)[:, None]
    directions = np.hstack([unit(of[ever]) for of in (*g, mean)])
    halves = standardized(mean[ever]), directions
    gradients = np.hstack([neighbors.block(half) for half in halves])
    parts = columns[ever], last[ever], gradients
    x = np.hstack([neighbors.block(part) for part in parts])
    out = np.full(y.shape, np.nan)
    similar = neighbors.similarity(x, 7)
    out[ever] = neighbors.propagate(similar, y[ever], alpha)
    return out
