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


def learning_rate(hparams: HParams, epoch: Array) -> Array:
    """The learning rate of an ``epoch``, a scalar: times ``decay`` at each milestone reached.

    A milestone is reached in the epoch it names. Without milestones the rate stays.
    """
    chex.assert_rank([epoch, hparams.milestones], [0, 1])
    passed = jnp.sum(epoch >= hparams.milestones)
    return hparams.learning_rate * hparams.decay**passed


def _descent(
    hparams: HParams, rate: Array, *direction: optax.GradientTransformation
) -> optax.GradientTransformation:
    """Steps of -rate along the direction of the gradient with coupled weight decay."""
    return optax.chain(
        optax.add_decayed_weights(hparams.weight_decay), *direction, optax.scale(-rate)
    )


def sgd(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """SGD with momentum and coupled weight decay, as PyTorch's.

    v <- momentum v + g + weight_decay theta,   theta <- theta - rate v
    """
    del gamma
    return _descent(hparams, rate, optax.trace(hparams.momentum))


def malicious_sgd(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """``sgd`` whose direction the intended malicious rule amplifies; gamma = 0 is ``sgd``."""
    return _descent(hparams, rate, optax.trace(hparams.momentum), scale_by_malicious(gamma))


def malicious_sgd_released(
    hparams: HParams, rate: Array, gamma: Array
) -> optax.GradientTransformation:
    """The released malicious SGD where gradients are zeroed in place; gamma = 0 is ``sgd``."""
    return _descent(hparams, rate, trace_released(hparams.momentum, gamma))


def malicious_sgd_released_torch2(
    hparams: HParams, rate: Array, gamma: Array
) -> optax.GradientTransformation:
    """The released malicious SGD where gradients are set to None; gamma = 0 is ``sgd``."""
    return _descent(hparams, rate, trace_released_torch2(hparams.momentum, gamma))


def adam(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """Adam with coupled weight decay, as PyTorch's ``Adam(weight_decay=...)``.

    The trial's momentum is not read. Decoupled weight decay would be AdamW.
    """
    del gamma
    return _descent(hparams, rate, optax.scale_by_adam())


def malicious_adam(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """``adam`` whose direction the malicious rule amplifies; gamma = 0 is ``adam``."""
    return _descent(hparams, rate, optax.scale_by_adam(), scale_by_malicious(gamma))


TABLE: dict[str, Callable[[HParams, Array, Array], optax.GradientTransformation]] = {
    "sgd": sgd,
    "adam": adam,
    "malicious_sgd": malicious_sgd,
    "malicious_sgd_released": malicious_sgd_released,
    "malicious_sgd_released_torch2": malicious_sgd_released_torch2,
    "malicious_adam": malicious_adam,
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
