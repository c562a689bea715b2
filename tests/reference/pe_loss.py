"""Potential energy of embeddings, Zheng et al. 2024, pair by pair in float64.

sum_c (1/n_c) sum_{i != j in c} 1 / sqrt(d_ij^2 + s^2), s -> 0 in the paper; d_ij Euclidean, or the angle in
radians between rows that are centered over their entries (a row without a direction is left out of the pairs).
"""

import math

import numpy as np


def euclidean(a, b):
    return math.sqrt(sum((float(x) - float(y)) ** 2 for x, y in zip(a, b)))


def angle(a, b):
    a, b = (np.asarray(x, np.float64) for x in (a, b))
    a, b = a - a.mean(), b - b.mean()
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return None if lengths < 1e-12 else math.acos(max(-1.0, min(1.0, float(a @ b) / lengths)))


def energy(z, labels, softening=0.0, distance="euclidean"):
    measure = {"euclidean": euclidean, "angular": angle}[distance]
    total = 0.0
    for label in sorted(set(labels.tolist())):
        members = [row for row, other in zip(z, labels) if other == label]
        for i, one in enumerate(members):
            for j, other in enumerate(members):
                d = None if i == j else measure(one, other)
                if d is not None:
                    total += 1 / math.sqrt(d * d + softening**2) / len(members)
    return total
