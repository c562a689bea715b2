"""Intervals, worst attacks and chosen strengths."""

import math

import pytest
from scipy import stats

from tests.sweeps import point
from vfljax import judging, store


def test_the_interval_is_the_t_interval():
    values = [0.1, 0.4, 0.3]
    low, high = stats.t.interval(0.95, 2, loc=sum(values) / 3, scale=stats.sem(values))
    found = judging.interval(values)
    assert math.isclose(found.mean - found.half, low)
    assert math.isclose(found.mean + found.half, high)


def test_one_seed_has_no_interval_and_none_has_no_mean():
    assert str(judging.interval([0.5])) == "0.500"
    assert str(judging.interval([None, float("nan")])) == "-"


def test_the_strength_is_chosen_on_validation_accuracy_not_on_test():
    points = [
        point("undefended", 0.9, 0.8),
        point("noise", 0.95, 0.3, {"noise.scale": 2.0}, validation=0.5),
        point("noise", 0.5, 0.6, {"noise.scale": 1.0}, validation=0.9),
    ]
    (choice,) = judging.choices(points)
    assert choice.point.knobs == {"noise.scale": 1.0}
    assert math.isclose(choice.leak_change.mean, -0.2)


def test_no_strength_that_keeps_the_accuracy_is_said():
    points = [point("undefended", 0.9, 0.8), point("noise", 0.5, 0.1, {"noise.scale": 1.0})]
    assert judging.choices(points)[0].point is None


def test_the_worst_attack_is_scored_on_the_half_it_was_not_chosen_on(tiny_sweep):
    stored = store.load(tiny_sweep)
    attacks = stored.attacks.to_pylist()
    rows = {r["setting"]: r for r in stored.results.to_pylist()}
    for found in judging.points(stored):
        worst = found.worst["split"]
        own = [
            a
            for a in attacks
            if rows[a["setting"]]["point"] == found.number and a["attack"] == worst.attack
        ]
        assert worst.by_seed == {a["seed"]: a["leak_report"] for a in own}


def test_oracle_attacks_stay_out_of_the_worst_case(tiny_sweep, monkeypatch):
    summary = {"passive": {"status": "ok", "oracle": True}}
    monkeypatch.setattr(judging, "attack_summary", lambda sweep: summary)
    assert all("split" not in p.worst for p in judging.points(store.load(tiny_sweep)))


@pytest.mark.parametrize(
    ("balance", "chance", "scale"), [([9, 1], 0.5, "leak AUC"), ([1] * 4, 0.25, "balanced top-1")]
)
def test_chance_and_majority_come_from_the_class_balance(tiny_sweep, balance, chance, scale):
    stored = store.load(tiny_sweep)
    stored.header["data"]["balance"] = balance
    found = judging.baseline(stored)
    assert found["chance"] == chance
    assert found["majority"] == max(balance) / sum(balance)
    assert found["scale"] == scale


def test_a_label_names_what_varies_in_its_arm_and_what_had_to_be_chosen(defended):
    labels = [p.label for p in judging.points(defended)]
    assert labels == [
        *("undefended", "plain epsilon=1", "plain epsilon=3"),
        *("gafm delta=0.1", "gafm delta=0.5"),
    ]


def test_oriented_figures_turn_inverted_runs_and_leave_the_others(defended):
    for row in defended.results.to_pylist():
        turned = row["train_auc"] < 0.5
        assert row["inverted"] == turned
        auc = 1 - row["test_auc"] if turned else row["test_auc"]
        assert row["test_oriented_auc"] == pytest.approx(auc, abs=1e-6)
        if not turned:
            assert row["test_oriented_accuracy"] == row["test_accuracy"]
