"""VILLAIN's reading of swapped embeddings, row by row, in float64."""

import numpy as np

from tests.reference.ranks import ranked


def replaced(z, columns):
    """Whether another row of other columns sent the same."""
    return np.array(
        [np.any((z == a).all(axis=1) & (columns != x).any(axis=1)) for a, x in zip(z, columns)]
    )


def ridge(x, targets, weights):
    normal = np.eye(x.shape[1]) + (x.T * weights) @ x
    return x @ np.linalg.solve(normal, (x.T * weights) @ targets)


def grades(z, g, sent, columns, place, theta, mu):
    """t of each row that was swapped in the epoch at this place and honest in another; NaN of others."""
    lengths, t = np.linalg.norm(np.float64(g), axis=2), np.full(len(columns), np.nan)
    lengths = np.array([a / a[s].mean() for a, s in zip(lengths, sent)])
    swapped = np.array([replaced(a, columns) for a in z]) & sent
    for i in np.flatnonzero(swapped[place]):
        honest = [lengths[e, i] for e in range(len(z)) if sent[e, i] and not swapped[e, i]]
        if honest:
            b = np.mean(honest)
            t[i] = theta / (theta + lengths[place, i] / b) * mu / (mu + b)
    return t - np.nanmean(t)


def scores(z, g, sent, columns, known, labels, classes, signal, place, theta, mu, weight):
    """Scores [N, C]; ``known`` rows and their ``labels``."""
    t = grades(z, g, sent, columns, place, theta, mu)
    usable, t = np.isfinite(t), np.nan_to_num(t)
    if signal == "direction":
        t = ridge(g[place] / np.linalg.norm(g[place], axis=1, keepdims=True), t, usable)
    x = ranked(columns, np.ones(len(t), bool)) * min(1.0, np.sqrt(8 / columns.shape[1]))
    spread, weights = ridge(x, t, usable), weight * usable
    anchor = np.argmax([spread[known[labels == c]].sum() for c in range(classes)])
    targets = np.array([t if c == anchor else -t / (classes - 1) for c in range(classes)]).T
    targets[known], weights[known] = np.eye(classes)[labels] - 1 / classes, 1
    h = ridge(x, targets, weights)
    return np.where(usable[:, None], (h + weight * targets) / (1 + weight), h)
