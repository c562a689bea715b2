"""Optimizers: the schedule, and agreement with their equations in NumPy."""

import jax.numpy as jnp
import numpy as np
import optax

from vfljax.federation import optimizers
from vfljax.types import HParams

GRADIENTS = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def hparams(milestones=(), decay=0.1):
    values = (0.1, 0.9, 0.01, milestones, decay, (0.0,), (0.0,))
    return HParams(*(jnp.asarray(v, jnp.float32) for v in values), defenses={})


def path(name):
    theta = jnp.ones(4)
    optimizer = optimizers.TABLE[name](hparams(), jnp.float32(0.1), jnp.float32(0))
    state, out = optimizer.init(theta), []
    for g in GRADIENTS:
        update, state = optimizer.update(g, state, theta)
        theta = optax.apply_updates(theta, update)
        out.append(theta)
    return np.array(out)


def test_the_rate_is_multiplied_at_each_milestone_reached():
    expected = {0: 0.1, 49: 0.1, 50: 0.01, 84: 0.01, 85: 0.001, 99: 0.001}
    rates = [optimizers.learning_rate(hparams((50, 85)), jnp.int32(epoch)) for epoch in expected]
    np.testing.assert_allclose(rates, [*expected.values()], rtol=1e-5)
    np.testing.assert_allclose(optimizers.learning_rate(hparams(), jnp.int32(1000)), 0.1)


def test_sgd_adds_weight_decay_before_momentum():
    theta, v, expected = np.ones(4), np.zeros(4), []
    for g in GRADIENTS:
        v = 0.9 * v + g + 0.01 * theta
        theta = theta - 0.1 * v
        expected.append(theta)
    np.testing.assert_allclose(path("sgd"), expected, rtol=1e-5, atol=1e-6)


def test_adam_adds_weight_decay_to_the_gradient():
    """Coupled, as PyTorch's ``weight_decay``; decoupled would be AdamW."""
    theta, m, v, expected = np.ones(4), np.zeros(4), np.zeros(4), []
    for t, gradient in enumerate(GRADIENTS, 1):
        g = gradient + 0.01 * theta
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        theta = theta - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        expected.append(theta)
    np.testing.assert_allclose(path("adam"), expected, rtol=1e-4, atol=1e-5)
