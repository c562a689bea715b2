"""GAFM: its step against the twin, the laws of its draws, its limits, and the choice of Delta."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests import harness
from tests.reference import gafm as reference
from vfljax.defenses.core import Scoped, TrainingData
from vfljax.defenses.gafm import (
    GAFMState,
    draws,
    gafm,
    init_discriminator,
    label_loss,
    mixed_gradient,
    select_delta,
)
from vfljax.types import Context, CutLayer

ROWS = 12
KNOBS = {"delta": 0.2, "gamma": 1.7, "sigma": 0.3, "clip": 0.3, "learning_rate": 0.01}
KEY = jax.random.key(0)


def net(rng, *widths, spread=1.0):
    return [
        tuple(np.float32(rng.normal(size=s) * spread) for s in ((rows, columns), (columns,)))
        for rows, columns in itertools.pairwise(widths)
    ]


def problem(seed, output="identity", columns=1):
    """(generator, discriminator, f, labels)"""
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(ROWS, columns))
    f = np.float32(reference.sigmoid(f) if output == "sigmoid" else f)
    discriminator = net(rng, 1, 10, 10, 1, spread=0.5)
    return net(rng, columns, 16, 1), discriminator, f, np.int32(rng.integers(2, size=ROWS))


def top_model(active, f, embeddings, targets, context, scoped):
    """A loss of 1e6 |f|^2 that GAFM must discard, and logits [0, h]."""
    (w1, b1), (w2, b2) = active
    h = jax.nn.leaky_relu(f @ w1 + b1[None], 0.01) @ w2 + b2[None]
    logits = jnp.concatenate([jnp.zeros_like(h), h], axis=1)
    return 1e6 * jnp.sum(f**2), (logits, "variables", scoped._replace(others=scoped.others + 1))


@functools.cache
def start():
    data = TrainingData(jnp.zeros(ROWS, jnp.int32), None, 2)
    return harness.quick_jit(lambda: gafm(**KNOBS).init(KEY, data))()


def fresh_state(discriminator):
    return GAFMState(tuple(discriminator), start().optimizer)


def take_step(knobs, state, generator, f, labels, key, terms, entropy, output):
    """(gradients for (generator, f), GAFM's new state, logits)"""
    context = Context(
        jnp.arange(ROWS),
        labels,
        None,
        *(jnp.int32(0),) * 3,
        key,
        KEY,
        **{"train": True, "cut_layer": CutLayer(output=output)},
    )
    defended = gafm(**knobs, terms=terms, ce_input=entropy).loss(top_model)

    def loss(active, f):
        targets = jax.nn.one_hot(labels, 2)
        return defended(active, f, (f,), targets, context, Scoped(state, jnp.int32(7)))

    gradients, (logits, _, new) = jax.grad(loss, argnums=(0, 1), has_aux=True)(generator, f)
    return gradients, new, logits


@functools.cache
def jitted(terms="both", entropy="released", output="identity"):
    return harness.quick_jit(
        functools.partial(take_step, terms=terms, entropy=entropy, output=output)
    )


def one_step(flip=False, terms="both", **changes):
    generator, discriminator, f, labels = problem(0, columns=3)
    labels, state = jnp.asarray(labels ^ flip), fresh_state(discriminator)
    return jitted(terms)({**KNOBS, **changes}, state, generator, f, labels, KEY)


@pytest.mark.parametrize(
    ("output", "entropy", "columns"),
    [("identity", "released", 3), ("sigmoid", "released", 1), ("sigmoid", "double_sigmoid", 1)],
)
def test_three_steps_are_those_of_the_numpy_twin(output, entropy, columns):
    generator, twin, f, labels = problem(columns, output, columns)
    state, moments = fresh_state(twin), None
    for t in range(3):
        key = jax.random.key(t)
        real, ytilde = draws(key, jnp.asarray(labels), KNOBS["delta"], KNOBS["sigma"])
        expected = reference.step(
            [tuple(np.float64(t) for t in layer) for layer in generator],
            twin,
            moments,
            np.float64(f),
            np.float64(real),
            np.float64(ytilde),
            bottom_sigmoid=(output, entropy) == ("sigmoid", "released"),
            **{name: KNOBS[name] for name in ("gamma", "clip", "learning_rate")},
        )
        gradients, new, logits = jitted("both", entropy, output)(
            KNOBS, state, generator, f, jnp.asarray(labels), key
        )
        harness.assert_close(gradients, (expected.generator_gradient, expected.gradient))
        harness.assert_close(new.state.discriminator, expected.discriminator)
        assert int(new.state.optimizer[0].count) == t + 1
        assert int(new.others) == 8
        h = reference.forward(generator, f, last=False)[0]
        np.testing.assert_allclose(logits, np.hstack([0 * h, h]), atol=1e-5)
        state, twin, moments = new.state, expected.discriminator, expected.moments


def test_the_discriminator_starts_within_one_over_root_fan_in():
    params = harness.quick_jit(init_discriminator)(KEY)
    assert [k.shape for k, _ in params] == [(1, 10), (10, 10), (10, 1)]
    for kernel, bias in params:
        bound = kernel.shape[0] ** -0.5
        assert 0.5 * bound < np.abs(kernel).max() <= bound
        assert np.abs(bias).max() <= bound


def test_the_parties_are_sent_a_unit_cross_entropy_gradient_and_gamma_times_a_unit_gan_gradient():
    (_, ce), _, _ = one_step(terms="ce")
    (_, gan), _, _ = one_step(terms="gan")
    (_, both), _, _ = one_step()
    (_, without), _, _ = one_step(gamma=0.0)
    np.testing.assert_allclose(without, ce, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(ce), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(gan), KNOBS["gamma"], rtol=1e-5)
    np.testing.assert_allclose(gan + ce, both, atol=1e-6)
    # Delta = 0 removes the label from the cross entropy
    for delta, blind in ((0.0, True), (0.2, False)):
        sent = [one_step(flip, terms="ce", delta=delta)[0][1] for flip in (False, True)]
        assert np.array_equal(*sent) == blind


def test_the_mixture_does_not_depend_on_the_size_of_either_gradient_unless_it_is_zero():
    mix = harness.quick_jit(mixed_gradient)
    a, b = np.float32(np.random.default_rng(1).normal(size=(2, 5, 3)))
    for one, other in ((1.0, 1.0), (1e-30, 1e30), (1e30, 1e-30), (0.0, 1.0), (1.0, 0.0)):
        expected = reference.mixed_gradient(a * (one > 0), b * (other > 0), 2.5)
        ours = mix(a * np.float32(one), b * np.float32(other), 2.5)
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_a_saturated_sigmoid_still_pulls_every_row_towards_its_noisy_label():
    generator, discriminator, _, labels = problem(0, columns=3)
    f = np.float32(np.linspace(-40, 40, ROWS)[:, None] * [1, 1, -1])
    labels = jnp.asarray(labels)
    state = fresh_state(discriminator)
    (_, sent), _, _ = jitted("ce")(KNOBS, state, generator, f, labels, KEY)
    ytilde = np.float64(draws(KEY, labels, 0.2, 0.3)[1])
    expected = reference.normalized(reference.label_gradient(np.float64(f), ytilde, False))
    np.testing.assert_allclose(sent, expected, atol=1e-5)
    saturated = label_loss(jnp.float32([[0], [1]]), jnp.float32([0.4, 0.7]), True)
    assert np.isfinite(saturated)  # of bottoms that end in a sigmoid


def test_draws_have_their_laws_and_are_independent_of_each_other():
    """Noisy labels lie uniformly within Delta of a half on their label's side; real samples are labels with
    normal noise."""
    labels = np.arange(4000) % 2
    real, ytilde = (np.asarray(x, float) for x in draws(KEY, jnp.asarray(labels), 0.3, 0.05))
    for label, side in ((1, 1), (0, -1)):
        u = side * (ytilde - 0.5)[labels == label]
        assert u.min() >= -1e-6
        assert stats.kstest(u, stats.uniform(0, 0.3).cdf).pvalue > 1e-3
    noise = real - labels
    harness.assert_law(noise, stats.norm(0, 0.05), stats.norm(0, 0.05 * 1.5))
    related: Any = stats.spearmanr(noise, np.abs(ytilde - 0.5))
    assert related.pvalue > 1e-3
    again = draws(jax.random.key(1), jnp.asarray(labels), 0.3, 0.05)[1]
    assert not np.any(ytilde == again)  # anew every batch


def test_delta_is_chosen_by_leak_over_oriented_auc_averaged_over_repeats_and_attacks():
    leaks = {
        0.05: np.array([[0.60, 0.70], [0.60, 0.70]]),
        0.1: np.array([[0.55, 0.55], [0.55, 0.55]]),
        0.5: np.array([[0.99, 0.51], [0.51, 0.51]]),
    }
    # .05: .65 / .95 = .68;  .1: .55 / .75 = .73;  .5: .63 / .9 = .70
    train_auc = {0.05: np.array([0.95, 0.05]), 0.1: np.full(2, 0.75), 0.5: np.array([0.9, 0.1])}
    assert select_delta(leaks, train_auc) == 0.05  # unoriented, inverted runs would choose .1
    assert select_delta(leaks, {**train_auc, 0.5: np.ones(2)}) == 0.5


def test_embeddings_that_are_no_probability_are_refused_with_what_to_change():
    data = TrainingData(jnp.zeros(2, jnp.int32), None, 2)
    for layer, remedy in (
        (CutLayer(widths=(1, 1)), "aggregation='mean'"),
        (CutLayer(widths=(1, 1), aggregation="sum", output="sigmoid"), "aggregation='mean'"),
        (CutLayer(widths=(3, 3), aggregation="mean", output="sigmoid"), "cut=1"),
    ):
        with pytest.raises(ValueError, match=remedy):
            gafm(0.1).init(KEY, data._replace(cut_layer=layer))
