"""The verdict on a printed number, against SciPy's own tests and against its limits."""

import math

import numpy as np
import pytest
from scipy import stats

from analysis.reproduction.agreement import (
    Status,
    after_correction,
    agreement,
    by_chance,
    expected_range,
)
from analysis.reproduction.papers import numbers

PLAIN = numbers()[0]._replace(
    value=0.7, printed="0.7000000000000", spread=None, runs=None, kind="reported"
)
SPREAD = PLAIN._replace(spread=0.02, runs=10)
TEN = np.array([-1.2, -0.8, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.8, 1.2])


def ours(mean: float, spread: float) -> np.ndarray:
    return mean + spread * TEN / TEN.std(ddof=1)


def restated(values, theirs, runs) -> tuple[str, float]:
    """The verdict by three of SciPy's tests on two samples' statistics."""

    def p_value(value, alternative):
        sample = (np.mean(values), np.std(values, ddof=1), len(values), value, theirs, runs)
        return stats.ttest_ind_from_stats(*sample, False, alternative).pvalue

    p = p_value(0.7, "two-sided")
    if max(p_value(0.67, "greater"), p_value(0.73, "less")) <= 0.05:
        return "equivalent", p
    return ("differs" if p < 0.05 else "compatible, low power"), p


@pytest.mark.parametrize(("spread", "theirs", "runs"), [(0.01, 0.02, 10), (0.05, 0.06, 5)])
def test_two_means_with_spreads_are_judged_by_two_one_sided_tests_and_welch_s(spread, theirs, runs):
    number = PLAIN._replace(spread=theirs, runs=runs)
    found = set()
    for shift in np.linspace(-0.12, 0.12, 25):
        values = ours(0.7 + shift, spread)
        result = agreement(number, values)
        status, p = restated(values, theirs, runs)
        assert (result.status, result.p) == (status, pytest.approx(p))
        assert (abs(result.difference) > result.width) == (result.p < 0.05)
        found.add(result.status)
    assert found == {Status.DIFFERS, Status.EQUIVALENT if spread == 0.01 else Status.COMPATIBLE}


@pytest.mark.parametrize("runs", [None, 10])
def test_without_a_printed_spread_ours_stands_in(runs):
    values = ours(0.72, 0.03)
    result = agreement(PLAIN._replace(runs=runs), values)
    error = 0.03 * math.sqrt(1 / 10 + 1 / (runs or 1))
    assert result.p == pytest.approx(2 * stats.t.sf(0.02 / error, 9))
    assert (result.borrowed, agreement(SPREAD, values).borrowed) == (True, False)
    low, high = stats.t.interval(0.95, 9, values.mean(), stats.sem(values))
    assert (result.low, result.high) == pytest.approx((low, high))


def test_best_and_worst_give_the_spread_whose_expected_range_they_are():
    draws = np.random.default_rng(0).standard_normal((20_000, 10))
    assert expected_range(10) == pytest.approx(np.ptp(draws, axis=1).mean(), abs=0.02)
    values = ours(0.72, 0.02)
    ends = PLAIN._replace(worst=0.65, best=0.75, runs=10)
    same = PLAIN._replace(spread=0.1 / expected_range(10), runs=10)
    assert agreement(ends, values).p == pytest.approx(agreement(same, values).p)
    assert not agreement(ends, values).borrowed


def test_the_margin_is_two_printed_units_where_they_are_larger():
    coarse = SPREAD._replace(printed="0.7", spread=0.0)  # two units are .2
    assert agreement(coarse, [0.85] * 10).status is Status.EQUIVALENT
    assert agreement(coarse._replace(printed="0.70"), [0.85] * 10).status is Status.DIFFERS
    gradient = SPREAD._replace(printed="0.700", spread=0.0, metric="gan_gradient_avg")
    assert agreement(gradient, [0.7019] * 10).status is Status.EQUIVALENT
    assert agreement(gradient, [0.7021] * 10).status is Status.DIFFERS


def test_runs_that_are_all_the_same_are_equivalent_or_differ():
    number = SPREAD._replace(spread=0.0, printed="0.70")
    for value, status in ((0.70, "equivalent"), (0.73, "equivalent"), (0.7301, "differs")):
        assert agreement(number, [value] * 10).status == status
    assert agreement(number, [0.7049] * 10).p == 1  # rounding may hide it
    assert agreement(number, [0.7051] * 10).p == 0


@pytest.mark.parametrize(("kind", "sign"), [("lower_bound", 1), ("upper_bound", -1)])
def test_a_bound_has_one_side_and_no_printed_units(kind, sign):
    number = PLAIN._replace(kind=kind, printed="0.7")
    limit = 0.03 / np.sqrt(10) * stats.t.ppf(0.95, 9)

    def judged(beyond):
        return agreement(number, ours(0.7 - sign * beyond, 0.03))

    assert judged(-0.2).status is Status.EQUIVALENT
    assert judged(0.029 - limit).status is Status.EQUIVALENT
    assert judged(limit * 0.99).status is Status.COMPATIBLE
    assert judged(limit * 1.75).status is Status.DIFFERS
    assert judged(limit).p == pytest.approx(0.05)


def test_one_seed_has_no_verdict_and_what_is_no_number_is_refused():
    result = agreement(PLAIN, [0.7])
    assert result.status is Status.ONE_SEED
    assert math.isnan(result.p)
    assert by_chance([Status.DIFFERS] * 40 + [result.status] * 9) == pytest.approx(2.0)
    for values in ([], [0.5, np.nan]):
        with pytest.raises(ValueError, match="give finite numbers"):
            agreement(PLAIN, values)


def test_what_remains_after_benjamini_and_hochberg_is_the_largest_rank_below_its_share():
    assert after_correction([]) == []
    p_values = np.array([0.3, 0.001, 0.008, 0.041, 0.018, 1.0, 0.04, 0.9])
    below = np.sort(p_values) <= 0.05 * np.arange(1, 9) / 8
    largest = np.sort(p_values)[np.flatnonzero(below).max()]
    assert after_correction(p_values.tolist()) == list(p_values <= largest)
    assert sum(p_values <= largest) == 3  # and five are below .05 each
