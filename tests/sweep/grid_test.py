"""From an experiment to trials and program structures: no data is read, and nothing computed."""

import numpy as np
import pytest

from tests.sweeps import tiny
from vfljax.federation import optimizers
from vfljax.sweep import attack_variants, feasibility, grid
from vfljax.sweep.experiment import parse
from vfljax.types import Federation, Input

DIGITS = grid.DataShape(10, 320, (Input("image", (8, 4)),) * 2)


def groups_of(**changes) -> list[grid.Group]:
    """The groups of TINY with changes, on halves of digits."""
    experiment = parse(tiny(**changes))
    shape = DIGITS._replace(inputs=DIGITS.inputs[:1] * experiment.parties.owners)
    attacks = attack_variants.attack_variants(experiment, shape.num_classes, shape.inputs[0])
    federations = attack_variants.federations(
        experiment, attacks, shape.num_classes, shape.inputs[0]
    )
    trials = grid.trials(experiment, federations)
    feasibility.check(experiment, shape, trials)
    return grid.groups(experiment, shape, trials)


def test_a_grid_is_the_product_of_its_axes_times_federations_times_seeds():
    groups = groups_of(attacks={"active": {}, "direct": {}}, seeds=3)
    trials = [s for group in groups for s in group.trials]
    assert len(trials) == (1 + 4 + 1) * 3 * 3
    assert sorted(s.id for s in trials) == list(range(54))
    assert {s.federation.name for s in trials} == {"split", "malicious-0", "no_split"}


def test_honest_and_malicious_settings_share_one_program():
    parties = {"parties.passive": 2, "malicious.parties": ((0,), (0, 1))}
    groups = groups_of(attacks={"active": {}}, **parties)
    assert len(groups) == 2  # kdk with undefended inside, and noise
    trials = groups[0].trials
    assert {s.federation.name for s in trials} == {"split", "malicious-0", "malicious-0-1"}
    gamma = grid.members_of(groups[0].spec, trials, []).hparams.gamma
    malicious = [[p in s.federation.malicious for p in range(3)] for s in trials]
    np.testing.assert_array_equal(gamma, np.float32(malicious))


def test_malicious_parties_alone_deviate_in_what_they_send():
    deviating = {"malicious.upload": "swap", "malicious.strength": (0.0, 0.5)}
    groups = groups_of(attacks={"active": {}}, **{"parties.passive": 2}, **deviating)
    assert [group.spec.upload for group in groups] == ["swap", "swap"]
    trials = groups[0].trials
    strength = grid.members_of(groups[0].spec, trials, []).hparams.strength
    expected = [
        [s.numbers["strength"] * (p in s.federation.malicious) for p in range(3)] for s in trials
    ]
    np.testing.assert_array_equal(strength, np.float32(expected))
    assert {s.row()["strength"] for s in trials} == {0.0, 0.5}
    assert groups_of(attacks={"direct": {}})[0].spec.upload == "honest"


@pytest.mark.parametrize("rule", optimizers.RULES)
def test_the_malicious_rule_chooses_the_passive_parties_optimizer_and_no_others(rule):
    groups = groups_of(**{"attacks": {"active": {}}, "malicious.rule": rule})
    name = optimizers.MALICIOUS["sgd"][rule]
    assert {group.spec.optimizers for group in groups} == {(name, "sgd", "sgd")}


def test_a_rule_is_no_matter_where_nobody_is_malicious():
    changes = {"attacks": {}, "training.optimizer": "adam", "malicious.rule": "released"}
    assert {group.spec.optimizers for group in groups_of(**changes)} == {("adam",) * 3}


def test_undefended_settings_ride_along_at_neutral_knobs():
    group = groups_of(attacks={})[0]
    plain = [s for s in group.trials if s.method.name == "undefended"]
    assert plain
    knobs = grid.members_of(group.spec, plain, []).hparams.defenses
    assert (knobs["kdk"]["epsilon"] == 0).all()
    assert (knobs["kdk"]["k"] == 1).all()


