"""Groups of trials that share a program, and the numbers of its members."""

import numpy as np
import pytest

from tests.sweeps import tiny
from vfljax.federation import optimizers
from vfljax.sweep import grid, specs, variants
from vfljax.sweep.grid import parse
from vfljax.types import Federation, Input, federation_of

DIGITS = specs.DataShape(10, 320, (Input("image", (8, 4)),) * 2)


def groups_of(**changes) -> list[specs.Group]:
    """The groups of TINY with changes, on halves of digits."""
    config = parse(tiny(**changes))
    shape = DIGITS._replace(inputs=DIGITS.inputs[:1] * config.parties.owners)
    data = shape.num_classes, shape.inputs[0]
    attacked = variants.attack_variants(config, *data)
    trials = grid.trials(config, variants.federations(config, attacked, *data))
    specs.check(config, shape, trials)
    return specs.groups(config, shape, trials)


def test_honest_and_malicious_settings_share_one_program():
    parties = {"parties.passive": 2, "malicious.parties": ((0,), (0, 1))}
    groups = groups_of(attacks={"active": {}}, **parties)
    assert len(groups) == 2  # kdk with undefended inside, and noise
    trials = groups[0].trials
    assert {*trials["federation"]} == {"split", "malicious-0", "malicious-0-1"}
    gamma = specs.members_of(groups[0].spec, trials, []).hparams.gamma
    malicious = [[p in federation_of(f).malicious for p in range(3)] for f in trials["federation"]]
    np.testing.assert_array_equal(gamma, np.float32(malicious))


def test_malicious_parties_alone_deviate_in_what_they_send():
    deviating = {"malicious.upload": "swap", "malicious.strength": (0.0, 0.5)}
    groups = groups_of(attacks={"active": {}}, **{"parties.passive": 2}, **deviating)
    assert [group.spec.upload for group in groups] == ["swap", "swap"]
    trials = groups[0].trials
    strength = specs.members_of(groups[0].spec, trials, []).hparams.strength
    assert {*trials["strength"]} == {0.0, 0.5}
    np.testing.assert_array_equal(
        strength[:, 0], trials["strength"].where(grid.is_malicious(trials), 0)
    )
    assert (strength[:, 1:] == 0).all()
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
    plain = group.trials[group.trials["method"] == "undefended"]
    assert len(plain)
    knobs = specs.members_of(group.spec, plain, []).hparams.defenses
    assert (knobs["kdk"]["epsilon"] == 0).all()
    assert (knobs["kdk"]["k"] == 1).all()


def test_a_member_s_numbers_are_its_row_s_whatever_the_group():
    group = groups_of(**{"attacks": {}, "training.learning_rate": (0.1, 0.2)})[0]
    taught = {int(group.trials["trial"][1]): 3}
    member = specs.members_of(group.spec, group.trials, (2.0,), taught)
    np.testing.assert_array_equal(member.seed, group.trials["seed"])
    assert member.teacher.tolist()[:3] == [0, 3, 0]
    rates = group.trials["learning_rate"].to_numpy(np.float32)
    np.testing.assert_array_equal(member.hparams.learning_rate, rates)
    assert {*map(tuple, member.hparams.milestones.tolist())} == {(2.0,)}
    assert (member.seed.dtype, member.teacher.dtype) == (np.int32, np.int32)


def test_a_string_axis_is_a_structure_and_a_number_axis_is_not():
    kdk = {"epsilon": (0.1, 0.2), "k": 2, "anchor": ("label", "teacher")}
    groups = groups_of(attacks={}, grid={"kdk": {"kdk": kdk}})
    assert [len(group.trials) for group in groups] == [4, 4]


def test_groups_of_one_defense_with_different_options_have_names_of_their_own():
    """Shards are found again by these names: methods that shared one were trained as each other."""
    methods = {
        "a": {"noise": {"scale": 0.1}},
        "b": {"noise": {"scale": 0.1, "law": "gaussian"}},
        "c": {"noise": {"scale": 0.1, "law": "isotropic"}},
    }
    config = parse({"grid": methods, "attacks": {}})
    table = specs.DataShape(5, 100, (Input("table", (6,)),) * 2)
    groups = specs.groups(config, table, grid.trials(config, [Federation(), Federation(False)]))
    assert len({group.name for group in groups}) == len(groups) == 6


TOPS = {
    "undefended": {},
    "wide": {"model": {"top": "mlp", "top_hidden": (8,)}},
    "kdk": {"model": {"top": "mlp", "top_hidden": (8,)}, "kdk": {"epsilon": 0.1, "k": 2}},
    "same": {"model": {"top": "head"}},
}


def test_a_method_may_have_a_top_model_of_its_own():
    groups = groups_of(attacks={"direct": {}}, grid=TOPS)
    assert {group.name: {*group.trials["method"]} for group in groups} == {
        "undefended": {"undefended", "same"},  # naming the sweep's own top changes nothing
        "kdk-mlp-8": {"wide", "kdk"},  # undefended trials join a chain of their own model only
        "undefended-no_split": {"undefended", "same"},
        "kdk-no_split": {"wide", "kdk"},
    }
    tops = {group.name: group.spec.top for group in groups}
    assert tops["kdk-mlp-8"].hidden == (8,)
    assert type(tops["kdk-mlp-8"]).__name__ == "MLP"
