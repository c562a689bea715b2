"""Marvell: Li et al. 2022, section 4.2 and theorem 2, by brute force in float64.

f = (d-1) [(l20+u)/(l21+v) + (l21+v)/(l20+u)] + (l10+u+g)/(l11+v) + (l11+v+g)/(l10+u)
minimized under  p (l11 + (d-1) l21) + (1-p) (l10 + (d-1) l20) = P,  l10 >= l20 >= 0,
l11 >= l21 >= 0;  sumKL = f/2 - d;  noise of positives sqrt(l11-l21) xi Delta/|Delta| + sqrt(l21) N(0, I),
of negatives the same with l10, l20.
"""

import numpy as np

GOLDEN = (np.sqrt(5) - 1) / 2


def statistics(g, labels):
    """(Delta, u, v, |Delta|^2, p) of gradients [B, D] and labels in {0, 1}."""
    g = np.asarray(g, np.float64)
    negatives, positives = g[labels == 0], g[labels == 1]
    delta = positives.mean(axis=0) - negatives.mean(axis=0)
    u, v = negatives.var(axis=0).mean(), positives.var(axis=0).mean()
    return delta, u, v, float(delta @ delta), len(positives) / len(g)


def sum_kl(lambdas, u, v, g, d):
    """The same after a/b + b/a - 2 = (a-b)^2 / (ab); 0/0 = 0 across, where nothing is told apart."""
    l10, l20, l11, l21 = lambdas
    a, b, x, y = l20 + u, l21 + v, l10 + u, l11 + v
    with np.errstate(divide="ignore", invalid="ignore"):
        across = np.where((d == 1) | (a == b), 0.0, (d - 1) * (a - b) ** 2 / (a * b))
        along = np.where(x == y, 0.0, (x - y) ** 2 / (x * y)) + g / x + g / y
    return (across + along) / 2


def spent(lambdas, d, p):
    l10, l20, l11, l21 = lambdas
    return p * (l11 + (d - 1) * l21) + (1 - p) * (l10 + (d - 1) * l20)


def golden_section(function, low, high, steps):
    """The best point seen of functions on [low, high], elementwise; each function is unimodal."""
    x, y = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_x, at_y = function(x), function(y)
    for _ in range(steps):
        left = at_x <= at_y
        low, high = np.where(left, low, x), np.where(left, y, high)
        new = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = function(new)
        x, y = np.where(left, new, y), np.where(left, x, new)
        at_x, at_y = np.where(left, at_new, at_y), np.where(left, at_x, at_new)
    return np.where(at_x <= at_y, x, y)


def optimal_noise(u, v, g, d, p, power, grid=40):
    """(l10, l20, l11, l21) of many problems [n]: golden section over l11 inside a search over the
    one free eigenvalue across, 0 being the other (u <= v: l21 = 0, u > v: l20 = 0)."""
    swap = u > v
    u, v, p = np.where(swap, v, u), np.where(swap, u, v), np.where(swap, 1 - p, p)
    most = power / ((1 - p) * d)  # l10 >= l20 = m leaves l10 = m, l11 = 0 here

    def lambdas_of(m, l11):
        rest = power - p * l11 - (1 - p) * (d - 1) * m
        return np.maximum(rest / (1 - p), m), m, l11, np.zeros_like(m)

    def along(m):
        high = np.maximum(power - (1 - p) * d * m, 0) / p

        def of_l11(l11):  # convex
            return sum_kl(lambdas_of(m, l11), u, v, g, d)

        return golden_section(of_l11, np.zeros_like(m), high, 64)

    def value(m):
        return sum_kl(lambdas_of(m, along(m)), u, v, g, d)

    # the profile over m need not be unimodal: a grid first, 0 and many sizes of m up to `most`
    points = np.concatenate([np.zeros((1, len(u))), most * np.geomspace(1e-12, 1, grid)[:, None]])
    values = np.stack([value(m) for m in points])
    best, columns = values.argmin(axis=0), np.arange(len(u))
    low = points[np.maximum(best - 1, 0), columns]
    high = points[np.minimum(best + 1, grid), columns]
    m = golden_section(value, low, high, 45)
    m = np.where(value(m) <= values.min(axis=0), m, points[best, columns])
    m = np.where(d == 1, 0.0, m)
    l10, l20, l11, l21 = lambdas_of(m, along(m))
    return tuple(np.where(swap, *pair) for pair in ((l11, l10), (l21, l20), (l10, l11), (l20, l21)))
