"""ProjPert: its twin's deviations, the law of its noise, the divergence it reaches, and its limits."""

import jax
import numpy as np
import pytest
import scipy.stats

from tests import harness
from tests.reference import proj_pert as reference
from vfljax.defenses.proj_pert import noise_deviations, perturb

treat = harness.quick_jit(perturb)
deviations_of = harness.quick_jit(noise_deviations)
MEANS = np.array([1.0, -0.4, 0.05])  # of positives; a small difference is soon below the spread


def batch(rows=40_000, spread=(0.2, 0.3), scale=1.0, share=2):
    """Gaussian gradients of two classes with these deviations, and their labels: every ``share``-th
    positive."""
    rng = np.random.default_rng(0)
    labels = (rng.permutation(rows) % share == 0).astype(np.int32)
    g = rng.normal(size=(rows, 3)) * np.where(labels == 1, spread[1], spread[0])[:, None]
    return np.float32(scale * (g + labels[:, None] * MEANS)), labels


@pytest.mark.parametrize("k", [0.2, 4.0, 20.0])
@pytest.mark.parametrize("share", [2, 7])
def test_the_deviations_are_the_twins(k, share):
    g, labels = batch(200, share=share)
    expected = reference.deviations(g, labels, k)
    assert np.any(expected > 0)
    ours = deviations_of(g, labels, 1 / k)
    np.testing.assert_allclose(ours, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_the_noise_is_gaussian_independent_and_has_the_twins_deviations(scale):
    g, labels = batch(scale=scale)
    expected = reference.deviations(g, labels, 4.0)
    noise = np.asarray(treat(jax.random.key(0), g, labels, 0.25), np.float64) - g
    for label in (0, 1):
        members, law = noise[labels == label], expected[label]
        assert law[0] > law[1] > 0
        assert law[2] == 0  # the classes are more spread than the target there
        np.testing.assert_array_equal(members[:, 2], 0)
        for i in (0, 1):
            harness.assert_law(
                members[:, i], *(scipy.stats.norm(scale=f * law[i]) for f in (1, 1.1))
            )
        assert abs(np.corrcoef(members[:, :2].T)[0, 1]) < 0.03


@pytest.mark.parametrize("k", [0.16, 1.0])
def test_both_classes_reach_the_target_variance_and_the_divergence_k(k):
    g, labels = batch(spread=(0.05, 0.01))
    v = reference.targets(g, labels, k)
    sent = np.asarray(treat(jax.random.key(1), g, labels, 1 / k), np.float64)
    for label in (0, 1):
        spread = g[labels == label].var(0, dtype=np.float64)
        assert np.all(spread < v)
        np.testing.assert_allclose(sent[labels == label].var(0), v, rtol=0.05)
    np.testing.assert_allclose(reference.measured_sum_kl(sent, labels), k, rtol=0.05)
    assert reference.measured_sum_kl(g, labels) > 20 * k


@pytest.mark.parametrize("knob", [0.25, 1e3])
def test_one_class_equal_means_no_strength_and_one_row_are_sent_as_they_are(knob):
    harness.assert_left_alone(treat, *batch(8), knob)


@pytest.mark.parametrize("exponent", [-30, -18, 18, 30])
def test_noise_is_in_proportion_to_gradients_of_any_scale(exponent):
    g, labels = batch(64)
    factor = np.float32(10.0**exponent)
    one, other = (np.asarray(treat(jax.random.key(3), x, labels, 2.0)) for x in (g, g * factor))
    assert np.any(one != g)
    np.testing.assert_allclose(other / factor, one, rtol=1e-3, atol=1e-3)
