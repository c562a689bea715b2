"""Distance correlation, squared form R^2: Szekely et al. 2007, as used by Sun et al. 2022, section 4.

a_jk = |x_j - x_k|,   A_jk = a_jk - a_j. - a_.k + a_..,   dCov2(x, y) = mean_jk A_jk B_jk
R^2 = dCov2(x, y) / sqrt(dCov2(x, x) dCov2(y, y)),   0 when either sample is constant
"""

import math

import numpy as np


def centered_distances(x):
    rows = len(x)
    a = np.zeros((rows, rows))
    for j in range(rows):
        for k in range(rows):
            a[j, k] = math.sqrt(sum((float(u) - float(v)) ** 2 for u, v in zip(x[j], x[k])))
    out = np.zeros_like(a)
    for j in range(rows):
        for k in range(rows):
            out[j, k] = a[j, k] - a[j].mean() - a[:, k].mean() + a.mean()
    return out


def squared_distance_correlation(x, y):
    a, b = centered_distances(x), centered_distances(y)
    scale = math.sqrt((a * a).mean() * (b * b).mean())
    return (a * b).mean() / scale if scale > 0 else 0.0


def one_hot(labels, classes):
    out = np.zeros((len(labels), classes))
    for i, label in enumerate(labels):
        out[i, label] = 1.0
    return out


def penalty(z, labels, classes, form="log_squared", floor=1e-12):
    """log R^2, R^2, log R or R of embeddings and one-hot labels, or numbers of 1 class; R^2 is floored inside
    the log."""
    y = [[label] for label in labels] if classes == 1 else one_hot(labels, classes)
    squared = squared_distance_correlation(z, y)
    return {
        "log_squared": math.log(max(squared, floor)),
        "squared": squared,
        "log_root": math.log(max(squared, floor)) / 2,
        "root": math.sqrt(max(squared, 0.0)),
    }[form]
