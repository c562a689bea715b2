"""The last linear layer of a bottom model, as its owner sees it in training.

A layer z = W a + b reads inputs a_i and receives gradients g_i. Its only contribution to the party's parameter
gradient is a sum over the rows of a batch,

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
    """Returns H, the input width of a bottom's last linear layer; 0 if the layer cannot be recorded.

    A layer can be recorded if it ends a network with ``linear_end`` and follows a hidden layer.
    """
    hidden = getattr(module, "hidden", ())
    return hidden[-1] if getattr(module, "linear_end", False) and hidden else 0


def recorded_width(spec: Spec) -> int:
    """Returns the sum of the recorded widths over all passive bottoms; 0 if nothing is recorded."""
    return sum(map(width, spec.bottoms[: spec.passive])) if spec.record_inputs else 0


def make_inputs(spec: Spec) -> Callable[[State, Batch], tuple[Array, ...]]:
    """Makes ``inputs(state, batch)``, which returns the inputs [B, H] of each passive bottom's last layer.

    It uses the batch statistics and the dropout of the step, and returns () if nothing is recorded.
    """
    bottoms, _, _ = parties(spec)

    def inputs(state: State, batch: Batch) -> tuple[Array, ...]:
        key = keys.fold(state.run_key, "step", state.step)
        out = []
        passive = zip(bottoms[: spec.passive], state.weights.bottoms, batch.features, strict=False)
        for p, (party, variables, x) in enumerate(passive):
            # the protocol makes the same call, and XLA computes it once
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
