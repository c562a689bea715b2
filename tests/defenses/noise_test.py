"""Noisy gradients: the law of the noise and its independence."""

import types

import jax
import numpy as np
import pytest

from tests import harness
from tests.harness import tensor
from tests.reference import noise as reference
from vfljax.defenses.noise import isotropic, noise


@pytest.mark.parametrize("law", ["laplace", "gaussian", "isotropic"])
def test_each_party_s_noise_follows_the_twins_law_and_is_independent(law):
    g = tensor(5, (5000, 4))
    transform = noise(100.0, law=law).gradient

    @harness.quick_jit
    def send(key, g):
        context = types.SimpleNamespace(key=key)
        return transform.update((g, g), transform.init((g, g)), context=context)[0]

    first, second = (np.asarray(sent, float) - g for sent in send(jax.random.key(1), g))
    for drawn in (first, second):
        laws = (reference.law(law, g, scale) for scale in (100.0, 150.0))
        harness.assert_law(drawn.ravel(), *laws)
    correlations = np.corrcoef(np.hstack([first, second]).T)
    assert np.max(np.abs(correlations - np.eye(8))) < 4 / np.sqrt(len(g))


def test_isotropic_noise_is_in_proportion_to_the_twins_deviation_at_any_scale():
    """The draws depend on the key and the shape alone, so they are the same for all tensors."""
    treat, draws = harness.quick_jit(isotropic), []
    for seed, exponent in enumerate((0, -30, 30)):
        g = tensor(seed) * np.float32(10.0**exponent)
        noisy = np.asarray(treat(jax.random.key(4), g, 100.0), np.float64)
        draws.append((noisy - g) / reference.isotropic_deviation(g, 100.0))
    np.testing.assert_allclose(draws[1:], [draws[0]] * 2, rtol=1e-5, atol=1e-6)
