"""MaxNorm: Li et al. 2022, section 4.1.

sigma_j = sqrt(max(max_i |g_i|^2 / |g_j|^2 - 1, 0)),  g_j <- g_j (1 + sigma_j xi_j);  0 / 0 = 0
"""

import math

import numpy as np


def scales(g):
    squares = [sum(float(x) ** 2 for x in row) for row in g]
    longest = max(squares)
    return np.array([math.sqrt(max(longest / s - 1, 0)) if s > 0 else 0.0 for s in squares])


def perturb(g, xi):
    """``xi`` [B]: one standard normal draw a row."""
    sigma = scales(g)
    return np.array([[float(x) * (1 + s * z) for x in row] for row, s, z in zip(g, sigma, xi)])
