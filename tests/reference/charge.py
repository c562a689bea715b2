"""The charge attack, from its formulas: row by row, in float64."""

import numpy as np


def charges(z, p, i, s):
    """(mean, variance) of PELoss's force on row i under each class; p [B, C] are probabilities, alpha is 1."""
    n = np.maximum(p.sum(0), 1.0)
    mean, variance = np.zeros((p.shape[1], z.shape[1])), np.zeros(p.shape[1])
    for j in range(len(z)):
        u = (z[i] - z[j]) / (np.sum((z[i] - z[j]) ** 2) + s**2) ** 1.5
        mean -= np.outer(2 * p[j] / n, u)
        variance += 4 * np.sum(u**2) * p[j] * (1 - p[j]) / n**2
    return mean, variance, 0 * z[i]


def pulls(z, p, i, s):
    """The same of dCor, by the moments of the label of every row j, and the direction that is left out."""
    distance = np.sqrt(((z[:, None] - z[None]) ** 2).sum(-1) + s**2)
    a = distance - distance.mean(0) - distance.mean(1)[:, None] + distance.mean()
    u, m = (z[i] - z) / distance[i][:, None], p.mean(0)
    mean, variance = np.zeros((p.shape[1], z.shape[1])), np.zeros(p.shape[1])
    for c in range(p.shape[1]):
        by_class = (np.eye(p.shape[1])[c] - m) @ np.eye(p.shape[1])  # of row j's class
        for j in range(len(z)):
            expected = p[j] @ by_class
            mean[c] -= (expected - (np.eye(p.shape[1])[c] - m) @ m) * u[j]
            variance[c] += np.sum(u[j] ** 2) * (p[j] @ by_class**2 - expected**2)
    return mean, variance, a[i] @ u


def evidence(force, z, g, p, alpha, noise, s):
    """Logits of each row of a batch, p [B, C], and (alpha by slope, alpha by size, misfit)."""
    logits, figures = np.zeros_like(p), []
    for i in range(len(z)):
        mean, variance, same = force(z, p, i, s)
        length = max(same @ same, 1e-300)
        mean, received = (x - np.outer(x @ same, same) / length for x in (mean, g[i : i + 1]))
        square = np.sum(received**2)
        rest, total = np.sum((received - alpha * mean) ** 2, axis=1), alpha**2 * variance
        total = total + noise * square + 1e-12
        logits[i] = -len(g[i]) / 2 * (rest / total + np.log(total))
        c = p[i].argmax()
        slope, size = mean[c] @ received[0] / (mean[c] @ mean[c]), mean[c] @ mean[c] + variance[c]
        figures.append([slope, np.sqrt(square / size), rest[c] / square])
    return np.clip(logits - logits.mean(1, keepdims=True), -4, 4), np.array(figures)


def refined(force, batches, start, fixed, s, rounds):
    """(logits, misfit) from one L0: ``batches`` are (rows, z, g); ``fixed`` are 0 at unknown rows."""

    def every(logits, alpha, noise):
        p, total, figures = np.exp(logits - logits.max(1, keepdims=True)), 0 * logits, []
        p /= p.sum(1, keepdims=True)
        for rows, z, g in batches:
            found = evidence(force, z, g, p[rows], alpha, noise, s)
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
