"""A party's model as two pure functions, and how cut embeddings are put together.

What enters: flax modules (static). What leaves: ``Party`` records and aggregations.
Which columns a party owns is the data set's business (``vfljax.datasets``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp

from vfljax import keys
from vfljax.types import Array, PyTree, Spec


class Party(NamedTuple):
    """``init(key, x) -> variables``; ``apply(variables, x, train, key) -> (embedding [B, D],
    (variables, layers))``, where the returned variables carry moved batch statistics."""

    init: Callable[[Array, Any], PyTree]  # x: [B, ...], or a tuple of those (``together``)
    apply: Callable[[PyTree, Any, bool, Array | None], tuple[Array, tuple[PyTree, PyTree]]]
    mixable: bool = True  # whether a convex combination of two inputs is an input too
    light: bool = True  # whether its layers are small, see ``Spec.light``


def from_module(module: nn.Module) -> Party:
    """Pure functions of a flax module whose ``__call__`` takes ``(x, train)``."""

    def init(key: Array, x: Array) -> PyTree:
        variables = dict(module.init({"params": key, "dropout": key}, x, train=False))
        variables.pop("layers", None)
        return variables

    def apply(
        variables: PyTree, x: Array, train: bool, key: Array | None
    ) -> tuple[Array, tuple[PyTree, PyTree]]:
        mutable = ["layers", "batch_stats"] if train else ["layers"]
        rngs = {} if key is None else {"dropout": key}
        out, moved = module.apply(variables, x, train=train, mutable=mutable, rngs=rngs)
        moved = dict(moved)
        layers = moved.pop("layers", {})
        return out, ({**variables, **moved}, layers)

    mixable, light = getattr(module, "mixable", True), getattr(module, "light", False)
    return Party(init, apply, mixable, light)


def together(parties_: Sequence[Party]) -> Party:
    """Colluding parties as one: variables and columns are tuples, the embeddings are concatenated."""

    def init(key: Array, x: tuple[Array, ...]) -> PyTree:
        return tuple(
            party.init(keys.fold(key, p), part)
            for p, (party, part) in enumerate(zip(parties_, x, strict=True))
        )

    def apply(variables: PyTree, x: tuple[Array, ...], train: bool, key: Array | None) -> Any:
        outs = [
            party.apply(v, part, train, None if key is None else keys.fold(key, p))
            for p, (party, v, part) in enumerate(zip(parties_, variables, x, strict=True))
        ]
        z = concatenate([out for out, _ in outs])
        return z, (tuple(v for _, (v, _) in outs), tuple(layers for _, (_, layers) in outs))

    mixable, light = (all(flags) for flags in zip(*((p.mixable, p.light) for p in parties_)))
    return Party(init, apply, mixable, light)


def sum_party(bottoms: Sequence[nn.Module]) -> Party:
    """The 'top model' without model splitting: no parameters, logits = the aggregated cut."""
    del bottoms

    def init(key: Array, x: Array) -> PyTree:
        del key, x
        return {}

    def apply(variables: PyTree, x: Array, train: bool, key: Array | None) -> Any:
        del train, key
        return x, (variables, {})

    return Party(init, apply)


def concatenate(embeddings: Sequence[Array]) -> Array:
    return jnp.concatenate(embeddings, axis=-1)


def add(embeddings: Sequence[Array]) -> Array:
    return sum(embeddings[1:], start=embeddings[0])


def mean(embeddings: Sequence[Array]) -> Array:
    return add(embeddings) / len(embeddings)


AGGREGATIONS: dict[str, Callable[[Sequence[Array]], Array]] = {
    "concatenate": concatenate,
    "sum": add,
    "mean": mean,
}


def parties(spec: Spec) -> tuple[tuple[Party, ...], Party, Callable[[Sequence[Array]], Array]]:
    """Bottoms, top and aggregation of a spec; without splitting the top is the plain sum."""
    bottoms = tuple(from_module(module) for module in spec.bottoms)
    if spec.top is None:
        return bottoms, sum_party(spec.bottoms), add
    return bottoms, from_module(spec.top), AGGREGATIONS[spec.aggregation]
