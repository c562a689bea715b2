"""What a stored sweep cannot serve is said in one line with the value and the remedy; the rest runs."""

import json
import shutil

import pytest

from tests.sweeps import TINY, tiny
from vfljax import attacking, lab, servable, store, suite


@pytest.fixture(scope="module")
def stored(tiny_sweep):
    """Ten classes, 320 training rows, epochs 0 and 2 recorded, federations split and no_split."""
    return lab.prepare(TINY), store.load(tiny_sweep)


def reason_of(stored, name, options=None, **knobs):
    form = suite.Form(name, name, options or {}, [knobs])
    _, rows, reason = servable.servable(form, *stored)
    assert bool(rows) != bool(reason)
    assert "\n" not in reason
    return reason


@pytest.mark.parametrize(
    ("name", "options", "knobs", "said"),
    [
        ("norm", {}, {}, ("two classes", "digits has 10")),
        ("residual", {}, {}, ("two classes", "digits has 10")),
        ("mean", {"epoch": 1}, {"known": 40}, ("epoch 1", "[0, 2]", "config.training.record")),
        ("two_stage", {"epoch": 1}, {}, ("epoch 1", "[0, 2]", "config.training.record")),
        ("spectral", {"signal": "top.hidden.9"}, {"known": 40}, ("'top.hidden.9'", "party0.cut")),
        ("passive", {}, {"known": 9}, ("known=9", "10 classes")),
        ("probe", {}, {"known": 321}, ("known=321", "320 training rows")),
        ("mean", {}, {"known": 319}, ("known=319", "at most", "all 320")),
        ("active", {}, {"known": 40}, ("'malicious'", "config.attacks", "new workdir")),
    ],
)
def test_a_refusal_names_the_value_and_the_remedy(stored, name, options, knobs, said):
    reason = reason_of(stored, name, options, **knobs)
    for words in said:
        assert words in reason


@pytest.mark.parametrize(
    ("name", "options", "knobs"),
    [
        ("passive", {}, {"known": 10}),
        ("passive", {}, {"known": 320}),
        ("mean", {"epoch": 0}, {"known": 40}),
        ("mean", {"oracle": True}, {}),
        ("direct", {"epoch": 2}, {}),
        ("direct", {"epoch": "votes"}, {}),
        ("two_stage", {}, {}),
        ("spectral", {"signal": "party1.hidden.0"}, {"known": 40}),
    ],
)
def test_what_it_can_serve_is_not_refused(stored, name, options, knobs):
    assert reason_of(stored, name, options, **knobs) == ""


def test_labels_are_limited_by_the_rarest_class_up_to_all_of_them(stored):
    """As known rows are balanced: up to C times the rarest class's training rows, or every row."""
    made, _ = stored
    labels = [made.dataset.labels[split.train] for split in made.splits]
    most = 10 * min(sum(own == c) for own in labels for c in range(10))
    assert most < 320
    assert reason_of(stored, "mean", known=float(most)) == ""
    assert f"at most {most}" in reason_of(stored, "mean", known=float(most + 1))


def test_each_point_of_known_labels_is_checked(stored):
    form = suite.Form("mean", "mean", {}, [{"known": 40.0}, {"known": 5.0}])
    _, rows, reason = servable.servable(form, *stored)
    assert rows == []
    assert "known=5" in reason


def test_the_layers_are_those_of_both_parties_and_the_top_model(stored):
    made, _ = stored
    assert set(servable.layers(made)) == {
        *("party0.hidden.0", "party0.cut", "party1.hidden.0", "party1.cut"),
        *("top.hidden.0", "top.logits"),
    }


def test_layers_that_only_one_arm_has_are_not_offered():
    own = {"model": {"top": "mlp", "top_hidden": ()}}  # no hidden layer
    made = lab.prepare(tiny(grid={"undefended": {}, "other": {**own, "noise": {"scale": 0.1}}}))
    found = servable.layers(made)
    assert "top.logits" in found
    assert "top.hidden.0" not in found


def test_what_cannot_be_served_is_said_and_stored_and_the_others_run_on(tiny_sweep, tmp_path):
    workdir = shutil.copytree(tiny_sweep, tmp_path / "w")
    config = {
        **TINY,
        "attacks": {
            "norm": {},
            "mean": {"known": 5, "epoch": 0},
            "direct": {"rule": "least_negative"},
            "active": {"steps": 2},
        },
    }
    said = []
    made = lab.prepare(config)
    attacking.run(made, workdir, say=said.append)
    assert [line.split(":")[0] for line in said] == [
        *("skipped norm", "skipped mean", "skipped active"),
    ]
    summary = json.loads((workdir / "attacks.json").read_text())
    for name in ("norm", "mean", "active"):
        assert summary[name]["status"] == "skipped"
        assert summary[name]["reason"] in "\n".join(said)
    assert summary["direct/least_negative"]["status"] == "ok"
    found = {row["attack"] for row in store.load(workdir).attacks.to_pylist()}
    assert "direct/least_negative" in found
    assert "passive" in found  # what was stored before stays
    assert not found & {"norm", "mean", "active"}
