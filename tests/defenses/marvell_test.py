"""Marvell: optimal eigenvalues on badly scaled problems, the noise's law, and what is left alone."""

import functools
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import harness
from tests.reference import marvell as reference
from vfljax.defenses.marvell import marvell, optimal_noise, perturb

solve_fn = harness.quick_jit(jax.vmap(optimal_noise))
treat = harness.quick_jit(perturb)
MANY = 400  # problems that are solved together: one program


def solve(problems):
    return [np.asarray(x, np.float64) for x in solve_fn(*map(np.float32, problems))]


@functools.cache
def solved():
    """(u, v, g, d, p and the budget of badly scaled problems, as float32 holds them; ours; the twin's). In
    half of them a class may be as rare as one in a million."""
    rng = np.random.default_rng(0)

    def log(low, high):
        return np.exp(rng.uniform(np.log(low), np.log(high)))

    ends = np.full((2, MANY), [[1e-6], [1.0]])
    u, v, g = log(*ends), log(*ends), log(10 * ends[0], 10 * ends[1])
    u[rng.random(MANY) < 0.1], v[rng.random(MANY) < 0.1] = 0, 0
    rare = np.where(np.arange(MANY) % 2, 1e-6, 1e-3)
    p = 1 / (1 + log(rare, 1 / rare))
    d = np.minimum(np.floor(log(ends[1], 129 * ends[1])), 128)
    values = u, v, g, d, p, g * log(0.1 * ends[1], 25 * ends[1])
    problems = tuple(np.float32(x).astype(np.float64) for x in values)
    return problems, solve(problems), reference.optimal_noise(*problems)


def test_sum_kl_is_within_a_percent_of_the_float64_optimum_and_spends_the_budget():
    (*moments, p, power), ours, best = solved()
    reached, optimum = (reference.sum_kl(x, *moments) for x in (ours, best))
    assert np.max(reached / optimum) < 1.01
    assert np.min(reached / optimum) > 0.999  # less would break the budget
    np.testing.assert_allclose(reference.spent(ours, moments[3], p), power, rtol=1e-3)
    l10, l20, l11, l21 = ours
    assert min(np.min(l20), np.min(l21), np.min(l10 - l20), np.min(l11 - l21)) >= 0


def test_the_class_with_the_larger_variance_gets_no_noise_across():
    (u, v, _, d, _, _), (_, l20, _, l21), _ = solved()
    np.testing.assert_array_equal(l21[(u <= v) & (d > 1)], 0)
    np.testing.assert_array_equal(l20[(u > v) & (d > 1)], 0)
    assert np.max(l20) > 0
    assert np.max(l21) > 0


@pytest.mark.parametrize("factor", [1e-30, 1e25])
def test_eigenvalues_scale_with_the_problem(factor):
    (u, v, g, d, p, power), ours, _ = solved()
    scaled = solve((u * factor, v * factor, g * factor, d, p, power * factor))
    reached, without = (
        reference.sum_kl(x, u, v, g, d) for x in ([x / factor for x in scaled], ours)
    )
    np.testing.assert_allclose(reached, without, rtol=0.01)


def batch(u, v, rows, width=3, scale=1.0):
    """Gradients with this deviation of negatives and positives (half each), and their labels."""
    rng = np.random.default_rng(5)
    labels = rng.permutation(rows) % 2
    g = rng.normal(size=(rows, width)) * np.where(labels == 1, v, u)[:, None]
    return np.float32(scale * (g + labels[:, None] * np.linspace(1, 0.5, width))), labels


def deviations(g, labels, power, d):
    """Of the noise of class 0 and 1: (along the class-mean difference, across it)."""
    _, u, v, square, p = reference.statistics(g, labels)
    problem = (np.array([float(x)]) for x in (u, v, square, d, p, power * square))
    l10, l20, l11, l21 = (float(x[0]) for x in reference.optimal_noise(*problem))
    return np.sqrt([[l10, l20], [l11, l21]])


def assert_normal(samples, deviation, scale=1.0):
    """Standard deviation and shape; noise of deviation 0 is none, up to rounding."""
    if deviation == 0:
        assert np.max(np.abs(samples)) < 1e-4 * scale
        return
    harness.assert_law(samples, *(scipy.stats.norm(scale=f * deviation) for f in (1, 1.5)))


