"""The residual attack (ours): what a gradient says beyond what its row's embedding says.

    r_i = g_i / rms - mean of g_j / rms over the k rows j nearest to i in the embedding, i left out

with rms over all entries of the batch.
"""

import numpy as np


def residuals(z, g, k):
    """[n, D] of one batch; a row alone has none."""
    z, g = np.asarray(z, np.float64), np.asarray(g, np.float64)
    n = len(z)
    size = np.sqrt(np.mean(g**2))
    unit = g / size if size > 0 else g
    out = np.zeros_like(g)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        nearest = sorted(others, key=lambda j: np.sum((z[i] - z[j]) ** 2))[:k]
        if nearest:
            out[i] = unit[i] - np.mean([unit[j] for j in nearest], axis=0)
    return out
