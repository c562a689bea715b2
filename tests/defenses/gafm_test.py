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
    critic_loss,
    discriminate,
    draws,
    gafm,
    init_discriminator,
    label_loss,
    mixed_gradient,
    perturbed_labels,
    select_delta,
)
from vfljax.types import Context, CutLayer

ROWS = 12
ACCEPT, REJECT = 1e-3, 1e-6  # p values; keys are fixed, so these tests do not flicker
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


def fresh_state(discriminator):
    start = gafm(**KNOBS).init(KEY, TrainingData(jnp.zeros(ROWS, jnp.int32), None, 2))
    return GAFMState(jax.tree.map(jnp.asarray, tuple(discriminator)), start.optimizer)


def take_step(knobs, state, generator, f, labels, key, terms, entropy, output):
    """(gradients for (generator, f), GAFM's new state, logits)"""
    context = Context(
        *(jnp.arange(ROWS), labels, None, *(jnp.int32(0),) * 3, key, KEY),
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
    generator, discriminator, f, labels = problem(0)
    labels, state = jnp.asarray(labels ^ flip), fresh_state(discriminator)
    return jitted(terms)({**KNOBS, **changes}, state, generator, f, labels, KEY)


@pytest.mark.parametrize(
    ("output", "entropy", "columns"),
    [
        ("identity", "released", 1),
        ("identity", "released", 3),
        ("sigmoid", "released", 1),
        ("sigmoid", "double_sigmoid", 1),
    ],
)
def test_three_steps_are_those_of_the_numpy_twin(output, entropy, columns):
    generator, twin, f, labels = problem(columns, output, columns)
    state, adam = fresh_state(twin), reference.start(twin)
    for t in range(3):
        key = jax.random.key(t)
        real, ytilde = draws(key, jnp.asarray(labels), KNOBS["delta"], KNOBS["sigma"])
        expected = reference.step(
            *([tuple(np.float64(t) for t in layer) for layer in generator], twin, adam),
            *(np.float64(f), np.float64(real), np.float64(ytilde)),
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
        state, twin, adam = new.state, expected.discriminator, expected.adam


def test_the_discriminator_and_its_loss_are_the_twins_and_start_within_one_over_root_fan_in():
    params = init_discriminator(KEY)
    assert [k.shape for k, _ in params] == [(1, 10), (10, 10), (10, 1)]
    assert [k.shape for k, _ in init_discriminator(KEY, (10,))] == [(1, 10), (10, 1)]
    for kernel, bias in params:
        bound = kernel.shape[0] ** -0.5
        assert 0.5 * bound < np.abs(kernel).max() <= bound
        assert np.abs(bias).max() <= bound
    rng = np.random.default_rng(18)
    params = net(rng, 1, 10, 10, 1)
    real, fake = np.float32(rng.normal(size=(2, 50)) * 3)
    judged = reference.discriminate(params, real)
    assert judged.min() < 0 < judged.max()  # both sides of the last LeakyReLU
    np.testing.assert_allclose(discriminate(params, real), judged, rtol=1e-4, atol=1e-5)
    expected = reference.discriminate(params, fake).mean() - judged.mean()
    np.testing.assert_allclose(critic_loss(params, real, fake), expected, rtol=1e-4)


def test_a_step_keeps_the_discriminators_weights_within_the_clip_and_only_that_does():
    for clip, within in ((0.3, True), (10.0, False)):
        _, new, _ = one_step(clip=clip)
        largest = max(np.abs(x).max() for x in harness.numbers(new.state.discriminator))
        assert (largest <= np.float32(0.3)) == within


def test_the_parties_are_sent_a_unit_cross_entropy_gradient_and_gamma_times_a_unit_gan_gradient():
    (_, ce), _, _ = one_step(terms="ce")
    (_, gan), _, _ = one_step(terms="gan")
    (_, both), _, _ = one_step()
    (_, without), _, _ = one_step(gamma=0.0)
    np.testing.assert_array_equal(without, ce)
    np.testing.assert_allclose(np.linalg.norm(ce), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(gan), KNOBS["gamma"], rtol=1e-5)
    np.testing.assert_allclose(gan + ce, both, atol=1e-6)


def test_delta_zero_removes_the_label_from_the_cross_entropy():
    for delta, blind in ((0.0, True), (0.2, False)):
        sent = [one_step(flip, terms="ce", delta=delta)[0][1] for flip in (False, True)]
        assert np.array_equal(*sent) == blind


def test_the_mixture_does_not_depend_on_the_size_of_either_gradient():
    rng = np.random.default_rng(1)
    a, b = np.float32(rng.normal(size=(2, 5, 3)))
    expected = reference.mixed_gradient(a, b, 2.5)
    for one, other in ((1.0, 1.0), (1e-30, 1e30), (1e30, 1e-30)):
        ours = mixed_gradient(a * np.float32(one), b * np.float32(other), 2.5)
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_a_zero_gradient_contributes_zero():
    g, zero = np.float32([[3.0], [4.0]]), np.zeros((2, 1), np.float32)
    np.testing.assert_allclose(mixed_gradient(zero, g, 2.0), [[0.6], [0.8]], rtol=1e-6)
    np.testing.assert_allclose(mixed_gradient(g, zero, 2.0), [[1.2], [1.6]], rtol=1e-6)
    np.testing.assert_array_equal(mixed_gradient(zero, zero, 2.0), zero)


def test_the_cross_entropy_reads_a_probability_as_it_is_and_anything_else_through_a_sigmoid():
    f = np.float32([[0.2, 0.5], [0.9, -3.0]])
    ytilde = np.float32([0.4, 0.7])
    as_it_is = label_loss(f[:, :1], ytilde, True)
    np.testing.assert_allclose(as_it_is, reference.label_loss(f[:, 0], ytilde), rtol=1e-5)
    s = reference.sigmoid(f.sum(axis=1))
    through = label_loss(f, ytilde, False)
    np.testing.assert_allclose(through, reference.label_loss(s, ytilde), rtol=1e-5)
    assert np.isfinite(label_loss(jnp.float32([[0], [1]]), ytilde, True))  # saturated


def test_a_saturated_sigmoid_still_pulls_every_row_towards_its_noisy_label():
    generator, discriminator, _, labels = problem(0)
    f, labels = np.float32(np.linspace(-40, 40, ROWS))[:, None], jnp.asarray(labels)
    state = fresh_state(discriminator)
    (_, sent), _, _ = jitted("ce")(KNOBS, state, generator, f, labels, KEY)
    ytilde = np.float64(draws(KEY, labels, 0.2, 0.3)[1])
    expected = reference.normalized(reference.label_gradient(np.float64(f), ytilde, False))
    np.testing.assert_allclose(sent, expected, atol=1e-5)


def test_noisy_labels_lie_uniformly_within_delta_of_a_half_on_their_labels_side():
    labels = jnp.arange(4000) % 2
    for label, side in ((1, 1), (0, -1)):
        u = side * (np.asarray(perturbed_labels(KEY, labels, 0.3), float) - 0.5)[labels == label]
        assert u.min() >= -1e-6
        assert stats.kstest(u, stats.uniform(0, 0.3).cdf).pvalue > ACCEPT
        for wrong in (0.3 / 1.5, 0.3 * 1.5):
            assert stats.kstest(u, stats.uniform(0, wrong).cdf).pvalue < REJECT


def test_real_samples_are_labels_with_normal_noise_independent_of_the_noisy_labels():
    labels = jnp.arange(4000) % 2
    real, ytilde = map(np.asarray, draws(KEY, labels, 0.3, 0.05))
    noise, u = real - labels, np.abs(ytilde - 0.5)
    assert stats.kstest(noise, stats.norm(0, 0.05).cdf).pvalue > ACCEPT
    assert stats.kstest(noise, stats.norm(0, 0.05 * 1.5).cdf).pvalue < REJECT
    related: Any = stats.spearmanr(noise, u)
    assert related.pvalue > ACCEPT
    assert not np.any(ytilde == draws(jax.random.key(1), labels, 0.3, 0.05)[1])  # anew every batch


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


def test_what_it_is_not_defined_on_is_refused_with_what_to_change():
    data = TrainingData(jnp.zeros(2, jnp.int32), None, 2)
    with pytest.raises(ValueError, match="2 classes and the data has 3"):
        gafm(0.1).init(KEY, data._replace(num_classes=3))
    with pytest.raises(ValueError, match="top model"):
        gafm(0.1).init(KEY, data._replace(cut_layer=CutLayer(split=False)))
    with pytest.raises(ValueError, match="aggregation='mean'"):
        gafm(0.1).init(KEY, data._replace(cut_layer=CutLayer(widths=(1, 1))))
