"""Readers that spread the known labels over a graph of neighbors: an example of a file of readers.

    python -m analysis.readers --readers=analysis/readers/graphs.py --workdir=runs/quickstart

    F = (I - alpha S)^-1 (Y - mean of Y),  S = D^-1/2 W D^-1/2,  W = A + A^T

A_ij = exp(-d_ij^2 / m^2) for a row's k = 7 nearest neighbors, of distances d_ij with the median m, else 0, so
that mutual neighbors weigh twice. Y [N, C] is 1 for the class of a known row, else 0, and its mean over the
known rows is subtracted from them, so that a row far from all of them scores 0 for every class.

A row is its columns, centered; its embeddings of all recorded epochs, standardized; and its gradients of all
recorded epochs and of the mean, at unit length. Each of these three blocks is divided by one number, so that
its columns' variances add up to 1.

``nodes_graph`` is for federations of trees. It joins columns with a row's nodes, each with the root of
.9^round 2^level, at unit length.

Reference: Zhou, Bousquet, Lal, Weston, Schoelkopf, "Learning with Local and Global Consistency", NIPS 2003.

Nothing of vfljax is used, so that these readers check its own attacks.
"""

import numpy as np
from scipy.sparse import diags, identity
from scipy.sparse.linalg import splu
from sklearn.neighbors import kneighbors_graph

NEIGHBORS = 7


def _block(*parts):
    """Parts [N, ...] side by side, centered and divided by one number, so that their variances add up to 1."""
    x = np.concatenate([np.asarray(part, float).reshape(len(part), -1) for part in parts], axis=1)
    x = x - x.mean(0)
    total = np.sqrt(x.var(0).sum())
    return x / total if total > 0 else x


def _standardized(x):
    deviation = x.std(0)
    return (x - x.mean(0)) / np.where(deviation > 0, deviation, 1)


def _unit(x):
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def _columns(view):
    return _block(*view.features)


def _embeddings(view):
    return _block(*map(_standardized, view.embeddings))


def _gradients(view):
    mean = view.sums.gradient / np.maximum(view.sums.count, 1)[:, None]
    return _block(*map(_unit, (*view.gradients, mean)))


def _nodes(view, num_classes):
    trees, rows, levels = view.nodes.shape
    parts = []
    for tree in range(trees):
        first = 0.9 ** (tree // (1 if num_classes == 2 else num_classes))
        for level in range(levels):
            of = view.nodes[tree, :, level]
            told = np.zeros((rows, of.max() + 2))
            told[np.arange(rows), of] = np.sqrt(first * 2**level)  # -1, the last, is not told
            parts.append(told[:, :-1])
    return _block(_unit(np.concatenate(parts, axis=1)))


def _spread(known, num_classes, alpha, *blocks):
    """Scores [N, C] of the rows of some blocks [N, W]."""
    a = kneighbors_graph(np.concatenate(blocks, axis=1), NEIGHBORS, mode="distance")
    a.data = np.exp(-((a.data / max(np.median(a.data), 1e-12)) ** 2))
    w = a + a.T
    d = diags(1 / np.sqrt(np.maximum(np.asarray(w.sum(1)).ravel(), 1e-12)))
    rows, labels = known.rows[: known.count], known.labels[: known.count]
    y = np.zeros((len(known.rows), num_classes))
    y[rows, labels] = 1
    y[rows] -= y[rows].mean(0)
    return splu((identity(len(y)) - alpha * (d @ w @ d)).tocsc()).solve(y)


def columns_graph(view, known, num_classes):
    """What the columns tell without the federation."""
    return _spread(known, num_classes, 0.97, _columns(view))


def embeddings_graph(view, known, num_classes):
    """Columns and embeddings."""
    return _spread(known, num_classes, 0.97, _columns(view), _embeddings(view))


def exchange_graph(view, known, num_classes):
    """Columns, embeddings and gradients."""
    blocks = _columns(view), _embeddings(view), _gradients(view)
    return _spread(known, num_classes, 0.97, *blocks)


def exchange_graph_near(view, known, num_classes):
    """Columns, embeddings and gradients; labels spread less far."""
    blocks = _columns(view), _embeddings(view), _gradients(view)
    return _spread(known, num_classes, 0.9, *blocks)


def nodes_graph(view, known, num_classes):
    """Columns and nodes of trees; columns where there are none."""
    nodes = () if view.nodes is None else (_nodes(view, num_classes),)
    return _spread(known, num_classes, 0.97, _columns(view), *nodes)
