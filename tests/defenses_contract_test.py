"""What each defense of the table promises. A new defense adds one line of test values to ``ROWS``."""

import dataclasses
import inspect
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from vfljax import attacks, defenses, testing
from vfljax.defenses import TABLE
from vfljax.errors import UserError
from vfljax.federation import protocol
from vfljax.sweep import grid, grouping, specs
from vfljax.sweep.grid import parse
from vfljax.testing import of_defenses
from vfljax.testing.federations import make_state
from vfljax.types import CutLayer, DefenseSpec, Federation, Input


class Row(NamedTuple):
    """What only tests ask of a defense; the rest is in its row of the table."""

    other: dict  # knobs other than its row's example, each at a value that changes the run
    bad: tuple  # (knob or option, value) pairs out of range
    options: tuple = ()  # static options that differ from the default
    changes: tuple = ()  # of the federation it is tried in
    unread: tuple = ()  # knobs that only other options read


nan = float("nan")
ROWS = {
    "kdk": Row(
        {"epsilon": 0.9, "k": 1.0},
        (("epsilon", -0.1), ("epsilon", 1.5), ("k", 0.0), ("k", 1.5), ("epsilon", nan)),
        ((("anchor", "teacher"),),),
    ),
    "label_dp": Row(
        {"epsilon": 0.0, "sigma": 0.5, "ell": 2.0, "fold": 0.5},
        (
            *(("epsilon", -0.5), ("epsilon", nan), ("sigma", -1.0), ("sigma", nan)),
            *(("ell", -1.0), ("ell", 1.5), ("fold", -0.1), ("fold", 1.1), ("masses", "1:-1")),
        ),
        (
            (("mechanism", "block_rr"),),
            (("mechanism", "rr_with_prior"),),
            (("guarantee", "none"), ("mechanism", "rr_with_prior"), ("prior", "teacher")),
        ),
        unread=("sigma", "ell", "fold"),
    ),
    "grad_perturb": Row(
        {"epsilon": 0.5},
        (("epsilon", 0.0), ("epsilon", -1.0), ("epsilon", nan)),
        ((("draw", "step"), ("reach", "cut")),),
    ),
    "class_splitting": Row(
        {"epsilon": 0.0},
        (
            *(("epsilon", -0.5), ("epsilon", nan), ("pseudo", 2.5), ("normalize", "yes")),
            *(("shares", "1:no"), ("shares", "1:-2")),
        ),
        ((("head", "sum"), ("normalize", True), ("pseudo", 7)),),
    ),
    "alibi": Row(
        {"epsilon": 0.5},
        (("epsilon", 0.0), ("epsilon", -1.0), ("epsilon", nan)),
        ((("draw", "step"),),),
    ),
    "vlp": Row({"epsilon": 0.0}, (("epsilon", -0.5), ("epsilon", nan))),
    "cae": Row(
        {"confusion": 0.1, "learning_rate": 5e-3},
        (
            *(("confusion", -0.5), ("confusion", nan), ("learning_rate", -0.5)),
            *(("width", -1), ("steps", 0), ("steps", 1.5), ("temperature", 0.0)),
        ),
    ),
    "dcor": Row(
        {"alpha": 0.1},
        (("alpha", -0.5), ("alpha", nan)),
        ((("form", "squared"),), (("form", "log_root"),), (("form", "root"),)),
    ),
    "gafm": Row(
        {"delta": 0.3, "gamma": 5.0, "sigma": 0.1, "clip": 0.05, "learning_rate": 1e-2},
        (
            *(("delta", -0.1), ("delta", 0.6), ("gamma", -1.0), ("sigma", -0.5)),
            *(("clip", -0.5), ("learning_rate", nan)),
        ),
        ((("terms", "gan"),), (("terms", "ce"),), (("discriminator", "10"),)),
        changes=(("label_features", False),),
    ),
    "noise": Row(
        {"scale": 1.0},
        (("scale", -0.5), ("scale", nan)),
        ((("law", "gaussian"),), (("law", "isotropic"),)),
    ),
    "compression": Row(
        {"keep_rate": 0.8}, (("keep_rate", -0.1), ("keep_rate", 1.5), ("keep_rate", nan))
    ),
    "ppdl": Row(
        {"theta": 0.75, "epsilon": 1e6, "gamma": 1e-2, "tau": 50.0, "sensitivity": 1e-6},
        (
            *(("theta", -0.1), ("theta", 1.5), ("epsilon", 0.0), ("epsilon", nan)),
            *(("gamma", -0.5), ("tau", -0.5), ("sensitivity", -0.5)),
        ),
        ((("on_exhaustion", "keep"),),),
    ),
    "discrete_sgd": Row(
        {"intervals": 2.0, "bound": 0.03},
        (("intervals", 0.0), ("intervals", 2.5), ("bound", 0.0), ("bound", nan)),
        ((("interval", "fixed"),),),
        unread=("bound",),
    ),
    "max_norm": Row({}, ()),
    "marvell": Row(
        {"power": 5.0, "error": 0.25},
        (("power", -0.5), ("power", nan), ("error", 0.5), ("error", -0.5)),
        ((("dimension", "batch"),), (("budget", "dynamic"),)),
        unread=("error",),
    ),
    "proj_pert": Row({"inverse_sum_kl": 6.25}, (("inverse_sum_kl", -0.5), ("inverse_sum_kl", nan))),
    "pe_loss": Row(
        {"alpha": 0.5, "softening": 0.1},
        (("alpha", -0.5), ("alpha", nan), ("softening", 0.0)),
        ((("distance", "angular"),),),
    ),
    "mid": Row(
        {"lambda_kl": 1.0},
        (
            *(("lambda_kl", -0.5), ("lambda_kl", nan), ("offset", 60.0), ("offset", "much")),
            *(("expansion", 0), ("expansion", 1.5)),
        ),
        ((("expansion", 2), ("offset", 5.0), ("output", "identity"), ("path", "released")),),
    ),
    "fedpass": Row(
        {},
        (("passports", 0), ("passports", 1.5), ("loc", 1e4)),
        ((("draw", "step"), ("law", "uniform"), ("passports", 3)),),
    ),
    "p3eft": Row(
        {"alpha": 0.1},
        (("alpha", -0.5), ("alpha", nan), ("deviation", -1.0)),
        ((("deviation", 0.0),),),
    ),
    "adversary": Row(
        {"lambda_adv": 2.0, "learning_rate": 0.1},
        (
            *(("lambda_adv", -0.5), ("lambda_adv", nan), ("learning_rate", -0.5)),
            *(("hidden", 0), ("hidden", 1.5), ("hidden", True)),
        ),
    ),
    "dpzv": Row(
        {"epsilon": 1.0, "clip": 0.01, "smoothing": 0.1, "delta": 1e-3},
        (
            *(("epsilon", 0.0), ("epsilon", nan), ("clip", 0.0), ("smoothing", 0.0)),
            *(("delta", 0.0), ("delta", 0.6)),
        ),
    ),
}
CHANGING_NETWORKS = ("class_splitting", "mid", "fedpass", "p3eft")
KNOWN = "attacks that know of it exist wherever it can be trained"
SLOTS = "slots return what they received, and knobs may be traced"
MAPPED = "members mapped together equal each alone"
FINITE = "whatever the batch, everything stays finite"
every_defense = pytest.mark.parametrize("name", TABLE)


