"""The malicious optimizer: golden steps, its honest limit, its fixed point, its twin."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.reference import malicious as reference
from vfljax.federation import malicious, optimizers
from vfljax.federation.malicious import scale_by_malicious
from vfljax.types import HParams

GOLDEN = {
    "intended": [1, 5.51, 4.04, 6.36, 6.73],
    "released": [1, 5.04, 2.44, 3.13, 2.84],
    "released_torch2": [1, 5.51, 12.4, 24.1, 44.0],
}
RELEASED = ["released", "released_torch2"]


def hparams(momentum=0.9, weight_decay=0.0):
    values = (0.1, momentum, weight_decay, (), 0.1, (0.0,), (0.0,))
    return HParams(*(jnp.asarray(v, jnp.float32) for v in values), defenses={})


@functools.partial(jax.jit, static_argnames="name")
def run(gradients, theta, gamma, momentum, weight_decay, rate, name):
    """Parameters after every step of an optimizer of the table."""
    numbers = hparams()._replace(momentum=momentum, weight_decay=weight_decay)
    optimizer = optimizers.TABLE[name](numbers, rate, gamma)

    def step(carry, g):
        theta, state = carry
        update, state = optimizer.update(g, state, theta)
        theta = optax.apply_updates(theta, update)
        return (theta, state), theta

    return jax.lax.scan(step, (theta, optimizer.init(theta)), gradients)[1]


def path(
    gradients, gamma, *, start=0.0, momentum=0.9, weight_decay=0.0, rate=1.0, name="malicious_sgd"
):
    gradients = jnp.asarray(gradients, jnp.float32)
    theta = jnp.full(gradients.shape[1:], start, jnp.float32)
    numbers = (jnp.float32(v) for v in (gamma, momentum, weight_decay, rate))
    return np.asarray(run(gradients, theta, *numbers, name=name))


def random_gradients(seed, steps=8):
    return np.random.default_rng(seed).normal(size=(steps, 5)).astype(np.float32)


def as_printed(steps):
    """Three digits."""
    return [float(f"{step:.3g}") for step in np.ravel(steps)]


@pytest.mark.parametrize("rule", optimizers.RULES)
def test_the_first_five_steps_on_a_constant_gradient_are_the_rules(rule):
    """If these change, the optimizer is no longer the paper's, or no longer the released class:
    see the module's docstring."""
    theta = path(np.ones((5, 1)), 1.0, name=optimizers.MALICIOUS["sgd"][rule])[:, 0]
    assert as_printed(-np.diff(theta, prepend=0)) == GOLDEN[rule]


def test_the_twin_gives_the_published_five_numbers_of_every_variant():
    for rule in optimizers.RULES:
        theta = twin_path(rule, np.ones((5, 1)), np.zeros(1), lr=1, mu=0.9, wd=0, gamma=1)
        assert as_printed(-np.diff(theta[:, 0], prepend=0)) == GOLDEN[rule]


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
@given(
    seed=st.integers(0, 2**16),
    gamma=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    weight_decay=st.sampled_from([0.0, 5e-4, 0.1]),
)
@settings(deadline=None, max_examples=30, database=None, derandomize=True)
def test_agrees_with_the_numpy_twin(rule, seed, gamma, momentum, weight_decay):
    assume(gamma > 0 or rule == "intended")  # at 0 the others are SGD, without any aliasing
    gradients, name = random_gradients(seed), optimizers.MALICIOUS["sgd"][rule]
    numbers = {"lr": 0.1, "mu": momentum, "wd": weight_decay, "gamma": gamma}
    expected = twin_path(rule, gradients.astype(np.float64), np.full(5, 0.7), **numbers)
    numbers = {"momentum": momentum, "weight_decay": weight_decay, "rate": 0.1}
    ours = path(gradients, gamma, start=0.7, name=name, **numbers)
    rtol = 2e-4 if rule == "intended" else 5e-4
    np.testing.assert_allclose(ours, expected, rtol=rtol, atol=2e-4)


