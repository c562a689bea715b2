"""What several restatements need: softmax, Adam, and slopes by differences. Float64, as in their papers."""

import numpy as np


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def softmax(logits):
    return np.exp(log_softmax(logits))


def cross_entropy(logits, targets):
    """Its mean over rows; ``targets`` are labels [N] or probabilities [N, C]."""
    targets = np.eye(logits.shape[1])[targets] if targets.ndim == 1 else targets
    return float(-np.mean(np.sum(targets * log_softmax(logits), axis=1)))


def differences(function, x, step=1e-5):
    """Central differences of a scalar function of an array, entry by entry."""
    out = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        shift = np.zeros_like(x)
        shift[place] = step
        out[place] = (function(x + shift) - function(x - shift)) / (2 * step)
    return out


def adam(parameters, gradients, state, rate, epsilon=1e-8, decay=0.0):
    """Adam (Kingma and Ba 2015, algorithm 1) of a list of arrays, or AdamW (Loshchilov and Hutter 2019): the
    parameters and the state (count, first and second moments) after a step; the first state is None."""
    zeros = [np.zeros_like(g) for g in gradients]
    count, first, second = state or (0, zeros, zeros)
    count += 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
    second = [0.999 * v + 0.001 * g**2 for v, g in zip(second, gradients)]
    steps = [
        m / (1 - 0.9**count) / (np.sqrt(v / (1 - 0.999**count)) + epsilon)
        for m, v in zip(first, second)
    ]
    moved = [p - rate * (step + decay * p) for p, step in zip(parameters, steps)]
    return moved, (count, first, second)
