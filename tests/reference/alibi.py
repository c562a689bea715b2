"""ALIBI: Malek et al. 2021, section 4, in float64.

The label party publishes o = e_y + Laplace(2 / eps)^C once a row. Bayes' rule, with the current
prediction as the prior, gives the posterior of y, on which the model trains.
"""

import numpy as np
import scipy.stats


def log_density(o, label, epsilon):
    """Of o [C] if the label were this."""
    means = np.eye(len(o))[label]
    return scipy.stats.laplace.logpdf(o, loc=means, scale=2 / epsilon).sum()


def posterior(prior, o, epsilon):
    """P(y | o) [B, C] with the prior [B, C]."""
    out = []
    for p, row in zip(prior, o):
        logs = np.log(p) + [log_density(row, c, epsilon) for c in range(len(p))]
        joint = np.exp(logs - logs.max())
        out.append(joint / joint.sum())
    return np.array(out)


def guess_is_right(prior, epsilon, rows, seed):
    """How often the likeliest label given o is the label, by simulation."""
    rng, classes = np.random.default_rng(seed), len(prior)
    labels = rng.choice(classes, size=rows, p=prior)
    o = np.eye(classes)[labels] + rng.laplace(scale=2 / epsilon, size=(rows, classes))
    with np.errstate(divide="ignore"):
        logs = np.log(prior) - epsilon / 2 * (np.abs(o - 1) - np.abs(o))
    # where o is far from 0 and 1 in several entries, classes tie
    return np.mean((logs + 1e-9 * rng.random(logs.shape)).argmax(axis=1) == labels)
