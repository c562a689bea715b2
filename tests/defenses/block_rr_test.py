"""BlockRR: its matrix, its privacy, the law of its draws, and the prior that it estimates."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests import harness
from tests.reference import block_rr as twin
from tests.reference import label_dp
from vfljax.defenses import block_rr

PRIOR = np.float32([0.3, 0.05, 0.35, 0.1, 0.2])
ROWS, CLASSES = 20_000, len(PRIOR)
KEY = jax.random.key(0)
SIGMAS = (0.4, 0.7, 1.0, 2.0)  # of 5, 4, 3 and 2 classes of the majority
POINTS = [(e, s, ell) for e in (0.5, 1.0, 4.0) for s in SIGMAS for ell in (0, 1, 2, 9)]

channels = harness.quick_jit(jax.vmap(block_rr.channel, in_axes=(None, 0, 0, 0)))
respond = harness.quick_jit(block_rr.block_rr)
randomize = harness.quick_jit(block_rr.randomize, static_argnums=2)


def test_the_matrix_is_that_of_the_numpy_twin():
    assert [len(twin.sets(PRIOR, s, 1)[0]) for s in SIGMAS] == [5, 4, 3, 2]
    found = channels(PRIOR, *np.float32(POINTS).T)
    np.testing.assert_allclose(found, [twin.channel(PRIOR, *p) for p in POINTS], atol=1e-6)
    np.testing.assert_allclose(np.sum(found, axis=-1), 1, atol=1e-6)


def test_epsilon_bounds_the_odds_of_every_two_labels_and_is_reached():
    for (epsilon, *_), table in zip(POINTS, channels(PRIOR, *np.float32(POINTS).T), strict=True):
        odds = np.max(np.max(table, axis=0) / np.min(table, axis=0))
        np.testing.assert_allclose(odds, math.exp(epsilon), rtol=1e-4)


def test_without_a_minority_or_a_fallback_it_is_randomized_response_and_at_0_uniform():
    (none, no_fallback, zero, zero_plain) = channels(
        PRIOR, np.float32([1, 1, 0, 0]), np.float32([0, 1, 1, 1]), np.float32([1, 0, 1, 0])
    )
    for table in (none, no_fallback):
        np.testing.assert_allclose(table, label_dp.response(CLASSES, 1.0), atol=1e-6)
    for table in (zero, zero_plain):
        np.testing.assert_allclose(table, 1 / CLASSES, atol=1e-6)


def test_an_infinite_epsilon_keeps_the_majority_and_replaces_the_minority_by_delta():
    table = channels(PRIOR, *np.float32([[np.inf], [1.0], [2.0]]))[0]
    expected = np.eye(CLASSES)
    for rare in {*range(CLASSES)} - twin.sets(PRIOR, 1.0, 2)[0]:
        expected[rare, [0, 2]] = 1 / CLASSES
        expected[rare, rare] = 1 - 2 / CLASSES
    np.testing.assert_allclose(table, expected, atol=1e-6)


@pytest.mark.parametrize("ell", [1, 2])
def test_draws_follow_the_matrix(ell):
    law = twin.channel(PRIOR, 1.0, 1.0, ell)
    for true in range(CLASSES):
        key = jax.random.key(true)
        drawn = respond(key, np.full(ROWS, true), PRIOR, 1.0, 1.0, float(ell))
        counts = np.bincount(drawn, minlength=CLASSES)
        assert stats.chisquare(counts, law[true] * ROWS).pvalue > 1e-3
        other = twin.channel(PRIOR, 1.3, 1.0, ell)[true]
        assert stats.chisquare(counts, other * ROWS).pvalue < 1e-4


def test_no_finite_epsilon_keeps_a_label_for_certain_and_infinity_keeps_the_majority(monkeypatch):
    """The smallest uniform number is 0; rounding the chance of e^-30 down would keep the label."""
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jnp.zeros(shape))
    labels = np.int32([0, 2, 2])
    drawn_of = harness.quick_jit(lambda *given: block_rr.block_rr(*given))  # traced after the patch
    for epsilon, kept in ((30.0, False), (200.0, False), (np.inf, True)):
        drawn = drawn_of(KEY, labels, PRIOR, epsilon, 1.0, 1.0)
        np.testing.assert_array_equal(drawn == labels, kept)


def test_counts_have_laplace_noise_of_twice_the_inverse_of_epsilon():
    epsilon, counts = 0.5, np.full(5_000, 40.0, np.float32)
    noise = block_rr.private_counts(KEY, counts, epsilon) * (1 + epsilon) / epsilon - counts
    assert stats.kstest(noise, stats.laplace(scale=2 / epsilon).cdf).pvalue > 1e-3
    assert stats.kstest(noise, stats.laplace(scale=1 / epsilon).cdf).pvalue < 1e-6
    np.testing.assert_array_equal(block_rr.private_counts(KEY, counts, np.inf), counts)
    assert np.all(np.isfinite(block_rr.private_counts(KEY, counts, 0.0)))


def test_labels_of_the_fold_are_read_for_the_prior_alone_and_drawn_from_it():
    """At an infinite epsilon, sigma 0 keeps all other labels, and the counts have no noise."""
    labels = np.arange(2_000) % 4 // 3  # a quarter is of class 1
    drawn = randomize(KEY, labels, 2, np.inf, 0.0, 1.0, 0.5)
    changed = np.flatnonzero(drawn != labels)
    assert 0.5 * 2 * 0.75 * 0.25 * 2_000 * 0.8 < len(changed) < 0.5 * 2 * 0.75 * 0.25 * 2_000 * 1.2
    # swapping the labels of two rows of the fold leaves the counts, and so all draws, as they were
    swapped = labels.copy()
    one, other = (changed[labels[changed] == c][0] for c in (0, 1))
    swapped[[one, other]] = labels[[other, one]]
    again = randomize(KEY, swapped, 2, np.inf, 0.0, 1.0, 0.5)
    np.testing.assert_array_equal(again, drawn)
