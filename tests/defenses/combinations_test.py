"""Defenses combined by ``chain`` alone: none knows of the others, none disturbs them."""

import numpy as np
import pytest

from tests import harness
from tests.defenses_contract_test import ROWS
from vfljax import defenses
from vfljax.defenses import TABLE
from vfljax.testing import of_defenses
from vfljax.types import DefenseSpec

# members in listing order, classes: each combination has one that hides the labels of the batches
COMBINATIONS = {
    # as in G-M of Han and Guan, whose Marvell takes long to compile: both are told of labels alike
    "label_dp+gafm+proj_pert": 2,
    "label_dp+kdk+dcor+pe_loss+adversary": 5,
    "label_dp+ppdl+compression+noise+discrete_sgd": 5,  # the released order on gradients
    "kdk+class_splitting+mid": 5,
}
# nearly no noise and no clipping: or all that PPDL sends ties at +-gamma
CLEAR = {"ppdl": {**TABLE["ppdl"].example, "theta": 0.9, "epsilon": 1e6, "gamma": 10.0}}


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_every_member_acts_all_stays_finite_and_no_slot_sees_a_true_label(combination):
    """The labels of the batches can be anything: what was drawn at the start is all that counts."""
    names = combination.split("+")
    spec = harness.make_spec(
        COMBINATIONS[combination],
        tuple(map(DefenseSpec, names)),
        passive=1,
        label_features="gafm" not in names,
    )
    knobs = {name: CLEAR.get(name, dict(TABLE[name].example)) for name in names}
    turned = [name for name in names if ROWS[name].other]
    each = [knobs, knobs, *({**knobs, name: ROWS[name].other} for name in turned)]
    true = of_defenses.random_batches(spec)
    false = true._replace(labels=(true.labels + 1) % spec.num_classes)
    hparams = [harness.make_hparams(spec, values) for values in each]
    state, (exchange, metrics) = of_defenses.run_members(spec, hparams, [true, false, true])
    harness.assert_finite((state, exchange, metrics))

    # class splitting hides them from the parties; the true head alone learns them
    weights = state.weights.bottoms if "class_splitting" in names else state.weights
    together, others = (of_defenses.member((weights, exchange), i) for i in (0, 1))
    harness.assert_same_bits(together, others)
    assert np.any(metrics.correct[0] != metrics.correct[1])  # metrics see the truth
    together, _, *parts = (of_defenses.member(state.weights, i) for i in range(len(each)))
    for name, run in zip(turned, parts):
        assert harness.differ(together, run), name


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("kdk", "label_dp"), "label_dp replaces what kdk makes: list label_dp before kdk"),
        (("class_splitting", "kdk"), "class_splitting has targets of more .* list it after kdk"),
        (("dcor", "gafm"), "gafm replaces what dcor makes: list gafm before dcor"),
        (("gafm", "kdk"), "gafm reads labels, not targets, so kdk has no effect beside it"),
        (("gafm", "grad_perturb reach=cut"), "so grad_perturb has no effect beside it"),
        (("kdk", "grad_perturb"), "grad_perturb replaces what kdk makes"),
        (("alibi", "kdk"), "alibi reads labels, not targets, so kdk has no effect beside it"),
        (("kdk", "alibi draw=step"), "kdk"),
        (("gafm", "alibi"), "alibi replaces what gafm makes"),
    ],
)
def test_a_chain_in_which_a_member_could_not_act_is_refused(names, message):
    words = [name.split() for name in names]
    specs = [DefenseSpec(name, tuple(tuple(o.split("=")) for o in opts)) for name, *opts in words]
    knobs = {spec.name: TABLE[spec.name].example for spec in specs}
    with pytest.raises(ValueError, match=message):
        defenses.build(tuple(specs), knobs)
