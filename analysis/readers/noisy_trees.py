"""Readers of boosted trees that are grown on randomized labels and send gradients without encryption.

    vfljax audit --trees --plain ... --workdir=runs/telco
    python -m analysis.readers --readers=analysis/readers/noisy_trees.py --workdir=runs/telco --margin=.005

The sign of a row's first gradient is its noisy label y~ exactly, and epsilon is public. No label is known:

    s_c = log p_c + epsilon 1[y~ = c],   p_c = ((e^epsilon + C - 1) q_c - 1) / (e^epsilon - 1)

q_c, what other rows say of y~, is a logistic regression on the means of y~ over a row's nodes without the row
itself, and perhaps on the attacker's own columns. It predicts rows that it was not fitted to. A reader is told
epsilon by its name; where it is another the figure says nothing.

Nothing of vfljax is used, so that these readers check its own attacks.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

_memo = {}  # what all draws of a view share: no label is known


def _noisy(view, num_classes):
    """y~ [N], -1 for rows of which no gradient was sent."""
    first = np.asarray(view.gradients[0])
    first = first.reshape(len(first), -1, num_classes).mean(1)
    return np.where(first.any(1), first.argmin(1), -1)


def _node_means(view, hot):
    """The means over a row's nodes of ``hot`` [N, C] of other rows; trees that come first and nodes that are
    deep count most."""
    trees, rows, levels = view.nodes.shape
    total, weights = np.zeros(hot.shape), np.zeros((rows, 1))
    for tree in range(trees):
        first = 0.9 ** (tree // (1 if hot.shape[1] == 2 else hot.shape[1]))
        for level in range(levels):
            of = view.nodes[tree, :, level]
            place = of + 1  # of 0, which is no node, nothing is read
            sums = np.zeros((place.max() + 1, hot.shape[1]))
            np.add.at(sums, place, hot)
            count = np.bincount(place)[place][:, None]
            read = ((place > 0)[:, None] & (count > 1)) * first * 2**level
            total += read * (sums[place] - hot) / np.maximum(count - 1, 1)
            weights += read
    return total / np.maximum(weights, 1e-12)


def _read(view, num_classes, epsilon, columns):
    noisy = _noisy(view, num_classes)
    if (noisy < 0).any() or len(np.unique(noisy)) < num_classes:
        return np.zeros((len(noisy), num_classes))  # gradients are encrypted
    if _memo.get("view") is not view:
        _memo.clear()
        _memo["view"] = view
    if (epsilon, columns) not in _memo:
        hot = np.eye(num_classes)[noisy]
        x = _node_means(view, hot)
        if columns:
            own = [np.asarray(part, float).reshape(len(part), -1) for part in view.features]
            x = np.concatenate([x, *own], axis=1)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        q = cross_val_predict(model, x, noisy, cv=8, method="predict_proba")
        p = ((np.exp(epsilon) + num_classes - 1) * q - 1) / np.expm1(epsilon)
        _memo[epsilon, columns] = np.log(np.clip(p, 0.01, 1)) + epsilon * hot
    return _memo[epsilon, columns]


def node_means_at_2(view, known, num_classes):
    """Node means, where epsilon is 2."""
    return _read(view, num_classes, 2.0, columns=False)


def node_means_at_half(view, known, num_classes):
    """Node means, where epsilon is .5."""
    return _read(view, num_classes, 0.5, columns=False)


def columns_at_2(view, known, num_classes):
    """Node means and columns, where epsilon is 2."""
    return _read(view, num_classes, 2.0, columns=True)


def columns_at_half(view, known, num_classes):
    """Node means and columns, where epsilon is .5."""
    return _read(view, num_classes, 0.5, columns=True)
