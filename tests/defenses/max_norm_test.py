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


@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_scales_agree_with_the_numpy_twin_at_any_scale_however_short_a_row(exponent):
    g = tensor(0)
    g[1] *= 1e-6
    g[2] = 0
    g = g * np.float32(10.0**exponent)
    np.testing.assert_allclose(scales_of(g), reference.scales(g), rtol=1e-5)


def test_rows_are_treated_as_by_the_twin_with_standard_normal_draws():
    g = tensor(5, (5000, 3))
    sent = np.asarray(treat(jax.random.key(1), g), np.float64)
    sigma = reference.scales(g)
    rows = sigma > 0
    assert np.sum(rows) == len(g) - 1  # all but the longest
    xi = np.sum((sent - g) * g, axis=1) / np.sum(np.float64(g) ** 2, axis=1)
    xi[rows] /= sigma[rows]
    np.testing.assert_allclose(sent, reference.perturb(g, xi), rtol=1e-5, atol=1e-5)
    harness.assert_law(xi[rows], scipy.stats.norm, scipy.stats.norm(scale=1.5))
    assert abs(np.corrcoef(xi[1:], xi[:-1])[0, 1]) < 4 / np.sqrt(len(xi))


def test_zero_rows_the_longest_row_and_rows_of_one_length_are_left_alone():
    g = tensor(7)
    g[[1, 5]] = 0
    alone = [1, 5, np.argmax(np.sum(g * g, axis=1))]
    sent = np.asarray(treat(jax.random.key(3), g))
    np.testing.assert_array_equal(sent[alone], g[alone])
    assert np.all(np.delete(sent - g, alone, axis=0) != 0)
    for even in (0 * g, np.ones_like(g), np.tile(np.eye(4, dtype=np.float32), (2, 1))):
        np.testing.assert_array_equal(treat(jax.random.key(4), even), even)
