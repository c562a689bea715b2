"""A stochastic bottleneck in front of the label party's top model: the network of the defense MID.

Each passive party's embedding z [B, D] passes a bottleneck of its own before the parties are
aggregated; the label party's own embedding passes none:

    h = ReLU(A z + a) [B, 2D],  mu = first D of h,  sigma = softplus(last D of h - offset)
    T = mu + sigma xi,          xi ~ N(0, I), drawn anew in every training step
    what is aggregated:         output(A3 ReLU(A2 T + a2) + a3) [B, D], expansion * D hidden units

In evaluation T = mu. (The released code samples there too.) As h is not negative, sigma is at least
softplus(-offset): .474 at the offset .5, .0067 at 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.models.mlp import MLP, dense
from vfljax.types import Array

TINY = -15.0  # below it ln softplus(x) is x, up to rounding


class Law(nn.Module):
    """The law N(mu, sigma^2) of T given embeddings [B, D]: (mu, sigma, ln sigma), each [B, D]."""

    offset: float = 0.5
    weights: str = "default"  # or "torch", see ``dense``

    @nn.compact
    def __call__(self, z: Array) -> tuple[Array, Array, Array]:
        chex.assert_rank(z, 2)
        h = nn.relu(dense(z, 2 * z.shape[1], self.weights))
        mu, x = h[:, : z.shape[1]], h[:, z.shape[1] :] - self.offset
        # the logarithm of a softplus that has underflowed is not finite
        log_sigma = jnp.where(x < TINY, x, jnp.log(jax.nn.softplus(jnp.maximum(x, TINY))))
        return mu, jax.nn.softplus(x), log_sigma


def law_name(p: int) -> str:
    """Returns the name of passive party ``p``'s ``Law`` among the variables of ``Bottleneck``."""
    return f"law{p}"


class Bottleneck(nn.Module):
    """A ``top`` model behind a bottleneck for each of the first ``passive`` parties.

    It reads the parties' embeddings concatenated, [B, sum of ``widths``], and aggregates them itself.
    The variables of ``top`` have the same names and, drawn from the same key, the same initial values as
    without bottlenecks. T is sown as the layer "bottleneck".
    """

    light: ClassVar[bool] = True
    top: nn.Module
    widths: tuple[int, ...]  # D of every party
    passive: int
    aggregate: Callable[[Sequence[Array]], Array]
    offset: float = 0.5
    expansion: int = 5
    output: str = "relu"
    weights: str = "default"  # or "torch", see ``dense``

    def setup(self) -> None:
        nn.share_scope(self, self.top)

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        chex.assert_shape(x, (None, sum(self.widths)))
        starts = [sum(self.widths[:p]) for p in range(1, len(self.widths))]
        embeddings = jnp.split(x, starts, axis=1)
        for p, z in enumerate(embeddings[: self.passive]):
            mu, sigma, _ = Law(self.offset, self.weights, name=law_name(p))(z)
            t = mu + sigma * jax.random.normal(self.make_rng("dropout"), mu.shape) if train else mu
            self.sow("layers", "bottleneck", t)
            hidden = (self.expansion * z.shape[1],)
            decoder = MLP(hidden, z.shape[1], "relu", self.output, self.weights, name=f"decoder{p}")
            embeddings[p] = decoder(t)
        return self.top(self.aggregate(embeddings), train=train)
