"""Marvell: optimal eigenvalues on badly scaled problems, the noise's law, and what is left alone."""

import functools
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from tests import harness
from tests.reference import marvell as reference
from vfljax.defenses.marvell import marvell, optimal_noise, perturb, sum_kl

solve = jax.jit(jax.vmap(optimal_noise))
treat = harness.quick_jit(perturb)


def problems(count, seed, rare=1e-3):
    """u, v, g, d, p and the budget of badly scaled problems, as float32 holds them; classes as rare
    as ``rare``."""
    rng = np.random.default_rng(seed)

    def log(low, high):
        return np.exp(rng.uniform(np.log(low), np.log(high), count))

    u, v, g = log(1e-6, 1), log(1e-6, 1), log(1e-5, 10)
    u[rng.random(count) < 0.1], v[rng.random(count) < 0.1] = 0, 0
    p = 1 / (1 + np.exp(rng.uniform(np.log(rare), -np.log(rare), count)))
    values = u, v, g, np.minimum(np.floor(log(1, 129)), 128), p, g * log(0.1, 25)
    return tuple(np.float32(x).astype(np.float64) for x in values)


MANY = 2_000  # problems that are solved together: one program


@functools.cache
def solved(count=MANY):
    """That many problems, ours solved together, and the twin's."""
    many = problems(count, 0)
    ours = [np.asarray(x, np.float64) for x in solve(*(jnp.asarray(x, jnp.float32) for x in many))]
    return many, ours, reference.optimal_noise(*many)


def test_classes_as_rare_as_one_in_a_million_cost_no_accuracy():
    many = problems(MANY, 1, rare=1e-6)
    ours = [np.asarray(x, np.float64) for x in solve(*(jnp.asarray(x, jnp.float32) for x in many))]
    (*moments, p, power), best = many, reference.optimal_noise(*many)
    d = moments[3]
    spent = p * (ours[2] + (d - 1) * ours[3]) + (1 - p) * (ours[0] + (d - 1) * ours[1])
    np.testing.assert_allclose(spent, power, rtol=1e-3)
    reached, optimum = (reference.sum_kl(x, *moments) for x in (ours, best))
    assert np.max(reached / optimum) < 1.01


def test_a_problem_of_zeros_has_no_noise():
    for u, v in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0)):
        lambdas = solve(*(jnp.float32([x]) for x in (u, v, 0.0, 4.0, 0.5, 0.0)))
        np.testing.assert_array_equal(np.ravel(lambdas), 0)


@pytest.mark.parametrize("count", [MANY, pytest.param(10_000, marks=pytest.mark.slow)])
def test_sum_kl_is_within_a_percent_of_the_float64_optimum_on_many_problems(count):
    (*moments, _, _), ours, best = solved(count)
    reached, optimum = (reference.sum_kl(x, *moments) for x in (ours, best))
    assert np.all(np.isfinite(optimum))
    assert np.max(reached / optimum) < 1.01
    assert np.min(reached / optimum) > 0.999  # less would break the budget


def test_eigenvalues_are_ordered_not_negative_and_spend_the_budget():
    (*_, d, p, power), ours, _ = solved()
    l10, l20, l11, l21 = ours
    assert min(np.min(l20), np.min(l21), np.min(l10 - l20), np.min(l11 - l21)) >= 0
    np.testing.assert_allclose(reference.spent(ours, d, p), power, rtol=1e-4)


def test_the_twin_is_feasible_and_no_general_solver_beats_it():
    """SLSQP over all four eigenvalues (as shares of the budget) from several starts."""
    many = problems(20, 1)
    best = reference.optimal_noise(*many)
    np.testing.assert_allclose(reference.spent(best, many[3], many[4]), many[5], rtol=1e-9)
    assert min(np.min(x) for x in (*best, best[0] - best[1], best[2] - best[3])) >= 0
    whole = {"type": "eq", "fun": lambda shares: shares.sum() - 1}
    reached = 0
    for i, (u, v, g, d, p, power) in enumerate(zip(*many)):

        def value(shares, u=u, v=v, g=g, d=d, p=p, power=power):
            w = np.abs(shares) / np.sum(np.abs(shares)) * power
            l20, l21 = w[0] / ((1 - p) * d), w[1] / (p * d)
            lambdas = l20 + w[2] / (1 - p), l20, l21 + w[3] / p, l21
            return np.log(reference.sum_kl(lambdas, u, v, g, d))

        starts = np.random.default_rng(i).dirichlet(np.full(4, 0.3), 6) + 1e-9
        keep = {"bounds": [(0, 1)] * 4, "constraints": whole, "options": {"ftol": 1e-14}}
        values = [scipy.optimize.minimize(value, s, method="SLSQP", **keep).fun for s in starts]
        optimum = np.log(reference.sum_kl([x[i] for x in best], u, v, g, d))
        assert np.nanmin(values) > optimum - 1e-6
        reached += np.nanmin(values) < optimum + 1e-2
    assert reached >= 15  # the comparison means something


def test_the_class_with_the_larger_variance_gets_no_noise_across():
    (u, v, _, d, _, _), (_, l20, _, l21), _ = solved()
    np.testing.assert_array_equal(l21[(u <= v) & (d > 1)], 0)
    np.testing.assert_array_equal(l20[(u > v) & (d > 1)], 0)
    assert np.max(l20) > 0
    assert np.max(l21) > 0


