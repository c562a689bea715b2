"""What a deviating party sends of its embeddings, and the factor of each row's gradient on its way back."""

import numpy as np


def sent(name, z, anchor, strength, uniform):
    """(what is sent [B, D], factor [B, 1]); ``anchor`` [D], ``uniform`` [B] are draws from [0, 1)."""
    ones = np.ones((len(z), 1))
    if name == "scale":
        return z * (1 + strength), ones * (1 + strength)
    if name == "constant":
        return z * (1 - strength) + z.mean(axis=0) * strength, ones * (1 - strength)
    out, factor = z.copy(), ones.copy()
    for i in range(len(z)):
        if name in ("repeat", "swap") and uniform[i] < strength:
            out[i] = z[i - 1] if name == "repeat" else anchor
            factor[i] = 0
    return out, factor
