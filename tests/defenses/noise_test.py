"""Noisy gradients: the law of the noise and its independence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import harness
from tests.reference import noise as reference
from vfljax.defenses.noise import gaussian, isotropic, laplace, noise

SCALE = 0.01
draw = jax.jit(laplace)
LAWS = {"laplace": draw, "gaussian": jax.jit(gaussian), "isotropic": jax.jit(isotropic)}
every_law = pytest.mark.parametrize("law", LAWS)


def tensor(seed, shape=(8, 4)):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@every_law
def test_scale_zero_changes_nothing(law):
    g = tensor(0)
    np.testing.assert_array_equal(LAWS[law](jax.random.key(0), g, 0.0), g)


@every_law
@pytest.mark.parametrize("shape", [(100, 250), (25_000, 1)])
def test_noise_on_gradients_follows_the_twins_law_and_not_half_as_much_again(law, shape):
    g = tensor(5, shape)
    noise = np.asarray(LAWS[law](jax.random.key(1), g, 100.0)).ravel() - g.ravel()
    assert scipy.stats.kstest(noise, reference.law(law, g, 100.0).cdf).pvalue > 1e-3
    assert scipy.stats.kstest(noise, reference.law(law, g, 150.0).cdf).pvalue < 1e-6


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


def test_isotropic_noise_on_zero_gradients_is_zero():
    g = np.zeros((8, 4), np.float32)
    np.testing.assert_array_equal(LAWS["isotropic"](jax.random.key(0), g, 10.0), g)


def test_isotropic_noise_is_set_by_the_longest_row_alone():
    g = tensor(6)
    longest = np.argmax(np.sum(g * g, axis=1))
    others = np.where(np.arange(8)[:, None] == longest, g, np.float32(0))
    one, two = (LAWS["isotropic"](jax.random.key(7), x, 1.0) - x for x in (g, others))
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


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


def test_an_unknown_law_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="law='cauchy'.*laplace, gaussian, isotropic"):
        noise(1.0, law="cauchy")


def test_the_noise_follows_laplace_of_this_scale_and_not_of_half_as_much_again():
    samples = np.asarray(draw(jax.random.key(1), jnp.zeros((100, 50)), SCALE)).ravel()
    assert scipy.stats.kstest(samples, scipy.stats.laplace(scale=SCALE).cdf).pvalue > 0.01
    assert scipy.stats.kstest(samples, scipy.stats.laplace(scale=1.5 * SCALE).cdf).pvalue < 1e-6
    gaussian = scipy.stats.norm(scale=np.sqrt(2) * SCALE)  # same variance
    assert scipy.stats.kstest(samples, gaussian.cdf).pvalue < 1e-6


@every_law
def test_elements_are_independent(law):
    g = jnp.zeros((20_000, 4)).at[0, 0].set(1.0)
    samples = np.asarray(LAWS[law](jax.random.key(2), g, SCALE) - g)
    off_diagonal = np.corrcoef(samples.T) - np.eye(4)
    assert np.max(np.abs(off_diagonal)) < 4 / np.sqrt(20_000)
    assert len(np.unique(samples)) > 0.99 * samples.size


def test_noise_is_proportional_to_its_scale_for_the_same_key():
    one, ten = (draw(jax.random.key(3), jnp.zeros((8, 4)), s) for s in (SCALE, 10 * SCALE))
    np.testing.assert_allclose(ten, 10 * one, rtol=1e-5)


def received_noise(seed, steps):
    """What every passive party's gradients gained at each step, [steps, P, B, D].

    A learning rate of 0 keeps the undefended gradients the same."""
    spec, plain = harness.make_spec(5, ("noise",)), harness.make_spec(5)
    batch = harness.make_batch(spec, 0)
    numbers = {"learning_rate": 0.0, "weight_decay": 0.0}
    noisy = harness.make_hparams(spec, {"noise": {"scale": SCALE}}, **numbers)
    _, exchanges, _ = harness.run_steps(spec, noisy, [batch] * steps, seed)
    _, clean, _ = harness.run_steps(plain, harness.make_hparams(plain, **numbers), [batch], seed)
    return np.array([e.gradients for e in exchanges]) - np.array(clean[0].gradients)


def test_every_step_draws_anew_from_the_seed_alone():
    first, again, other = received_noise(0, 3), received_noise(0, 3), received_noise(1, 3)
    np.testing.assert_array_equal(first, again)
    for one, two in ((first[0], first[1]), (first[1], first[2]), (first[0], other[0])):
        assert np.min(np.abs(one - two)) > 0


def test_what_parties_receive_follows_the_law():
    samples = received_noise(2, 40).ravel()
    assert scipy.stats.kstest(samples, scipy.stats.laplace(scale=SCALE).cdf).pvalue > 0.01
    assert scipy.stats.kstest(samples, scipy.stats.laplace(scale=1.5 * SCALE).cdf).pvalue < 1e-6
