"""The parties' optimizers, by name: optax chains over the numbers of one trial.

Each factory takes the ``HParams`` of a trial, the learning rate of the epoch and the party's malicious
strength ``gamma``, all of which may be traced, and returns a gradient transformation.

A malicious party differs from an honest one here and nowhere else. ``gamma`` is one number a party, and 0
is honest, so that which parties are malicious is an axis of a sweep like any other number.
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
    """The learning rate of an epoch, a scalar: times ``decay`` at each milestone reached.

    Args:
      hparams: of the trial. A milestone is reached in the epoch it names; without milestones the rate stays.
      epoch: [] int32.
    """
    chex.assert_rank([epoch, hparams.milestones], [0, 1])
    passed = jnp.sum(epoch >= hparams.milestones)
    return hparams.learning_rate * hparams.decay**passed


def _descent(
    directions: Callable[[HParams, Array], tuple[optax.GradientTransformation, ...]],
) -> Factory:
    """Steps of -rate along the direction that ``directions(hparams, gamma)`` make of the gradient with
    coupled weight decay."""

    def optimizer(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
        decay = optax.add_decayed_weights(hparams.weight_decay)
        return optax.chain(decay, *directions(hparams, gamma), optax.scale(-rate))

    return optimizer


# each malicious one is the honest one at gamma = 0
TABLE: dict[str, Factory] = {
    # as PyTorch's: v <- momentum v + g + weight_decay theta, theta <- theta - rate v
    "sgd": _descent(lambda hparams, gamma: (optax.trace(hparams.momentum),)),
    # as PyTorch's Adam(weight_decay=...), which is not AdamW; it has no momentum of its own
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
"""The malicious forms of an honest optimizer, by rule."""

RULES = tuple(MALICIOUS["sgd"])
"""Every rule; SGD has them all."""
