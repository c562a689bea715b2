"""Label DP of numbers: bins that no division beats, the laws of draws, and what training sees of labels."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests import harness
from tests.reference import rr_on_bins as reference
from vfljax.defenses import rr_on_bins
from vfljax.defenses.core import TrainingData
from vfljax.defenses.label_dp import label_dp, laplace, response_on_bins

CELLS, ROWS = 8, 20_000
EPSILONS = (0.0, 0.5, 2.0, 5.0)
ACCEPT = 1e-3  # keys are fixed, so these tests do not flicker
KEY = jax.random.key(0)
RANGE = np.float32([-4.0, 5.0])
best = harness.quick_jit(jax.vmap(rr_on_bins.optimal_bins, in_axes=(0, None)))
optimal = harness.quick_jit(rr_on_bins.optimal_bins)
draw = harness.quick_jit(response_on_bins)


def priors():
    """[6, 8]: uniform, one with empty cells, and others."""
    rng = np.random.default_rng(0)
    drawn = [rng.dirichlet(np.full(CELLS, a)) for a in (0.2, 1.0, 1.0, 10.0)]
    return np.float32([np.full(CELLS, 1 / CELLS), [0, 0, 0.5, 0, 0, 0.25, 0.25, 0], *drawn])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_division_of_the_range_has_a_smaller_error(epsilon):
    found = jax.device_get(best(priors(), epsilon))
    for prior, bin_of, values, count in zip(priors(), *found, strict=True):
        prior = np.float64(prior) / prior.sum()
        assert bin_of[0] == 0
        assert {*np.diff(bin_of)} <= {0, 1}
        assert bin_of[-1] == count - 1
        expected = reference.best_values(bin_of, prior, epsilon)
        np.testing.assert_allclose(values[:count], expected, atol=1e-5)
        error = reference.error(bin_of, values[:count], prior, epsilon)
        least = reference.least_error(prior, epsilon)
        assert reference.least_errors(prior, epsilon).min() == pytest.approx(least, rel=1e-9)
        assert error <= least * (1 + 1e-3) + 1e-6


@pytest.mark.parametrize(("steep", "epsilon"), [(1.0, 4.0), (20.0, 16.0), (20.0, 30.0)])
def test_nor_has_any_of_the_cells_that_users_get(steep, epsilon):
    """Also where nearly all mass is in few cells, and errors are far below the steps of float32 of 1."""
    prior = np.exp(-steep * np.arange(rr_on_bins.CELLS) / rr_on_bins.CELLS)
    prior = np.float32(prior / prior.sum())
    found = jax.device_get(optimal(prior, epsilon))
    count, exact = int(found.count), np.float64(prior)
    error = reference.error(found.bin_of, np.float64(found.values[:count]), exact, epsilon)
    least = reference.least_errors(exact, epsilon)
    assert error == pytest.approx(least.min(), rel=1e-3, abs=1e-15)
    assert count == least.argmin() + 1


def test_without_privacy_the_answer_is_the_priors_mean_and_with_little_it_is_the_own_cell():
    uniform = np.full((6, CELLS), 1 / CELLS, np.float32)
    for epsilon, count in ((0.0, 1), (40.0, CELLS)):
        found = best(uniform, epsilon)
        assert found.count[0] == count
        middles = (np.arange(count) + 0.5) / count
        np.testing.assert_allclose(found.values[0][:count], middles, atol=1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_draws_follow_the_twins_law_and_no_odds_exceed_e_to_the_epsilon(epsilon):
    """Counted from draws of every cell: of any value, between any two cells, and each near its law."""
    prior, each = rr_on_bins.prior_of("5:3:1"), 4000
    bins = jax.device_get(optimal(prior, epsilon))
    count = int(bins.count)
    assert count > 1
    u = np.repeat((np.arange(rr_on_bins.CELLS) + 0.5) / rr_on_bins.CELLS, each).astype(np.float32)
    drawn = np.asarray(draw(KEY, u, prior, epsilon))
    places = np.abs(drawn[:, None] - bins.values[:count]).argmin(axis=1)
    np.testing.assert_array_equal(drawn, bins.values[places])
    counts = np.array([np.bincount(of, minlength=count) for of in places.reshape(-1, each)])
    law = reference.law(bins.bin_of, epsilon)
    p = [stats.chisquare(of, row * each).pvalue for of, row in zip(counts, law, strict=True)]
    assert min(p) > ACCEPT / rr_on_bins.CELLS
    whole = np.array([counts[bins.bin_of == j].sum(axis=0) for j in range(count)])
    shares = whole / whole.sum(axis=1, keepdims=True)
    # a count of some hundred at least: of its logarithm five standard deviations
    off = 5 * np.sqrt((1 / whole).max(axis=0) + (1 / whole).min(axis=0))
    odds = np.log(shares.max(axis=0) / shares.min(axis=0))
    assert (odds < epsilon + off).all()
    assert (odds > epsilon - off).all()


@pytest.mark.parametrize("epsilon", [0.25, 4.0])
def test_noise_is_laplaces_of_the_range_over_epsilon(epsilon):
    u = np.random.default_rng(1).random(ROWS).astype(np.float32)
    noise = np.asarray(harness.quick_jit(laplace)(KEY, u, epsilon)) / epsilon - u
    assert stats.kstest(noise, stats.laplace(scale=1 / epsilon).cdf).pvalue > ACCEPT
    for other in (epsilon / 1.1, epsilon * 1.1):
        assert stats.kstest(noise, stats.laplace(scale=1 / other).cdf).pvalue < ACCEPT


def test_laplace_noise_is_coarser_than_its_own_steps_and_its_tails_are_the_laws():
    rows = 1 << 20
    noise = np.asarray(harness.quick_jit(laplace)(KEY, np.zeros(rows, np.float32), 1.0))
    np.testing.assert_array_equal(noise, np.round(noise * 256) / 256)
    for least in (1, 4, 8):  # tails of both sides
        for side in (noise, -noise):
            share = np.mean(side > least)
            law = math.exp(-least - 1 / 512) / 2
            assert abs(share - law) < 5 * math.sqrt(law / rows)


def labels_of(seed=2, rows=400):
    return np.float32(np.random.default_rng(seed).normal(size=rows))


def shares_of(labels, bounds=RANGE):
    low, high = bounds
    return (np.clip(labels, low, high) - low) / (high - low)


def states(mechanism, labels, shares=None, bounds=RANGE, epsilons=(0.0, 1.0, 4.0, math.inf)):
    """The states of a grid of epsilons, by one program."""

    def init(epsilon, labels, shares, bounds):
        data = TrainingData(labels, None, 1, label_range=bounds, shares_of_range=shares)
        return label_dp(epsilon, mechanism=mechanism).init(KEY, data)

    program = programs.setdefault(
        mechanism, harness.quick_jit(jax.vmap(init, (0, None, None, None)))
    )
    shares = shares_of(labels) if shares is None else shares
    return jax.device_get(program(np.float32(epsilons), labels, shares, bounds))


programs = {}
both = pytest.mark.parametrize("mechanism", ["laplace", "rr_on_bins"])


@both
def test_an_infinite_epsilon_changes_no_bit_and_zero_tells_nothing_of_labels(mechanism):
    labels = labels_of()
    found = states(mechanism, labels)
    np.testing.assert_array_equal(found["labels"][-1], labels)
    assert (found["offset"][-1], found["slope"][-1]) == (0, 1)
    other = states(mechanism, np.sort(labels)[::-1].copy())
    np.testing.assert_array_equal(found["labels"][0], other["labels"][0])
    assert np.any(found["labels"][1] != other["labels"][1])
    assert np.isfinite([*found["labels"].ravel(), *found["slope"], *found["offset"]]).all()


@both
def test_training_sees_no_statistic_of_the_labels_but_of_randomized_ones(mechanism):
    """Labels that were standardized by other moments give equal targets, and are read alike."""
    labels = labels_of()
    found = states(mechanism, labels)
    moved = states(mechanism, labels / 4 - 3, shares_of(labels), RANGE / 4 - 3)
    for k in range(3):
        of, after = found["labels"][k], moved["labels"][k]
        np.testing.assert_array_equal(after, of)
        assert abs(of.mean()) < 1e-5
        np.testing.assert_allclose(of.std(), of.std() > 0, atol=1e-5)
    for name, change in (("slope", lambda a: a / 4), ("offset", lambda a: a / 4 - 3)):
        np.testing.assert_allclose(moved[name][1:3], change(found[name][1:3]), rtol=1e-3, atol=1e-3)


@both
def test_labels_beyond_the_range_count_as_its_bounds(mechanism):
    wide = 4 * labels_of()
    assert (wide > RANGE[1]).any()
    found, clipped = states(mechanism, wide), states(mechanism, np.clip(wide, *RANGE))
    jax.tree.map(np.testing.assert_array_equal, found, clipped)


@both
def test_predictions_are_read_in_the_unit_of_true_labels(mechanism):
    labels = labels_of(rows=400)
    found = states(mechanism, labels)
    defense = label_dp(4.0, mechanism=mechanism)
    state = {name: of[2] for name, of in found.items()}
    read = np.asarray(defense.read(state, state["labels"][:, None]))[:, 0]
    # the randomized labels themselves: unbiased noise, or values within the range
    assert np.polyfit(labels, read, 1)[0] == pytest.approx(1, abs=0.5)
    width = RANGE[1] - RANGE[0]
    if mechanism == "laplace":
        assert np.abs(read - labels).mean() == pytest.approx(width / 4, rel=0.2)
    else:
        assert RANGE[0] <= read.min() < read.max() <= RANGE[1]


def test_what_the_labels_or_the_mechanism_rule_out_is_refused_in_one_line():
    bounds = {"label_range": jnp.float32(RANGE), "shares_of_range": jnp.zeros(4)}
    numbers = TrainingData(jnp.zeros(4), None, 1, **bounds)
    classes = TrainingData(jnp.zeros(4, jnp.int32), None, 3)
    for mechanism, data, message in (
        ("laplace", classes, "is for labels that are numbers, and the data has 3 classes"),
        ("rr_on_bins", numbers._replace(label_range=None), "label_range"),
        ("randomized_response", numbers, "is for classes, and these labels are numbers"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            label_dp(1.0, mechanism=mechanism).init(KEY, data)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"^masses='1:2' is not read by laplace: leave it out"):
        label_dp(1.0, mechanism="laplace", masses="1:2")
    for masses in ("1:-2", "x", "0:0", "1:nan", ":".join("1" * 65)):
        with pytest.raises(ValueError, match=f"^masses='{masses}'"):
            label_dp(1.0, mechanism="rr_on_bins", masses=masses)


def test_a_prior_has_the_density_of_its_parts():
    np.testing.assert_allclose(rr_on_bins.prior_of(""), 1 / 64, rtol=1e-6)
    found = rr_on_bins.prior_of("5:3:1:0").reshape(4, 16)
    np.testing.assert_allclose(
        found, np.repeat([[5], [3], [1], [0]], 16, axis=1) / 9 / 16, atol=1e-7
    )


def test_a_teacher_of_numbers_learns_nothing():
    taught, weights = label_dp(1.0, mechanism="laplace").teach(KEY, jnp.arange(3.0), 1)
    assert not np.any(taught)
    assert not np.any(weights)