@pytest.mark.parametrize("factor", [1e-30, 1e-15, 1e15, 1e25])
def test_eigenvalues_scale_with_the_problem(factor):
    u, v, g, d, p, power = problems(200, 3)
    scaled = [jnp.float32(x * factor) for x in (u, v, g)]
    ours = solve(*scaled, jnp.float32(d), jnp.float32(p), jnp.float32(power * factor))
    best = reference.optimal_noise(u, v, g, d, p, power)
    ours = [np.asarray(x, np.float64) / factor for x in ours]
    ratio = reference.sum_kl(ours, u, v, g, d) / reference.sum_kl(best, u, v, g, d)
    assert np.max(ratio) < 1.01


def test_sum_kl_agrees_with_the_numpy_twin_and_the_published_form():
    rng = np.random.default_rng(4)
    lambdas, moments = rng.uniform(0.1, 2, (4, 500)), rng.uniform(0.1, 2, (3, 500))
    d = rng.integers(1, 20, 500).astype(float)
    twin = reference.sum_kl(lambdas, *moments, d)
    np.testing.assert_allclose(twin, reference.sum_kl_as_published(lambdas, *moments, d), rtol=1e-9)
    ours = harness.quick_jit(jax.vmap(sum_kl))(
        tuple(jnp.float32(lambdas)), *map(jnp.float32, (*moments, d))
    )
    np.testing.assert_allclose(ours, twin, rtol=1e-5)


def batch(u, v, width=3, rows=50_000, scale=1.0):
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


def assert_normal(samples, deviation, scale):
    """Standard deviation and shape; noise of deviation 0 is none, up to rounding."""
    assert len(samples) >= 20_000
    if deviation == 0:
        assert np.max(np.abs(samples)) < 1e-4 * scale
        return
    harness.assert_law(samples, *(scipy.stats.norm(scale=f * deviation) for f in (1, 1.5)))


@pytest.mark.parametrize(("u", "v", "width"), [(0.1, 0.6, 3), (0.6, 0.1, 3), (0.1, 0.6, 1)])
@pytest.mark.parametrize(("power", "scale"), [(0.3, 1.0), (4.0, 1e-6)])
def test_noise_along_and_across_the_class_means_has_the_optimal_variances(
    u, v, width, power, scale
):
    g, labels = batch(u, v, width, scale=scale)
    noise = np.asarray(treat(jax.random.key(0), g, labels, power), np.float64) - g
    expected = deviations(g, labels, power, width)
    assert (np.max(expected[:, 1]) > 0) == (width > 1)
    delta = reference.statistics(g, labels)[0]
    basis = np.linalg.qr(np.column_stack([delta, np.eye(width)[:, 1:]]))[0]
    parts = noise @ basis
    for label in (0, 1):
        members = parts[labels == label]
        for i in range(width):
            assert_normal(members[:, i], expected[label, min(i, 1)], scale)
        off_diagonal = np.corrcoef(members[:, expected[label, np.minimum(range(width), 1)] > 0].T)
        assert np.max(np.abs(off_diagonal - np.eye(len(np.atleast_1d(off_diagonal))))) < 0.03


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


@pytest.mark.parametrize("dimension", ["cut", "batch"])
def test_the_solvers_dimension_is_the_cuts_or_the_batchs(dimension):
    g, labels = batch(0.2, 0.6, width=1, rows=32)
    expected = deviations(g, labels, 1.0, {"cut": 1, "batch": 32}[dimension])
    assert np.min(expected[:, 0]) > 0
    noise = noise_through(marvell(1.0, dimension=dimension), jnp.asarray(g), labels, 2000)
    for label in (0, 1):
        assert_normal(noise[np.tile(labels, 2000) == label, 0], expected[label, 0], 1.0)


def test_a_dynamic_budget_is_the_first_that_reaches_the_error():
    g, labels = batch(0.2, 0.4)
    delta, u, v, square, p = reference.statistics(g, labels)
    powers = 0.1 * 1.5 ** np.arange(20)
    one = np.ones(20)
    best = reference.optimal_noise(*(x * one for x in (u, v, square, 3, p)), powers * square)
    first = np.argmax(reference.sum_kl(best, u, v, square, 3) <= (2 - 4 * 0.4) ** 2)
    assert first > 2
    noise = noise_through(marvell(0.1, 0.4, budget="dynamic"), jnp.asarray(g), labels)
    along = noise @ delta / np.linalg.norm(delta)
    for label in (0, 1):
        expected = deviations(g, labels, powers[first], 3)[label, 0]
        assert_normal(along[labels == label], expected, 1.0)
        before = deviations(g, labels, powers[first - 1], 3)[label, 0]
        law = scipy.stats.norm(scale=before)
        assert scipy.stats.kstest(along[labels == label], law.cdf).pvalue < 1e-6


@pytest.mark.parametrize("power", [0.5, 25.0])
@pytest.mark.parametrize("width", [1, 4])
def test_one_class_equal_means_no_power_and_one_row_are_sent_as_they_are(power, width):
    harness.assert_left_alone(treat, harness.tensor(6, (8, width)), np.arange(8) % 2, power)


@pytest.mark.parametrize("exponent", [-30, -18, 18, 30])
@pytest.mark.parametrize("constant", [False, True])
def test_noise_is_in_proportion_to_gradients_of_any_scale(exponent, constant):
    g, labels = batch(0.1, 0.6, 3, rows=64)
    if constant:  # u = v = 0
        g = np.float32(labels[:, None] * np.ones((1, 3)))
    factor = np.float32(10.0**exponent)
    one, other = (np.asarray(treat(jax.random.key(2), x, labels, 2.0)) for x in (g, g * factor))
    assert np.any(one != g)
    np.testing.assert_allclose(other / factor, one, rtol=1e-2, atol=1e-2)
