"""Defenses combined by ``chain`` alone: none knows of the others, none disturbs them."""

import dataclasses

import pytest

from tests import harness
from tests.defenses_contract_test import knobs_of
from vfljax import defenses
from vfljax.defenses import Defense, DefenseRow
from vfljax.types import DefenseSpec

# members in listing order, classes
COMBINATIONS = {
    "gafm+marvell": 2,  # G-M of Han and Guan
    "label_dp+dcor": 5,
    "alibi+dcor": 5,
    "kdk+noise": 5,
    "label_dp+kdk+compression": 5,
    "kdk+class_splitting+noise": 5,
    "gafm+dcor+max_norm": 2,
    "ppdl+compression+noise+discrete_sgd": 5,  # the released order on gradients
}
OPTIMIZED = ("label_dp+kdk+compression", "ppdl+compression+noise+discrete_sgd")
# those of three members and more: between them they have every slot, and slots that members share
LONG = [combination for combination in COMBINATIONS if combination.count("+") > 1]
every_combination = pytest.mark.parametrize("combination", COMBINATIONS)
every_long_combination = pytest.mark.parametrize("combination", LONG)


def federation(combination, leave_out=()):
    """Spec and numbers; ``leave_out`` members are not in the chain."""
    names = [name for name in combination.split("+") if name not in leave_out]
    spec = harness.make_spec(
        COMBINATIONS[combination],
        tuple(DefenseSpec(name) for name in names),
        passive=1,
        label_features="gafm" not in combination,
    )
    knobs = {name: knobs_of(name) for name in names}
    if "ppdl" in knobs:  # nearly no noise and no clipping: or all it sends ties at +-gamma
        knobs["ppdl"] = {**knobs["ppdl"], "epsilon": 1e6, "gamma": 10.0}
    return spec, harness.make_hparams(spec, knobs)


@every_combination
def test_every_member_acts_and_everything_stays_finite(combination):
    spec, hparams = federation(combination)
    batches = harness.make_batches(spec, 5)
    together = harness.run_steps(spec, hparams, batches)
    harness.assert_finite(together)
    for name in combination.split("+"):
        without = harness.run_steps(*federation(combination, leave_out=(name,)), batches)
        assert harness.differ(together[0].weights, without[0].weights), name


@every_long_combination
def test_identity_members_before_between_and_after_change_no_bit(combination, monkeypatch):
    for name in ("nothing", "nothing_more"):
        monkeypatch.setitem(defenses.TABLE, name, DefenseRow(Defense, example={}, known_by={}))
    spec, hparams = federation(combination)
    first, *rest = spec.defenses
    idle = DefenseSpec("nothing"), DefenseSpec("nothing_more")
    padded = dataclasses.replace(spec, defenses=(idle[0], first, idle[1], *rest))
    knobs = {**hparams.defenses, "nothing": {}, "nothing_more": {}}
    # code as users run it where a slot is shared by several: it takes long to optimize
    jit = harness.optimized_jit if combination in OPTIMIZED else harness.quick_jit
    batches = harness.make_batches(spec, 5)
    plain = harness.run_steps(spec, hparams, batches, jit=jit)
    with_idle = harness.run_steps(padded, hparams._replace(defenses=knobs), batches, jit=jit)
    for a, b in zip(
        (plain[0].weights, *plain[1:]), (with_idle[0].weights, *with_idle[1:]), strict=True
    ):
        harness.assert_same_bits(a, b)


@pytest.mark.parametrize(
    "combination", [c for c in COMBINATIONS if c.startswith(("label_dp", "alibi"))]
)
def test_under_label_dp_and_alibi_no_slot_ever_sees_a_true_label(combination):
    """The labels of the batches can be anything: what was drawn at the start is all that counts."""
    spec, hparams = federation(combination)
    true = harness.make_batches(spec, 5)
    false = [batch._replace(labels=(batch.labels + 1) % spec.num_classes) for batch in true]
    one, other = (harness.run_steps(spec, hparams, batches) for batches in (true, false))
    harness.assert_same_bits((one[0].weights, one[1]), (other[0].weights, other[1]))
    assert [m.correct for m in one[2]] != [m.correct for m in other[2]]  # metrics see the truth


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("kdk", "label_dp"), "label_dp replaces what kdk makes: list label_dp before kdk"),
        (("class_splitting", "kdk"), "class_splitting has targets of more .* list it after kdk"),
        (("dcor", "gafm"), "gafm replaces what dcor makes: list gafm before dcor"),
        (("gafm", "kdk"), "gafm reads labels, not targets, so kdk has no effect beside it"),
        (("kdk", "grad_perturb"), "grad_perturb replaces what kdk makes"),
        (("gafm", "grad_perturb reach=cut"), "so grad_perturb has no effect beside it"),
        *(
            case
            for alibi in ("alibi", "alibi draw=step")
            for case in (
                ((alibi, "kdk"), "alibi reads labels, not targets, so kdk has no effect beside it"),
                (("kdk", alibi), "kdk"),
                ((alibi, "gafm"), "gafm replaces what alibi makes"),
                (("gafm", alibi), "alibi replaces what gafm makes"),
                (("dcor", alibi), "alibi replaces what dcor makes: list alibi before dcor"),
            )
        ),
    ],
)
def test_a_chain_in_which_a_member_could_not_act_is_refused(names, message):
    words = [name.split() for name in names]
    specs = [DefenseSpec(name, tuple(tuple(o.split("=")) for o in opts)) for name, *opts in words]
    knobs = {spec.name: knobs_of(spec.name) for spec in specs}
    with pytest.raises(ValueError, match=message):
        defenses.build(tuple(specs), knobs)
