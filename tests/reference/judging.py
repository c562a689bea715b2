"""Judging one strength, in loops over Python lists; figures are [candidates][seeds], None is missing.

The leave-one-out choice, the logit limit of bounded figures, the limit of paired differences, the
contenders, the limits of the strongest attack, moderated variances, Fieller's limits and DeLong's variance.
"""

import math
import statistics

import numpy as np
from scipy import optimize, special, stats


def present(values):
    return [value for value in values if value is not None]


def leave_one_out(leaks, certain=1.0):
    """The score and the pick of each seed; None where there is none."""
    out = []
    for seed in range(len(leaks[0])):
        best, pick, alike = None, None, []
        for candidate, figures in enumerate(leaks):
            others = present(figures[:seed] + figures[seed + 1 :])
            if figures[seed] is None or not others:
                continue
            mean = statistics.fmean(others)
            if mean >= certain - 1e-13:
                alike.append(figures[seed])
            if best is None or mean > best + 1e-12:
                best, pick = mean, candidate
        score = None if pick is None else leaks[pick][seed]
        out.append((statistics.median_low(alike) if alike else score, pick))
    return out


def quantile(level, n):
    return float(stats.t.ppf(level, n - 1))


def half_row(m):
    q = 0.5 / (m + 1)
    return math.sqrt(q * (1 - q) / m)


def row_error(figures, m):
    shrunk = [(x * m + 0.5) / (m + 1) for x in present(figures)]
    p = statistics.fmean(shrunk) if shrunk else 0.5
    return math.sqrt(p * (1 - p) / m)


def figure_limit(figures, m, side, level, share=0.0, error=None):
    error = row_error(figures, m) if error is None else error
    figures = present(figures)
    n = len(figures)
    if n < 3:
        return 1.0 if side > 0 else 0.0
    shrunk = [(x * m + 0.5) / (m + 1) for x in figures]
    p = statistics.fmean(shrunk)
    spread = max(statistics.stdev(shrunk), error)
    logit = math.log(p / (1 - p))
    logit += side * quantile(level, n) * math.sqrt(1 / n + share) * spread / (p * (1 - p))
    moved = 1 / (1 + math.exp(-logit))
    return min(max((moved * (m + 1) - 0.5) / m, 0.0), 1.0)


def difference_limit(differences, floor, side, level, chosen=0.0):
    differences = present(differences)
    n = len(differences)
    if n < 3:
        return float(side)
    spread = max(statistics.stdev(differences), floor)
    away = quantile(level, n) * math.sqrt(spread**2 / n + chosen)
    return min(max(statistics.fmean(differences) + side * away, -1.0), 1.0)


def floor(error, other, m):
    return math.sqrt((error - other) ** 2 + half_row(m) ** 2)


def minus(a, b):
    return [None if x is None or y is None else x - y for x, y in zip(a, b, strict=True)]


class Contenders:
    """Who may be the strongest: their numbers, the level of each one's limit, and the folds' scores."""

    def __init__(self, leaks, m, level=0.95):
        errors = [row_error(figures, m) for figures in leaks]
        usable = [k for k, figures in enumerate(leaks) if len(present(figures)) >= 3]
        folds = leave_one_out(leaks, 1 - 0.5 / (m + 1))
        self.scores = [score for score, _ in folds]
        n, picks = len(present(self.scores)), {pick for _, pick in folds if pick is not None}
        self.share = 1 / (n - 1) if len(picks) > 1 else 0.0
        self.among, self.level, self.folds, self.error = [], level, False, 1.0
        if not usable:
            self.error = errors[0]
            return
        leader = max(usable, key=lambda k: statistics.fmean(present(leaks[k])))
        self.error = errors[leader]
        different = []
        for k in usable:
            least = floor(errors[k], errors[leader], m)
            if difference_limit(minus(leaks[k], leaks[leader]), least, 1, 0.99) >= 0:
                self.among.append(k)
                if leaks[k] not in different:
                    different.append(leaks[k])
        self.level = 1 - (1 - level) / len(different)
        self.folds = n <= 5 and len(different) > 2

    def chosen(self, scores, error):
        """What choosing adds to the variance of the mean of scores."""
        scores = present(scores)
        spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
        return self.share * max(spread, error) ** 2


def worst_limits(leaks, m, level=0.95):
    rivals, stricter = Contenders(leaks, m, level), 1 - (1 - level) * 2 / 5
    upper = max(figure_limit(figures, m, 1, level) for figures in leaks)
    if rivals.folds:
        return figure_limit(rivals.scores, m, -1, stricter, rivals.share, rivals.error), upper
    lower = [figure_limit(leaks[k], m, -1, rivals.level) for k in rivals.among]
    return max(lower, default=0.0), upper


