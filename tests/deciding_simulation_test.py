"""Whole decisions that are repeated: what counts as right, and how often simulated ones are false."""

import numpy as np
import pandas as pd
import pytest

from analysis import deciding, simulated_decisions
from tests.report.made import BARE, NAN, PROTECTS, SEEDS, WOBBLE, made
from vfljax.report import decision
from vfljax.report.decision import Answer, Reason
from vfljax.report.fresh import SEEDS as SEEDS_AGAIN


@pytest.fixture(scope="module")
def frames():
    """Fifteen seeds of undefended, a point that protects and one that leaks. The first three leave open whether
    it protects, at the limits of a decision."""
    rng = np.random.default_rng(0)
    leaks = {"probe/mean": 0.9, "test_utility": 0.89}
    few = [0.57, 0.63, 0.6, *(0.6 + rng.normal(0, 0.004, 3 * SEEDS - 3))]
    protects = PROTECTS | {"probe/mean": few}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.report.made.WOBBLE", rng.normal(0, 0.004, 3 * SEEDS))
        judged = made(
            BARE, protects, leaks, knobs={"noise.scale": [NAN, 1.0, 0.1]}, seeds=3 * SEEDS
        )
    assert len(WOBBLE) == SEEDS
    return judged.frames


def test_a_point_is_good_by_the_means_of_its_seeds(frames):
    rows = deciding.Judgments(frames).of_seeds(np.arange(15))
    assert deciding.good(rows) == {1}
    kept = {row["label"]: row["kept"] for row in rows}
    assert kept["noise scale=1"] == pytest.approx(0.88 - 0.8 - 0.5 * 0.1)


@pytest.mark.parametrize("rule", deciding.RULES)
def test_every_rule_switches_on_what_clearly_protects(frames, rule):
    found = deciding.answer(rule, deciding.Judgments(frames), np.arange(3), np.arange(3, 15))
    assert (found.answer, found.point["configuration"]) == (Answer.SWITCH_ON, 1)
    seeds = {"fresh": 4, "confirmed": 4, "pooled": 7, "plain": 4, "explored": 3}
    assert found.point["seeds"] == seeds[rule]


def test_what_limits_leave_open_is_judged_on_further_seeds(frames, monkeypatch):
    monkeypatch.setattr(deciding, "LOOKS", (4,))
    monkeypatch.setattr(decision, "level", lambda *_: 1 - 1e-9)  # no look closes anything
    seeds = np.arange(3), np.arange(3, 15)
    judged = deciding.Judgments(frames)
    fresh = deciding.answer("fresh", judged, *seeds)
    assert (fresh.answer, fresh.reason) == (Answer.OPEN, Reason.LIMITS)
    judged.forget()  # at the levels that are patched
    found = deciding.answer("confirmed", judged, *seeds)
    assert (found.answer, found.point["configuration"]) == (Answer.SWITCH_ON, 1)
    assert found.point["seeds"] == SEEDS_AGAIN


def test_not_to_federate_is_right_where_the_truth_gains_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr("tests.report.made.WOBBLE", rng.normal(0, 0.004, 3 * SEEDS))
    monkeypatch.setattr(deciding, "TRUTH", 5)
    monkeypatch.setattr(deciding, "RULES", ("explored",))
    for gain, outcome in ((-0.01, "right"), (0.03, "wrong")):
        truth = [0.8 + gain] * 5  # of seeds that the decision does not see
        utility = {"test_utility": truth + [0.79] * 10, "validation_utility": 0.8}
        frames = made(BARE | utility, PROTECTS | utility, seeds=3 * SEEDS).frames
        (found,) = deciding.outcomes(frames, 1, np.random.default_rng(0))
        assert (found["answer"], found["outcome"]) == (Answer.NO_GAIN.value, outcome)


def test_outcomes_are_summed_up_by_case_and_rule():
    rows = [{"outcome": of, "seeds": 4} for of in ("right", "right", "open", "wrong")]
    (line,) = deciding.summary(pd.DataFrame(rows).assign(case="a", rule="fresh")).to_dict("records")
    assert (line["right"], line["open"], line["wrong"]) == (0.5, 0.25, 0.25)
    assert line["wrong at most"] > 0.25


def test_fresh_seeds_that_are_corrected_are_less_often_false_than_those_that_explored(monkeypatch):
    monkeypatch.setattr(simulated_decisions, "TRUTHS", ("e = .05",))
    rules = [rule for rule in simulated_decisions.RULES if rule != "whole"]  # the next test has it
    monkeypatch.setattr(simulated_decisions, "RULES", rules)
    found = simulated_decisions.simulated(40).groupby("rule")["switched on"].mean()
    assert found["fresh"] < 0.12
    assert found["explored"] > found["fresh"]
    assert found["plain"] > found["fresh"]


def test_no_defense_is_as_rarely_false_among_many_points_as_among_few(monkeypatch):
    """The one point at the edge is denied by its own limits; thirty others that leak let nothing go wrong."""
    monkeypatch.setattr(simulated_decisions, "TRUTHS", ("e = e_u / 4",))
    monkeypatch.setattr(simulated_decisions, "RULES", ("whole", "plain"))
    found = simulated_decisions.simulated(60)
    of = found[found["of"] == "one"].groupby(["rule", "points"])["none protects"].mean()
    assert of["whole", 4] <= 0.05
    assert of["whole", 30] <= 0.05
    assert of["plain", 30] > of["whole", 30]  # seldom is not never
    everywhere = found[(found["of"] == "all") & (found["rule"] == "whole")]
    assert everywhere["none protects"].max() == 0