def test_a_member_s_numbers_are_its_setting_s_whatever_the_group():
    group = groups_of(**{"attacks": {}, "training.learning_rate": (0.1, 0.2)})[0]
    member = grid.members_of(group.spec, group.trials, (2.0,), {group.trials[1].id: 3})
    for place, trial in enumerate(group.trials):
        assert member.seed[place] == trial.seed
        assert member.teacher[place] == (3 if place == 1 else 0)
        rate = np.float32(trial.numbers["learning_rate"])
        assert member.hparams.learning_rate[place] == rate
        assert member.hparams.milestones[place].tolist() == [2.0]
    assert member.seed.dtype == np.int32


def test_a_string_axis_is_a_structure_and_a_number_axis_is_not():
    kdk = {"epsilon": (0.1, 0.2), "k": 2, "anchor": ("label", "teacher")}
    groups = groups_of(attacks={}, grid={"kdk": {"kdk": kdk}})
    assert len(groups) == 2
    assert all(len(group.trials) == 4 for group in groups)


def test_the_row_of_a_setting_holds_every_knob():
    groups = groups_of(**{"attacks": {}, "training.learning_rate": (0.1, 0.2)})
    rows = [s.row() for group in groups for s in group.trials]
    kdk = next(r for r in rows if r["method"] == "kdk")
    assert {"kdk.epsilon", "kdk.k", "learning_rate", "momentum", "gamma", "seed"} <= set(kdk)
    assert {r["learning_rate"] for r in rows} == {0.1, 0.2}


def test_groups_of_one_defense_with_different_options_have_names_of_their_own():
    """Shards are found again by these names: methods that shared one were trained as each other."""
    methods = {
        "a": {"noise": {"scale": 0.1}},
        "b": {"noise": {"scale": 0.1, "law": "gaussian"}},
        "c": {"noise": {"scale": 0.1, "law": "isotropic"}},
    }
    experiment = parse({"grid": methods, "attacks": {}})
    table = grid.DataShape(5, 100, (Input("table", (6,)),) * 2)
    trials = grid.trials(experiment, [Federation(), Federation(False)])
    groups = grid.groups(experiment, table, trials)
    assert len({group.name for group in groups}) == len(groups) == 6


TOPS = {
    "undefended": {},
    "wide": {"model": {"top": "mlp", "top_hidden": (8,)}},
    "kdk": {"model": {"top": "mlp", "top_hidden": (8,)}, "kdk": {"epsilon": 0.1, "k": 2}},
    "same": {"model": {"top": "head"}},
}


def test_an_arm_may_have_a_top_model_of_its_own():
    groups = groups_of(attacks={"direct": {}}, grid=TOPS)
    names = {group.name: {s.method.name for s in group.trials} for group in groups}
    assert names == {
        "undefended": {"undefended", "same"},  # naming the sweep's own top changes nothing
        "kdk-mlp-8": {"wide", "kdk"},  # undefended trials join a chain of their own model only
        "undefended-no_split": {"undefended", "same"},
        "kdk-no_split": {"wide", "kdk"},
    }
    tops = {group.name: group.spec.top for group in groups}
    assert tops["kdk-mlp-8"].hidden == (8,)
    assert type(tops["kdk-mlp-8"]).__name__ == "MLP"
    wide = next(s for g in groups for s in g.trials if s.method.name == "wide")
    assert {"model.top": "mlp", "model.top_hidden": "8"}.items() <= wide.row().items()


def test_a_defense_that_needs_a_top_model_is_not_trained_without_one():
    gafm = {"gafm": {"gafm": {"delta": 0.2}}, "undefended": {}}
    experiment = parse(tiny(grid=gafm))
    trials = grid.trials(experiment, [Federation(), Federation(False)])
    trained = {(s.method.name, s.federation.name) for s in trials}
    assert trained == {("gafm", "split"), ("undefended", "split"), ("undefended", "no_split")}
