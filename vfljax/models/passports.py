"""A passport layer in front of the label party's top model: the network of the defense FedPass.

The aggregated cut x [B, D] becomes, with secret passports s and b [n, D],

    h = W2 W1 x,  gamma = tanh(F leaky_relu(E mean(W2 W1 s))),  beta likewise of b
    what the top model reads: gamma * h + beta [B, D]

The mean is over the n passports. No matrix has a bias, and all are D x D.
"""

from __future__ import annotations

from typing import Any, ClassVar

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.types import Array

LAWS = {"normal": jax.random.normal, "uniform": jax.random.uniform}
COLLECTION = "passports"  # the collection of variables that no optimizer changes


class Passports(nn.Module):
    """A ``top`` model behind a passport layer.

    The variables of ``top`` have the same names and, drawn from the same key, the same initial values as
    without the layer. Passports that are drawn once are variables of the collection "passports".
    """

    light: ClassVar[bool] = True
    top: nn.Module
    count: int = 1  # n
    loc: float = 1.0
    law: str = "normal"
    once: bool = True  # False: drawn anew in every training step; predictions use their expectation
    weights: str = "default"  # of ``top``

    def setup(self) -> None:
        nn.share_scope(self, self.top)

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        chex.assert_rank(x, 2)
        width = x.shape[1]
        first, second, encoder, decoder = (
            nn.Dense(width, use_bias=False, name=f"passport_{name}")
            for name in ("first", "second", "encoder", "decoder")
        )

        def affine(name: str) -> Array:
            mean = jnp.mean(second(first(self._passports(name, width, train))), axis=0)[None]
            return decoder(nn.leaky_relu(encoder(mean)))

        gamma, beta = jnp.tanh(affine("s")), jnp.tanh(affine("b"))
        return self.top(gamma * second(first(x)) + beta, train=train)

    def _passports(self, name: str, width: int, train: bool) -> Array:
        shape = (self.count, width)

        def drawn(rng: str) -> Array:
            return self.loc + LAWS[self.law](self.make_rng(rng), shape)

        if self.once:
            stored: Any = self.variable(COLLECTION, name, lambda: drawn("params"))
            return stored.value
        middle = 0.5 if self.law == "uniform" else 0.0
        return drawn("dropout") if train else jnp.full(shape, self.loc + middle)
