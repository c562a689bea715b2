"""Limits of means over seeds, and the numbers of seeds that would decide."""

import math

import numpy as np
import pytest

from tests.report.made import made
from vfljax.report.limits import MOST_SEEDS, deciding_seeds, limits, projected

BARE = {"probe/mean": 0.95}


@pytest.mark.parametrize("seeds", [3, 5])
def test_limits_of_as_many_seeds_are_the_limits_themselves(seeds):
    values = np.random.default_rng(seeds).normal(0.5, 0.1, (4, seeds))
    found = limits(values)
    lower, upper = projected(found, np.array([seeds, 4 * seeds]))
    np.testing.assert_allclose(lower[:, 0], found.lower)
    np.testing.assert_allclose(upper[:, 0], found.upper)
    assert (upper[:, 1] - lower[:, 1] < (upper[:, 0] - lower[:, 0]) / 2).all()


def test_the_first_number_of_seeds_that_decides_is_named():
    seeds = np.array([3, 4, 5])
    decides = np.array([[False, True, True], [False, False, False]])
    np.testing.assert_array_equal(deciding_seeds(decides, seeds), [4, math.nan])


def test_seeds_are_named_for_what_is_open_alone():
    wide = {"probe/mean": [0.95, 0.6, 0.95, 0.65, 0.9]}
    unclear = {"probe/mean": 0.6, "test_utility": [0.8, 0.9, 0.95, 0.8, 0.9]}
    judged = made(BARE, wide, unclear, {"probe/mean": 0.6, "test_utility": 0.88})
    verdict, cost = judged.leading["verdict_seeds"], judged.leading["cost_seeds"]
    assert [*verdict.isna()] == [True, False, True, True]
    assert [*cost.isna()] == [True, True, False, True]
    for found in (verdict[1], cost[2]):
        assert 5 < found <= MOST_SEEDS


def test_a_mean_at_the_threshold_is_decided_by_no_number_of_seeds():
    at_once = {"probe/mean": [0.55, 0.75, 0.65, 0.6, 0.7]}  # e is .05 beyond .6, but for its sign
    judged = made(BARE, {"probe/mean": [0.65, 0.67, 0.63, 0.66, 0.64]}, at_once)
    assert math.isnan(judged.leading["verdict_seeds"].iloc[1])
