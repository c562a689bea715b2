"""BlockRR: Liu, Ding 2026, "BlockRR: A Unified Framework of RR-type Algorithms for Label Differential Privacy".

Weights w_ij = prior_i on the diagonal and e^(-1/sigma) prior_i elsewhere: a class is of S1 if its own weight is
the largest of its column. Delta has the ell classes of largest weight on the diagonal. A row of the matrix has

    true in S1:  e^eps beta on the diagonal, beta for the rest of S1, gamma for S2
    true in S2:  e^eps gamma on the diagonal, gamma for the rest of S2, 1 / C for Delta, beta for the rest of S1

and beta and gamma make every row sum to 1.
"""

import math

import numpy as np


def sets(prior, sigma, ell):
    """(S1, Delta) as sets of classes, by the matrix of weights."""
    classes = len(prior)
    weights = [
        [prior[i] * (1.0 if i == j else math.exp(-1 / sigma)) for j in range(classes)]
        for i in range(classes)
    ]
    majority = {j for j in range(classes) if weights[j][j] == max(row[j] for row in weights)}
    likeliest = sorted(range(classes), key=lambda c: (-weights[c][c], c))
    return majority, set(likeliest[: min(ell, len(majority))])


def channel(prior, epsilon, sigma, ell):
    """P(noisy = column | true = row): the sums of a row of each kind, solved for beta and gamma."""
    majority, fallback = sets(prior, sigma, ell)
    classes, large, delta = len(prior), len(majority), len(fallback)
    small, e = classes - large, math.exp(epsilon)
    beta = 1 / (e + large - 1)
    gamma = 0.0
    if small:
        rows = [[e + large - 1, small], [large - delta, e + small - 1]]
        beta, gamma = np.linalg.solve(rows, [1, 1 - delta / classes])
    out = np.zeros((classes, classes))
    for true in range(classes):
        for noisy in range(classes):
            one = beta if noisy in majority else gamma
            if noisy == true:
                out[true, noisy] = e * one
            elif true not in majority and noisy in fallback:
                out[true, noisy] = 1 / classes
            else:
                out[true, noisy] = one
    return out
