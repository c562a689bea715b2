"""The charge attack, from its formulas: row by row, in float64."""

import numpy as np


def force(z, p, i, s):
    """(mean, variance) of the force on row i of rows that are of the class with probability p; alpha is 1."""
    n = max(p.sum(), 1.0)
    mean, variance = np.zeros(z.shape[1]), 0.0
    for j in range(len(z)):
        if j != i:
            u = (z[i] - z[j]) / (np.sum((z[i] - z[j]) ** 2) + s**2) ** 1.5
            mean -= 2 * u * p[j] / n
            variance += 4 * np.sum(u**2) * p[j] * (1 - p[j]) / n**2
    return mean, variance


def evidence(z, g, p, alpha, noise, s):
    """(log odds of class 1, alpha by slope, alpha by size) of each row of a batch."""
    out = np.zeros((3, len(z)))
    for i in range(len(z)):
        square, likelihoods = np.sum(g[i] ** 2), []
        for of_class in (1 - p, p):
            mean, variance = force(z, of_class, i, s)
            rest, total = np.sum((g[i] - alpha * mean) ** 2), alpha**2 * variance + noise * square
            likelihoods.append(-len(g[i]) / 2 * (rest / (total + 1e-12) + np.log(total + 1e-12)))
        mean, variance = force(z, p if p[i] > 0.5 else 1 - p, i, s)
        odds = np.clip(likelihoods[1] - likelihoods[0], -8, 8)
        size = np.sqrt(square / (mean @ mean + variance))
        out[:, i] = odds, mean @ g[i] / (mean @ mean), size
    return out


def log_odds(batches, start, fixed, s, rounds):
    """``batches`` are (rows, z, g); ``fixed`` are the log odds of known rows, 0 elsewhere."""

    def every(odds, alpha, noise):
        p, total, rest = 1 / (1 + np.exp(-odds)), np.zeros(len(odds)), []
        for rows, z, g in batches:
            found = evidence(z, g, p[rows], alpha, noise, s)
            total[rows] += found[0]
            rest.append(found[1:])
        return total, *np.median(np.concatenate(rest, axis=1), axis=1)

    odds = np.array(start, np.float64)
    alpha = every(odds, 1.0, 1.0)[2]
    for noise in (1, 0.25, 0.05):
        for _ in range(rounds):
            found = every(odds, alpha, noise)[0]
            odds = 0.7 * odds + 0.3 * np.clip(0.3 * start + found, -8, 8)
            odds = np.where(fixed != 0, fixed, odds)
        alpha = every(np.where(odds > 0, 700.0, -700.0), alpha, noise)[1]
    return odds
