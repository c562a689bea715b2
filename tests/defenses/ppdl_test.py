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
from vfljax.defenses.ppdl import LaplaceDraws, by_jumps, by_visits, ppdl_gradient, treat

treat_fn = harness.quick_jit(treat, static_argnames="on_exhaustion")
send = harness.quick_jit(ppdl_gradient, static_argnames="on_exhaustion")
SHAPE = (6, 5)
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


@pytest.mark.parametrize("on_exhaustion", ["zero", "keep"])
def test_agrees_with_the_numpy_twin_from_noise_alone_to_hardly_any(on_exhaustion):
    order, draws = visits(0, math.prod(SHAPE))
    g = tensor(90, SHAPE, 1e-3)
    for theta, sensitivity in itertools.product(("0", "0.1", "0.5", "1"), (1.0, 1e-5, 1e-9)):
        knobs = {"sensitivity": sensitivity}
        ours, twin = both(g, order, draws, Fraction(theta), on_exhaustion, **knobs)
        np.testing.assert_allclose(ours, twin, rtol=1e-5, atol=1e-8, err_msg=f"{theta} {knobs}")
    for gamma, tau, scale in ((1e30, 0.0, 1e30), (1e-30, 1e-31, 1e-30), (0.0, 0.0, 1.0)):
        ours, twin = both(g * scale, order, draws, 0.5, on_exhaustion, gamma=gamma, tau=tau)
        assert np.all(np.isfinite(ours))
        np.testing.assert_allclose(ours, twin, rtol=1e-5, atol=1e-35)


def test_when_entries_run_out_keep_leaves_the_expected_share_bit_exact_and_zero_zeroes_it():
    """Share not accepted: 1 - 1 / (4 ln 2) = .639; .57 were the query noise half as wide again."""
    np.testing.assert_allclose(reference.accepted_share(), 1 / (4 * math.log(2)), rtol=1e-6)
    g, shares = tensor(3, (512, 8), 1e-3), []
    for seed in range(8):
        kept = np.asarray(send(jax.random.key(seed), g, 0.5, on_exhaustion="keep"))
        zeroed = np.asarray(send(jax.random.key(seed), g, 0.5))
        same = kept == g
        shares.append(np.mean(same))
        np.testing.assert_array_equal(zeroed[same], 0)
        np.testing.assert_array_equal(zeroed[~same], kept[~same])
        assert np.all(zeroed[~same] != 0)
    assert abs(np.mean(shares) - (1 - reference.accepted_share())) < 0.012
    assert abs(np.mean(shares) - (1 - reference.accepted_share(3.0))) > 0.05


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


@pytest.mark.parametrize("count", [1, 8, 33])
def test_both_forms_accept_what_the_numpy_loop_accepts(count):
    cases = [case for seed in range(2) for case in selections(count, seed)]
    stacked = tuple(map(np.stack, zip(*cases, strict=True)))
    expected = [reference.accept(*case) for case in cases]
    assert any(map(np.any, expected))
    for form in (by_visits, by_jumps):
        np.testing.assert_array_equal(harness.quick_jit(jax.vmap(form))(*stacked), expected)


def test_only_a_cpu_visits_one_entry_after_another():
    order, draws = visits(0, 30)
    traced = jax.jit(lambda g: treat(g, order, draws, 0.5, **PUBLISHED)).trace(
        tensor(0, (6, 5), 1e-3)
    )
    for platform, loops in (("cpu", True), ("cuda", False), ("tpu", False)):
        program = traced.lower(lowering_platforms=(platform,)).as_text()
        assert ("stablehlo.while" in program) == loops
