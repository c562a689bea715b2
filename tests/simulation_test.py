"""A short simulation of judging where the truth is known; the long one is analysis/results/judging."""

import numpy as np
import pytest

from analysis import judging, simulation
from analysis.simulation import Cell
from vfljax.report import captions


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_drawn_figures_have_the_mean_and_spread_that_are_said(random):
    figures = simulation.draw(random, [0.6, 0.97], Cell(5, 2, 0.5, 0.05), 20_000)
    np.testing.assert_allclose(figures.mean((0, 2)), [0.6, 0.97], atol=2e-3)
    np.testing.assert_allclose(figures.std((0, 2)), [0.05, 0.05], atol=2e-3)
    shared = np.corrcoef(figures[:, 0].ravel(), figures[:, 1].ravel())[0, 1]
    assert 0.35 < shared < 0.5  # a little less than of the normal variables


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_folds_are_unbiased_for_what_they_picked(correlation, random):
    cell = Cell(3, 10, correlation, 0.05)
    for profile in ("equal", "close"):
        result = simulation.choices(cell, simulation.profiles(cell)[profile], 4000, random)
        assert abs(result["bias"]) <= 0.005
        assert result["flattery"] > 0.005  # which is what choosing where it is scored costs
        assert -1e-9 <= result["shortfall"] < 0.05


def test_the_stored_biases_are_what_the_command_makes_and_grow_with_the_spread():
    (made,) = judging.bias_rows([4], [3], simulation.BIAS_RUNS)
    stored = captions.stored_bias(4, 3)
    assert (stored.seeds, stored.candidates) == (4, 3)
    assert list(stored.by_spread) == list(simulation.SPREADS)
    for spread, figure in stored.by_spread.items():
        assert figure == pytest.approx(made[f"spread {spread:g}"], rel=1e-3)
    assert 0 < stored.by_spread[0.01] < stored.by_spread[0.03] < stored.by_spread[0.1] < 0.1


def test_between_stored_numbers_fewer_seeds_and_more_candidates_count():
    assert captions.stored_bias(11, 41)[:2] == (10, 50)
    assert captions.stored_bias(99, 999)[:2] == (20, 100)


def test_false_verdicts_are_as_rare_as_is_said_and_clear_cases_are_clear(random):
    cell, clear = Cell(5, 5, 0.5, 0.02), ("protected", "reduced", "nothing there")
    for name in ("e = .05, all", "e = e_u / 4", "d = 0", "d = -.02", *clear):
        for world in ("equal spreads", "unequal spreads"):
            truth = simulation.TRUTHS[name]
            result = simulation.rates(cell, simulation.WORLDS[world], truth, 100, random)
            assert result["false"] <= 0.115, name  # .05, and three standard errors of 100 runs
            if name in clear and world == "equal spreads":
                assert result["right"] >= 0.95, name


def test_a_leader_that_fails_is_judged_well_by_its_successes_and_not_by_the_mean(random):
    """By the mean it is called more than it is; that "less" is right of e is no error of that half."""
    cell, truth = Cell(5, 5, 0.5, 0.02), simulation.TRUTHS["e = .05"]
    name = "leader fails on one seed in eight"
    by_mean, by_successes = (
        simulation.rates(cell, simulation.WORLDS[world], truth, 100, random)
        for world in (name, f"{name}, judged by its successes")
    )
    assert by_mean["false"] == by_mean["false_more"] > 0.2 > 0.05 > by_mean["false_less"]
    assert by_successes["false"] == max(by_successes["false_more"], by_successes["false_less"])
    assert by_successes["false"] <= 0.115
