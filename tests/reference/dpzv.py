"""DPZV: Zhang et al. 2025, zeroth-order vertical federated learning with one noised number a batch.

All parties move along unit directions u by +lambda and by -lambda, the label party's own networks too. Of a row
d_i = (l_i(+) - l_i(-)) / lambda, of a batch Delta = mean_i clip(d_i, -C, C) plus Gaussian noise of deviation
2 C sqrt(E) / (B mu). A party of n parameters moves on by the gradient (n / 2) Delta u.
"""

import math

import numpy as np
from scipy.stats import norm

from tests.reference import protocol
from tests.reference.common import log_softmax


def moved(net, direction, by):
    return [
        protocol.Dense(a.weight + by * u.weight, a.bias + by * u.bias)
        for a, u in zip(net, direction)
    ]


def losses(bottoms, top, features, targets):
    """(cross entropy of each row [B], embeddings of each party)"""
    cut = [protocol.forward(net, x)[0] for net, x in zip(bottoms, features)]
    logits = protocol.forward(top, protocol.aggregate(cut, "concatenate"))[0]
    return -np.sum(targets * log_softmax(logits), axis=1), cut


def answer(plus, minus, smoothing, clip):
    """Delta without noise, of row losses [B]."""
    return np.mean(np.clip((plus - minus) / smoothing, -clip, clip))


def step(bottoms, top, directions, of_top, features, targets, smoothing, clip, rate):
    """(bottoms, top, embeddings, gradients as a party estimates them, Delta) of one step of plain descent,
    without noise."""
    forward, back = (
        losses(
            [moved(net, u, by) for net, u in zip(bottoms, directions)],
            moved(top, of_top, by),
            features,
            targets,
        )
        for by in (smoothing, -smoothing)
    )
    delta = answer(forward[0], back[0], smoothing, clip)
    pairs = list(zip(forward[1], back[1]))
    embeddings = [(p + m) / 2 for p, m in pairs]
    gradients = [delta * (p - m) / (2 * smoothing) for p, m in pairs]

    def descended(net, u):
        count = sum(a.weight.size + a.bias.size for a in net)
        return moved(net, u, -rate * count / 2 * delta)

    after = [descended(net, u) for net, u in zip(bottoms, directions)]
    return after, descended(top, of_top), embeddings, gradients, delta


def deviation(clip, epochs, rows, mu):
    return 2 * clip * math.sqrt(epochs) / (rows * mu)


def delta_of(epsilon, mu):
    """The least delta for which mu-GDP is (epsilon, delta)-DP (Dong, Roth, Su 2022, corollary 1)."""
    return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
