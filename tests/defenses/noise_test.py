"""Noisy gradients: the law of the noise and its independence."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from tests import harness
from vfljax.defenses.noise import laplace

SCALE = 0.01
draw = jax.jit(laplace)


def test_scale_zero_changes_nothing():
    g = jnp.asarray(np.random.default_rng(0).normal(size=(8, 4)), jnp.float32)
    np.testing.assert_array_equal(draw(jax.random.key(0), g, 0.0), g)


def test_the_noise_follows_laplace_of_this_scale_and_not_of_half_as_much_again():
    samples = np.asarray(draw(jax.random.key(1), jnp.zeros((100, 50)), SCALE)).ravel()
    assert scipy.stats.kstest(samples, scipy.stats.laplace(scale=SCALE).cdf).pvalue > 0.01
    assert scipy.stats.kstest(samples, scipy.stats.laplace(scale=1.5 * SCALE).cdf).pvalue < 1e-6
    gaussian = scipy.stats.norm(scale=np.sqrt(2) * SCALE)  # same variance
    assert scipy.stats.kstest(samples, gaussian.cdf).pvalue < 1e-6


def test_elements_are_independent():
    samples = np.asarray(draw(jax.random.key(2), jnp.zeros((20_000, 4)), SCALE))
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
