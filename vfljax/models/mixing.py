"""Secret mixing in front of the label party's top model: the network of the defense P3EFT.

Each party's embedding [B, 2D] holds those of two adapters, z1 and z2. The top model reads

    a1 * z1 + a2 * z2  [B, D],   a1 = 1/2 + xi, a2 = 1/2 - xi, xi ~ N(0, deviation^2) [D] drawn once per party
"""

from __future__ import annotations

from typing import Any, ClassVar

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.types import Array

COLLECTION = "mixing"  # the collection of variables that no optimizer changes


class Mixed(nn.Module):
    """The model ``reader`` behind secret mixtures of adapters.

    The aggregated cut holds one or more embeddings of ``width`` 2D, side by side. The variables of ``reader``
    have the same names and, drawn from the same key, the same initial values as without mixing.
    """

    light: ClassVar[bool] = True
    reader: nn.Module  # not called "top", a name that ``reader`` may use itself
    width: int  # 2D
    deviation: float = 1.0
    weights: str = "default"  # of ``reader``

    def setup(self) -> None:
        nn.share_scope(self, self.reader)

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        chex.assert_rank(x, 2)
        chex.assert_is_divisible(x.shape[1], self.width)
        adapters = x.reshape(len(x), -1, 2, self.width // 2)
        shape = adapters.shape[1], adapters.shape[3]
        unit: Any = self.variable(
            COLLECTION, "unit", lambda: jax.random.normal(self.make_rng("params"), shape)
        )
        xi = self.deviation * unit.value
        shares = jnp.stack([0.5 + xi, 0.5 - xi], axis=1)
        mixed = jnp.sum(adapters * shares[None], axis=2).reshape(len(x), -1)
        return self.reader(mixed, train=train)
