"""Gradient compression: Fu et al. 2022, section 6 (after Lin et al. 2018).

Over the whole [B, D] tensor of a party, the floor(p n) entries of largest magnitude are sent and
all others are zero; entries that tie with the last one sent are sent too.
"""

import math

import numpy as np


def quota(rate, size):
    """floor(p n); exact for a ``rate`` given as a Fraction."""
    return math.floor(rate * size)


def keep_largest(g, keep_rate):
    """``keep_rate`` may be a Fraction, so that floor(p n) is exact."""
    wanted = quota(keep_rate, g.size)
    if wanted == 0:
        return np.zeros_like(g)
    threshold = sorted(np.abs(g).ravel().tolist(), reverse=True)[wanted - 1]
    out = np.zeros_like(g)
    for place in np.ndindex(*g.shape):
        if abs(g[place]) >= threshold:
            out[place] = g[place]
    return out
