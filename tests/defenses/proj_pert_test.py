"""ProjPert: its twin's deviations, the law of its noise, and its limits."""

import jax
import numpy as np
import pytest
import scipy.stats

from tests import harness
from tests.reference import proj_pert as reference
from vfljax.defenses.proj_pert import noise_deviations, perturb

ROWS = 5000
treat = harness.quick_jit(perturb)
MEANS = np.array([1.0, -0.4, 0.05])  # of positives; a small difference is soon below the spread


def batch(rows=ROWS, spread=(0.2, 0.3), share=2):
    """Gaussian gradients of two classes with these deviations, and their labels: every ``share``-th
    positive."""
    rng = np.random.default_rng(0)
    labels = (rng.permutation(rows) % share == 0).astype(np.int32)
    g = rng.normal(size=(rows, 3)) * np.where(labels == 1, spread[1], spread[0])[:, None]
    return np.float32(g + labels[:, None] * MEANS), labels


@pytest.mark.parametrize("k", [0.2, 4.0])
def test_the_deviations_are_the_twins(k):
    g, labels = batch(200, share=7)
    expected = reference.deviations(g, labels, k)
    assert np.any(expected > 0)
    ours = harness.quick_jit(noise_deviations)(g, labels, 1 / k)
    np.testing.assert_allclose(ours, expected, rtol=2e-4, atol=1e-5)


def test_the_noise_is_gaussian_independent_and_has_the_twins_deviations():
    g, labels = batch()
    expected = reference.deviations(g, labels, 4.0)
    noise = np.asarray(treat(jax.random.key(0), g, labels, 0.25), np.float64) - g
    for label in (0, 1):
        members, law = noise[labels == label], expected[label]
        assert law[0] > law[1] > 0
        assert law[2] == 0  # the classes are more spread than the target there
        np.testing.assert_array_equal(members[:, 2], 0)
        for i in (0, 1):
            laws = (scipy.stats.norm(scale=f * law[i]) for f in (1, 1.5))
            harness.assert_law(members[:, i], *laws)
        assert abs(np.corrcoef(members[:, :2].T)[0, 1]) < 0.08


def test_noise_is_in_proportion_to_gradients_of_any_scale_and_none_where_there_is_nothing_to_hide():
    g, labels = batch(64)
    one = np.asarray(treat(jax.random.key(3), g, labels, 2.0))
    assert np.any(one != g)
    for exponent in (-30, 30):
        factor = np.float32(10.0**exponent)
        other = np.asarray(treat(jax.random.key(3), g * factor, labels, 2.0))
        np.testing.assert_allclose(other / factor, one, rtol=1e-3, atol=1e-3)
    same = np.repeat(g[::2], 2, axis=0)  # equal means
    for tensor, classes, knob in (
        *((g, 0 * labels, 2.0), (g, 0 * labels + 1, 2.0), (g, labels, 0.0)),
        *((same, (np.arange(64) % 2).astype(np.int32), 2.0), (0 * g, labels, 2.0)),
    ):
        np.testing.assert_array_equal(treat(jax.random.key(0), tensor, classes, knob), tensor)
