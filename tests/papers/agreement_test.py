"""The verdict on a printed number, against SciPy's own test and its limits."""

import numpy as np
import pytest
from scipy import stats

from vfljax.papers import numbers
from vfljax.papers.agreement import Status, agreement, by_chance

PLAIN = numbers()[0]._replace(
    value=0.7, printed="0.700", spread=None, runs=None, kind="reported", worst=None, best=None
)
TEN = np.array([-1.2, -0.8, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.8, 1.2])


def ours(mean: float, spread: float) -> np.ndarray:
    return mean + spread * TEN / TEN.std(ddof=1)


@pytest.mark.parametrize("spread", [0.01, 0.05])
@pytest.mark.parametrize(("theirs", "runs"), [(0.02, 10), (0.06, 5)])
def test_two_means_with_spreads_are_welch_s_test(spread, theirs, runs):
    number = PLAIN._replace(spread=theirs, runs=runs, printed="0.7000000000000")
    for shift in np.linspace(-0.12, 0.12, 49):
        values = ours(0.7 + shift, spread)
        test = stats.ttest_ind_from_stats(
            values.mean(), values.std(ddof=1), 10, 0.7, theirs, runs, equal_var=False
        )
        assert agreement(number, values).status == (
            Status.AGREES if test.pvalue >= 0.05 else Status.DIFFERS
        )


def test_half_a_printed_unit_is_allowed_beside_the_spreads():
    number = PLAIN._replace(value=1.0, spread=0.0, runs=10, printed="1.00")
    assert agreement(number, [0.9951] * 10).status == Status.AGREES
    assert agreement(number, [0.9949] * 10).status == Status.DIFFERS
    assert agreement(number._replace(printed="1.000"), [0.9951] * 10).status == Status.DIFFERS


def test_without_a_printed_spread_it_is_our_interval():
    values = ours(0.71, 0.01)
    low, high = stats.t.interval(0.95, 9, values.mean(), stats.sem(values))
    result = agreement(PLAIN, values)
    assert (result.low, result.high) == pytest.approx((low, high))
    for value, status in (
        (low - 0.0004, Status.AGREES),
        (low - 0.0006, Status.DIFFERS),
        (high + 0.0004, Status.AGREES),
        (high + 0.0006, Status.DIFFERS),
    ):
        assert agreement(PLAIN._replace(value=value), values).status == status
    assert result.difference == pytest.approx(0.01)


@pytest.mark.parametrize(("kind", "sign"), [("lower_bound", 1), ("upper_bound", -1)])
def test_a_bound_is_one_sided_and_not_rounded(kind, sign):
    number = PLAIN._replace(kind=kind, printed="0.7")
    error = 0.01 / np.sqrt(10) * stats.t.ppf(0.95, 9)
    assert agreement(number, ours(0.7 + sign * 0.2, 0.01)).status == Status.AGREES
    assert agreement(number, ours(0.7 - sign * error * 0.99, 0.01)).status == Status.AGREES
    assert agreement(number, ours(0.7 - sign * error * 1.01, 0.01)).status == Status.DIFFERS


def test_about_has_no_verdict_and_one_seed_none_either():
    assert agreement(PLAIN._replace(kind="approx"), ours(0.2, 0.01)).status == Status.SHOWN
    assert agreement(PLAIN._replace(kind="approx"), [0.2]).status == Status.SHOWN
    assert agreement(PLAIN, [0.7]).status == Status.SHOWN


def test_figures_that_are_no_numbers_are_refused():
    for values in ([], [0.5, np.nan]):
        with pytest.raises(ValueError, match="give finite numbers"):
            agreement(PLAIN, values)


def test_chance_alone_calls_one_in_twenty_different():
    judged = agreement(PLAIN, ours(0.7, 0.01)).status, agreement(PLAIN, [0.7]).status
    assert by_chance([judged[0]] * 40 + [judged[1]] * 9) == pytest.approx(2.0)
    rng, number = np.random.default_rng(0), PLAIN._replace(spread=0.0, runs=10, printed="0.7000000")
    draws = 0.7 + 0.03 * rng.standard_normal((2, 400, 10))
    found = [
        agreement(number._replace(value=b.mean(), spread=b.std(ddof=1)), a).status
        for a, b in zip(*draws, strict=True)
    ]
    assert 0.02 < found.count(Status.DIFFERS) / 400 < 0.09
