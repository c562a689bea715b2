"""What attacks that train a classifier on the attacker's own columns share.

What enters: an attacker's columns, and the loss of a classifier's parameters. What leaves: the columns as
one block of numbers, and the parameters after a number of steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from vfljax.types import Array, PyTree

# the default product keeps only some ten bits of each factor on accelerators
multiply = functools.partial(jnp.matmul, precision="highest")
KNOBS = {"learning_rate": 1e-2, "weight_decay": 1e-2}


def check_numeric(bottoms: Sequence[nn.Module], option: str) -> None:
    """Raise ValueError where a bottom reads codes or token ids, which are no numbers to a linear model.

    ``option`` says in the message what asks for the columns, and ends with the remedy.
    """
    coded = [type(module).__name__ for module in bottoms if not getattr(module, "mixable", True)]
    if coded:
        raise ValueError(f"columns that {coded[0]} reads are codes and not numbers: {option}.")


def logits_by_column(params: Mapping[str, Mapping[str, Array]], x: Array) -> Array:
    """The logits [C, N] that an ``MLP`` of ReLUs with these parameters gives the rows of x [W, N].

    Rows lie along the last axis: there are thousands of them and few classes, so that this is the order in
    which a processor's vector units are full.
    """
    chex.assert_rank(x, 2)
    *hidden, last = (params[f"Dense_{i}"] for i in range(len(params)))
    for layer in hidden:
        x = jax.nn.relu(layer["kernel"].T @ x + layer["bias"][:, None])
    return last["kernel"].T @ x + last["bias"][:, None]


def columns_of(features: Sequence[Array]) -> Array:
    """All colluders' columns [N, W] of their features [N, ...]."""
    return jnp.concatenate([x.reshape(len(x), -1) for x in features], axis=-1)


def minimize(
    loss: Callable[[PyTree], Array], params: PyTree, knobs: Mapping[str, Array], steps: int
) -> PyTree:
    """The parameters after ``steps`` of AdamW on a ``loss(params) -> scalar`` over all rows at once.

    ``knobs`` are those of ``KNOBS``. Nothing is drawn.
    """
    # optax's 1e-8 makes whole steps of a gradient that is 0 but for rounding: that of a bias where as
    # many labels of each class are known
    optimizer = optax.adamw(knobs["learning_rate"], eps=1e-6, weight_decay=knobs["weight_decay"])

    def step(_: Array, carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        params, state = carry
        update, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, update), state

    params, _ = jax.lax.fori_loop(0, steps, step, (params, optimizer.init(params)))
    return params
