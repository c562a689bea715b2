"""The joint learner (ours): a linear softmax of standardized blocks, self-trained, in NumPy.

Each round trains on the known rows, at weight 1, and on the most confident rows of each class
as the last round called them, at weight tau. The loss is penalized by ridge / 2 times the squared weights.
"""

import math

import numpy as np

from tests.reference import posterior
from tests.reference.common import softmax
from tests.reference.fusion import zeta


def blocks(*parts, divided):
    """[N, W] of several [N, W_b]: standardized by column, each ``divided`` by the root of its width."""
    return np.concatenate(
        [zeta(part) / np.sqrt(part.shape[1] if divided else 1) for part in parts], axis=1
    )


def confident(logits, usable, share):
    """The rows (a set) of the given share, rounded up, most confident among those called each class."""
    p, called = softmax(logits), logits.argmax(axis=1)
    out = set()
    for c in range(logits.shape[1]):
        rows = [i for i in range(len(logits)) if usable[i] and called[i] == c]
        rows.sort(key=lambda i: -p[i, c])
        out |= set(rows[: math.ceil(round(share * len(rows), 6))])
    return out


def scores(x, labels, known, classes, ridge, tau, some=None):
    """Logits [N, C] of inputs x [N, W]; of the ``labels`` only those of the rows ``known`` are read.
    Of the other rows ``some`` are fitted in the place of all."""
    usable = ~np.isin(np.arange(len(x)), known)
    logits = np.zeros((len(x), classes))
    for share in (0, 0.1, 0.2, 0.4, 0.8):
        weights, targets = np.zeros(len(x)), logits.argmax(axis=1)
        for i in confident(logits, usable, share):
            weights[i] = tau if some is None else tau * (i in some) * len(x) / len(some)
        weights[known], targets[known] = 1, labels[known]
        logits = fitted(x, targets, weights, classes, ridge)
    return logits


def fitted(x, targets, weights, classes, ridge):
    """Logits [N, C] after training on ``targets`` [N] at ``weights`` [N]."""
    weight, bias = posterior.fitted(x, np.eye(classes)[targets], weights, ridge)
    return x @ weight + bias


def best(every_x, labels, known, classes, ridge, parts=5, sure=2.5):
    """The place of the best of some inputs [N, W_b]: not the first only if known rows are surely better."""
    losses = []
    for x in every_x:
        loss = np.zeros(len(known))
        for part in range(parts):
            out = np.arange(len(known)) // classes % parts == part
            logits = fitted(x[known], labels[known], np.where(out, 0.0, 1.0), classes, ridge)
            loss[out] = -np.log(softmax(logits)[np.arange(len(known)), labels[known]])[out]
        losses.append(loss)
    less = [losses[0] - loss for loss in losses]
    error = [np.std(d, ddof=1) / np.sqrt(len(d)) for d in less]
    return int(np.argmax([np.mean(d) - sure * e for d, e in zip(less, error)]))
