"""Groups of trials that share a program, and the numbers of its members."""

import numpy as np

from tests.sweeps import tiny
from vfljax.federation import optimizers
from vfljax.sweep import grid, grouping, specs, teachers, variants
from vfljax.sweep.grid import parse
from vfljax.types import Federation, Input, federation_of

DIGITS = specs.DataShape(10, 320, (Input("image", (8, 4)),) * 2)


def groups_of(**changes) -> list[grouping.Group]:
    """The groups of TINY with changes, on halves of digits."""
    config = parse(tiny(**changes))
    shape = DIGITS._replace(inputs=DIGITS.inputs[:1] * config.parties.owners)
    data = shape.num_classes, shape.inputs[0]
    attacked = variants.attack_variants(config, *data)
    trials = grid.trials(config, variants.federations(config, attacked, data[0]))
    specs.check(config, shape, trials)
    return grouping.groups(config, shape, trials)


def test_honest_and_malicious_settings_share_one_program_in_which_malicious_parties_deviate():
    malicious = {"malicious.parties": ((0,), (0, 1)), "malicious.strength": (0.0, 0.5)}
    upload = {"malicious.upload": "swap", "parties.passive": 2}
    groups = groups_of(attacks={"active": {}}, **malicious, **upload)
    assert [group.spec.upload for group in groups] == ["swap"]
    trials = groups[0].trials
    assert {*trials["federation"]} == {"split", "malicious-0", "malicious-0-1"}
    assert {*trials["strength"]} == {0.0, 0.5}
    hparams = specs.member_of_trials(groups[0].spec, trials, []).hparams
    deviates = [[p in federation_of(f).malicious for p in range(3)] for f in trials["federation"]]
    np.testing.assert_array_equal(hparams.gamma, np.float32(deviates))
    strength = trials["strength"].to_numpy(np.float32)[:, None] * np.float32(deviates)
    np.testing.assert_array_equal(hparams.strength, strength)
    assert groups_of(attacks={"direct": {}})[0].spec.upload == "honest"


def test_the_malicious_rule_chooses_the_passive_parties_optimizer_and_no_others():
    (optimizer_names,) = {
        group.spec.optimizers
        for group in groups_of(**{"attacks": {"active": {}}, "malicious.rule": "released"})
    }
    assert optimizer_names == (optimizers.MALICIOUS["sgd"]["released"], "sgd", "sgd")
    nobody = {"attacks": {}, "training.optimizer": "adam", "malicious.rule": "released"}
    assert {group.spec.optimizers for group in groups_of(**nobody)} == {("adam",) * 3}


def test_undefended_settings_ride_along_at_neutral_knobs():
    group = groups_of(attacks={})[0]
    plain = group.trials[group.trials["method"] == "undefended"]
    assert len(plain)
    knobs = specs.member_of_trials(group.spec, plain, []).hparams.defenses
    assert (knobs["kdk"]["epsilon"] == 0).all()
    assert (knobs["kdk"]["k"] == 1).all()


def test_chains_of_small_sweeps_share_a_program_and_each_trial_is_idle_in_the_others_defenses():
    methods = {
        "noise": {"noise": {"scale": 0.1}},
        "kdk": {"kdk": {"epsilon": 0.3, "k": 2}},
        "randomized": {"label_dp": {"epsilon": 1.0}},  # would replace KDk's targets
        "reversed": {"noise": {"scale": 0.1}, "kdk": {"epsilon": 0.3, "k": 2}},
        "gaussian": {"noise": {"scale": 0.1, "law": "gaussian"}},
    }
    both, *apart = groups_of(attacks={}, grid=methods)
    assert {*both.trials["method"]} == {"noise", "kdk"}
    assert [{*group.trials["method"]} for group in apart] == [
        {"randomized"},
        {"reversed"},
        {"gaussian"},
    ]
    knobs = specs.member_of_trials(both.spec, both.trials, []).hparams.defenses
    kdk = (both.trials["method"] == "kdk").to_numpy()
    np.testing.assert_array_equal(knobs["kdk"]["k"], np.where(kdk, 2, 1))
    np.testing.assert_array_equal(knobs["noise"]["scale"] > 0, ~kdk)
    long = groups_of(**{"attacks": {}, "grid": methods, "training.epochs": 30_000})
    assert len(long) == 5
    taught = teachers.most([both])
    assert taught == teachers.most(groups_of(attacks={}, grid={"kdk": methods["kdk"]})) == 2


def test_a_defense_that_changes_the_loss_shares_no_program_while_another_can():
    methods = {
        "dcor": {"dcor": {"alpha": 0.1}},
        "noise": {"noise": {"scale": 0.1}},
        "undefended": {},
    }
    groups = groups_of(attacks={}, grid=methods)
    assert [{*group.trials["method"]} for group in groups] == [{"dcor"}, {"noise", "undefended"}]


def test_a_member_s_numbers_are_its_row_s_whatever_the_group():
    group = groups_of(**{"attacks": {}, "training.learning_rate": (0.1, 0.2)})[0]
    taught = {int(group.trials["trial"][1]): 3}
    member = specs.member_of_trials(group.spec, group.trials, (2.0,), taught)
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
    groups = grouping.groups(config, table, grid.trials(config, [Federation(), Federation(False)]))
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