@pytest.mark.parametrize(
    ("u", "v", "power", "scale"), [(0.1, 0.6, 0.3, 1.0), (0.6, 0.1, 4.0, 1e-6)]
)
def test_noise_along_and_across_the_class_means_has_the_optimal_variances(u, v, power, scale):
    g, labels = batch(u, v, 4000, scale=scale)
    noise = np.asarray(treat(jax.random.key(0), g, labels, power), np.float64) - g
    expected = deviations(g, labels, power, 3)
    assert np.max(expected[:, 1]) > 0
    delta = reference.statistics(g, labels)[0]
    basis = np.linalg.qr(np.column_stack([delta, np.eye(3)[:, 1:]]))[0]
    parts = noise @ basis
    for label in (0, 1):
        members = parts[labels == label]
        for i in range(3):
            assert_normal(members[:, i], expected[label, min(i, 1)], scale)
        correlations = np.corrcoef(members[:, expected[label, [0, 1, 1]] > 0].T)
        assert np.max(np.abs(correlations - np.eye(len(np.atleast_1d(correlations))))) < 0.08


def noise_through(defense, g, labels, draws=1):
    """What the gradient slot of a defense adds, under that many keys: [draws * B, D]."""
    context: Any = types.SimpleNamespace(labels=jnp.asarray(labels))

    def added(key):
        context.key = key
        transform = defense.gradient
        sent, _ = transform.update((g,), transform.init((g,)), context=context)
        return sent[0] - g

    noise = harness.quick_jit(jax.vmap(added))(jax.random.split(jax.random.key(1), draws))
    return np.asarray(noise, np.float64).reshape(-1, g.shape[1])


def test_the_solvers_dimension_may_be_the_batchs():
    g, labels = batch(0.2, 0.6, 32, width=1)
    expected = deviations(g, labels, 1.0, 32)
    assert np.min(expected[:, 0]) > 0
    noise = noise_through(marvell(1.0, dimension="batch"), jnp.asarray(g), labels, 200)
    for label in (0, 1):
        assert_normal(noise[np.tile(labels, 200) == label, 0], expected[label, 0])


def test_a_dynamic_budget_is_the_first_that_reaches_the_error():
    g, labels = batch(0.2, 0.4, 10_000)
    delta, u, v, square, p = reference.statistics(g, labels)
    powers = 0.1 * 1.5 ** np.arange(20)
    one = np.ones(20)
    best = reference.optimal_noise(*(x * one for x in (u, v, square, 3, p)), powers * square)
    first = np.argmax(reference.sum_kl(best, u, v, square, 3) <= (2 - 4 * 0.4) ** 2)
    assert first > 2
    noise = noise_through(marvell(0.1, 0.4, budget="dynamic"), jnp.asarray(g), labels)
    along = noise @ delta / np.linalg.norm(delta)
    for label, eigenvalues in enumerate((best[0], best[2])):
        laws = (scipy.stats.norm(scale=np.sqrt(eigenvalues[i])) for i in (first, first - 1))
        harness.assert_law(along[labels == label], *laws)


def test_noise_is_in_proportion_to_gradients_of_any_scale_and_none_where_there_is_nothing_to_hide():
    g, labels = batch(0.1, 0.6, 64)
    constant = np.float32(labels[:, None] * np.ones((1, 3)))  # u = v = 0
    for one in (g, constant):
        sent = np.asarray(treat(jax.random.key(2), one, labels, 2.0))
        assert np.any(sent != one)
        for exponent in (-30, 30):
            factor = np.float32(10.0**exponent)
            other = np.asarray(treat(jax.random.key(2), one * factor, labels, 2.0))
            np.testing.assert_allclose(other / factor, sent, rtol=1e-2, atol=1e-2)
    same = np.repeat(g[::2], 2, axis=0)  # equal means
    for tensor, classes, power in (
        *((g, 0 * labels, 2.0), (g, 0 * labels + 1, 2.0), (g, labels, 0.0)),
        *((same, np.arange(64) % 2, 2.0), (0 * g, labels, 2.0)),
    ):
        np.testing.assert_array_equal(treat(jax.random.key(0), tensor, classes, power), tensor)
