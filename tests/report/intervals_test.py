"""The limits of leaks, of their changes, and which attacks they leave out."""

import math

import numpy as np
import pytest

from tests.reference import judging as twin
from tests.report.judging_test import NAN, ROWS, constant, judged, of, points
from tests.sweeps import REFERENCE
from vfljax.report import candidates as strongest_module
from vfljax.report import intervals, judging, spread
from vfljax.report.intervals import LOWER, UPPER
from vfljax.report.judging import Verdict
from vfljax.report.strongest import broken_attacks


def limits_of(figures, rows):
    """The lower and upper limit of figures of one attack."""
    return [float(limit) for limit in intervals.worst_limits(intervals.sample([figures], rows))]


@pytest.mark.parametrize("rows", [1, 20, 5000])
@pytest.mark.parametrize("figure", [0.0, 0.3, 0.5, 1.0])
def test_equal_seeds_have_the_limits_of_their_rows(figure, rows):
    low, high = limits_of([figure] * 5, rows)
    assert 0 <= low <= figure <= high <= 1
    assert low < high
    assert math.isclose(1 - high, limits_of([1 - figure] * 5, rows)[0], abs_tol=1e-12)
    assert high == 1 or figure < 1
    more = limits_of([figure] * 5, 4 * rows)
    assert more[1] - more[0] < high - low


def test_many_rows_and_a_small_spread_give_the_t_interval():
    figures = np.array([0.5, 0.501, 0.502, 0.499, 0.498])
    half = 2.1318 * figures.std(ddof=1) / math.sqrt(5)
    for side, limit in zip((LOWER, UPPER), limits_of(figures, 10**8)):
        assert math.isclose(limit, 0.5 + side * half, abs_tol=1e-6)
        limit = spread.means(figures - 0.5, 0.0).limit(side, 0.95)
        assert math.isclose(limit, side * half, abs_tol=1e-6)


def test_what_rows_alone_let_a_figure_spread_is_taken_where_it_is_known():
    leaks = np.full((2, 5), 0.8)
    bound = intervals.sample(leaks, 200).errors
    assert bound == pytest.approx([math.sqrt(0.8 * 0.2 / 200)] * 2, rel=1e-2)
    known = intervals.sample(leaks, 200, np.array([[0.01] * 5, [NAN] * 5])).errors
    assert known == pytest.approx([0.01, bound[1]])
    perfect = intervals.sample(np.ones((1, 5)), 200, np.zeros((1, 5))).errors
    assert perfect == pytest.approx([twin.half_row(200)])


def test_a_change_uses_that_no_figure_passes_one():
    defended, plain = np.array([[0.99, 0.97, 0.985]]), np.array([[0.999, 0.99, 1.0]])
    low = -intervals.most_changed(points(plain), points(defended)).max()
    high = intervals.most_changed(points(defended), points(plain)).max()
    least = intervals.worst_limits(points(plain), 0.975).lower
    assert high <= 1 - least < 0.07
    assert low >= intervals.worst_limits(points(defended), 0.975).lower - 1


def test_an_attack_without_three_figures_rules_nothing_out_and_one_not_tried_is_no_candidate():
    leaks = np.vstack([constant(0.6), [[NAN, NAN, NAN, 0.5, 0.5]]])
    assert intervals.worst_limits(intervals.sample(leaks, ROWS)).upper == 1
    result = judged(leaks, constant(0.9))
    assert result.verdict == Verdict.CANNOT_SAY
    assert result.missing == ("attack 1",)
    plain = strongest_module.strongest_of(of(constant(0.9)))
    fewer, more = (strongest_module.strongest_of(of(constant(*x))) for x in ((0.6,), (0.6, 0.5)))
    first, second = judging.judge([fewer, more], plain)
    assert first.verdict == second.verdict == Verdict.PROTECTS


@pytest.mark.parametrize(
    ("leaks", "broken"),
    [
        ([NAN, NAN, NAN], True),
        ([0.5, 0.5, 0.5], True),
        ([0.5, NAN, 0.5], True),
        ([0.3, 0.32, 0.31], True),
        ([0.3, 0.32, 0.49], False),
        ([0.5, 0.5, 0.51], False),
        ([0.9, NAN, NAN], False),
    ],
)
def test_an_attack_that_failed_on_every_seed_is_broken(leaks, broken):
    assert bool(broken_attacks(np.array(leaks), REFERENCE)) == broken
