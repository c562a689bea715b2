"""FedPass: a passport layer in front of the top model, in float64, and the gradient on its way back."""

import numpy as np


def affine(passports, w1, w2, encoder, decoder):
    """tanh(F leaky_relu(E mean(W2 W1 s))), with matrices that multiply rows from the right."""
    mean = (passports @ w1 @ w2).mean(axis=0)
    hidden = mean @ encoder
    return np.tanh(np.where(hidden > 0, hidden, 0.01 * hidden) @ decoder)


def forward(x, s, b, w1, w2, encoder, decoder):
    """What the top model reads of x [B, D]."""
    return x @ w1 @ w2 * affine(s, w1, w2, encoder, decoder) + affine(b, w1, w2, encoder, decoder)


def backward(gradient, s, w1, w2, encoder, decoder):
    """The gradient of x, of what the top model read."""
    return (gradient * affine(s, w1, w2, encoder, decoder)) @ w2.T @ w1.T
