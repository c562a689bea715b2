"""DiscreteSGD: Fu et al. 2022, section 6.2; one entry at a time.

measured  [mean - 2 deviation, mean + 2 deviation] in N equal parts: the nearest end point; 0 outside
fixed     step * round(g / step),  step = 2 bound / N
"""

import math

import numpy as np


def moments(tensors):
    """Count, mean and population standard deviation of all entries."""
    entries = [float(x) for g in tensors for x in np.ravel(g)]
    mean = math.fsum(entries) / len(entries)
    squares = math.fsum((x - mean) ** 2 for x in entries) / len(entries)
    return len(entries), mean, math.sqrt(squares)


def measured(g, mean, deviation, intervals):
    low, high = mean - 2 * deviation, mean + 2 * deviation
    ends = [low + (high - low) * k / intervals for k in range(intervals + 1)]
    out = np.zeros(g.shape)
    for place in np.ndindex(*g.shape):
        x = float(g[place])
        if low <= x <= high:
            out[place] = min(ends, key=lambda end: abs(end - x))
    return out


def fixed(g, bound, intervals):
    step = 2 * bound / intervals
    out = np.zeros(g.shape)
    for place in np.ndindex(*g.shape):
        out[place] = step * round(float(g[place]) / step)
    return out
