"""The linear softmax: where its steps end, and rows that teach nothing."""

import numpy as np
import pytest

from tests import harness
from tests.reference import posterior as reference
from vfljax.attacks import softmax

ROWS, WIDTH, CLASSES = 90, 5, 3


def problem(classes=CLASSES):
    """Correlated columns, some rows of known labels, some of likelihoods, and weights."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTH)) + 2 * rng.normal(size=(ROWS, 1))
    labels = np.argmax(x[:, :classes] + rng.normal(size=(ROWS, classes)), axis=1)
    likelihood = 0.5 * np.eye(classes)[labels]
    likelihood[::2] += 0.1
    return x, likelihood, rng.uniform(0.2, 3, size=ROWS)


def fitted(x, likelihood, weights, steps=400):
    fit = harness.quick_jit(softmax.fitted, static_argnums=4)
    arrays = (np.float32(a) for a in (x.T, likelihood.T, weights, 0.7))
    return [np.asarray(part) for part in fit(*arrays, steps)]


@pytest.mark.parametrize("classes", [2, CLASSES])
def test_the_steps_end_at_the_minimum_that_scipy_finds(classes):
    x, likelihood, weights = problem(classes)
    for ours, expected in zip(
        fitted(x, likelihood, weights), reference.fitted(x, likelihood, weights, 0.7)
    ):
        np.testing.assert_allclose(ours, expected, atol=2e-3)


def test_a_fit_reads_all_of_few_rows_and_evenly_spaced_ones_of_many():
    np.testing.assert_array_equal(softmax.some_rows(5), np.arange(5))
    many = softmax.some_rows(1_000_001)
    assert (len(many), many[0], many[-1]) == (softmax.MOST_ROWS, 0, 1_000_000)
    assert np.diff(many).min() >= 121


def test_rows_without_weight_or_of_equal_likelihoods_teach_nothing():
    x, likelihood, weights = problem()
    weights[:30], likelihood[:30], likelihood[30:60] = 0, 0, 1.0  # of the first nothing is possible
    some = fitted(x, likelihood, weights)
    for ours, expected in zip(some, fitted(x[60:], likelihood[60:], weights[60:])):
        np.testing.assert_allclose(ours, expected, atol=2e-3)
    for part in fitted(x, likelihood, 0 * weights):
        np.testing.assert_array_equal(part, 0)
