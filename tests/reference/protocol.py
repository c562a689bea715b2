"""One batch of vertical federated learning: Fu et al. 2022, section 2.

Bottom models are chains of linear layers with ReLU between them. The label party concatenates,
sums or averages the embeddings and runs a top model of the same kind; without a top model the
logits are the sum of the parties' outputs. The loss is the batch MEAN of softmax cross entropy
with soft targets. All gradients come from the same backward pass, before any update.
"""

from typing import NamedTuple

import numpy as np

from tests.reference import malicious
from tests.reference.common import log_softmax


class Dense(NamedTuple):
    weight: np.ndarray  # [in, out]
    bias: np.ndarray  # [out]


class Exchange(NamedTuple):
    embeddings: list  # one a bottom, [B, D]
    gradients: list  # as received, one a bottom
    loss: float
    logits: np.ndarray


def forward(net, x):
    """The output and every layer's input."""
    inputs = []
    for i, layer in enumerate(net):
        x = x if i == 0 else np.maximum(x, 0)
        inputs.append(x)
        x = x @ layer.weight + layer.bias
    return x, inputs


def backward(net, inputs, gradient):
    """Gradients of every layer, and of the input."""
    out = []
    for i in reversed(range(len(net))):
        out.append(Dense(inputs[i].T @ gradient, gradient.sum(axis=0)))
        gradient = gradient @ net[i].weight.T
        if i:
            gradient = gradient * (inputs[i] > 0)
    return out[::-1], gradient


def start(nets):
    """Optimizer state, one a tensor of every network (bottoms, then the top)."""
    return [[[malicious.start(tensor) for tensor in layer] for layer in net] for net in nets]


def logits_of(bottoms, top, features, aggregation):
    cut = [forward(net, x)[0] for net, x in zip(bottoms, features)]
    return forward(top, aggregate(cut, aggregation))[0] if top else sum(cut)


def aggregate(cut, aggregation):
    if aggregation == "concatenate":
        return np.concatenate(cut, axis=1)
    return sum(cut) / (len(cut) if aggregation == "mean" else 1)


def spread(gradient, cut, aggregation):
    """The gradient of the aggregate, given back to every embedding."""
    if aggregation == "concatenate":
        ends = np.cumsum([z.shape[1] for z in cut])
        return np.split(gradient, ends[:-1], axis=1)
    return [gradient / (len(cut) if aggregation == "mean" else 1) for _ in cut]


def step(
    bottoms,
    top,
    state,
    features,
    targets,
    *,
    lr,
    mu,
    wd,
    gamma=None,
    aggregation="concatenate",
    defend=lambda party, g: g,
    class_weights=None,
    uploads=None,
):
    """(bottoms, top, state, Exchange) after one batch; ``gamma``: strength of each malicious
    bottom, None for an honest optimizer; ``top`` None without model splitting; ``uploads``: of each
    bottom, what it sends of its embeddings, with the factor of every row's gradient on its way back."""
    gamma = gamma or [None] * len(bottoms)
    cut, inputs = zip(*(forward(net, x) for net, x in zip(bottoms, features)))
    uploads = (
        [deviate(net, z) for deviate, net, z in zip(uploads, bottoms, cut)]
        if uploads
        else [(z, 1.0) for z in cut]
    )
    cut, kept = zip(*uploads)
    how = aggregation if top else "sum"
    logits, top_inputs = forward(top or [], aggregate(cut, how))
    log_p = log_softmax(logits)
    rows = len(targets)
    if class_weights is not None:  # then row b counts w[its class], of all rows' weights
        targets = targets * class_weights
        rows = targets.sum()
    loss = -(targets * log_p).sum() / rows
    gradient = (np.exp(log_p) * targets.sum(axis=1, keepdims=True) - targets) / rows
    top_gradient, gradient = backward(top or [], top_inputs, gradient)
    received = [defend(p, g) for p, g in enumerate(spread(gradient, cut, how))]
    returned = [factor * g for factor, g in zip(kept, received)]
    gradients = [backward(n, i, g)[0] for n, i, g in zip(bottoms, inputs, returned)]
    gradients.append(top_gradient)

    new_nets, new_state = [], []
    for net, own, grads, strength in zip(
        [*bottoms, top or []], state, gradients, [*gamma, None], strict=True
    ):
        layers, states = [], []
        for layer, layer_state, layer_gradient in zip(net, own, grads):
            moved = [
                malicious.honest_step(theta, g, s, lr=lr, mu=mu, wd=wd)
                if strength is None
                else malicious.step(theta, g, s, lr=lr, mu=mu, wd=wd, gamma=strength)
                for theta, g, s in zip(layer, layer_gradient, layer_state)
            ]
            layers.append(Dense(*(theta for theta, _ in moved)))
            states.append([s for _, s in moved])
        new_nets.append(layers)
        new_state.append(states)
    new_top = new_nets[-1] if top else None
    return new_nets[:-1], new_top, new_state, Exchange(list(cut), received, loss, logits)
