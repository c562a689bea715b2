"""The parties' optimizers, by name: optax chains over the numbers of one trial.

Each factory takes the ``HParams`` of a trial, the learning rate of the epoch and the party's malicious
strength ``gamma``, all of which may be traced, and returns a gradient transformation.

A malicious party differs from an honest one only in its optimizer and its upload (``uploads``). ``gamma`` is
one number per party and 0 for honest parties, so that a sweep may vary it like any other number.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax.numpy as jnp
import optax

from vfljax.federation.malicious import scale_by_malicious, trace_released, trace_released_torch2
from vfljax.types import Array, HParams

Factory = Callable[[HParams, Array, Array], optax.GradientTransformation]


def learning_rate(hparams: HParams, epoch: Array) -> Array:
    """Returns the learning rate of an epoch, a scalar, which is multiplied by ``decay`` at each milestone.

    Args:
      hparams: numbers of the trial. A milestone takes effect in the epoch that it names.
      epoch: [] int32.
    """
    chex.assert_rank([epoch, hparams.milestones], [0, 1])
    passed = jnp.sum(epoch >= hparams.milestones)
    return hparams.learning_rate * hparams.decay**passed


def _descent(
    directions: Callable[[HParams, Array], tuple[optax.GradientTransformation, ...]],
) -> Factory:
    """Returns a factory of optimizers, which add coupled weight decay to the gradient, apply the
    transformations ``directions(hparams, gamma)``, and scale the result by -rate."""

    def optimizer(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
        decay = optax.add_decayed_weights(hparams.weight_decay)
        return optax.chain(decay, *directions(hparams, gamma), optax.scale(-rate))

    return optimizer


# at gamma = 0 each malicious optimizer is the honest one
TABLE: dict[str, Factory] = {
    # as PyTorch's: v <- momentum v + g + weight_decay theta, theta <- theta - rate v
    "sgd": _descent(lambda hparams, gamma: (optax.trace(hparams.momentum),)),
    # as PyTorch's Adam(weight_decay=...), which is not AdamW; it does not read hparams.momentum
    "adam": _descent(lambda hparams, gamma: (optax.scale_by_adam(),)),
    "malicious_sgd": _descent(
        lambda hparams, gamma: (optax.trace(hparams.momentum), scale_by_malicious(gamma))
    ),
    "malicious_sgd_released": _descent(
        lambda hparams, gamma: (trace_released(hparams.momentum, gamma),)
    ),
    "malicious_sgd_released_torch2": _descent(
        lambda hparams, gamma: (trace_released_torch2(hparams.momentum, gamma),)
    ),
    "malicious_adam": _descent(
        lambda hparams, gamma: (optax.scale_by_adam(), scale_by_malicious(gamma))
    ),
}

MALICIOUS = {
    "sgd": {
        "intended": "malicious_sgd",
        "released": "malicious_sgd_released",
        "released_torch2": "malicious_sgd_released_torch2",
    },
    "adam": {"intended": "malicious_adam"},
}
"""The malicious forms of each honest optimizer, by rule."""

RULES = tuple(MALICIOUS["sgd"])
"""All rules; SGD has a malicious form for each."""
