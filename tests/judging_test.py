"""Intervals, worst attacks, chosen strengths and the sentences made from them."""

import math

import pytest
from scipy import stats

from tests.sweeps import tiny, train
from vfljax import judging, store
from vfljax.judging import Interval, Point, Worst


def point(
    arm, accuracy, leak, knobs=None, validation=None, attack="passive", inverted=0, **attacks
):
    def constant(value):
        return Interval(value, 0.0, 3)

    return Point(
        number=0,
        arm=arm,
        knobs=knobs or {},
        named=tuple(knobs or {}),
        auc={},
        accuracy={"split": constant(accuracy)},
        validation={"split": constant(accuracy if validation is None else validation)},
        by_seed={"split": {0: accuracy, 1: accuracy}},
        attacks={name: constant(value) for name, value in attacks.items()},
        leaks={},
        worst={"split": Worst(attack, constant(leak), {0: leak, 1: leak})},
        diverged=0,
        inverted=inverted,
        settings=2,
    )


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


def test_a_fooled_direct_rule_is_called_what_it_is(tiny_sweep):
    attacks = {"direct/first_negative": 0.34, "direct/most_negative": 0.98}
    points = [point("kdk", 0.9, 0.5, {"kdk.epsilon": 0.45, "kdk.k": 3.0}, **attacks)]
    text = " ".join(judging.findings(store.load(tiny_sweep), points))
    assert "not protection" in text
    assert "epsilon=0.45 k=3" in text


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


def test_runs_that_learned_the_labels_inverted_are_counted_and_said():
    found = judging._inverted_findings(
        [point("gafm", 0.9, 0.6, inverted=1), point("gafm", 0.9, 0.6), point("kdk", 0.9, 0.6)]
    )
    assert len(found) == 1
    assert found[0].startswith("gafm: 1 of 4 runs")


@pytest.fixture(scope="module")
def defended(tmp_path_factory):
    """Label DP and GAFM on two classes."""
    config = tiny(
        data={"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
        grid={
            "undefended": {},
            "plain": {"label_dp": {"epsilon": (1.0, 3.0)}},
            "gafm": {"gafm": {"delta": (0.1, 0.5)}},
        },
        attacks={"direct": {"rule": "most_negative"}},
        **{"model.aggregation": "mean", "model.top": "generator"},
    )
    return train(tmp_path_factory.mktemp("defended"), config)


def test_a_label_names_what_varies_in_its_arm_and_what_had_to_be_chosen(defended):
    labels = [p.label for p in judging.points(defended)]
    assert labels == [
        *("undefended", "plain epsilon=1", "plain epsilon=3"),
        *("gafm delta=0.1", "gafm delta=0.5"),
    ]


def test_label_dp_bounds_are_printed_except_where_there_is_none(defended):
    prior = {"label_dp.epsilon": 1.0, "label_dp.mechanism": "rr_with_prior"}
    points = [
        *judging.points(defended),
        point("prior", 0.9, 0.6, prior),
        point("raw", 0.9, 0.6, {**prior, "label_dp.guarantee": "none"}),
    ]
    _, rows = judging.label_dp_table(defended, points)
    assert rows[3][0] == "raw strength=1 rr_with_prior none"
    odds, guess = ([row[i] for row in rows] for i in (1, 2))
    assert odds[:3] == ["2.72", "20.1", "2.72"]
    # 37 % and 63 % of 569 rows: at e / (e + 1) = .731 the noisy label is the best guess
    assert abs(float(guess[0]) - 0.731) < 2e-3
    assert guess[2] == "differs from row to row"
    assert "no guarantee" in odds[3]
    assert "no guarantee" in guess[3]
    assert any("Label DP bounds" in line for line in judging.findings(defended, points[:5]))


def test_what_cannot_be_trained_without_a_top_model_is_not_trained_and_said(defended):
    rows = defended.results.select(["arm", "structure"]).to_pylist()
    assert {r["structure"] for r in rows if r["arm"] == "gafm"} == {"split"}
    assert {r["structure"] for r in rows if r["arm"] == "plain"} == {"split", "no_split"}
    said = judging.findings(defended, judging.points(defended))
    assert any(line.startswith("gafm is not trained without model splitting") for line in said)


def test_oriented_figures_turn_inverted_runs_and_leave_the_others(defended):
    for row in defended.results.to_pylist():
        turned = row["train_auc"] < 0.5
        assert row["inverted"] == turned
        auc = 1 - row["test_auc"] if turned else row["test_auc"]
        assert row["test_oriented_auc"] == pytest.approx(auc, abs=1e-6)
        if not turned:
            assert row["test_oriented_accuracy"] == row["test_accuracy"]
