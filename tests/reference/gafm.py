"""One batch of GAFM: Han et al. 2023, section 3, in the order of the released code.

D descends mean D(fake) - mean D(real), real = y + N(0, sigma^2), fake = G(f), by Adam, and its
weights are clipped to [-c, c]. With the new D and the old G, the generator's gradient is that of
L_GAN = -mean D(G(f)), and f's is gamma grad L_GAN / |grad L_GAN| + grad L_CE / |grad L_CE| with
L_CE = -mean(y~ log s + (1 - y~) log(1 - s)), norms over the whole batch.

Nets are lists of (weight [in, out], bias [out]). G is 1 -> hidden -> 1, LeakyReLU(.01) between,
sigmoid at the end; D has LeakyReLU(.01) after every layer, the last one included.
"""

from typing import NamedTuple

import numpy as np

from tests.reference.common import adam

SLOPE = 0.01


class Step(NamedTuple):
    discriminator: list
    moments: tuple  # Adam's state
    generator_gradient: list
    gradient: np.ndarray  # of f, [B, D]
    critic_gradient: list  # what Adam was given


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), 1 - 1 / (1 + np.exp(-np.abs(x))))


def forward(net, x, last):
    """The output [B, out] and, for every layer, (its input, its sum, whether it is rectified)."""
    tape = []
    for i, (weight, bias) in enumerate(net):
        total, rectified = x @ weight + bias, last or i < len(net) - 1
        tape.append((x, total, rectified))
        x = np.where(total >= 0, total, SLOPE * total) if rectified else total
    return x, tape


def backward(net, tape, gradient):
    """Gradients of every (weight, bias), and of the input."""
    out = []
    for (weight, _), (x, total, rectified) in zip(reversed(net), reversed(tape)):
        if rectified:
            gradient = gradient * np.where(total >= 0, 1.0, SLOPE)
        out.append((x.T @ gradient, gradient.sum(axis=0)))
        gradient = gradient @ weight.T
    return out[::-1], gradient


def critic_gradient(net, real, fake):
    rows, grads = len(real), []
    for x, sign in ((fake, 1.0), (real, -1.0)):
        _, tape = forward(net, x[:, None], last=True)
        grads.append(backward(net, tape, np.full((rows, 1), sign / rows))[0])
    return [tuple(a + b for a, b in zip(*layers)) for layers in zip(*grads)]


def label_gradient(f, ytilde, bottom_sigmoid):
    """Of the label loss with respect to f: through s = f or s = sigmoid(sum of f's columns)."""
    rows = len(f)
    if bottom_sigmoid:
        s = f[:, 0]
        out = np.zeros_like(f)
        out[:, 0] = ((1 - ytilde) / (1 - s) - ytilde / s) / rows
        return out
    return np.repeat((sigmoid(f.sum(axis=1)) - ytilde)[:, None] / rows, f.shape[1], axis=1)


def normalized(gradient):
    norm = np.sqrt((gradient**2).sum())
    return gradient / norm if norm > 0 else np.zeros_like(gradient)


def mixed_gradient(gan, ce, gamma):
    return gamma * normalized(gan) + normalized(ce)


def step(generator, discriminator, moments, f, real, ytilde, **knobs):
    """All of one batch; ``knobs``: gamma, clip, learning_rate, bottom_sigmoid."""
    h, tape = forward(generator, f, last=False)
    fake = sigmoid(h[:, 0])
    critic = critic_gradient(discriminator, real, fake)
    flat, slopes = (
        [tensor for layer in net for tensor in layer] for net in (discriminator, critic)
    )
    flat, moments = adam(flat, slopes, moments, knobs["learning_rate"])
    flat = [np.clip(tensor, -knobs["clip"], knobs["clip"]) for tensor in flat]
    net = list(zip(flat[::2], flat[1::2]))

    _, judged = forward(net, fake[:, None], last=True)
    _, at_fake = backward(net, judged, np.full((len(f), 1), -1 / len(f)))
    at_h = at_fake * (fake * (1 - fake))[:, None]
    generator_gradient, gan = backward(generator, tape, at_h)
    ce = label_gradient(f, ytilde, knobs["bottom_sigmoid"])
    return Step(net, moments, generator_gradient, mixed_gradient(gan, ce, knobs["gamma"]), critic)
