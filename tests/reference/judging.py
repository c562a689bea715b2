"""Judging one strength, in loops over Python lists; figures are [candidates][seeds], None is missing.

The leave-one-out choice, the logit limit of bounded figures, the limit of paired differences, the
contenders, and the three limits of the strongest attack.
"""

import math
import statistics

from scipy import stats


def present(values):
    return [value for value in values if value is not None]


def leave_one_out(leaks):
    """The score and the pick of each seed; None where there is none."""
    out = []
    for seed in range(len(leaks[0])):
        best, pick = None, None
        for candidate, figures in enumerate(leaks):
            others = present(figures[:seed] + figures[seed + 1 :])
            if figures[seed] is None or not others:
                continue
            mean = statistics.fmean(others)
            if best is None or mean > best + 1e-12:
                best, pick = mean, candidate
        out.append((None if pick is None else leaks[pick][seed], pick))
    return out


def quantile(level, n):
    return float(stats.t.ppf(level, n - 1))


def error(n, folds):
    return math.sqrt(1 / n + 1 / (n - 1)) if folds else math.sqrt(1 / n)


def figure_limit(figures, m, side, level, folds=False):
    figures = present(figures)
    n = len(figures)
    if n < 3:
        return 1.0 if side > 0 else 0.0
    shrunk = [(x * m + 0.5) / (m + 1) for x in figures]
    p = statistics.fmean(shrunk)
    spread = max(statistics.stdev(shrunk), math.sqrt(p * (1 - p) / m))
    logit = math.log(p / (1 - p))
    logit += side * quantile(level, n) * error(n, folds) * spread / (p * (1 - p))
    moved = 1 / (1 + math.exp(-logit))
    return min(max((moved * (m + 1) - 0.5) / m, 0.0), 1.0)


def difference_limit(differences, m, side, level, folds=False):
    differences = present(differences)
    n = len(differences)
    if n < 3:
        return float(side)
    mean = statistics.fmean(differences)
    r = (abs(mean) * m + 0.5) / (m + 1)
    spread = max(statistics.stdev(differences), math.sqrt(r * (1 - r) / m))
    return min(max(mean + side * quantile(level, n) * error(n, folds) * spread, -1.0), 1.0)


def minus(a, b):
    return [None if x is None or y is None else x - y for x, y in zip(a, b, strict=True)]


def contenders(leaks, m):
    """Their numbers, the level of each one's limit, and whether the folds' scores are used instead."""
    usable = [k for k, figures in enumerate(leaks) if len(present(figures)) >= 3]
    if not usable:
        return [], 0.95, False
    leader = max(usable, key=lambda k: statistics.fmean(present(leaks[k])))
    among = [k for k in usable if difference_limit(minus(leaks[k], leaks[leader]), m, 1, 0.99) >= 0]
    different = []
    for k in among:
        if leaks[k] not in different:
            different.append(leaks[k])
    seeds = len(present([score for score, _ in leave_one_out(leaks)]))
    return among, 1 - 0.05 / len(different), seeds <= 5 and len(different) > 2


def scores(leaks):
    return [score for score, _ in leave_one_out(leaks)]


def worst_limits(leaks, m):
    among, level, folds = contenders(leaks, m)
    upper = max(figure_limit(figures, m, 1, 0.95) for figures in leaks)
    if folds:
        return figure_limit(scores(leaks), m, -1, 0.95, True), upper
    return max([figure_limit(leaks[k], m, -1, level) for k in among], default=0.0), upper


def excess_limits(leaks, away, m):
    among, level, folds = contenders(leaks, m)
    upper = max(difference_limit(minus(figures, away), m, 1, 0.95) for figures in leaks)
    if folds:
        return difference_limit(minus(scores(leaks), away), m, -1, 0.95, True), upper
    lower = [difference_limit(minus(leaks[k], away), m, -1, level) for k in among]
    return max(lower, default=-1.0), upper


def most(leaks, others, m):
    among, level, folds = contenders(others, m)
    limits = []
    for figures in leaks:
        if folds:
            behind = minus(figures, scores(others))
            limits.append(difference_limit(behind, m, 1, 0.95, True))
            continue
        pairs = [difference_limit(minus(figures, others[j]), m, 1, level) for j in among]
        limits.append(min(pairs, default=1.0))
    return max(limits)


def change_limits(leaks, undefended, m):
    return -most(undefended, leaks, m), most(leaks, undefended, m)
