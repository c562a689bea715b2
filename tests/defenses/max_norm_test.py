"""MaxNorm: the scale of every row's noise, its law, and the rows it leaves alone."""

import jax
import numpy as np
import pytest
import scipy.stats

from tests import harness
from tests.harness import tensor
from tests.reference import max_norm as reference
from vfljax.defenses.max_norm import perturb, scales

scales_of = harness.quick_jit(scales)
treat = harness.quick_jit(perturb)
SHAPES = [(8, 4), (5, 1), (1, 3), (1, 1)]


def draws(g, sent):
    """Every row's xi, from what was sent; rows of sigma 0 have none."""
    g, sent = np.asarray(g, np.float64), np.asarray(sent, np.float64)
    sigma = reference.scales(g)
    rows = sigma > 0
    change = np.sum((sent - g) * g, axis=1)[rows] / np.sum(g * g, axis=1)[rows]
    return change / sigma[rows]


@pytest.mark.parametrize("shape", SHAPES)
def test_scales_agree_with_the_numpy_twin_at_any_scale(shape):
    for seed in (0, 1):
        for exponent in (-30, -15, 0, 15, 30):
            g = tensor(seed, shape) * np.float32(10.0**exponent)
            np.testing.assert_allclose(scales_of(g), reference.scales(g), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [2, 3])
def test_rows_are_treated_as_by_the_numpy_twin(shape, seed):
    g = tensor(seed, shape)
    sent = np.asarray(treat(jax.random.key(seed), g))
    xi = np.zeros(shape[0])
    xi[reference.scales(g) > 0] = draws(g, sent)
    np.testing.assert_allclose(sent, reference.perturb(g, xi), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [1, 3])
def test_the_draws_are_standard_normal_and_not_half_as_wide_again(width):
    g = tensor(5, (25_000, width))
    xi = draws(g, treat(jax.random.key(1), g))
    assert len(xi) == 24_999  # all rows but the longest
    harness.assert_law(xi, scipy.stats.norm, scipy.stats.norm(scale=1.5))
    assert abs(np.corrcoef(xi[1:], xi[:-1])[0, 1]) < 4 / np.sqrt(len(xi))


def test_zero_rows_and_the_longest_row_are_left_alone():
    g = tensor(7)
    g[[1, 5]] = 0
    longest = np.argmax(np.sum(g * g, axis=1))
    sent = np.asarray(treat(jax.random.key(3), g))
    assert np.all(np.isfinite(sent))
    np.testing.assert_array_equal(sent[[1, 5, longest]], g[[1, 5, longest]])
    assert np.all(np.delete(sent - g, [1, 5, longest], axis=0) != 0)


@pytest.mark.parametrize(
    "g", [np.zeros((4, 3)), np.ones((4, 3)), [[1, 0], [0, -1], [-1, 0]], [[2.5, -1.0]]]
)
def test_rows_of_one_length_are_sent_as_they_are(g):
    g = np.float32(g)
    np.testing.assert_array_equal(treat(jax.random.key(4), g), g)


@pytest.mark.parametrize("length", [1e-10, 1e-18, 1e-20, 1e-25, 1e-30])
def test_the_scale_of_a_short_row_is_the_twins_however_short(length):
    g = np.float32([[length, 2 * length], [1.0, -2.0]])
    np.testing.assert_allclose(scales_of(g), reference.scales(g), rtol=1e-5)
    assert np.all(np.abs(np.asarray(treat(jax.random.key(8), g))[0]) > 1e-4)
