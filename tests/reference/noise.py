"""Noisy gradients: Fu et al. 2022, section 6; the isotropic form: Li et al. 2022, section 4.

laplace    Laplace(0, scale)        gaussian  N(0, scale^2)
isotropic  N(0, s^2),  s = scale * max_j |g_j|_2 / sqrt(D)
"""

import math

import scipy.stats


def isotropic_deviation(g, scale):
    """The standard deviation of isotropic noise on ``g`` [B, D]."""
    longest = max(math.sqrt(sum(float(x) ** 2 for x in row)) for row in g)
    return scale * longest / math.sqrt(g.shape[1])


def law(name, g, scale):
    """The distribution of every element's noise."""
    if name == "laplace":
        return scipy.stats.laplace(scale=scale)
    if name == "gaussian":
        return scipy.stats.norm(scale=scale)
    return scipy.stats.norm(scale=isotropic_deviation(g, scale))
