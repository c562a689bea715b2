"""CAE: Zou et al. 2022, "Defending Batch-Level Label Inference and Replacement Attacks in VFL".

Encoder W and decoder V are C -> width -> C, ReLU between, softmax at the end. On rows y they descend

    10 CE(V(W(y)), y) - lambda H(W(y)) - CE(W(y), y),

CE with a softmax on top of what is one already, H the mean over rows and classes of -p ln p, by Adam.
Gradients are differences of the loss, so that only the loss is stated.
"""

import numpy as np

from tests.reference.common import adam, differences, softmax

ORDER = ("kernel_0", "bias_0", "kernel_1", "bias_1")


def logits(network, x):
    first, first_bias, second, second_bias = (np.float64(network[name]) for name in ORDER)
    return np.maximum(x @ first + first_bias, 0) @ second + second_bias


def cross_entropy(p, y):
    return np.mean([-sum(y[i] * np.log(softmax(p)[i])) for i in range(len(y))])


def loss(networks, y, lam):
    code = softmax(logits(networks["encoder"], y))
    decoded = softmax(logits(networks["decoder"], code))
    entropy = np.mean([-p * np.log(p) for p in code.ravel()])
    return 10 * cross_entropy(decoded, y) - lam * entropy - cross_entropy(code, y)


def train(networks, batches, lam, learning_rate):
    """By Adam, one step a batch of rows, on one vector of all parameters."""
    arrays = [np.float64(network[name]) for network in networks.values() for name in ORDER]
    ends = np.cumsum([array.size for array in arrays])[:-1]

    def networks_of(vector):
        parts = (x.reshape(a.shape) for x, a in zip(np.split(vector, ends), arrays))
        return {part: {name: next(parts) for name in ORDER} for part in networks}

    vector, state = np.concatenate([array.ravel() for array in arrays]), None
    for y in batches:
        slope = differences(lambda v, y=y: loss(networks_of(v), np.float64(y), lam), vector, 1e-6)
        (vector,), state = adam([vector], [slope], state, learning_rate)
    return networks_of(vector)
