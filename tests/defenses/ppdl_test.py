"""PPDL: one visit at a time, the quota, what is left when entries run out, and the noise laws."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from tests import harness
from tests.harness import tensor
from tests.reference import ppdl as reference
from vfljax.defenses import ppdl as ppdl_module
from vfljax.defenses.ppdl import LaplaceDraws, by_jumps, by_visits, ppdl_gradient, treat

treat_fn = harness.quick_jit(treat, static_argnames="on_exhaustion")
send = harness.quick_jit(ppdl_gradient, static_argnames="on_exhaustion")
SHAPES = [(6, 5), (8, 1), (1, 3), (1, 1)]
every_exhaustion = pytest.mark.parametrize("on_exhaustion", ["zero", "keep"])
PUBLISHED = {"epsilon": 1.8, "gamma": 1e-3, "tau": 1e-4, "sensitivity": 1.0}


def visits(seed, size):
    """An order and standard draws."""
    rng = np.random.default_rng(seed)
    draws = (rng.laplace(size=n).astype(np.float32) for n in (size + 1, size, size))
    return rng.permutation(size).astype(np.int32), LaplaceDraws(*draws)


def both(g, order, draws, theta, on_exhaustion="zero", **knobs):
    """What is sent, and what the NumPy twin would send."""
    knobs = {**PUBLISHED, **knobs}
    ours = np.asarray(treat_fn(g, order, draws, float(theta), on_exhaustion=on_exhaustion, **knobs))
    quota = math.floor(theta * g.size)
    draws = [np.asarray(x, np.float64) for x in draws]
    return ours, reference.treat(g, order, draws, quota, **knobs, on_exhaustion=on_exhaustion)


@every_exhaustion
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_the_numpy_twin_from_noise_alone_to_hardly_any(shape, on_exhaustion):
    thetas, sensitivities = ("0", "0.1", "0.25", "0.5", "0.75", "1"), (1.0, 1e-5, 1e-9)
    for seed in range(5):
        order, draws = visits(seed, math.prod(shape))
        g = tensor(90 + seed, shape, 1e-3)
        for theta, sensitivity in itertools.product(thetas, sensitivities):
            knobs = {"sensitivity": sensitivity}
            ours, twin = both(g, order, draws, Fraction(theta), on_exhaustion, **knobs)
            np.testing.assert_allclose(ours, twin, rtol=1e-5, atol=1e-8, err_msg=f"{theta} {knobs}")


@pytest.mark.parametrize(("gamma", "tau"), [(1e30, 0.0), (1e-30, 1e-31), (0.0, 0.0), (1e-3, 1e30)])
def test_agrees_with_the_numpy_twin_at_extreme_knobs(gamma, tau):
    order, draws = visits(0, 30)
    for scale in (1e-30, 1.0, 1e30):
        ours, twin = both(tensor(1, (6, 5), scale), order, draws, 0.5, gamma=gamma, tau=tau)
        assert np.all(np.isfinite(ours))
        np.testing.assert_allclose(ours, twin, rtol=1e-5, atol=1e-35)


def test_draws_belong_to_visits_and_the_threshold_is_redrawn_on_acceptance_only():
    """With sigma(epsilon_1) = 1, positions 1 and 2 are accepted: position 0 misses threshold[0] by
    a hair, position 1 meets it, and position 2 meets threshold[2]."""
    g = np.ones((1, 3), np.float32)
    order = np.int32([2, 0, 1])
    draws = LaplaceDraws(
        np.float32([3, -9, 8, -9]), np.float32([0.99, 1.01, 3.51]), np.float32([9, -1, 2])
    )
    knobs = {"epsilon": 9 / 8 * 6, "gamma": 10.0, "tau": 0.0, "sensitivity": 1.0}
    ours = treat_fn(g, order, draws, 1.0, on_exhaustion="keep", **knobs)
    np.testing.assert_allclose(ours, [[1 - 4, 1 + 8, 1]], rtol=1e-6)


def test_zero_gradients_are_sent_as_noise_whose_sign_selection_says_nothing_about():
    sent = np.asarray(send(jax.random.key(2), np.zeros((512, 8), np.float32), 0.25))
    assert np.sum(sent != 0) == 1024
    assert scipy.stats.binomtest(int(np.sum(sent > 0)), 1024).pvalue > 1e-3


@pytest.mark.parametrize("theta", [0.5, 0.75])
def test_when_entries_run_out_keep_leaves_the_expected_share_bit_exact_and_zero_zeroes_it(theta):
    """Share not accepted: 1 - 1 / (4 ln 2) = .639; .57 were the query noise half as wide again."""
    np.testing.assert_allclose(reference.accepted_share(), 1 / (4 * math.log(2)), rtol=1e-6)
    g, shares = tensor(3, (512, 8), 1e-3), []
    for seed in range(8):
        kept = np.asarray(send(jax.random.key(seed), g, theta, on_exhaustion="keep"))
        zeroed = np.asarray(send(jax.random.key(seed), g, theta))
        same = kept == g
        shares.append(np.mean(same))
        np.testing.assert_array_equal(zeroed[same], 0)
        np.testing.assert_array_equal(zeroed[~same], kept[~same])
        assert np.all(zeroed[~same] != 0)
    assert abs(np.mean(shares) - (1 - reference.accepted_share())) < 0.012
    assert abs(np.mean(shares) - (1 - reference.accepted_share(3.0))) > 0.05


def test_the_value_noise_follows_its_law_and_not_half_as_much_again():
    g = np.full((5000, 4), 200.0, np.float32)  # far above all noise: every entry is accepted
    epsilon = 20_000.0 * 9  # sigma(epsilon_1) = 1/4, sigma(epsilon_2) = 1
    noise = np.asarray(send(jax.random.key(4), g, 1.0, epsilon, 1e6, 0.0)) - g
    assert np.mean(noise == 0) < 1e-3
    harness.assert_law(noise.ravel(), *(scipy.stats.laplace(scale=s) for s in (1, 1.5)))


@pytest.mark.parametrize("gap", [0.5, 2.0])
def test_a_lone_entry_is_accepted_as_often_as_query_and_threshold_noise_say(gap):
    """tau - |g| = gap, sigma(epsilon_1) = 2."""
    g, count = jnp.full((1, 1), 0.5), 40_000

    def one(key):
        return ppdl_gradient(key, g, 1.0, 9 / 8, 1.0, 0.5 + gap)

    sent = harness.quick_jit(jax.vmap(one))(jax.random.split(jax.random.key(5), count))
    accepted = int(np.sum(np.asarray(sent) != 0))
    rate, wide = (reference.first_accepted(gap, s) for s in (2.0, 3.0))
    assert scipy.stats.binomtest(accepted, count, rate).pvalue > 1e-3
    assert scipy.stats.binomtest(accepted, count, wide).pvalue < 1e-6


def test_entries_are_visited_in_a_uniform_order():
    """With a quota of one and no noise to speak of, the first visited is the one sent."""
    g, count = jnp.ones((2, 3)), 6000

    def one(key):
        return ppdl_gradient(key, g, 0.2, 1e6, 1.0, 0.0)

    sent = harness.quick_jit(jax.vmap(one))(jax.random.split(jax.random.key(6), count))
    hits = np.sum(np.asarray(sent).reshape(count, 6) != 0, axis=0)
    assert hits.sum() == count
    assert scipy.stats.chisquare(hits).pvalue > 1e-3


# the two forms of selection


def selections(count, seed):
    """Queries, thresholds and quotas: with many ties, of noise, never reached, always reached, with NaN."""
    rng = np.random.default_rng(seed)
    tied = rng.integers(-3, 4, count), rng.integers(-3, 5, count + 1)
    noise = 2 * rng.laplace(size=count), rng.laplace(size=count + 1)
    broken = (np.where(rng.random(a.size) < 0.2, np.nan, a) for a in noise)
    constant = np.zeros(count), np.zeros(count + 1)
    pairs = [tied, noise, broken, constant, (constant[0], constant[1] + 1)]
    for query, thresholds in (tuple(map(np.float32, pair)) for pair in map(tuple, pairs)):
        for quota in {0, 1, count // 3, count // 2, count}:
            yield query, thresholds, np.int32(quota)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 33])
def test_both_forms_accept_what_the_numpy_loop_accepts(count):
    cases = [case for seed in range(4) for case in selections(count, seed)]
    stacked = tuple(map(np.stack, zip(*cases, strict=True)))
    expected = [reference.accept(*case) for case in cases]
    assert any(map(np.any, expected))
    for form in (by_visits, by_jumps):
        np.testing.assert_array_equal(harness.quick_jit(jax.vmap(form))(*stacked), expected)


def test_both_forms_send_the_same_to_the_bit(monkeypatch):
    g, key = jnp.asarray(tensor(7, (24, 3), 1.0)), jax.random.key(9)
    knobs = jnp.float32([0.0, 0.1, 0.5, 1.0] * 2), jnp.float32([1.0] * 4 + [1e-3] * 4)
    sent = []
    for form in (by_visits, by_jumps):
        monkeypatch.setattr(ppdl_module, "accept", form)

        def one(theta, sensitivity):
            given = key, g, theta, 1.8, 1.0, 1e-4, sensitivity
            return [ppdl_gradient(*given, on_exhaustion=rule) for rule in ("zero", "keep")]

        sent.append(np.stack(harness.quick_jit(jax.vmap(one))(*knobs)))
    assert np.any(sent[0])
    np.testing.assert_array_equal(sent[0].view(np.int32), sent[1].view(np.int32))


def test_only_a_cpu_visits_one_entry_after_another():
    order, draws = visits(0, 30)
    traced = jax.jit(lambda g: treat(g, order, draws, 0.5, **PUBLISHED)).trace(
        tensor(0, (6, 5), 1e-3)
    )
    for platform, loops in (("cpu", True), ("cuda", False), ("tpu", False)):
        program = traced.lower(lowering_platforms=(platform,)).as_text()
        assert ("stablehlo.while" in program) == loops