def test_without_momentum_there_is_nothing_to_alias_and_the_rules_are_one():
    paths = [
        path(random_gradients(3), 1.0, start=0.7, momentum=0.0, weight_decay=0.1, rate=0.1, name=n)
        for n in optimizers.MALICIOUS["sgd"].values()
    ]
    np.testing.assert_allclose(paths[1], paths[0], rtol=1e-6)
    np.testing.assert_allclose(paths[2], paths[0], rtol=1e-6)


@pytest.mark.parametrize("rule", RELEASED)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_strengths_are_members_of_one_program_and_the_honest_member_is_sgd(rule, momentum):
    gradients, gammas = jnp.asarray(random_gradients(4, 20)), jnp.float32([0.0, 0.5, 1.0])
    name = optimizers.MALICIOUS["sgd"][rule]
    numbers = (jnp.float32(v) for v in (momentum, 0.1, 0.1))
    theta = jnp.full(5, 0.7)
    members = jax.vmap(
        functools.partial(run, name=name), in_axes=(None, None, 0, None, None, None)
    )(gradients, theta, gammas, *numbers)
    kwargs = {"start": 0.7, "momentum": momentum, "weight_decay": 0.1, "rate": 0.1}
    for member, gamma in zip(members, gammas):
        np.testing.assert_array_equal(member, path(gradients, gamma, **kwargs, name=name))
    np.testing.assert_array_equal(members[0], path(gradients, 0.0, **kwargs, name="sgd"))
    assert np.all(np.any(members[1:] != members[:1], axis=(1, 2)))


def test_on_a_steady_gradient_the_steps_of_the_torch2_rule_never_stop_growing():
    """By mu (1 + gamma mu) each."""
    theta = path(np.ones((30, 1)), 1.0, name=optimizers.MALICIOUS["sgd"]["released_torch2"])
    steps = -np.diff(theta[:, 0].astype(np.float64))
    np.testing.assert_allclose(steps[-1] / steps[-2], 0.9 * 1.9, rtol=1e-4)


@given(
    seed=st.integers(0, 2**16), momentum=st.sampled_from([0.0, 0.9]), exponent=st.integers(-12, 3)
)
@settings(deadline=None, max_examples=20, database=None, derandomize=True)
def test_gamma_zero_is_optax_sgd_with_momentum(seed, momentum, exponent):
    gradients = random_gradients(seed) * np.float32(10.0**exponent)
    gradients[::3] = 0
    optimizer = optax.sgd(0.1, momentum=momentum)
    theta = jnp.full(5, 0.7, jnp.float32)
    state, expected = optimizer.init(theta), []
    for g in gradients:
        update, state = optimizer.update(g, state)
        theta = optax.apply_updates(theta, update)
        expected.append(theta)
    ours = path(gradients, 0.0, start=0.7, momentum=momentum, rate=0.1)
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6 * np.max(np.abs(expected)))


@pytest.mark.parametrize("rule", optimizers.RULES)
def test_gamma_zero_is_the_honest_optimizer_bit_for_bit_also_in_the_table(rule):
    g, theta = jnp.asarray(random_gradients(0)[0]), jnp.ones(5)
    numbers = hparams(weight_decay=0.1)
    after = []
    for name in ("sgd", optimizers.MALICIOUS["sgd"][rule]):
        optimizer = optimizers.TABLE[name](numbers, jnp.float32(0.1), jnp.float32(0))
        state, moved = optimizer.init(theta), theta
        for _ in range(3):
            update, state = optimizer.update(g, state, moved)
            moved = optax.apply_updates(moved, update)
        after.append(moved)
    np.testing.assert_array_equal(*after)


def test_on_a_constant_gradient_the_ratio_converges_to_the_golden_one():
    theta = path(np.ones((200, 1)), 1.0)[:, 0].astype(np.float64)
    applied = -np.diff(theta)[-1]
    honest = 1 / (1 - 0.9)
    np.testing.assert_allclose(applied / honest, (1 + 5**0.5) / 2, rtol=1e-3)


