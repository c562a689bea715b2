"""From a config to settings and program structures."""

import jax
import numpy as np
import pytest

from tests.sweeps import tiny
from vfljax import config, grid, lab, optimizers
from vfljax.datasets.core import Input


def test_a_grid_is_the_product_of_its_axes_times_structures_times_seeds():
    made = lab.prepare(tiny(**{"attacks": {"active": {}, "direct": {}}, "seeds": 3}))
    settings = [s for group in made.groups for s in group.settings]
    assert len(settings) == (1 + 4 + 1) * 3 * 3
    assert sorted(s.id for s in settings) == list(range(54))
    assert {s.structure.name for s in settings} == {"split", "malicious-0", "no_split"}


def test_honest_and_malicious_settings_share_one_program():
    made = lab.prepare(tiny(**{"attacks": {"active": {}}}))
    assert len(made.groups) == 2  # kdk with undefended inside, and noise
    group = made.groups[0]
    gamma = grid.lanes_of(group, list(group.settings), []).hparams.gamma
    malicious = np.array([bool(s.structure.malicious) for s in group.settings])
    np.testing.assert_array_equal(gamma, np.outer(malicious, [1.0, 0.0]))


@pytest.mark.parametrize("rule", optimizers.RULES)
def test_the_malicious_rule_chooses_the_passive_parties_optimizer_and_no_others(rule):
    made = lab.prepare(tiny(**{"attacks": {"active": {}}, "malicious.rule": rule}))
    name = optimizers.MALICIOUS["sgd"][rule]
    assert {group.spec.optimizers for group in made.groups} == {(name, "sgd", "sgd")}


def test_a_rule_is_no_matter_where_nobody_is_malicious():
    changes = {"attacks": {}, "training.optimizer": "adam", "malicious.rule": "released"}
    assert {g.spec.optimizers for g in lab.prepare(tiny(**changes)).groups} == {("adam",) * 3}


def test_which_parties_are_malicious_is_an_axis():
    made = lab.prepare(
        tiny(
            **{
                "attacks": {"active": {}},
                "parties.passive": 2,
                "malicious.parties": ((0,), (0, 1)),
                "grid": {"undefended": {}},
            }
        )
    )
    assert len(made.groups) == 1
    names = {s.structure.name for s in made.groups[0].settings}
    assert names == {"split", "malicious-0", "malicious-0-1"}


def test_undefended_settings_ride_along_at_neutral_knobs():
    made = lab.prepare(tiny(**{"attacks": {}}))
    group = made.groups[0]
    plain = [s for s in group.settings if s.arm == "undefended"]
    assert plain
    knobs = grid.lanes_of(group, plain, []).hparams.defenses
    assert (knobs["kdk"]["epsilon"] == 0).all()
    assert (knobs["kdk"]["k"] == 1).all()


def test_a_string_axis_is_a_structure_and_a_number_axis_is_not():
    kdk = {"epsilon": (0.1, 0.2), "k": 2, "anchor": ("label", "teacher")}
    made = lab.prepare(tiny(**{"attacks": {}, "grid": {"kdk": {"kdk": kdk}}}))
    assert len(made.groups) == 2
    assert all(len(group.settings) == 4 for group in made.groups)


def test_the_row_of_a_setting_holds_every_knob():
    made = lab.prepare(tiny(**{"attacks": {}, "training.learning_rate": (0.1, 0.2)}))
    rows = [s.row() for group in made.groups for s in group.settings]
    kdk = next(r for r in rows if r["arm"] == "kdk")
    assert {"kdk.epsilon", "kdk.k", "learning_rate", "momentum", "gamma", "seed"} <= set(kdk)
    assert {r["learning_rate"] for r in rows} == {0.1, 0.2}


def test_shards_cover_every_setting_once_and_are_limited_in_work():
    made = lab.prepare(tiny(**{"attacks": {}, "execution.shard_seconds": 0.005}))
    assert len(made.shards) > len(made.groups)
    seen = [(s.group, i) for s in made.shards for i in s.settings]
    assert len(seen) == len(set(seen)) == sum(len(g.settings) for g in made.groups)
    for group in range(len(made.groups)):
        assert len({s.block for s in made.shards if s.group == group}) == 1


def test_groups_of_one_defense_with_different_options_have_names_of_their_own():
    """Shards are found again by these names: arms that shared one were trained as each other."""
    arms = {
        "a": {"noise": {"scale": 0.1}},
        "b": {"noise": {"scale": 0.1, "law": "gaussian"}},
        "c": {"noise": {"scale": 0.1, "law": "isotropic"}},
    }
    values = config.resolve({"grid": arms, "attacks": {}})
    structures = [grid.Structure(), grid.Structure(False)]
    made = grid.groups(values, grid.settings(values, structures), 5, 100, INPUTS)
    assert len({group.name for group in made}) == len(made) == 6


INPUTS = (Input("table", (6,)),) * 2

TOPS = {
    "undefended": {},
    "wide": {"model": {"top": "mlp", "top_hidden": (8,)}},
    "kdk": {"model": {"top": "mlp", "top_hidden": (8,)}, "kdk": {"epsilon": 0.1, "k": 2}},
    "same": {"model": {"top": "head"}},
}


def test_an_arm_may_have_a_top_model_of_its_own():
    made = lab.prepare(tiny(**{"attacks": {"direct": {}}, "grid": TOPS}))
    names = {group.name: {s.arm for s in group.settings} for group in made.groups}
    assert names == {
        "undefended": {"undefended", "same"},  # naming the sweep's own top changes nothing
        "kdk-mlp-8": {"wide", "kdk"},  # undefended settings join a chain of their own model only
        "undefended-no_split": {"undefended", "same"},
        "kdk-no_split": {"wide", "kdk"},
    }
    tops = {group.name: group.spec.top for group in made.groups}
    assert tops["kdk-mlp-8"].hidden == (8,)
    assert type(tops["kdk-mlp-8"]).__name__ == "MLP"
    wide = next(s for g in made.groups for s in g.settings if s.arm == "wide")
    assert {"model.top": "mlp", "model.top_hidden": "8"}.items() <= wide.row().items()


def test_bottoms_start_alike_whatever_the_top_of_the_arm():
    made = lab.prepare(tiny(**{"attacks": {}, "grid": TOPS}))
    own, other = (lab.initial_weights(group.spec, made).bottoms for group in made.groups)
    jax.tree.map(np.testing.assert_array_equal, own, other)
