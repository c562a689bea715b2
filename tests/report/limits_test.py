"""Limits of means over seeds, and the numbers of seeds that would decide."""

import numpy as np

from tests.report.made import BARE, PROTECTS, made
from vfljax.report.limits import MOST_SEEDS, limits, projected


def test_limits_of_as_many_seeds_are_the_limits_themselves():
    found = limits(np.random.default_rng(0).normal(0.5, 0.1, (4, 5)))
    lower, upper = projected(found, np.array([5, 20]))
    np.testing.assert_allclose(lower[:, 0], found.lower)
    np.testing.assert_allclose(upper[:, 0], found.upper)
    assert (upper[:, 1] - lower[:, 1] < (upper[:, 0] - lower[:, 0]) / 2).all()


def test_seeds_are_named_for_what_is_open_and_can_be_decided():
    wide = {"probe/mean": [0.95, 0.6, 0.95, 0.65, 0.9]}
    unclear = {"probe/mean": 0.6, "test_utility": [0.8, 0.9, 0.95, 0.8, 0.9]}
    leading = made(BARE, wide, unclear, PROTECTS).leading
    verdict, cost = leading["verdict_seeds"], leading["cost_seeds"]
    assert [*verdict.isna()] == [True, False, True, True]
    assert [*cost.isna()] == [True, True, False, True]
    for found in (verdict[1], cost[2]):
        assert 5 < found <= MOST_SEEDS
    at_once = {"probe/mean": [0.55, 0.75, 0.65, 0.6, 0.7]}  # e is .05 beyond .6, but for its sign
    at_threshold = made(BARE, at_once).leading["verdict_seeds"]
    assert [*at_threshold.isna()] == [True, True]
