"""Multilayer perceptrons: bottom models, top models and inference heads.

Layers of a forward pass are sown into the collection ``layers``, for attacks and diagnostics; they cost
nothing unless they are read. ``mixable`` is True for networks whose inputs may be mixed by convex combination
(numbers, images) and False for those that read codes.

Fu et al.'s FCNN-3 for Criteo is ``hidden=(64, 16)`` with ``cut=4``; their breast cancer net is
``hidden=(20, 20)`` with batch norm; GAFM's IMDB net is ``hidden=(256, 128)`` with dropout 0.5.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

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


WEIGHTS = ("default", "torch")
# the two-pass variance: one pass loses all digits where means are far from 0
BatchNorm = functools.partial(nn.BatchNorm, momentum=0.9, epsilon=1e-5, use_fast_variance=False)


def initializers(weights: str, fan_in: int) -> dict[str, Any]:
    """Returns a layer's initializers, of ``dense``; PyTorch's are uniform within 1 / sqrt(fan_in)."""
    if weights == "default":
        return {}
    if weights == "ones":
        return {"kernel_init": nn.initializers.ones}
    bound = fan_in**-0.5
    uniform = functools.partial(jax.random.uniform, minval=-bound, maxval=bound)
    return {"kernel_init": uniform, "bias_init": uniform}


def product_precision(dtype: Any) -> Any:
    """Returns flax's argument ``precision`` of a layer that computes in ``dtype``. The default of the process,
    ``jax_default_matmul_precision``, is meant for float32 operands alone."""
    return None if dtype is None else jax.lax.Precision.DEFAULT


def dense(x: Array, width: int, weights: str, dtype: Any = None) -> Array:
    """Returns Linear(width) of x, a submodule of the caller.

    Args:
      x: [B, in].
      width: of the result [B, width].
      weights: initial values. "default" is flax's: a normal kernel of variance 1/in and a bias of 0. "torch"
        is PyTorch's, of a third of that variance, which matters if columns have long tails that nothing
        normalizes. "ones" is a kernel of ones and a bias of 0.
      dtype: that of the computation and of the result, flax's argument; None is that of x and the parameters.
    """
    options: Any = initializers(weights, x.shape[-1])
    return nn.Dense(width, dtype=dtype, precision=product_precision(dtype), **options)(x)


class MLP(nn.Module):
    """Linear -> activation, repeated, then Linear -> output: [B, ...] -> [B, out]. ``hidden=()`` is
    one layer. GAFM's bottom for Spambase is 57 -> 16 -> 1, "leaky_relu", output "sigmoid".

    ``batch_norm=True`` normalizes between each hidden Linear and its activation (Fu et al.'s net for
    BCW, 14 -> 20 -> 20 -> 2: the order is their released code's). ``dropout`` is the rate at which hidden
    units are dropped after the activation, the rest divided by 1 - rate (GAFM's net for IMDB,
    500 -> 256 -> 128 -> 1, ReLU, .5, output "sigmoid"; appendix E.2)."""

    light: ClassVar[bool] = True
    hidden: tuple[int, ...]
    out: int
    activation: str = "relu"
    output: str = "identity"
    weights: str = "default"  # or "torch", see ``dense``
    dropout: float = 0.0
    batch_norm: bool = False
    dtype: Any = None  # see ``parties.from_module``
    reads: ClassVar[tuple[str, ...]] = ("table", "image")
    mixable: ClassVar[bool] = True
    linear_end: ClassVar[bool] = True  # its last linear layer reads the last layer it sows

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        x = x.reshape(x.shape[0], -1)
        for width in self.hidden:
            x = dense(x, width, self.weights, self.dtype)
            if self.batch_norm:
                x = BatchNorm(not train, dtype=self.dtype)(x)
            x = ACTIVATIONS[self.activation](x)
            if self.dropout:
                x = nn.Dropout(self.dropout, deterministic=not train)(x)
            self.sow("layers", "hidden", x.astype(jnp.float32))
        return ACTIVATIONS[self.output](dense(x.astype(jnp.float32), self.out, self.weights))


class Generator(nn.Module):
    """GAFM's generator G as a top model: Linear -> LeakyReLU(.01), repeated, then Linear to one
    number h, returned as the two logits (0, h), whose softmax is G = sigmoid(h)."""

    light: ClassVar[bool] = True
    hidden: tuple[int, ...]
    out: int  # always 2
    weights: str = "default"  # or "torch", see ``dense``
    dtype: Any = None  # see ``parties.from_module``

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        del train
        for width in self.hidden:
            x = nn.leaky_relu(dense(x, width, self.weights, self.dtype))
            self.sow("layers", "hidden", x.astype(jnp.float32))
        h = dense(x.astype(jnp.float32), 1, self.weights)
        return jnp.concatenate([jnp.zeros_like(h), h], axis=-1)


class Probability(nn.Module):
    """The 'top model' of a bottom that predicts by itself, as in GAFM's undefended experiments. It has no
    parameters, reads f [B, 1] as the probability of class 1, clipped to [1e-7, 1 - 1e-7], and returns the
    logits (log(1 - f), log f). Their cross entropy is the binary cross entropy of f, so that the cut
    gradient is (f - y) / (f (1 - f)) / B; it is 0 where f is clipped."""

    light: ClassVar[bool] = True
    hidden: tuple[int, ...]  # always ()
    out: int  # always 2
    weights: str = "default"  # not used

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        del train
        f = jnp.clip(x, 1e-7, 1 - 1e-7)
        return jnp.concatenate([jnp.log1p(-f), jnp.log(f)], axis=-1)


class Head(nn.Module):
    """Linear(ReLU(BN(x))), repeated: the top models of Fu et al. and the completion head.

    ``hidden=()`` is the one-layer inference head BN -> ReLU -> Linear. ``weights="ones"`` starts
    every Linear weight at 1, as the released code does. With two or more layers this keeps all hidden
    units of a layer identical; therefore it is the default of one-layer heads only.
    ``batch_norm=False`` is their top model for Criteo (8 -> 8 -> 4 -> 2), a config's "head_plain".
    """

    light: ClassVar[bool] = True
    hidden: tuple[int, ...]
    out: int
    weights: str = "default"  # or "ones", or "torch", see ``dense``
    batch_norm: bool = True
    dtype: Any = None  # see ``parties.from_module``

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        for n, width in enumerate((*self.hidden, self.out)):
            if self.batch_norm:
                # PyTorch's momentum 0.1 and epsilon, with which the published numbers were made,
                # as they were with the one-pass variance
                x = nn.BatchNorm(not train, momentum=0.9, epsilon=1e-5, dtype=self.dtype)(x)
            last = n == len(self.hidden)
            x = jax.nn.relu(x).astype(jnp.float32) if last else jax.nn.relu(x)
            x = dense(x, width, self.weights, None if last else self.dtype)
            self.sow("layers", "hidden", x.astype(jnp.float32))
        return x
