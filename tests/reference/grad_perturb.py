"""GradPerturb: Yang et al. 2022, "Differentially Private Label Protection in Split Learning".

The label party computes the cut gradient of a row once for every label c that the row could have, and sends g +
sum_c u_c g^(c) with u_c ~ Lap(2/eps); with two classes g + u (g^(1-y) - g^(y)) with u ~ Lap(1/eps).
"""

import numpy as np
import scipy.stats


def law(classes, epsilon):
    """The distribution of a weight u."""
    return scipy.stats.laplace(scale=(1 if classes == 2 else 2) / epsilon)


def perturbed(gradients, labels, u):
    """Each row's g~ [B, D] from its ``gradients`` [C, B, D] under every label.

    ``u`` is [B, C], or [B] with two classes."""
    out = []
    for j, y in enumerate(labels):
        each = gradients[:, j]
        if len(gradients) == 2:
            out.append(each[y] + u[j] * (each[1 - y] - each[y]))
        else:
            out.append(each[y] + sum(u[j][c] * each[c] for c in range(len(gradients))))
    return np.array(out)


def guess_is_right(prior, epsilon, rows, seed):
    """How often the best guess from one row's y + u of two classes is right, by simulation."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(2, size=rows, p=prior)
    t = labels + rng.laplace(scale=1 / epsilon, size=rows)
    logs = [np.log(prior[y]) - epsilon * abs(t - y) for y in (0, 1)]
    # ties are certain where t is far from both labels
    scores = np.array(logs) + 1e-9 * rng.random((2, rows))
    return np.mean(scores.argmax(axis=0) == labels)
