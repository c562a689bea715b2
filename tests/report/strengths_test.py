"""The strength of a defense that keeps the accuracy and leaks least."""

import math

import pytest

from tests.sweeps import point
from vfljax.report import judging, strengths, summary


def test_the_strength_is_chosen_on_validation_accuracy_not_on_test():
    points = [
        point("undefended", 0.9, 0.8),
        point("noise", 0.95, 0.3, {"noise.scale": 2.0}, validation=0.5),
        point("noise", 0.5, 0.6, {"noise.scale": 1.0}, validation=0.9),
    ]
    (choice,) = strengths.choices(points, 0.1)
    assert choice.point.knobs == {"noise.scale": 1.0}
    assert math.isclose(choice.change, -0.2)


def test_no_strength_that_keeps_the_accuracy_is_said():
    points = [point("undefended", 0.9, 0.8), point("noise", 0.5, 0.1, {"noise.scale": 1.0})]
    assert strengths.choices(points, 0.1)[0].point is None


def test_a_strength_may_cost_two_points_and_no_more():
    weak = point("noise", 0.9, 0.6, {"noise.scale": 1.0}, validation=0.88)
    strong = point("noise", 0.9, 0.3, {"noise.scale": 2.0}, validation=0.879)
    points = [point("undefended", 0.9, 0.8), weak, strong]
    assert strengths.choices(points, 0.1)[0].point is weak


def test_a_strength_that_diverged_on_a_seed_guesses_the_majority_there():
    lost = point("noise", 0.9, 0.3, {"noise.scale": 2.0})
    lost.validated["split"][1] = lost.by_seed["split"][1] = math.nan
    points = [point("undefended", 0.9, 0.8), lost]
    assert strengths.choices(points, 0.1)[0].point is None
    (choice,) = strengths.choices(points, 0.9)
    assert choice.point is lost
    assert choice.accuracy_change.mean == pytest.approx(0)


def by_seed(arm, leaks, knobs=None):
    """A point of these leaks, each attack's by seed."""
    candidates = judging.candidates([f"{k}" for k in range(len(leaks))], leaks, [0.5] * 3, 1000)
    one = point(arm, 0.9, 0.5, knobs)
    case = judging.worst_case(candidates)
    one.worst["split"] = one.worst["split"]._replace(candidates=candidates, case=case)
    return one


def test_each_fold_chooses_a_strength_on_the_other_seeds_and_is_scored_on_its_own():
    points = [
        by_seed("undefended", [[0.9, 0.9, 0.9]]),
        by_seed("noise", [[0.6, 0.7, 0.8], [0.5, 0.5, 0.5]], {"noise.scale": 1.0}),
        by_seed("noise", [[0.8, 0.72, 0.7]], {"noise.scale": 2.0}),
    ]
    (choice,) = strengths.choices(points, 0.1)
    # without seed 0: .75 against .71, without 1: .7 against .75, without 2: .65 against .76
    assert choice.leak == pytest.approx((0.8 + 0.7 + 0.8) / 3)
    assert (choice.point, choice.chosen) == (points[1], "2 of 3 folds")
    assert choice.change == pytest.approx(choice.leak - 0.9)
    assert choice.excess == pytest.approx(choice.leak - 0.5)


def test_a_strength_with_fewer_attacks_is_compared_by_those_it_has():
    points = [
        by_seed("undefended", [[0.9] * 3]),
        by_seed("noise", [[0.6] * 3, [0.8] * 3], {"noise.scale": 1.0}),
        by_seed("noise", [[0.7] * 3], {"noise.scale": 2.0}),
    ]
    assert strengths.choices(points, 0.1)[0].point is points[2]


def test_strengths_are_compared_with_the_arm_without_defenses_whatever_it_is_called():
    """An empty chain is undefended, in whichever place; a name is not."""
    points = [
        point("undefended", 0.7, 0.3, {"noise.scale": 1.0}),
        point("vanilla", 0.9, 0.8),
        point("noise", 0.95, 0.5, {"noise.scale": 0.1}),
    ]
    assert [p.defended for p in points] == [True, False, True]
    assert summary.undefended(points) is points[1]
    cheap, good = strengths.choices(points, 0.1)
    assert (cheap.arm, cheap.point) == ("undefended", None)  # it costs more than the tolerance
    assert (good.arm, good.point) == ("noise", points[2])
    assert math.isclose(good.change, -0.3)
    assert math.isclose(good.accuracy_change.mean, 0.05)


def test_without_an_empty_chain_there_is_no_undefended_point_and_no_choice():
    points = [point("undefended", 0.9, 0.3, {"noise.scale": 1.0})]
    assert summary.undefended(points) is None
    assert strengths.choices(points, 0.1) == []


@pytest.mark.parametrize(("max_cost", "kept"), [(0.0, False), (0.09, False), (0.1, True)])
def test_what_a_strength_may_cost_is_given(max_cost, kept):
    points = [point("undefended", 0.9, 0.8), point("noise", 0.8, 0.3, {"noise.scale": 1.0})]
    (choice,) = strengths.choices(points, 0.1, max_cost)
    assert (choice.point is points[1]) == kept
