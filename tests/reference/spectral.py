"""The spectral attack: Sun et al. 2022, section 5 and algorithm 1.

Of one batch: center it, take the top right singular vector v, score every row by s = <z - mean, v>
or |s|, and part the scores into the two clusters of least squared distance to their means (every cut
tried). The sign of v is arbitrary: whoever calls it a positive decides.
"""

import numpy as np


def scores(z, absolute=False):
    """s of each row of one batch [n, D], up to the sign of all of them."""
    z = np.asarray(z, np.float64)
    centered = z - z.mean(axis=0)
    _, _, right = np.linalg.svd(centered, full_matrices=True)
    s = centered @ right[0]
    return np.abs(s) if absolute else s


def two_means(s):
    """Whether each number is in the upper of the two best clusters."""
    ranked = sorted(range(len(s)), key=lambda i: s[i])
    best, upper = np.inf, [False] * len(s)
    for cut in range(1, len(s)):
        low, high = [s[i] for i in ranked[:cut]], [s[i] for i in ranked[cut:]]
        within = sum((x - np.mean(low)) ** 2 for x in low)
        within += sum((x - np.mean(high)) ** 2 for x in high)
        if within < best:
            best, upper = within, [i in ranked[cut:] for i in range(len(s))]
    return np.array(upper)


def positives(z, absolute=False, heuristic="minority"):
    """(s turned so that positives are the upper cluster, which rows are positive)."""
    s = scores(z, absolute)
    upper = two_means(s)
    turned = 2 * upper.sum() > len(s)
    if heuristic == "larger" and not absolute:
        # the cluster whose mean score is the farther from 0
        turned = abs(s[upper].mean()) < abs(s[~upper].mean())
    if heuristic == "larger" and absolute:
        turned = False
    return (-s, ~upper) if turned else (s, upper)
