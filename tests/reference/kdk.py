"""KDk targets: Arazzi et al. 2024, "KDk", equations 8-11 and algorithm 1.

t_anchor = 1 - epsilon,  t_c = epsilon / (k - 1) on the k - 1 classes the teacher ranks
highest among the others,  0 elsewhere;  k = 1 is the one-hot anchor.
"""

import numpy as np


def kdk_targets(scores, labels, k, epsilon, anchor="label"):
    """[N, C] targets from teacher scores [N, C] and labels [N]; ties go to the lower class."""
    rows, classes = scores.shape
    out = np.zeros((rows, classes))
    for i in range(rows):
        ranked = sorted(range(classes), key=lambda c: (-scores[i, c], c))
        first = labels[i] if anchor == "label" else ranked[0]
        companions = [c for c in ranked if c != first][: k - 1]
        out[i, first] = 1.0 - epsilon if companions else 1.0
        for c in companions:
            out[i, c] = epsilon / (k - 1)
    return out
