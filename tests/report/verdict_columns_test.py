"""What a judged sweep adds to verdicts: labels, who knows a defense, what stands for a method."""

import dataclasses

import pytest

from tests.report.made import BARE, NAN, PROTECTS, made
from vfljax import defenses
from vfljax.defenses import Remarks
from vfljax.report import not_run
from vfljax.report.guarantees import guarantees
from vfljax.types import Origin


def column(judged, name):
    return judged.leading.set_index("label")[name].to_dict()


def test_labels_name_knobs_that_vary_or_have_no_default_and_no_two_are_alike():
    knobs = {"kdk.epsilon": [NAN, 0.3, 0.45], "kdk.k": [NAN, 2.0, 2.0]}
    judged = made(BARE, PROTECTS, PROTECTS, defenses=("kdk", "kdk"), knobs=knobs)
    names = ["undefended", "kdk epsilon=.3 k=2", "kdk epsilon=.45 k=2"]
    assert [*judged.verdicts["label"]] == names
    knobs = {"label_dp.epsilon": [NAN, 1.0], "kdk.epsilon": [NAN, 0.3], "kdk.k": [NAN, 2.0]}
    judged = made(BARE, PROTECTS, defenses=("label_dp+kdk",), knobs=knobs)
    assert judged.verdicts["label"].iloc[1] == (
        "label_dp+kdk label_dp.epsilon=1 kdk.epsilon=.3 k=2"
    )
    judged = made(BARE, PROTECTS, PROTECTS, knobs={"learning_rate": [0.1, 0.1, 0.2]})
    names = ["undefended learning_rate=.1", "noise learning_rate=.1", "noise learning_rate=.2"]
    assert [*judged.verdicts["label"]] == names
    equal = made(BARE, PROTECTS, PROTECTS)
    assert [*equal.verdicts["label"]] == ["undefended", "noise #1", "noise #2"]


def test_bounds_are_found_where_they_are_printed_and_not_with_labels_and_claims(monkeypatch):
    asked = []

    def bound(prior):
        asked.append(prior)
        return "2.72", "0.731"

    row = dataclasses.replace(
        defenses.TABLE["label_dp"],
        remarks=lambda knobs, options: Remarks(bound, knobs["epsilon"], bound_sentence="It is."),
    )
    monkeypatch.setitem(defenses.TABLE, "label_dp", row)
    knobs = {"label_dp.epsilon": [NAN, 1.0, 2.0]}
    judged = made(BARE, PROTECTS, PROTECTS, defenses=("label_dp", "label_dp"), knobs=knobs)
    assert [*judged.verdicts["epsilon claimed"].iloc[1:]] == [1.0, 2.0]
    assert "It is." in not_run.remarks(judged)
    assert asked == []
    assert [*guarantees(judged)["guess"]] == ["0.731", "0.731"]
    assert len(asked) == 2


def test_options_without_a_guarantee_call_epsilon_a_strength():
    knobs = {
        "label_dp.epsilon": [NAN, 1.0, 1.0],
        "label_dp.mechanism": [None, *2 * ["rr_with_prior"]],
        "label_dp.guarantee": [None, "epsilon", "none"],
    }
    judged = made(BARE, PROTECTS, PROTECTS, defenses=("label_dp", "label_dp"), knobs=knobs)
    first, second = judged.verdicts["label"].iloc[1:]
    assert first.startswith("label_dp epsilon=1 ")
    assert second.startswith("label_dp strength=1 ")
    assert [*judged.verdicts["epsilon claimed"].iloc[1:]] == pytest.approx([1.0, NAN], nan_ok=True)


def test_only_attacks_with_figures_that_are_not_broken_know_a_defense():
    assert column(made(BARE, PROTECTS), "known_by")["noise"]
    unknown = made({"norm": 0.9}, {"norm": 0.6})  # its last epoch averages nothing
    assert not column(unknown, "known_by")["noise"]
    broken = made({"norm": 0.9, **BARE}, {"norm": 0.6, "probe/mean": [0.5] * 5})
    assert column(broken, "broken")["noise"] == "probe/mean"
    assert not column(broken, "known_by")["noise"]
    assert column(made(BARE), "known_by")["undefended"]


def test_of_the_points_that_qualify_the_one_of_lowest_mean_leak_is_recommended():
    low = {"probe/mean": 0.603, "test_utility": 0.88, "validation_utility": 0.88}
    high = {"probe/mean": 0.61, "test_utility": 0.9, "validation_utility": 0.9}
    loses = {"probe/mean": 0.55, "test_utility": 0.82, "validation_utility": 0.8}
    judged = made(BARE, high, low, loses, defenses=("noise", "max_norm", "ppdl"))
    best = judged.leading.loc[judged.leading["recommended"], "method"].item()
    assert best == "max_norm"


def test_the_author_of_a_plugin_is_believed_where_an_attack_reads_more_than_others(monkeypatch):
    row = dataclasses.replace(defenses.TABLE["noise"], origin=Origin("mine", "", ""))
    monkeypatch.setitem(defenses.TABLE, "mine:noise", row)

    def known(norm):
        point = {**PROTECTS, "norm": norm}
        judged = made({**BARE, "norm": 0.9}, point, defenses=("mine:noise",))
        columns = judged.verdicts.set_index("method")[["known_by", "author_says", "recommended"]]
        return [*columns.loc["mine:noise"]]

    assert known(0.55) == [True, False, True]
    assert known(0.65) == [False, True, False]  # norm is not said to know it, and reads more


def test_a_method_without_an_operating_point_is_shown_where_it_costs_least():
    loses = {"validation_utility": 0.7, "test_utility": 0.7}
    judged = made(
        BARE,
        {"probe/mean": 0.6, **loses},
        {"probe/mean": 0.7, "test_utility": 0.8, "validation_utility": 0.8},
        knobs={"noise.scale": [NAN, 1.0, 0.1]},
    )
    representative = judged.leading[judged.leading["representative"]]
    assert [*representative["label"]] == ["undefended", "noise scale=.1"]
    assert not representative["chosen"].any()


def test_verdicts_of_fewer_known_labels_recommend_nothing():
    points = {**BARE, "norm": 0.9}, PROTECTS
    rows = made(*points).rows
    known = rows["known"].where(rows["label"] == "norm", 10)  # of the learners too
    judged = made(*points, rows={"known": known})
    fewer = judged.verdicts[judged.verdicts["known"] == 10]
    assert len(fewer)
    assert not fewer[["recommended", "representative"]].any(axis=None)
    assert {*judged.leading["known"]} == {40}