OF_NUMBERS = [name for name, row in TABLE.items() if not row.not_for_numbers]


def trial_of(name, options=()):
    """The defense as the contract tries it: once, at the largest of the class counts it is defined for."""
    quick = {"steps": 5} if name == "cae" else {}  # of its codebook's training
    classes = 2 if TABLE[name].two_classes else 5
    return of_defenses.TestedDefense(
        name, {**quick, **dict(options)}, classes, dict(ROWS[name].changes)
    )


def test_every_defense_of_the_table_has_test_values():
    assert list(ROWS) == list(TABLE)


@every_defense
def test_a_row_names_its_factory_s_parameters_and_no_others(name):
    row = TABLE[name]
    parameters = inspect.signature(row.factory).parameters
    assert [*row.knobs, *row.options] == list(parameters)  # knobs first, options keyword-only
    assert set(row.example) == set(row.knobs) == set(ROWS[name].other)
    assert row.neutral is None or set(row.neutral) == set(row.knobs)
    assert {option for options in ROWS[name].options for option, _ in options} <= set(row.options)
    row.factory(**{knob: row.example[knob] for knob in row.required})
    for parameter in row.options.values():
        assert parameter.default is not parameter.empty


@every_defense
def test_a_defense_that_needs_a_top_model_or_two_classes_and_no_other_refuses_to_do_without(name):
    row, labels = TABLE[name], jnp.zeros(4, jnp.int32)

    def prepare(classes, split):
        scores = jnp.full((4, classes), 1 / classes)
        data = defenses.TrainingData(labels, scores, classes, CutLayer(split=split))
        jax.eval_shape(lambda: row(**row.example).init(jax.random.key(0), data))

    prepare(2, True)
    for needed, message, classes, split in (
        (row.needs_top, "train it with model splitting", 2, False),
        (row.two_classes, f"{name} is defined for 2 classes and the data has 3", 3, True),
    ):
        if needed:
            with pytest.raises(ValueError, match=message):
                prepare(classes, split)
        else:
            prepare(classes, split)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(name, options, marks=[pytest.mark.slow] if options else [])
        for name, row in ROWS.items()
        for options in ((), *row.options)
    ],
)
def test_keeps_every_rule_of_the_contract(name, options):
    """Of other options those rules that they may break alone: each takes a compilation."""
    trial = trial_of(name, options)
    for rule in testing.rules(name) if not options else (SLOTS, MAPPED, FINITE):
        testing.check(
            name,
            rule,
            options=trial.options,
            federation=trial.changes,
            classes=(trial.num_classes,),
        )


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_keeps_every_rule_with_labels_that_are_numbers(name):
    """What acts on gradients alone sees no labels: the shapes of its steps suffice, without compiling."""
    sees_labels = of_defenses._acts_elsewhere(trial_of(name))
    for rule in testing.rules(name) if sees_labels else (KNOWN, SLOTS):
        testing.check(name, rule, federation=dict(ROWS[name].changes), classes=(1,))


