"""Wide & deep (Cheng et al. 2016), the bottom model for tables with categorical columns.

It maps x [B, F], number columns and columns of codes, as float32, to embeddings [B, out].

    wide = sum_j a[code_j] + numbers A + bias                 linear in codes and numbers, width out
    deep = MLP([e[code_1], ..., numbers])                     e: one row of ``embedding`` numbers per code
    embedding = output(wide + deep)

Published forms. Sun et al. 2022 (Criteo, Avazu): embedding 4, 5 ReLU layers of 128, the fifth being the
cut: hidden=(128,) * 4, out=128, output="relu", wide=False (they describe no wide part before the cut).
Li et al. 2022 (Criteo): 128x3 before the cut: hidden=(128, 128), out=128, output="relu". Han and Guan
2023 (GAFM, appendix E.2): embedding=16, hidden=(16, 16), out=1; batch_norm=True and dropout=.2 are its
released code's.
"""

from __future__ import annotations

from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from vfljax.models.mlp import ACTIVATIONS, MLP, WEIGHTS
from vfljax.types import Array

_EXACT = 2**24  # beyond it float32 misses whole numbers


class WideDeep(nn.Module):
    """The network of the module docstring.

    ``vocabulary[j]`` is 0 if column j holds numbers, else the count v of its codes 0..v-1. A code outside of
    these is read as the nearest one, a missing code (NaN) as 0, and a fraction is cut off: no row is ever
    read from another column's part of the table.

    Each table is one array for all columns: e is [sum(vocabulary), embedding] and a is [sum(vocabulary), out].
    Rows of e start normal with variance 1/embedding (flax's), and a starts at 0. With ``weights="torch"``
    both start normal with variance 1.
    """

    out: int
    vocabulary: tuple[int, ...]
    output: str = "identity"
    embedding: int = 4
    hidden: tuple[int, ...] = (128, 128, 128, 128)
    activation: str = "relu"
    wide: bool = True
    weights: str = "default"  # or "torch"
    dropout: float = 0.0
    batch_norm: bool = False
    dtype: Any = None  # see ``parties.from_module``
    light: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("table",)
    mixable: ClassVar[bool] = False

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        self._check(x.shape)
        sizes = np.asarray(self.vocabulary)
        numbers = x[:, np.flatnonzero(sizes == 0)]
        rows = _rows(x, sizes)
        torch = self.weights == "torch"
        deep_init = nn.initializers.normal(1.0 if torch else self.embedding**-0.5)
        wide_init = nn.initializers.normal(1.0) if torch else nn.initializers.zeros
        parts = [numbers]
        if rows.shape[1]:
            table = self.param("embedding_table", deep_init, (int(sizes.sum()), self.embedding))
            parts = [table[rows].reshape(len(x), -1), numbers]
        options: Any = {"dropout": self.dropout, "batch_norm": self.batch_norm, "name": "deep"}
        options |= {"weights": self.weights, "dtype": self.dtype}
        deep = MLP(self.hidden, self.out, self.activation, **options)
        z = deep(jnp.concatenate(parts, axis=-1), train)
        if self.wide:
            if rows.shape[1]:
                table = self.param("wide_table", wide_init, (int(sizes.sum()), self.out))
                z = z + jnp.sum(table[rows], axis=1)
            if numbers.shape[1]:
                z = z + MLP((), self.out, weights=self.weights, name="wide")(numbers)
        return ACTIVATIONS[self.output](z)

    def _check(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[1] != len(self.vocabulary) or not self.vocabulary:
            raise ValueError(
                f"features of shape {shape}: vocabulary names {len(self.vocabulary)} columns."
            )
        if min(self.vocabulary) < 0 or max(self.vocabulary) > _EXACT:
            raise ValueError(f"vocabulary={self.vocabulary}: sizes are 0 to {_EXACT}.")
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights={self.weights!r}: choose one of {WEIGHTS}.")


def _rows(x: Array, sizes: np.ndarray) -> Array:
    """Returns each code's row in the table of all columns: [B, code columns] int32."""
    columns = np.flatnonzero(sizes)
    last = sizes[columns] - 1
    starts = (np.cumsum(sizes) - sizes)[columns]
    # clipped before the cast, because float32 has a nearest code even for huge numbers and infinities
    codes = jnp.clip(jnp.nan_to_num(x[:, columns], nan=0.0), 0.0, last[None].astype(np.float32))
    return codes.astype(jnp.int32) + starts[None].astype(np.int32)
