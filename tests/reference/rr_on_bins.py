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


def least_error(prior, epsilon):
    """The least expected squared error of all divisions."""
    every = (np.asarray(of) for of in divisions(len(prior)))
    return min(error(of, best_values(of, prior, epsilon), prior, epsilon) for of in every)
