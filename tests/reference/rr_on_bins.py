"""Randomized response on bins by trying every division of the range: Ghazi et al. 2023, "Regression with Label
Differential Privacy", equation 3 and algorithm 1."""

import itertools
import math

import numpy as np


def divisions(cells):
    """Every division of cells 0, ..., cells - 1 into intervals, as the interval of each cell."""
    for marks in itertools.product((0, 1), repeat=cells - 1):
        yield np.cumsum((0, *marks))


def best_values(bin_of, prior, epsilon):
    """The value of each interval: the mean of y with weights p(y) e^eps within and p(y) outside."""
    y = (np.arange(len(prior)) + 0.5) / len(prior)
    weights = [prior * np.where(bin_of == j, math.exp(epsilon), 1) for j in range(bin_of[-1] + 1)]
    return np.array([w @ y / w.sum() for w in weights])


def law(bin_of, epsilon):
    """P(value of column | cell of row)."""
    count = bin_of[-1] + 1
    own = bin_of[:, None] == np.arange(count)
    return np.where(own, math.exp(epsilon), 1) / (math.exp(epsilon) + count - 1)


def error(bin_of, values, prior, epsilon):
    """The expected squared error of the randomized label."""
    y = (np.arange(len(prior)) + 0.5) / len(prior)
    return float(prior @ (law(bin_of, epsilon) * (values[None] - y[:, None]) ** 2).sum(axis=1))


def cost(prior, epsilon, first, end):
    """What the interval of cells first, ..., end - 1 adds to the error, times e^eps + d - 1."""
    y = (np.arange(len(prior)) + 0.5) / len(prior)
    w = prior * np.where(
        (first <= np.arange(len(prior))) & (np.arange(len(prior)) < end), math.exp(epsilon), 1
    )
    return float(w @ (y - w @ y / w.sum()) ** 2)


def least_errors(prior, epsilon):
    """The least expected squared error of a division into 1, 2, ..., G intervals."""
    cells = len(prior)
    costs = {(a, b): cost(prior, epsilon, a, b) for b in range(cells + 1) for a in range(b)}
    best, found = {0: 0.0}, []
    for d in range(1, cells + 1):
        best = {b: min(best[a] + costs[a, b] for a in best if a < b) for b in range(d, cells + 1)}
        found.append(best[cells] / (math.exp(epsilon) + d - 1))
    return np.array(found)


def least_error(prior, epsilon):
    """The least expected squared error of all divisions."""
    every = (np.asarray(of) for of in divisions(len(prior)))
    return min(error(of, best_values(of, prior, epsilon), prior, epsilon) for of in every)
