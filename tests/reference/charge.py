"""The charge attack, from its formulas: row by row, in float64."""

import numpy as np


def force(z, p, i, s):
    """(mean, variance) of the force on row i of rows that are of the class with probability p; alpha is 1."""
    n = max(p.sum(), 1.0)
    mean, variance = np.zeros(z.shape[1]), 0.0
    for j in range(len(z)):
        u = (z[i] - z[j]) / (np.sum((z[i] - z[j]) ** 2) + s**2) ** 1.5
        mean -= 2 * u * p[j] / n
        variance += 4 * np.sum(u**2) * p[j] * (1 - p[j]) / n**2
    return mean, variance


def evidence(z, g, p, alpha, noise, s):
    """Logits of each row of a batch, p [B, C], and (alpha by slope, alpha by size, misfit)."""
    logits, figures = np.zeros_like(p), []
    for i in range(len(z)):
        square, every = np.sum(g[i] ** 2), [force(z, of_class, i, s) for of_class in p.T]
        for c, (mean, variance) in enumerate(every):
            rest, total = np.sum((g[i] - alpha * mean) ** 2), alpha**2 * variance + noise * square
            logits[i, c] = -len(g[i]) / 2 * (rest / (total + 1e-12) + np.log(total + 1e-12))
        mean, variance = every[p[i].argmax()]
        slope, misfit = mean @ g[i] / (mean @ mean), np.sum((g[i] - alpha * mean) ** 2) / square
        figures.append([slope, np.sqrt(square / (mean @ mean + variance)), misfit])
    return np.clip(logits - logits.mean(1, keepdims=True), -4, 4), np.array(figures)


def refined(batches, start, fixed, s, rounds):
    """(logits, misfit) from one L0: ``batches`` are (rows, z, g); ``fixed`` are 0 at unknown rows."""

    def every(logits, alpha, noise):
        p, total, figures = np.exp(logits - logits.max(1, keepdims=True)), 0 * logits, []
        p /= p.sum(1, keepdims=True)
        for rows, z, g in batches:
            found = evidence(z, g, p[rows], alpha, noise, s)
            total[rows] += found[0]
            figures.append(found[1])
        return total, *np.median(np.concatenate(figures), axis=0)

    def certain(logits):
        return 1e3 * (logits == logits.max(1, keepdims=True))

    logits = np.array(start, np.float64)
    alpha = every(logits, 1.0, 1.0)[2]
    for noise in (1, 0.25, 0.05):
        for _ in range(rounds):
            found = every(logits, alpha, noise)[0]
            logits = 0.7 * logits + 0.3 * np.clip(0.3 * start + found, -4, 4)
            logits = np.where(np.any(fixed != 0, axis=1, keepdims=True), fixed, logits)
        alpha = every(certain(logits), alpha, noise)[1]
    return logits, every(certain(logits), alpha, 0.05)[3]
