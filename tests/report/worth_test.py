"""What a federation is worth, what a defense keeps of that, and the limits of a ratio."""

import math

import numpy as np
import pytest

from tests.reference import judging as twin
from vfljax.report import worth
from vfljax.report.worth import CostOutcome
from vfljax.sweep.records import Goal

SEEDS = range(5)
SPREAD = np.array([0.0, 0.002, -0.002, 0.001, -0.001])
ALONE = dict(zip(SEEDS, 0.80 + SPREAD))
PLAIN = dict(zip(SEEDS, 0.90 + SPREAD[::-1]))
NAN = math.nan


def kept(utility, alone=ALONE, **goal):
    by_seed = dict(zip(SEEDS, utility + SPREAD)) if isinstance(utility, float) else utility
    return worth.kept(by_seed, worth.worth(alone, PLAIN), Goal(**goal))


@pytest.mark.parametrize(
    ("utility", "goal", "cost"),
    [
        (0.88, {}, CostOutcome.KEPT),
        (0.82, {}, CostOutcome.TOO_MUCH),
        (0.85, {}, CostOutcome.UNCLEAR),
        (0.82, {"keep_gain": 0.1}, CostOutcome.KEPT),
        (0.88, {"keep_gain": 0.9}, CostOutcome.TOO_MUCH),
        (0.88, {"max_cost": 0.01}, CostOutcome.TOO_MUCH),
        (0.88, {"max_cost": 0.03}, CostOutcome.KEPT),
        (dict.fromkeys(SEEDS, NAN), {}, CostOutcome.UNKNOWN),
        ({0: 0.9, 1: 0.9}, {}, CostOutcome.UNKNOWN),
    ],
)
def test_a_cost_is_judged_by_its_contrast_to_a_share_of_the_gain(utility, goal, cost):
    assert kept(utility, **goal).cost is cost


def test_without_the_label_party_alone_the_loss_itself_is_judged():
    assert kept(0.89, {}).cost is CostOutcome.KEPT
    assert kept(0.87, {}).cost is CostOutcome.TOO_MUCH
    assert kept(0.87, {}, max_cost=0.05).cost is CostOutcome.KEPT
    assert math.isnan(kept(0.89, {}).share.mean)
    unknown, known = worth.worth({}, PLAIN), worth.worth(ALONE, PLAIN)
    assert (unknown.known, known.known, known.shown) == (False, True, True)
    assert (unknown.allowed(Goal()), unknown.allowed(Goal(max_cost=0.1))) == (0.02, 0.1)
    assert known.allowed(Goal()) == pytest.approx(0.05)
    assert known.allowed(Goal(max_cost=0.03)) == 0.03
    assert worth.worth(PLAIN, ALONE).allowed(Goal()) == 0  # it loses: nothing may be lost more


def test_the_share_that_is_kept_has_fiellers_limits_where_the_gain_is_shown():
    random = np.random.default_rng(0)
    for _ in range(20):
        denominators = 0.1 + 0.02 * random.standard_normal(5)
        numerators = 0.6 * denominators + 0.01 * random.standard_normal(5)
        found = worth._ratio(numerators, denominators)
        assert found.limits == pytest.approx(twin.fieller(numerators, denominators), abs=1e-9)
    assert kept(0.88).share.mean == pytest.approx(0.8)
    assert math.isnan(kept(0.9, PLAIN).share.mean)  # the federation gains nothing
    wide = worth._ratio(np.array([0.1, 0.2, 0.3]), np.array([-0.1, 0.05, 0.2]))  # by 0, perhaps
    assert math.isnan(wide.limits.lower)


@pytest.mark.parametrize(
    ("balance", "utility"), [([80, 20], "AUC"), ([70, 30], "accuracy"), ([90, 5, 5], "accuracy")]
)
def test_utility_is_auc_where_one_of_two_classes_is_rare(balance, utility):
    assert worth.utility_of(balance) == utility
