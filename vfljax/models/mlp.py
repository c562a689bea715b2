"""Multilayer perceptrons: bottom models, top models and inference heads.

``layers`` of a forward pass are sown into the collection of that name, for attacks and
diagnostics that look inside; nobody pays for them unless they are read.
"""

from __future__ import annotations

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.types import Array

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": nn.relu,
    "leaky_relu": nn.leaky_relu,
    "sigmoid": nn.sigmoid,
    "tanh": nn.tanh,
    "identity": lambda x: x,
}


class MLP(nn.Module):
    """Linear -> activation, repeated, then Linear -> output: [B, ...] -> [B, out]. ``hidden=()`` is
    one layer. GAFM's bottom for Spambase is 57 -> 16 -> 1, "leaky_relu", output "sigmoid"."""

    hidden: tuple[int, ...]
    out: int
    activation: str = "relu"
    output: str = "identity"

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        del train
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = ACTIVATIONS[self.activation](nn.Dense(width)(x))
            self.sow("layers", "hidden", x)
        return ACTIVATIONS[self.output](nn.Dense(self.out)(x))


class Generator(nn.Module):
    """GAFM's generator G as a top model: Linear -> LeakyReLU(.01), repeated, then Linear to one
    number h, returned as the two logits (0, h), whose softmax is G = sigmoid(h)."""

    hidden: tuple[int, ...]
    out: int  # always 2

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        del train
        for width in self.hidden:
            x = nn.leaky_relu(nn.Dense(width)(x))
            self.sow("layers", "hidden", x)
        h = nn.Dense(1)(x)
        return jnp.concatenate([jnp.zeros_like(h), h], axis=-1)


class Head(nn.Module):
    """Linear(ReLU(BN(x))), repeated: the top models of Fu et al. and the completion head.

    ``hidden=()`` is the one-layer inference head BN -> ReLU -> Linear. ``weights="ones"`` starts
    every Linear weight at 1 (released code); with two or more layers that keeps all hidden
    units of a layer identical, which is why it is the default of one-layer heads only.
    ``batch_norm=False`` is their top model for Criteo.
    """

    hidden: tuple[int, ...]
    out: int
    weights: str = "default"  # "default" or "ones"
    batch_norm: bool = True

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        kernel_init = (
            nn.initializers.ones if self.weights == "ones" else nn.linear.default_kernel_init
        )
        for width in (*self.hidden, self.out):
            if self.batch_norm:
                # PyTorch's momentum 0.1 and epsilon, which the published numbers were made with
                x = nn.BatchNorm(use_running_average=not train, momentum=0.9, epsilon=1e-5)(x)
            x = nn.Dense(width, kernel_init=kernel_init)(jax.nn.relu(x))
            self.sow("layers", "hidden", x)
        return x
