"""A top model of two heads on the aggregated cut, the network of the defense by class splitting. The second
head sends no gradient to the cut."""

from __future__ import annotations

from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.types import Array


class TwoHeads(nn.Module):
    """Logits [B, K + C]: those of ``first``, then those of ``second``, which reads a stopped gradient.

    The variables of ``first`` have the same names and, drawn from the same key, the same initial values as
    without ``second``. The variables of ``second`` are in "second".
    """

    light: ClassVar[bool] = True
    first: nn.Module
    second: nn.Module
    weights: str = "default"  # of both heads; defenses that wrap this module read it

    def setup(self) -> None:
        nn.share_scope(self, self.first)

    def __call__(self, x: Array, train: bool = False) -> Array:
        read = self.first(x, train=train), self.second(jax.lax.stop_gradient(x), train=train)
        return jnp.concatenate(read, axis=-1)
