"""Adversarial training in float64: a descends CE(a(z), y) with Adam, then the loss is CE - lambda CE(a'(z), y)
with the new a'. A network is [(kernel, bias), (kernel, bias)] with a ReLU between; gradients by hand."""

import numpy as np

from tests.reference.common import adam, cross_entropy, softmax


def entropy(network, z, labels):
    (k1, b1), (k2, b2) = network
    return cross_entropy(np.maximum(z @ k1 + b1, 0) @ k2 + b2, labels)


def gradients(network, z, labels):
    """(of the layers, of z)"""
    (k1, b1), (k2, b2) = network
    before = z @ k1 + b1
    hidden = np.maximum(before, 0)
    q = softmax(hidden @ k2 + b2)
    q[np.arange(len(z)), labels] -= 1
    q /= len(z)
    back = (q @ k2.T) * (before > 0)
    return [(z.T @ back, back.sum(0)), (hidden.T @ q, q.sum(0))], back @ k1.T


def descend(network, state, z, labels, rate):
    """The network and Adam's state after one step."""
    slopes, _ = gradients(network, z, labels)
    (k1, b1, k2, b2), state = adam(
        [*network[0], *network[1]], [*slopes[0], *slopes[1]], state, rate
    )
    return [(k1, b1), (k2, b2)], state
