"""VLP: Zhao et al. 2025, with bits flipped as RAPPOR flips them, in float64 and by enumeration.

Z has a bit for each of K classes. Bit j is 1 with probability p if j is the label and q = 1 - p if not, and
p / q = e^(epsilon / 2). The network is trained on sum_j BCE(sigmoid(o_j), Z_j).
"""

import itertools

import numpy as np


def every_vector(classes):
    """[2^K, K]."""
    return np.array(list(itertools.product((0, 1), repeat=classes)))


def law(z, epsilon):
    """P(Z | label) [rows, K] of vectors z [rows, K]."""
    p = 1 / (1 + np.exp(-epsilon / 2))
    chance_of_1 = np.where(np.eye(z.shape[1]) == 1, p, 1 - p)  # [label, bit]
    return np.prod(np.where(z[:, None, :] == 1, chance_of_1, 1 - chance_of_1), axis=2)


def loss(logits, z):
    s = 1 / (1 + np.exp(-logits))
    return -np.mean(np.sum(z * np.log(s) + (1 - z) * np.log(1 - s), axis=1))


def logit_gradient(logits, z):
    """Of the loss."""
    return (1 / (1 + np.exp(-logits)) - z) / len(z)


def best_guess(prior, epsilon):
    """How often the likeliest label given Z is right."""
    return np.sum(np.max(prior * law(every_vector(len(prior)), epsilon), axis=1))
