"""PPDL: Shokri, Shmatikov 2015, as used by Fu et al. 2022, section 6; one entry at a time.

c = floor(theta n),  sigma(x) = 2 c S / x,  epsilon_1 = 8 epsilon / 9,  epsilon_2 = 2 epsilon / 9
accept i when  |clip(g_i, gamma)| + Lap(2 sigma(epsilon_1)) >= tau + rho
send           clip(g_i + Lap(sigma(epsilon_2)), gamma),  then draw rho ~ Lap(sigma(epsilon_1)) anew

Laplace noise of scale b is b times a standard draw.
"""

import math

import numpy as np
import scipy.integrate


def clip(x, bound):
    return min(max(x, -bound), bound)


def treat(g, order, draws, quota, epsilon, gamma, tau, sensitivity, on_exhaustion="zero"):
    """``draws``: standard (threshold [n + 1], query [n], value [n]); ``quota`` is c."""
    threshold, query, value = draws
    selection = 2 * quota * sensitivity / (8 * epsilon / 9)
    sending = 2 * quota * sensitivity / (2 * epsilon / 9)
    entries = [float(x) for x in g.ravel()]
    accepted, rho = {}, selection * threshold[0]
    for t, i in enumerate(order):
        if len(accepted) == quota:
            break
        if abs(clip(entries[i], gamma)) + 2 * selection * query[t] >= tau + rho:
            accepted[i] = clip(entries[i] + sending * value[t], gamma)
            rho = selection * threshold[t + 1]
    others = on_exhaustion == "keep" and len(accepted) < quota
    sent = [accepted.get(i, x if others else 0.0) for i, x in enumerate(entries)]
    return np.array(sent).reshape(g.shape)


def accept(query, thresholds, quota):
    """Which visits are accepted, one after another: ``thresholds[t + 1]`` serves once t is."""
    accepted, threshold = [], thresholds[0]
    for t, magnitude in enumerate(query):
        accepted.append(sum(accepted) < quota and bool(magnitude >= threshold))
        if accepted[-1]:
            threshold = thresholds[t + 1]
    return np.array(accepted)


def accepted_share(ratio=2.0):
    """Share of visited entries accepted when noise is all that matters and the query noise has
    ``ratio`` times the scale of rho: 1 / E[1 / a(rho)], as every rho waits 1 / a(rho) visits for
    the query noise, P(ratio q >= rho) = a(rho), q and rho standard; 1 / (4 ln 2) at ratio 2."""

    def waiting(rho):
        tail = math.exp(-abs(rho) / ratio) / 2
        return math.exp(-abs(rho)) / 2 / (tail if rho > 0 else 1 - tail)

    return 1 / sum(scipy.integrate.quad(waiting, *ends)[0] for ends in ((-60, 0), (0, 60)))
