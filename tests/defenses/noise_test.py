"""Noisy gradients: the law of the noise and its independence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests.harness import assert_law, tensor
from tests.reference import noise as reference
from vfljax.defenses.noise import gaussian, isotropic, laplace, noise

SCALE = 0.01
draw = jax.jit(laplace)
LAWS = {"laplace": draw, "gaussian": jax.jit(gaussian), "isotropic": jax.jit(isotropic)}
every_law = pytest.mark.parametrize("law", LAWS)


@every_law
@pytest.mark.parametrize("shape", [(100, 250), (25_000, 1)])
def test_noise_on_gradients_follows_the_twins_law_and_not_half_as_much_again(law, shape):
    g = tensor(5, shape)
    noise = np.asarray(LAWS[law](jax.random.key(1), g, 100.0)).ravel() - g.ravel()
    assert_law(noise, *(reference.law(law, g, scale) for scale in (100.0, 150.0)))


@pytest.mark.parametrize("shape", [(8, 4), (1, 3), (5, 1), (1, 1)])
@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_isotropic_noise_is_in_proportion_to_the_twins_deviation(shape, exponent):
    """The draws depend on the key and the shape alone, so they are the same for both tensors."""
    draws = []
    for seed, power in ((0, 0), (1, exponent)):
        g = tensor(seed, shape) * np.float32(10.0**power)
        noise = np.asarray(LAWS["isotropic"](jax.random.key(4), g, 100.0), np.float64) - g
        draws.append(noise / reference.isotropic_deviation(g, 100.0))
    np.testing.assert_allclose(draws[1], draws[0], rtol=1e-5, atol=1e-6)


@every_law
def test_the_factory_draws_by_its_law_and_anew_for_each_party(law):
    g = tensor(8, (100, 250))
    context = type("Context", (), {"key": jax.random.key(9)})
    transform = noise(1.0, law=law).gradient
    sent, _ = transform.update((g, g), transform.init((g, g)), context=context)
    expected = reference.law(law, g, 1.0)
    for one in sent:
        assert scipy.stats.kstest(np.asarray(one - g).ravel(), expected.cdf).pvalue > 1e-3
    assert np.mean(np.asarray(sent[0]) == np.asarray(sent[1])) < 0.01


@every_law
def test_elements_are_independent(law):
    g = jnp.zeros((20_000, 4)).at[0, 0].set(1.0)
    samples = np.asarray(LAWS[law](jax.random.key(2), g, SCALE) - g)
    off_diagonal = np.corrcoef(samples.T) - np.eye(4)
    assert np.max(np.abs(off_diagonal)) < 4 / np.sqrt(20_000)
    assert len(np.unique(samples)) > 0.99 * samples.size
