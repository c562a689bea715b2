"""The malicious optimizer: golden steps, its honest limit, its twin."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.reference import malicious as reference
from vfljax.federation import malicious, optimizers
from vfljax.federation.malicious import scale_by_malicious
from vfljax.types import HParams

GOLDEN = {
    "intended": [1, 5.51, 4.04, 6.36, 6.73],
    "released": [1, 5.04, 2.44, 3.13, 2.84],
    "released_torch2": [1, 5.51, 12.4, 24.1, 44.0],
}
GAMMAS = (0.0, 0.5, 1.0, 2.0)
STEPS = 20


def hparams(momentum=0.9, weight_decay=0.0):
    values = (0.1, momentum, weight_decay, (), 0.1, (0.0,), (0.0,), (0.0,))
    return HParams(*(jnp.asarray(v, jnp.float32) for v in values), defenses={})


@functools.partial(jax.jit, static_argnames="name")
def paths(gradients, theta, gammas, momentum, weight_decay, rate, name):
    """Parameters [gammas, steps, n] after every step of an optimizer of the table."""
    numbers = hparams()._replace(momentum=momentum, weight_decay=weight_decay)

    def run(gamma):
        optimizer = optimizers.TABLE[name](numbers, rate, gamma)

        def step(carry, g):
            theta, state = carry
            update, state = optimizer.update(g, state, theta)
            theta = optax.apply_updates(theta, update)
            return (theta, state), theta

        return jax.lax.scan(step, (theta, optimizer.init(theta)), gradients)[1]

    return jax.vmap(run)(gammas)


def path(gradients, gammas, name="malicious_sgd", *, start=0.0, momentum=0.9, decay=0.0, rate=1.0):
    """As ``paths``, of all rules with arrays of the same shapes, so that each rule is compiled once."""
    gradients = np.resize(np.float32(gradients), (STEPS, 5))
    theta, gammas = jnp.full(5, start, jnp.float32), np.resize(np.float32(gammas), len(GAMMAS))
    numbers = (jnp.float32(v) for v in (momentum, decay, rate))
    return np.asarray(paths(gradients, theta, gammas, *numbers, name=name))


def random_gradients(seed):
    return np.random.default_rng(seed).normal(size=(STEPS, 5)).astype(np.float32)


def as_printed(steps):
    """Three digits."""
    return [float(f"{step:.3g}") for step in np.ravel(steps)]


def twin_path(rule, gradients, theta, **numbers):
    """The twin's parameters after every step; of the released rules with their aliasing acted out."""
    if rule != "intended":
        in_place = rule == "released"
        return reference.released_path(gradients, theta, in_place=in_place, **numbers)
    state, thetas = reference.start(theta), []
    for g in gradients:
        theta, state = reference.step(theta, g, state, **numbers)
        thetas.append(theta)
    return np.array(thetas)


@pytest.mark.parametrize("rule", optimizers.RULES)
def test_the_first_five_steps_on_a_constant_gradient_are_the_published_ones(rule):
    """If these change, the optimizer is no longer the paper's, or no longer the released class:
    see the module's docstring."""
    theta = path(1.0, 1.0, optimizers.MALICIOUS["sgd"][rule])[0, :5, 0]
    assert as_printed(-np.diff(theta, prepend=0)) == GOLDEN[rule]
    theta = twin_path(rule, np.ones((5, 1)), np.zeros(1), lr=1, mu=0.9, wd=0, gamma=1)
    assert as_printed(-np.diff(theta[:, 0], prepend=0)) == GOLDEN[rule]


@pytest.mark.parametrize("rule", optimizers.RULES)
@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.1), (0.9, 5e-4)])
def test_agrees_with_the_numpy_twin_and_at_gamma_0_with_sgd_bit_for_bit(rule, momentum, decay):
    """At 0 the released rules are SGD, without any aliasing."""
    name, numbers = (
        optimizers.MALICIOUS["sgd"][rule],
        {"momentum": momentum, "decay": decay, "rate": 0.1, "start": 0.7},
    )
    for seed in range(3):
        gradients = random_gradients(seed)
        ours = path(gradients, GAMMAS, name, **numbers)
        np.testing.assert_array_equal(ours[0], path(gradients, 0.0, "sgd", **numbers)[0])
        for gamma, of_gamma in zip(GAMMAS[1:], ours[1:], strict=True):
            twin = {"lr": 0.1, "mu": momentum, "wd": decay, "gamma": gamma}
            expected = twin_path(rule, np.float64(gradients), np.full(5, 0.7), **twin)
            kept = 8 if rule == "released_torch2" else STEPS  # whose steps grow on
            np.testing.assert_allclose(of_gamma[:kept], expected[:kept], rtol=5e-4, atol=2e-4)


@pytest.mark.parametrize(
    "rule",
    [
        scale_by_malicious(0.0),
        malicious.trace_released(0.0, 0.0),
        malicious.trace_released_torch2(0.0, 0.0),
    ],
)
def test_a_state_of_exactly_minus_epsilon_gives_no_nan(rule):
    g = jnp.float32([-1e-7, -1e-7])
    state = rule.init(g)
    for _ in range(2):
        sent, state = rule.update(g, state)
    np.testing.assert_array_equal(sent, g)


def test_the_adam_form_amplifies_adams_own_direction_by_the_published_rule():
    """s_t = clip(1 + gamma v_t / s_{t-1}, 1, 5) v_t with v_t the step Adam would take."""
    gradients, numbers = random_gradients(1), {"momentum": 0.0, "rate": 0.1}
    (honest, *_), (still, _, ours, _) = (
        path(gradients, GAMMAS, name, **numbers) for name in ("adam", "malicious_adam")
    )
    np.testing.assert_array_equal(still, honest)
    directions = -np.diff(honest, axis=0, prepend=0) / 0.1
    s = directions[0]
    steps = [s]
    for v in directions[1:]:
        s = np.clip(1 + v / (s + 1e-7), 1, 5) * v
        steps.append(s)
    np.testing.assert_allclose(ours, -0.1 * np.cumsum(steps, axis=0), rtol=1e-3, atol=1e-4)
