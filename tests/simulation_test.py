"""A short simulation of judging where the truth is known; the long one is analysis/results/judging."""

import numpy as np
import pytest

from analysis import judging, simulation
from analysis.simulation import Cell
from vfljax.report import false_rates


@pytest.fixture
def random():
    return np.random.default_rng(0)


@pytest.mark.parametrize("world", ["unequal spreads", judging.FAILING])
def test_the_strongest_of_each_run_reads_on_average_what_the_truth_says(world, random):
    cell, truth = Cell(5, 10, 4, 0.03), simulation.TRUTHS["e = .05, all"]
    leaks, learned, means = simulation.figures_of(
        cell, simulation.WORLDS[world], truth, 800, random
    )
    np.testing.assert_allclose(leaks.max(2).mean((0, 2)), means, atol=0.006)
    assert learned.mean() == pytest.approx(0.6, abs=0.006)


def test_false_verdicts_are_as_rare_as_is_said_and_clear_cases_are_clear(random):
    cell, clear = Cell(5, 5, 1, 0.02), ("protected", "reduced", "nothing there")
    stored = false_rates.false_rate(5, 5, 1)
    for name in ("e = .05, all", "e = e_u / 4", "d = 0", "d = -.02", *clear):
        for world in ("equal spreads", "unequal spreads"):
            truth = simulation.TRUTHS[name]
            result = simulation.rates(cell, simulation.WORLDS[world], truth, 100, random)
            assert result["false"] <= stored.ordinary + 3 * max(result["error"], 0.01), name
            assert result["false"] == max(result["false_more"], result["false_less"])
            if name in clear and world == "equal spreads":
                assert result["right"] >= 0.9, name


def test_between_stored_numbers_fewer_seeds_and_more_attacks_count():
    def numbers(*of):
        return false_rates.false_rate(*of)[:3]

    assert numbers(4, 6, 11) == (3, 20, 1)
    assert numbers(99, 999, 12) == (5, 80, 12)
    assert false_rates.false_rate(2, 5, 1) is None


@pytest.mark.slow
def test_the_command_writes_a_line_a_cell_and_draws_the_highest_again(tmp_path, monkeypatch):
    few = {"SEEDS": (3,), "ATTACKS": (2,), "LEARNERS": (1, 2), "SPREADS": (0.05,), "AGAIN": 2}
    for name, value in few.items():
        monkeypatch.setattr(judging, name, value)
    rows = judging.simulated(4, workers=1)
    assert len(rows) == 2 * (11 * 16 + 1)
    second = judging.again(rows, 4, workers=1)
    assert len(second) == 2 * (2 + 2 + 1)
    assert [row["first"] for row in second] != [row["false"] for row in second]
    path = tmp_path / "rates.csv"
    path.write_text(judging.as_csv(judging.largest(rows, second)))
    monkeypatch.setattr(false_rates, "FALSE_RATES", path)
    false_rates.stored.cache_clear()
    try:
        assert [*false_rates.stored()["attacks"]] == [2, 2]
    finally:
        false_rates.stored.cache_clear()
