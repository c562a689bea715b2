"""The last linear layer of a bottom model, as its owner sees it in training.

A layer z = W a + b that reads inputs a_i and receives the gradients g_i contributes to its party's parameter
gradient, summed over a batch's rows, only

    G = sum_i (a_i, 1) g_i^T                      [H + 1, D], the bias's gradient last

Without a top model, and if ``config.training.record_parameter_gradients`` asks for it, the inputs a_i of every
passive bottom's last layer are recorded. G follows from them and the cut gradients exactly; in precision
"bfloat16", whose parties round a_i and g_i for this product, up to that rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import flax.linen as nn
import jax.numpy as jnp

from vfljax import keys
from vfljax.models.parties import parties
from vfljax.types import Array, Batch, Spec, State


def width(module: nn.Module) -> int:
    """Returns H, the width that a bottom's last linear layer reads; 0 if it records no such layer.

    Recorded is a linear layer after a hidden one, at the end of a network with ``linear_end``.
    """
    hidden = getattr(module, "hidden", ())
    return hidden[-1] if getattr(module, "linear_end", False) and hidden else 0


def recorded_width(spec: Spec) -> int:
    """Returns the sum of the widths recorded of all passive bottoms; 0 if nothing is recorded."""
    return sum(map(width, spec.bottoms[: spec.passive])) if spec.record_inputs else 0


def make_inputs(spec: Spec) -> Callable[[State, Batch], tuple[Array, ...]]:
    """Makes ``inputs(state, batch)``, what each passive bottom's last linear layer reads [B, H] in a step.

    It has the step's batch statistics and dropout, and returns () if nothing is recorded.
    """
    bottoms, _, _ = parties(spec)

    def inputs(state: State, batch: Batch) -> tuple[Array, ...]:
        key = keys.fold(state.run_key, "step", state.step)
        out = []
        passive = zip(bottoms[: spec.passive], state.weights.bottoms, batch.features, strict=False)
        for p, (party, variables, x) in enumerate(passive):
            # the protocol's own call, which XLA finds to be the same
            _, (_, layers) = party.apply(variables, x, True, keys.fold(key, "bottom", p))
            out.append(layers["hidden"][-1])
        return tuple(out)

    return inputs if spec.record_inputs else lambda state, batch: ()


def parameter_gradient(inputs: Array, gradients: Array, sent: Array) -> Array:
    """Returns the parameter gradient G [H + 1, D] of one batch.

    Args:
      inputs: [B, H] of the last layer.
      gradients: [B, D] received.
      sent: [B] bool; other rows contribute nothing.
    """
    return jnp.matmul(with_bias(inputs, sent).T, gradients, precision="highest")


def with_bias(inputs: Array, sent: Array) -> Array:
    """Returns the rows (a_i, 1) [B, H + 1] of a last layer.

    Args:
      inputs: [B, H] of the layer.
      sent: [B] bool; other rows are 0.
    """
    rows = jnp.concatenate([inputs, jnp.ones_like(inputs[:, :1])], axis=1)
    return jnp.where(sent[:, None], rows, 0.0)