def test_the_first_step_is_honest():
    gradients = random_gradients(1, 1)
    np.testing.assert_allclose(path(gradients, 5.0), -gradients, rtol=1e-6)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 100.0])
def test_every_element_is_amplified_between_one_and_five_times(gamma):
    gradients = random_gradients(2, 20)
    applied = -np.diff(path(gradients, gamma, momentum=0.0), axis=0, prepend=0)
    ratio = (applied / gradients)[1:]
    assert np.all((ratio > 1 - 1e-4) & (ratio < 5 + 1e-4))
    assert np.max(ratio) > 1.2


def test_a_direction_that_turns_is_not_amplified():
    """v / s < 0 where the sign flips: r is clipped at 1."""
    gradients = np.float32([[1], [-1], [1], [-1]])
    applied = -np.diff(path(gradients, 1.0, momentum=0.0), axis=0, prepend=0)
    np.testing.assert_allclose(applied, gradients, rtol=1e-5)


def test_all_zero_gradients_leave_the_parameters_where_they_are():
    np.testing.assert_array_equal(
        path(np.zeros((4, 2)), 1.0, start=0.3), np.float32(0.3) * np.ones((4, 2))
    )


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


def test_parameter_trees_are_treated_element_by_element():
    rule = scale_by_malicious(1.0)
    tree = {"a": jnp.float32([[1, 2]]), "b": (jnp.float32(3),)}
    state: Any = rule.init(tree)
    for _ in range(2):
        sent, state = rule.update(tree, state)
    np.testing.assert_allclose(sent["a"], [[2, 4]], rtol=1e-5)
    np.testing.assert_allclose(sent["b"][0], 6, rtol=1e-5)
    assert state.count == 2


def test_updates_unlike_the_parameters_and_a_vector_of_strengths_are_refused():
    rule = scale_by_malicious(1.0)
    state = rule.init(jnp.ones(3))
    with pytest.raises(AssertionError):
        rule.update(jnp.ones((1, 3)), state)
    with pytest.raises(AssertionError):
        scale_by_malicious(jnp.ones(3))


def adam_steps(name, gamma, gradients):
    """Parameters after every step of an Adam form at rate .1."""
    hparams = HParams(
        *(jnp.float32(0),) * 3, jnp.zeros(0), jnp.float32(0), jnp.zeros(1), jnp.zeros(1), {}
    )
    optimizer = optimizers.TABLE[name](hparams, jnp.float32(0.1), jnp.float32(gamma))
    params = jnp.zeros(3)
    state, out = optimizer.init(params), []
    for g in gradients:
        update, state = optimizer.update(g, state, params)
        params = params + update
        out.append(np.asarray(params))
    return np.array(out)


def test_the_adam_form_at_gamma_0_is_adam_bit_for_bit():
    gradients = jax.random.normal(jax.random.key(0), (6, 3))
    honest = adam_steps("adam", 0.0, gradients)
    np.testing.assert_array_equal(adam_steps("malicious_adam", 0.0, gradients), honest)
    assert np.any(adam_steps("malicious_adam", 1.0, gradients) != honest)


def test_the_adam_form_amplifies_adams_own_direction_by_the_published_rule():
    """s_t = clip(1 + gamma v_t / s_{t-1}, 1, 5) v_t with v_t the step Adam would take."""
    gradients = jax.random.normal(jax.random.key(1), (6, 3))
    honest = adam_steps("adam", 0.0, gradients)
    directions = -np.diff(np.vstack([np.zeros(3), honest]), axis=0) / 0.1
    s = directions[0]
    steps = [s]
    for v in directions[1:]:
        s = np.clip(1 + v / (s + 1e-7), 1, 5) * v
        steps.append(s)
    ours = adam_steps("malicious_adam", 1.0, gradients)
    np.testing.assert_allclose(ours, -0.1 * np.cumsum(steps, axis=0), rtol=2e-4, atol=2e-5)