def excess_limits(leaks, away, m):
    rivals, base = Contenders(leaks, m), row_error(away, m)

    def limit(figures, side, level):
        return difference_limit(
            minus(figures, away), floor(row_error(figures, m), base, m), side, level
        )

    upper = max(limit(figures, 1, 0.95) for figures in leaks)
    if rivals.folds:
        least = floor(rivals.error, base, m)
        behind, level = minus(rivals.scores, away), 1 - 0.05 * 2 / 5
        return difference_limit(behind, least, -1, level, rivals.chosen(behind, least)), upper
    return max([limit(leaks[k], -1, rivals.level) for k in rivals.among], default=-1.0), upper


def most(leaks, others, m, level, weight=1.0, away=None):
    """The upper limit of the strongest of leaks less w times that of others and (1 - w) times away."""
    rivals = Contenders(others, m, level)

    def limit(figures, other, error, level, chosen=0.0):
        error = weight * error
        if away is not None:
            error += (1 - weight) * row_error(away, m)
            pairs = zip(other, away, strict=True)
            mixed = [
                None if x is None or y is None else weight * x + (1 - weight) * y for x, y in pairs
            ]
        else:
            mixed = other
        least = floor(row_error(figures, m), error, m)
        return difference_limit(minus(figures, mixed), least, 1, level, chosen)

    limits = []
    for figures in leaks:
        if rivals.folds:
            chosen = weight**2 * rivals.chosen(rivals.scores, half_row(m))
            limits.append(limit(figures, rivals.scores, rivals.error, level, chosen))
            continue
        pairs = [
            limit(figures, others[j], row_error(others[j], m), rivals.level) for j in rivals.among
        ]
        limits.append(min(pairs, default=1.0))
    return max(limits)


def change_limit(leaks, undefended, m):
    means = [statistics.fmean(present(f)) for f in undefended if len(present(f)) >= 3]
    if max(means, default=0.0) <= 0.9:
        return most(leaks, undefended, m, 0.95)
    lower, _ = worst_limits(undefended, m, 0.975)
    return min(most(leaks, undefended, m, 0.975), 1 - lower)


def change_limits(leaks, undefended, m):
    return -change_limit(undefended, leaks, m), change_limit(leaks, undefended, m)


def pooled(differences, floor):
    """Mean, standard error and degrees of freedom of one attack's differences [points][seeds], as of Smyth
    (2004): the spread that points share, and the rest with moderated variances."""
    n, d = len(differences[0]), len(differences[0]) - 1
    means = [statistics.fmean(row) for row in differences]
    centered = [[x - mean for x in row] for row, mean in zip(differences, means, strict=True)]
    shared = [statistics.median(column) for column in zip(*centered, strict=True)]
    variances = []
    for row in centered:
        rest = [x - s for x, s in zip(row, shared, strict=True)]
        rest = [x - statistics.fmean(rest) for x in rest]
        variances.append(max(sum(x * x for x in rest) / d, floor**2 + 1e-12))
    logs = [math.log(v) - special.digamma(d / 2) + math.log(d / 2) for v in variances]
    left = statistics.variance(logs) - special.polygamma(1, d / 2)
    prior = 30.0
    if left > 0:
        prior = min(30.0, 2 * optimize.brentq(lambda y: special.polygamma(1, y) - left, 1e-4, 1e8))
    s0 = math.exp(statistics.fmean(logs) + special.digamma(prior / 2) - math.log(prior / 2))
    of_seed = sum(s * s for s in shared) / d
    out = []
    for row, mean, variance in zip(differences, means, variances, strict=True):
        if variance > s0 * stats.f.ppf(0.99, d, prior):
            out.append((mean, max(statistics.stdev(row), floor) / math.sqrt(n), d))
            continue
        posterior = (prior * s0 + d * variance) / (prior + d)
        total = max(of_seed + posterior, floor**2)
        freedom = total**2 / (of_seed**2 / d + posterior**2 / (prior + d))
        out.append((mean, math.sqrt(total / n), max(freedom, d)))
    return out


def fieller(numerators, denominators):
    """The limits of a ratio of means: the roots r of (a - r b)^2 = t^2 var(a - r b)."""
    n = len(numerators)
    (v_a, c), (_, v_b) = np.cov(numerators, denominators) / n
    a, b, t = statistics.fmean(numerators), statistics.fmean(denominators), quantile(0.95, n)
    roots = np.roots([b * b - t * t * v_b, -2 * (a * b - t * t * c), a * a - t * t * v_a])
    return sorted(roots.real)


def delong(scores, labels):
    """The standard deviation of an AUC by every pair of rows (DeLong and others 1988)."""
    ahead = [s for s, y in zip(scores, labels, strict=True) if y == 1]
    behind = [s for s, y in zip(scores, labels, strict=True) if y == 0]
    wins = np.array([[(x > y) + (x == y) / 2 for y in behind] for x in ahead])
    return math.sqrt(wins.mean(1).var(ddof=1) / len(ahead) + wins.mean(0).var(ddof=1) / len(behind))
