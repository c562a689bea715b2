"""Optimizers: the schedule, and Adam's equations in NumPy; ``protocol_test`` has those of SGD."""

import jax.numpy as jnp
import numpy as np
import optax

from tests.reference.common import adam
from vfljax.federation import optimizers
from vfljax.types import HParams

GRADIENTS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def hparams(milestones=(), decay=0.1):
    values = (0.1, 0.9, 0.01, milestones, decay, (0.0,), (0.0,), (0.0,))
    return HParams(*(jnp.asarray(v, jnp.float32) for v in values), defenses={})


def test_the_rate_is_multiplied_at_each_milestone_reached():
    expected = {0: 0.1, 49: 0.1, 50: 0.01, 84: 0.01, 85: 0.001, 99: 0.001}
    rates = [optimizers.learning_rate(hparams((50, 85)), jnp.int32(epoch)) for epoch in expected]
    np.testing.assert_allclose(rates, [*expected.values()], rtol=1e-5)
    np.testing.assert_allclose(optimizers.learning_rate(hparams(), jnp.int32(1000)), 0.1)


def test_adam_adds_weight_decay_to_the_gradient():
    """Coupled, as PyTorch's ``weight_decay``; decoupled would be AdamW."""
    optimizer = optimizers.TABLE["adam"](hparams(), jnp.float32(0.1), jnp.float32(0))
    ours, theta, moments = jnp.ones(4), np.ones(4), None
    state = optimizer.init(ours)
    for gradient in GRADIENTS:
        (theta,), moments = adam([theta], [gradient + 0.01 * theta], moments, 0.1)
        update, state = optimizer.update(gradient, state, ours)
        ours = optax.apply_updates(ours, update)
        np.testing.assert_allclose(ours, theta, rtol=1e-4, atol=1e-5)