def test_attacks_on_numbers_know_every_defense_of_numbers_but_one():
    """``correlation`` alone reads what dCor leaves behind a top model, and it is of classes."""
    unknown = {
        (name, kind)
        for name in OF_NUMBERS
        for kind, knowers in TABLE[name].known_by.items()
        if all(attacks.TABLE[knower.attack].not_for_numbers for knower in knowers)
    }
    assert unknown == {("dcor", "split")}


@pytest.mark.parametrize("name", [name for name in TABLE if name not in OF_NUMBERS])
def test_a_defense_of_classes_refuses_numbers_in_one_line(name):
    with pytest.raises(
        UserError, match=f"={name!r} is not for labels that are numbers: it is defined for classes"
    ) as e:
        specs._check_defense("method", DefenseSpec(name), 1)
    assert "\n" not in str(e.value)


@every_defense
def test_every_knob_changes_the_run_but_those_that_only_other_options_read(name):
    example, other = dict(TABLE[name].example), ROWS[name].other
    values = [example, *({**example, knob: other[knob]} for knob in other)]
    state, _ = trial_of(name).run(values)  # of the program that the contract compiled
    members = [of_defenses.member(state.weights, i) for i in range(len(values))]
    unread = [knob for knob, run in zip(other, members[1:]) if not harness.differ(run, members[0])]
    assert unread == list(ROWS[name].unread)


@every_defense
def test_a_federation_without_a_top_model_stays_as_it_is_and_no_other_network_changes_unasked(name):
    plain = harness.make_spec(2, split=False)
    assert TABLE[name].network(plain) is plain
    spec = harness.make_spec(2)
    assert (TABLE[name].network(spec) != spec) == (name in CHANGING_NETWORKS)


# defenses whose own tests run them with each option
OPTIONS_RUN = ("label_dp", "grad_perturb", "alibi", "dcor", "noise", "marvell", "mid")


