"""Each party's own optimizer, by name: plain optax chains over one setting's HParams.

A malicious party differs from an honest one here and nowhere else. Its strength ``gamma`` is a
number a party and 0 is honest, so which parties are malicious is an axis like any other knob.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import optax

from vfljax.attacks.malicious import scale_by_malicious, trace_released, trace_released_torch2
from vfljax.types import Array, HParams


def learning_rate(hparams: HParams, epoch: Array) -> Array:
    """The rate of an epoch: times ``decay`` at each milestone reached."""
    passed = jnp.sum(epoch >= hparams.milestones)
    return hparams.learning_rate * hparams.decay**passed


def sgd(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """v <- momentum v + g + weight_decay theta; theta <- theta - rate v (PyTorch's SGD)."""
    del gamma
    return optax.chain(
        optax.add_decayed_weights(hparams.weight_decay),
        optax.trace(hparams.momentum),
        optax.scale(-rate),
    )


def malicious_sgd(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """``sgd`` whose direction the malicious rule amplifies; gamma = 0 is ``sgd``."""
    return optax.chain(
        optax.add_decayed_weights(hparams.weight_decay),
        optax.trace(hparams.momentum),
        scale_by_malicious(gamma),
        optax.scale(-rate),
    )


def malicious_sgd_released(
    hparams: HParams, rate: Array, gamma: Array
) -> optax.GradientTransformation:
    """The released class where gradients are zeroed in place; gamma = 0 is ``sgd``."""
    return optax.chain(
        optax.add_decayed_weights(hparams.weight_decay),
        trace_released(hparams.momentum, gamma),
        optax.scale(-rate),
    )


def malicious_sgd_released_torch2(
    hparams: HParams, rate: Array, gamma: Array
) -> optax.GradientTransformation:
    """The released class where gradients are set to None; gamma = 0 is ``sgd``."""
    return optax.chain(
        optax.add_decayed_weights(hparams.weight_decay),
        trace_released_torch2(hparams.momentum, gamma),
        optax.scale(-rate),
    )


def adam(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """Adam with coupled weight decay (PyTorch's ``weight_decay``); momentum is not read."""
    del gamma
    return optax.chain(
        optax.add_decayed_weights(hparams.weight_decay),
        optax.scale_by_adam(),
        optax.scale(-rate),
    )


def malicious_adam(hparams: HParams, rate: Array, gamma: Array) -> optax.GradientTransformation:
    """``adam`` whose direction the malicious rule amplifies; gamma = 0 is ``adam``."""
    return optax.chain(
        optax.add_decayed_weights(hparams.weight_decay),
        optax.scale_by_adam(),
        scale_by_malicious(gamma),
        optax.scale(-rate),
    )


TABLE: dict[str, Callable[[HParams, Array, Array], optax.GradientTransformation]] = {
    "sgd": sgd,
    "adam": adam,
    "malicious_sgd": malicious_sgd,
    "malicious_sgd_released": malicious_sgd_released,
    "malicious_sgd_released_torch2": malicious_sgd_released_torch2,
    "malicious_adam": malicious_adam,
}

# the malicious forms of an honest optimizer, by rule
MALICIOUS = {
    "sgd": {
        "intended": "malicious_sgd",
        "released": "malicious_sgd_released",
        "released_torch2": "malicious_sgd_released_torch2",
    },
    "adam": {"intended": "malicious_adam"},
}
RULES = tuple(MALICIOUS["sgd"])  # SGD has them all
