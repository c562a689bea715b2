"""The malicious local optimizer: Fu et al. 2022, section 4.2, algorithm 1, and its released class.

The intended rule:

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


def released_path(gradients, theta, *, lr, mu, wd, gamma, in_place):
    """Parameters after every step of the released class, its aliasing acted out.

    Arrays stand for tensors, so all that matters here is which arrays are one and the same:
    clearing the gradient in place clears the momentum buffer it has become.
    """
    gradient, buffer, last, out = np.zeros_like(theta), None, None, []
    for g in gradients:
        if in_place:
            gradient[...] = 0
        else:
            gradient = np.zeros_like(theta)
        gradient += g  # the backward pass adds
        gradient += wd * theta
        if mu != 0:
            if buffer is None:
                buffer = gradient.copy()
            else:
                buffer *= mu
                buffer += gradient
            gradient = buffer  # one array from here on
        if last is not None:
            gradient *= np.clip(1 + gamma * gradient / (last + 1e-7), 1, 5)
        last = gradient.copy()
        theta = theta - lr * gradient
        out.append(theta)
    return np.array(out)
