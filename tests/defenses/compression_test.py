"""Compression keeps the largest floor(p n) entries of a party's tensor, exactly."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.harness import tensor
from tests.reference import compression as reference
from vfljax.defenses.compression import keep_largest, quota

keep = harness.quick_jit(keep_largest)


@pytest.mark.parametrize("rate", ["0", "0.1", "0.25", "0.7", "1"])
def test_agrees_with_the_numpy_twin_at_any_scale_and_where_entries_tie(rate):
    tied = np.float32(np.random.default_rng(0).integers(-2, 3, size=(8, 4)))
    for g in (tied, *(tensor(1) * np.float32(10.0**exponent) for exponent in (-30, 0, 30))):
        expected = reference.keep_largest(g, Fraction(rate))
        np.testing.assert_array_equal(keep(g, float(rate)), expected)


def test_a_rate_of_c_over_n_keeps_exactly_c_entries():
    """Rounding c / n to float32 must not lose or add an entry."""
    g = tensor(0, (1, 47))
    counts = harness.quick_jit(jax.vmap(lambda p: jnp.sum(keep_largest(g, p) != 0)))
    rates = jnp.asarray(np.arange(48) / 47, jnp.float32)
    np.testing.assert_array_equal(counts(rates), np.arange(48))


def quotas(rates, size):
    """The counts of many traced float32 rates."""
    count = harness.quick_jit(jax.vmap(lambda rate: quota(rate, size)))
    return np.asarray(count(jnp.asarray(rates, jnp.float32)))


@pytest.mark.parametrize("size", [7, 127_351])
def test_a_decimal_rate_counts_as_exact_fractions_do(size):
    rates = [Fraction(k, 1000) for k in range(1001)]
    expected = [reference.quota(rate, size) for rate in rates]
    counts = quotas([float(rate) for rate in rates], size)
    np.testing.assert_array_equal(counts, expected)
    assert counts.dtype == np.int32


@pytest.mark.parametrize(
    ("rate", "size", "count"), [(1 / 3, 3, 1), (2 / 3, 3, 2), (1.0, 2**30, 2**30)]
)
def test_a_rate_is_read_as_the_number_it_was_rounded_from(rate, size, count):
    assert quotas([rate], size) == [count]
