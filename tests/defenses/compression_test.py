"""Compression keeps the largest floor(p n) entries of a party's tensor, exactly."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from tests.harness import tensor
from tests.reference import compression as reference
from vfljax.defenses.compression import keep_largest, quota

keep = harness.quick_jit(keep_largest)


@given(seed=st.integers(0, 2**16), parts=st.integers(0, 40), exponent=st.integers(-30, 30))
@settings(deadline=None, max_examples=40, database=None, derandomize=True)
def test_agrees_with_the_numpy_twin_at_any_rate_and_scale(seed, parts, exponent):
    g = tensor(seed) * np.float32(10.0**exponent)
    expected = reference.keep_largest(g, Fraction(parts, 40))
    np.testing.assert_array_equal(keep(g, parts / 40), expected)


@given(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=12, max_size=12))
@settings(deadline=None, max_examples=40, database=None, derandomize=True)
def test_all_entries_that_tie_with_the_last_one_kept_are_kept(values):
    g = np.float32(values).reshape(4, 3)
    expected = reference.keep_largest(g, Fraction(1, 2))
    np.testing.assert_array_equal(keep(g, 0.5), expected)


@pytest.mark.parametrize("size", [7, 47, 303, 320])
def test_a_rate_of_c_over_n_keeps_exactly_c_entries(size):
    """Rounding c / n to float32 must not lose or add an entry."""
    g = tensor(0, (1, size))
    counts = harness.quick_jit(jax.vmap(lambda p: jnp.sum(keep_largest(g, p) != 0)))
    rates = jnp.asarray(np.arange(size + 1) / size, jnp.float32)
    np.testing.assert_array_equal(counts(rates), np.arange(size + 1))


def quotas(rates, size):
    """The counts of many traced float32 rates."""
    count = harness.quick_jit(jax.vmap(lambda rate: quota(rate, size)))
    return np.asarray(count(jnp.asarray(rates, jnp.float32)))


@pytest.mark.parametrize(
    "size", [0, 1, 7, 1000, *np.random.default_rng(0).integers(1, 200_000, 20)]
)
def test_a_decimal_rate_counts_as_exact_fractions_do(size):
    rates = [Fraction(k, 1000) for k in range(1001)]
    expected = [reference.quota(rate, int(size)) for rate in rates]
    counts = quotas([float(rate) for rate in rates], int(size))
    np.testing.assert_array_equal(counts, expected)
    assert counts.dtype == np.int32
    assert (counts[0], counts[-1]) == (0, size)


@pytest.mark.parametrize(
    ("rate", "size", "count"),
    [(0.7, 10, 7), (0.3, 1_048_576, 314_572), (1 / 3, 3, 1), (2 / 3, 3, 2), (1.0, 2**30, 2**30)],
)
def test_a_rate_is_read_as_the_number_it_was_rounded_from(rate, size, count):
    assert quotas([rate], size) == [count]


@pytest.mark.parametrize("rate", [0.75, 0.5, 0.25, 0.1])
def test_the_published_rates_keep_one_entry_more_than_the_released_code(rate):
    g = tensor(1, (32, 10))
    threshold = np.sort(np.abs(g).ravel())[::-1][int(rate * 320) - 1]
    released = np.sum(np.abs(g) > threshold)
    assert np.sum(np.asarray(keep(g, rate)) != 0) == int(rate * 320) == released + 1


@pytest.mark.parametrize("shape", [(1, 1), (9, 1), (1, 9), (64, 32)])
@pytest.mark.parametrize("seed", [0, 1])
def test_agrees_with_the_numpy_twin_at_any_shape(shape, seed):
    g = tensor(seed, shape)
    for rate in ("0", "0.1", "0.25", "0.7", "1"):
        expected = reference.keep_largest(g, Fraction(rate))
        np.testing.assert_array_equal(keep(g, float(rate)), expected)
