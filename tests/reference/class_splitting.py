"""Class splitting: labels flipped by randomized response, then one pseudo class of the flipped label; and the
two cross entropies, of which the second gives the embeddings no gradient. For linear heads."""

import numpy as np

from tests.reference import label_dp
from tests.reference.common import cross_entropy, softmax


def law(counts, epsilon):
    """P(pseudo class = column | label = row) [C, K]."""
    flips = label_dp.response(len(counts), epsilon)
    return np.hstack([np.tile(flips[:, [c]] / k, k) for c, k in enumerate(counts)])


def loss(h, first, second, pseudo, labels):
    return cross_entropy(h @ first[0] + first[1], pseudo) + cross_entropy(
        h @ second[0] + second[1], labels
    )


def cut_gradient(h, first, pseudo):
    """Of the mean loss: from the pseudo head alone."""
    p = softmax(h @ first[0] + first[1])
    return (p - np.eye(p.shape[1])[pseudo]) @ first[0].T / len(h)


def head_gradient(h, head, targets):
    """Of a head's kernel."""
    p = softmax(h @ head[0] + head[1])
    return h.T @ (p - np.eye(p.shape[1])[targets]) / len(h)


def summed(logits, counts):
    """ln of the sum of e^logit over each class's pseudo classes."""
    ends = np.cumsum(counts)
    return np.stack(
        [np.log(np.exp(logits[:, e - k : e]).sum(axis=1)) for k, e in zip(counts, ends)], axis=1
    )


def to_mean_norm(g):
    norms = np.sqrt((g**2).sum(axis=1))
    return np.array([row if n == 0 else row / n * norms.mean() for row, n in zip(g, norms)])
