"""What was not attacked, and what else a reader must know; who sees what."""

import pytest

from tests.report.made import BARE, ENTRY, FACTS, NAN, PROTECTS, made
from tests.sweeps import columns
from vfljax.report import not_run, threat_model
from vfljax.sweep.grid import parse


@pytest.mark.parametrize(
    ("points", "line"),
    [
        (
            ({"norm": 0.9}, {"norm": 0.6}),
            "noise, with model splitting: no attack on it takes noise",
        ),
        (
            (BARE, {"probe/mean": 0.6, "test_utility": [NAN, NAN, 0.9, 0.9, 0.9]}),
            "noise: 2 of 5 trials diverged.",
        ),
        (
            (BARE, {"test_utility": 0.9}),
            "noise: no attack on it with model splitting has a figure.",
        ),
    ],
)
def test_what_was_not_attacked_is_named(points, line):
    (found,) = not_run.not_attacked(made(*points))
    assert found.startswith(line)
    assert not_run.not_attacked(made(BARE, PROTECTS)) == []


def test_what_was_not_reached_is_named():
    judged = made(BARE, PROTECTS, PROTECTS, defenses=("noise", "max_norm"), seeds=3)
    stored = {"undefended": {}, "noise": {"noise": {"scale": [0.1, 1.0]}}}
    stored |= {"max_norm": {"max_norm": {}}, "ppdl": {"ppdl": {"theta": 0.5}}}
    judged.sweep.header["trials"] = len(judged.trials) + 1
    experiment = parse(judged.experiment.stored | {"grid": stored, "seeds": 5})
    lines = not_run.not_attacked(judged._replace(experiment=experiment))
    assert "Not reached, so that nothing is known of them: ppdl." in lines
    assert any(line.endswith("noise at 1 of 2.") for line in lines)
    assert any("undefended on 3, noise on 3, max_norm on 3" in line for line in lines)


def test_skipped_attacks_have_their_reasons_and_old_rules_are_said():
    skipped = columns("norm") | {"status": "skipped", "reason": "it has no gradients"}
    old = columns("passive", rule=999) | ENTRY
    judged = made(BARE, entries={"norm": skipped, "passive": old})
    assert not_run.not_attacked(judged) == ["norm: it has no gradients."]
    (line,) = not_run.remarks(judged)
    assert "passive (rule 999; this version has rule" in line


def test_without_learners_no_excess_is_known():
    judged = made(BARE)
    rows = judged.rows[judged.rows["role"] != "learner"]
    (line,) = not_run.not_attacked(judged._replace(rows=rows))
    assert line.startswith("What can be read without the federation with 40 known labels")


def test_runs_that_learned_the_labels_inverted_are_counted():
    judged = made(BARE, PROTECTS)
    inverted = (judged.trials["configuration"] == 1) & (judged.trials["seed"] == 0)
    (line,) = not_run.remarks(judged._replace(trials=judged.trials.assign(inverted=inverted)))
    assert "(training AUC below 1/2): noise 1 of 5." in line


def test_bounds_and_methods_without_a_panel_are_said():
    judged = made(BARE, PROTECTS, defenses=("label_dp",), knobs={"label_dp.epsilon": [NAN, 1.0]})
    assert any("Label DP bounds" in line for line in not_run.remarks(judged))
    judged = made(BARE, PROTECTS, defenses=("gafm",))
    assert not not_run.remarks(judged)
    panel = judged.trials["panel"].where(judged.trials["configuration"] > 0, "no_split")
    (line,) = not_run.remarks(judged._replace(trials=judged.trials.assign(panel=panel)))
    assert line.startswith("Not trained without model splitting")
    assert line.endswith(": gafm.")


def test_of_numbers_no_attack_is_advised_that_is_of_classes():
    knobs = {"dcor.alpha": [NAN, 0.1]}
    for facts, message in (
        (FACTS, "one of correlation does"),
        (FACTS._replace(classes=1), "no attack takes dcor into account that is defined for labels"),
    ):
        judged = made(BARE, PROTECTS, defenses=("dcor",), knobs=knobs, facts=facts)
        assert message in " ".join(not_run.not_attacked(judged))


def test_assumptions_name_the_parties_the_class_and_the_guarantees():
    judged = made(BARE, PROTECTS, defenses=("label_dp",), knobs={"label_dp.epsilon": [NAN, 1.0]})
    text = "\n".join(threat_model.assumptions(judged))
    assert "Who attacks: telco." in text
    assert "a row of the class defaulted is ranked above one of the other" in text
    assert "A formal guarantee comes with label_dp alone." in text
    ten = made(BARE, facts=FACTS._replace(classes=10, chance=0.1))
    text = "\n".join(threat_model.assumptions(ten))
    assert "whose class, one of 10, is named" in text
    assert "No defense here has a formal guarantee." in text
    table = threat_model.parties(judged)
    assert [*table["party"]] == ["telco", "shop", "bank"]
    assert [*table["role"]] == ["passive, attacks", "passive", "holds the labels"]
    assert [*table["columns"]] == ["3", "2", "4"]
