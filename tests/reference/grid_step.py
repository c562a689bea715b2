"""The update of the grid suite's peers in NumPy: one setting, float64."""

import numpy as np


def train(weights, features, labels, order, rate, momentum=0.9, weight_decay=5e-4):
    """One epoch. ``weights``: {"a", "b", "top"}: [(kernel, bias), ...]; ``features``: two of [N, F];
    ``order`` [steps, B]. Returns the weights, and what party a sent and received, each [steps, B, D]."""
    weights = {
        name: [[p.astype(np.float64) for p in layer] for layer in layers]
        for name, layers in weights.items()
    }
    velocity = {
        name: [[np.zeros_like(p) for p in layer] for layer in layers]
        for name, layers in weights.items()
    }
    sent, received = [], []
    for rows in order:
        a, in_a = forward(weights["a"], features[0][rows])
        b, in_b = forward(weights["b"], features[1][rows])
        logits, in_top = forward(weights["top"], np.concatenate([a, b], axis=1))
        q = np.exp(logits - logits.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        to_logits = (q - np.eye(q.shape[1])[labels[rows]]) / len(rows)
        of_top, to_cut = backward(weights["top"], in_top, to_logits)
        to_a, to_b = np.split(to_cut, 2, axis=1)
        gradients = {
            "a": backward(weights["a"], in_a, to_a)[0],
            "b": backward(weights["b"], in_b, to_b)[0],
            "top": of_top,
        }
        sent.append(a)
        received.append(to_a)
        for name, layers in weights.items():
            for layer, v, g in zip(layers, velocity[name], gradients[name], strict=True):
                for k in (0, 1):
                    v[k] = momentum * v[k] + g[k] + weight_decay * layer[k]
                    layer[k] = layer[k] - rate * v[k]
    return weights, np.stack(sent), np.stack(received)


def forward(layers, x):
    """The output, and each layer's input."""
    inputs = []
    for place, (kernel, bias) in enumerate(layers):
        inputs.append(x)
        x = x @ kernel + bias
        if place < len(layers) - 1:
            x = np.maximum(x, 0)
    return x, inputs


def backward(layers, inputs, gradient):
    """Each layer's gradients, and the input's."""
    out = []
    for place in reversed(range(len(layers))):
        x = inputs[place]
        out.append((x.T @ gradient, gradient.sum(axis=0)))
        gradient = gradient @ layers[place][0].T
        if place:
            gradient = gradient * (x > 0)
    return out[::-1], gradient