@pytest.mark.parametrize(
    "name", [name for name in ROWS if ROWS[name].options and name not in OPTIONS_RUN]
)
def test_every_static_option_changes_the_program_of_a_step(name):
    def program(options):
        trial = trial_of(name, options)
        spec = trial.spec()
        hparams = harness.make_hparams(spec, {name: dict(TABLE[name].example)})

        def step(hparams, batch):
            return protocol.make_step(spec)(make_state(spec, hparams), batch, hparams)

        text = str(jax.make_jaxpr(step)(hparams, harness.make_batch(spec, 0)))
        return re.sub("0x[0-9a-f]+", "", text)  # addresses of functions differ in any case

    forms = [program(options) for options in ((), *ROWS[name].options)]
    assert len({*forms}) == len(forms)


ROUNDING = 16 * float(np.finfo(np.float32).eps)  # some roundings a step, over the steps of a run


@pytest.mark.parametrize(
    "chain",
    [
        ("label_dp", "kdk", "dcor", "pe_loss", "adversary"),
        *(("grad_perturb",), ("alibi",)),  # which make targets of labels, as label DP does
    ],
    ids=lambda chain: chain[0],
)
def test_without_model_splitting_too_neutral_knobs_change_steps_by_rounding_at_most(chain):
    """Of those that act on targets or in the loss, which differs there."""
    plain = harness.make_spec(2, split=False, passive=1)
    spec = dataclasses.replace(plain, defenses=tuple(map(DefenseSpec, chain)))
    knobs = {name: dict(TABLE[name].neutral) for name in chain}
    drawn = of_defenses.random_batches(spec)
    constant = drawn._replace(features=tuple(map(np.ones_like, drawn.features)))
    defended, undefended = (
        of_defenses.run_members(one, [hparams], [drawn, constant])
        for one, hparams in (
            (spec, harness.make_hparams(spec, knobs)),
            (plain, harness.make_hparams(plain)),
        )
    )
    parts = ((run[0].weights, run[0].optimizer, run[1]) for run in (defended, undefended))
    harness.assert_close(*parts, ROUNDING)


def test_idle_defenses_beside_one_that_acts_change_no_bit():
    """As in a program that trials of several chains share."""
    plain, acting = harness.make_spec(2), {"noise": dict(TABLE["noise"].example)}
    names = ("kdk", "noise", "compression", "adversary")
    idle = {name: dict(TABLE[name].neutral) for name in names} | acting
    one, beside = (
        of_defenses.run_members(
            dataclasses.replace(plain, defenses=tuple(map(DefenseSpec, knobs))),
            [harness.make_hparams(plain, knobs)],
        )
        for knobs in (acting, {name: idle[name] for name in names})
    )
    parts = ((run[0].weights, run[0].optimizer, run[1]) for run in (one, beside))
    harness.assert_same_bits(*parts)


@pytest.mark.parametrize(
    ("name", "knob", "value"),
    [
        *((name, knob, value) for name, row in ROWS.items() for knob, value in row.bad),
        *(
            (name, option, "unheard")
            for name, row in TABLE.items()
            for option, parameter in row.options.items()
            if isinstance(parameter.default, str)
        ),
    ],
)
def test_knobs_and_options_out_of_range_are_refused_by_name_and_value(name, knob, value):
    with pytest.raises(ValueError, match=re.escape(f"{knob}={value!r}")):
        TABLE[name](**{**TABLE[name].example, knob: value})


def test_undefended_settings_never_join_a_program_that_defends_at_neutral_knobs():
    """They share the first chain whose neutral knobs change nothing. KDk anchored at the teacher
    has none: at epsilon = 0 its target is the teacher's argmax, not the label."""
    anchored = {"epsilon": (0.0, 0.4), "k": 2, "anchor": "teacher"}
    experiment = parse({"grid": {"undefended": {}, "kdk": {"kdk": anchored}}, "attacks": {}})
    shape = specs.DataShape(5, 100, (Input("table", (6,)),) * 2)
    for group in grouping.groups(experiment, shape, grid.trials(experiment, [Federation()])):
        if "undefended" in {*group.trials["method"]}:
            assert [s for s in group.spec.defenses if ("anchor", "teacher") in s.options] == []
