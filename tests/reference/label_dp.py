"""Label differential privacy: Ghazi et al. 2021, "Deep Learning with Label Differential Privacy".

Randomized response keeps y with e^eps / (e^eps + C - 1), else draws uniformly from the others. RRWithPrior
(algorithm 3): k* maximizes w_k = e^eps / (e^eps + k - 1) * (mass of the top k); y in the top k* is treated by
randomized response over those k* classes, y outside of them is replaced by a uniform draw from them.
"""

import math

import numpy as np


def keep(classes, epsilon):
    return 1 / (1 + (classes - 1) * math.exp(-epsilon))


def ranked(prior):
    """Classes by mass, ties to the lower class."""
    return sorted(range(len(prior)), key=lambda c: (-prior[c], c))


def objectives(prior, epsilon):
    """w_1 ... w_C: the chance that the noisy label is right, for every k."""
    order = ranked(prior)
    return [
        keep(k, epsilon) * math.fsum(float(prior[c]) for c in order[:k])
        for k in range(1, len(prior) + 1)
    ]


def optimal_k(prior, epsilon):
    """By trying every k; ties to the largest."""
    values = objectives(prior, epsilon)
    return max(k for k, value in enumerate(values, 1) if value == max(values))


def channel(prior, epsilon, k=None):
    """P(noisy = column | true = row)."""
    k = optimal_k(prior, epsilon) if k is None else k
    top, classes = ranked(prior)[:k], len(prior)
    out = np.zeros((classes, classes))
    for true in range(classes):
        for noisy in top:
            if true not in top:
                out[true, noisy] = 1 / k
            elif noisy == true:
                out[true, noisy] = keep(k, epsilon)
            else:
                out[true, noisy] = (1 - keep(k, epsilon)) / (k - 1)
    return out


def response(classes, epsilon):
    """P(noisy = column | true = row) of randomized response."""
    return channel([1 / classes] * classes, epsilon, classes)


def best_guess(prior, table):
    """How often the most probable true label, given the noisy one, is right."""
    classes = len(prior)
    return sum(max(prior[t] * table[t, noisy] for t in range(classes)) for noisy in range(classes))


def accuracy_at_most(epsilon, without):
    """By odds: who is right with probability M has odds M : 1 - M, and a label multiplies them by e^eps."""
    if without == 1:
        return 1.0
    odds = math.exp(epsilon) * without / (1 - without)
    return odds / (1 + odds)
