"""A party's model as two pure functions, and how the parties' embeddings are combined."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax.numpy as jnp

from vfljax import keys
from vfljax.types import Array, PyTree, Spec


class Party(NamedTuple):
    """A model as two pure functions.

    ``init(key, x) -> variables``, and ``apply(variables, x, train, key) -> (embedding [B, D],
    (variables, layers))``. The returned variables hold the updated batch statistics, and ``layers`` the
    activations that the module records. ``key`` is the key of dropout, or None to draw nothing. ``x``
    is [B, ...], or a tuple of such arrays for colluding parties (``together``).
    """

    init: Callable[[Array, Any], PyTree]
    apply: Callable[[PyTree, Any, bool, Array | None], tuple[Array, tuple[PyTree, PyTree]]]
    mixable: bool = True  # whether a convex combination of two inputs is an input too
    light: bool = True  # whether its layers are small, see ``Spec.light``


def from_module(module: nn.Module, precision: str = "float32") -> Party:
    """Returns the party of a flax module.

    Args:
      module: its ``__call__`` takes ``(x, train)``.
      precision: "float32", or "bfloat16" to compute hidden layers in it: the field ``dtype`` of the module, and
        of modules that are fields of it, is then ``jnp.bfloat16``. Variables, batch statistics, the last layer,
        the result and recorded layers stay float32.
    """
    if precision == "bfloat16":
        module = in_bfloat16(module)

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


def in_bfloat16(module: nn.Module) -> nn.Module:
    """Returns a module with ``jnp.bfloat16`` in its fields ``dtype`` that are None, at every depth."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(module):
        value = getattr(module, field.name)
        if isinstance(value, nn.Module) and field.name != "parent":
            changes[field.name] = in_bfloat16(value)
        elif field.name == "dtype" and value is None:
            changes["dtype"] = jnp.bfloat16
    return module.clone(**changes)


def together(parties_: Sequence[Party]) -> Party:
    """Returns colluding parties as a single party.

    Its variables and columns are tuples with one entry per party, and its embedding is the concatenation of
    their embeddings. Each party draws from a key of its own.
    """

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


def concatenate(embeddings: Sequence[Array]) -> Array:
    """Concatenates embeddings [B, D_p] to [B, sum of D_p], in the parties' order."""
    chex.assert_rank(embeddings, 2)
    chex.assert_equal_shape_prefix(embeddings, 1)
    return jnp.concatenate(embeddings, axis=-1)


def _sum(embeddings: Sequence[Array]) -> Array:
    chex.assert_rank(embeddings, 2)
    chex.assert_equal_shape(embeddings)
    return sum(embeddings[1:], start=embeddings[0])


# it replaces the top model without model splitting: the logits [B, C] are the aggregated cut
_NO_TOP = Party(lambda key, x: {}, lambda variables, x, train, key: (x, (variables, {})))

# functions from each party's embedding [B, D] to the cut; "concatenate" keeps the parties' order
AGGREGATIONS: dict[str, Callable[[Sequence[Array]], Array]] = {
    "concatenate": concatenate,
    "sum": _sum,
    "mean": lambda embeddings: _sum(embeddings) / len(embeddings),
}


def parties(spec: Spec) -> tuple[tuple[Party, ...], Party, Callable[[Sequence[Array]], Array]]:
    """Returns the bottom models, the top model and the aggregation of a spec.

    The bottoms are in the spec's order, the label party's last. Without model splitting the aggregation
    is the sum, whatever the spec names, and the top returns it. The networks' hidden layers have the spec's
    precision; sums and means of embeddings are float32.
    """
    bottoms = tuple(from_module(module, spec.precision) for module in spec.bottoms)
    if spec.top is None:
        return bottoms, _NO_TOP, _sum
    return bottoms, from_module(spec.top, spec.precision), AGGREGATIONS[spec.aggregation]
