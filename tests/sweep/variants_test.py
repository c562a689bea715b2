"""Attack forms of an experiment, and the federations that are trained for them."""

import pytest

from tests.refusals import refused
from tests.sweeps import tiny
from vfljax.sweep import variants
from vfljax.sweep.grid import parse
from vfljax.types import Federation, Input, federation_of

READS = Input("image", (8, 4))

BAD = [
    ({"passive": {"know": 3}}, "know", "known"),
    ({"passive": {"layers": 9}}, "layers=9", "1 to 5"),
    ({"passive": {"steps": 2.5}}, "steps=2.5", "whole number"),
    ({"passive": {"finetune_bottom": "no"}}, "'no'", "True or False"),
    ({"passive": {"known": float("inf")}}, "known=inf", "to 1e+30"),
]


def forms_of(num_classes=10, **changes) -> list[variants.AttackVariant]:
    return variants.attack_variants(parse(tiny(**changes)), num_classes, READS)


def names(num_classes=10, **changes) -> list[str]:
    """The federations trained for the attacks of a config."""
    experiment = parse(tiny(**changes))
    attacks = variants.attack_variants(experiment, num_classes, READS)
    return [f.name for f in variants.federations(experiment, attacks, num_classes)]


@pytest.mark.parametrize(("attacks", "value", "remedy"), BAD)
def test_a_bad_option_or_knob_is_one_line_with_the_value_and_the_remedy(attacks, value, remedy):
    with refused(value, remedy):
        forms_of(attacks=attacks)


def test_an_option_makes_a_form_of_each_value_and_a_knob_a_point():
    attacks = {
        "direct": {"rule": ("first_negative", "most_negative")},
        "probe": {"known": (10, 20), "steps": 5},
    }
    first, most, probe = forms_of(attacks=attacks)
    assert [first.label, most.label] == ["direct/first_negative", "direct/most_negative"]
    assert first.identity.options == (("rule", "first_negative"),)
    assert probe.label == "probe"
    assert [point["known"] for point in probe.knobs] == [10, 20]


def test_who_attacks_is_an_axis_except_of_those_who_were_malicious():
    changes = {"attackers": ((0,), (0, 1)), "parties.passive": 2}
    every = forms_of(attacks={"probe": {}, "active": {}}, **changes)
    assert [(form.label, form.identity.attackers) for form in every] == [
        ("probe", (0,)),
        ("probe/parties=0+1", (0, 1)),
        ("active", (0,)),
    ]
    active = every[-1]
    assert variants.attackers_of(active, "malicious-0-1") == (0, 1)
    assert variants.attackers_of(active, "split") == ()


def test_only_the_federations_that_some_attack_needs_are_trained():
    both = {"attacks": {"active": {}, "direct": {}}, "parties.passive": 2}
    groups = {"malicious.parties": ((1,), (0, 1))}
    assert names(attacks={}) == ["split"]
    for attack in ("probe", "passive", "spectral", "mean", "hint"):  # on several: the first
        assert names(attacks={attack: {}}) == ["split"]
    assert names(attacks={"direct": {}}) == ["split", "no_split"]
    assert names(**both, **groups) == ["split", "malicious-1", "malicious-0-1", "no_split"]


def test_the_federations_that_a_config_names_are_trained_in_one_order_whatever_the_attacks_need():
    attacks = {"attacks": {"active": {}, "direct": {}}}
    assert names(**attacks, federations=("split",)) == ["split"]
    assert names(attacks={}, federations=("no_split",)) == ["no_split"]
    every = names(attacks={"mean": {}}, federations=("no_split", "malicious", "split"))
    assert every == ["split", "malicious-0", "no_split"] == names(**attacks)


def test_several_groups_of_attackers_leave_malicious_runs_to_one_form():
    first, second = forms_of(
        attacks={"mean": {}}, attackers=((1,), (0, 1)), **{"parties.passive": 2}
    )
    assert (first.label, second.label) == ("mean/parties=1", "mean/parties=0+1")
    for federation in ("split", "no_split"):
        assert variants.attackers_of(first, federation) == (1,)
        assert variants.attackers_of(second, federation) == (0, 1)
    assert variants.attackers_of(first, "malicious-0") == (0,)
    assert variants.attackers_of(second, "malicious-0") == ()


@pytest.mark.parametrize(
    "federation",
    [Federation(), Federation(False), Federation(True, (0,)), Federation(True, (0, 2))],
)
def test_a_federation_is_found_again_by_its_name(federation):
    assert federation_of(federation.name) == federation
    assert federation.name.startswith(federation.kind)
