"""Rows joined by the nodes of trees that they share, from the equations of ``vfljax.attacks.cohabitation``."""

import numpy as np


def joined(nodes, first, deep, a_round=1):
    """A [N, N] from nodes [T, L, N], negative where they are not told, of ``a_round`` trees a round."""
    trees, levels, rows = nodes.shape
    a, told = np.zeros((rows, rows)), np.zeros(rows)
    for t in range(trees):
        for level in range(levels):
            weight = first ** (t // a_round) * deep**level
            for i in range(rows):
                if nodes[t, level, i] >= 0:
                    same = nodes[t, level] == nodes[t, level, i]
                    a[i] += weight * same / same.sum()
                    told[i] += weight
    return a / np.where(told > 0, told, 1)[:, None]


def spread(a, known, labels, classes, rounds):
    """The scores [N, C] of labels that spread from the known rows; of numbers C is 1."""
    y = np.eye(classes)[labels] if classes > 1 else labels[:, None]
    s = np.zeros((len(a), classes))
    for _ in range(rounds):
        s[known] = y - y.mean(axis=0)
        s = a @ s
    return s


def second(a):
    """The second eigenvector [N] of A of rows that are all told; its sign is open."""
    values, vectors = np.linalg.eig(a)
    return np.real(vectors[:, np.argsort(-np.real(values))[1]])
