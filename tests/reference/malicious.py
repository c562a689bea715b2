"""The malicious local optimizer: Fu et al. 2022, section 4.2, algorithm 1 (the intended rule).

v_t = mu v_{t-1} + g_t + wd theta
r_t = clip(1 + gamma v_t / (s_{t-1} + 1e-7), 1, 5)
s_t = r_t v_t  (s_1 = v_1),   theta <- theta - lr s_t
"""

import numpy as np


def start(theta):
    """(t, v, s) before the first step."""
    return 0, np.zeros_like(theta), np.zeros_like(theta)


def step(theta, g, state, *, lr, mu, wd, gamma):
    """One step of one parameter tensor: (new theta, new state)."""
    t, v, s = state
    v = mu * v + g + wd * theta
    ratio = np.ones_like(v) if t == 0 else np.clip(1 + gamma * v / (s + 1e-7), 1, 5)
    s = ratio * v
    return theta - lr * s, (t + 1, v, s)


def honest_step(theta, g, state, *, lr, mu, wd):
    """SGD with momentum and weight decay: v <- mu v + g + wd theta; theta <- theta - lr v."""
    t, v, s = state
    v = mu * v + g + wd * theta
    return theta - lr * v, (t + 1, v, s)


def released_steps_without_memory(count, mu, gamma):
    """g = 1, released class on old torch (gradients zeroed in place): v_t = 2 mu g, no memory."""
    steps, s = [], None
    for t in range(count):
        v = 1.0 if t == 0 else 2 * mu
        s = v if t == 0 else np.clip(1 + gamma * v / (s + 1e-7), 1, 5) * v
        steps.append(float(s))
    return steps


def released_steps_exploding(count, mu, gamma):
    """g = 1, released class on torch >= 2: the scaled step becomes the momentum buffer."""
    steps, s = [], None
    for t in range(count):
        v = 1.0 if t == 0 else mu * s + 1.0
        s = v if t == 0 else np.clip(1 + gamma * v / (s + 1e-7), 1, 5) * v
        steps.append(float(s))
    return steps
