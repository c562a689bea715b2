"""ProjPert, isotropic form, in float64 and coordinate by coordinate.

v_i = D Delta_i^2 / K;  noise of class c in coordinate i: N(0, max(v_i - var_ci, 0)).
"""

import numpy as np


def targets(g, labels, k):
    """v_i of gradients [B, D] and labels in {0, 1}."""
    g = np.asarray(g, np.float64)
    width = g.shape[1]
    out = []
    for i in range(width):
        delta = g[labels == 1, i].mean() - g[labels == 0, i].mean()
        out.append(width * delta**2 / k)
    return np.array(out)


def deviations(g, labels, k):
    """[2, D]: the noise's standard deviation of class 0 and of class 1."""
    g = np.asarray(g, np.float64)
    v = targets(g, labels, k)
    out = np.zeros((2, g.shape[1]))
    for label in (0, 1):
        for i in range(g.shape[1]):
            out[label, i] = max(v[i] - g[labels == label, i].var(), 0.0) ** 0.5
    return out
