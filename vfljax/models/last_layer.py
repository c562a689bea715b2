"""The last linear layer of a bottom model, as its owner sees it in training.

A layer z = W a + b that reads inputs a_i and receives the gradients g_i contributes to its party's parameter
gradient, summed over a batch's rows, only

    G = sum_i (a_i, 1) g_i^T                      [H + 1, D], the bias's gradient last

What enters: a spec, and the state and batch of a step. What leaves: the inputs a of every passive bottom's
last layer in that step, from which and the cut gradients G follows exactly (with ``config.training.precision``
"bfloat16", whose parties round a_i and g_i for this product, up to that rounding). They are recorded where
``config.training.record_parameter_gradients`` asks, without model splitting.
"""

from __future__ import annotations

from collections.abc import Callable

import flax.linen as nn
import jax.numpy as jnp

from vfljax import keys
from vfljax.models.parties import parties
from vfljax.types import Array, Batch, Spec, State


def width(module: nn.Module) -> int:
    """H, what the last linear layer of a bottom reads; 0 for a network that records no such layer: one
    that does not end in a linear layer after a hidden one (``linear_end``)."""
    hidden = getattr(module, "hidden", ())
    return hidden[-1] if getattr(module, "linear_end", False) and hidden else 0


def recorded_width(spec: Spec) -> int:
    """The widths of what is recorded of all passive bottoms together; 0 where nothing is."""
    return sum(map(width, spec.bottoms[: spec.passive])) if spec.record_inputs else 0


def make_inputs(spec: Spec) -> Callable[[State, Batch], tuple[Array, ...]]:
    """``inputs(state, batch)``: of each passive bottom what its last linear layer reads [B, H] in the step
    from that state, with the step's own batch statistics and dropout; () where nothing is recorded."""
    bottoms, _, _ = parties(spec)

    def inputs(state: State, batch: Batch) -> tuple[Array, ...]:
        key = keys.fold(state.run_key, "step", state.step)
        out = []
        for p, (party, variables, x) in enumerate(
            zip(bottoms, state.weights.bottoms, batch.features, strict=True)
        ):
            if p < spec.passive:
                # the protocol's own call, which XLA finds to be the same
                _, (_, layers) = party.apply(variables, x, True, keys.fold(key, "bottom", p))
                out.append(layers["hidden"][-1])
        return tuple(out)

    return inputs if spec.record_inputs else lambda state, batch: ()


def parameter_gradient(inputs: Array, gradients: Array, sent: Array) -> Array:
    """G [H + 1, D] of one batch's inputs [B, H] and received gradients [B, D]; rows that were not
    ``sent`` [B] bool contribute nothing."""
    return jnp.matmul(with_bias(inputs, sent).T, gradients, precision="highest")


def with_bias(inputs: Array, sent: Array) -> Array:
    """Rows (a_i, 1) [B, H + 1]; 0 for rows that were not ``sent``."""
    rows = jnp.concatenate([inputs, jnp.ones_like(inputs[:, :1])], axis=1)
    return jnp.where(sent[:, None], rows, 0.0)
