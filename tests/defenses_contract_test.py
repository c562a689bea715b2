"""What each defense of the table promises. A new defense adds one line of test values to ``ROWS``."""

import dataclasses
import inspect
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from vfljax import defenses, testing
from vfljax.defenses import TABLE
from vfljax.sweep import grid, specs
from vfljax.sweep.grid import parse
from vfljax.types import AttackIdentity, CutLayer, DefenseSpec, Federation, Input


class Row(NamedTuple):
    """What only tests ask of a defense; the rest is in its row of the table."""

    other: dict  # knobs other than ``knobs_of``, at which it does something too
    bad: tuple  # (knob, value) pairs out of range
    options: tuple = ()  # static options that differ from the default
    changes: tuple = ()  # of the federation it is tried in
    knobs: dict | None = None  # where the options act, if they do not at the row's example


nan = float("nan")
ROWS = {
    "kdk": Row(
        {"epsilon": 0.9, "k": 1.0},
        (("epsilon", -0.1), ("epsilon", 1.5), ("k", 0.0), ("k", 1.5), ("epsilon", nan)),
        ((("anchor", "teacher"),),),
    ),
    "label_dp": Row(
        {"epsilon": 0.0},
        (("epsilon", -0.5), ("epsilon", nan)),
        (
            (("mechanism", "rr_with_prior"),),
            (("guarantee", "none"), ("mechanism", "rr_with_prior"), ("prior", "teacher")),
        ),
    ),
    "grad_perturb": Row(
        {"epsilon": 0.5},
        (("epsilon", 0.0), ("epsilon", -1.0), ("epsilon", nan)),
        ((("draw", "step"), ("reach", "cut")),),
    ),
    "class_splitting": Row(
        {"epsilon": 0.0},
        (("epsilon", -0.5), ("epsilon", nan)),
        ((("head", "sum"), ("normalize", True), ("pseudo", 7)),),
    ),
    "alibi": Row(
        {"epsilon": 0.5},
        (("epsilon", 0.0), ("epsilon", -1.0), ("epsilon", nan)),
        ((("draw", "step"),),),
    ),
    "cae": Row(
        {"confusion": 0.1, "learning_rate": 5e-3},
        (("confusion", -0.5), ("confusion", nan), ("learning_rate", -0.5)),
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
        {"theta": 0.2, "epsilon": 8.0, "gamma": 1e-2, "tau": 0.0, "sensitivity": 0.5},
        (
            *(("theta", -0.1), ("theta", 1.5), ("epsilon", 0.0), ("epsilon", nan)),
            *(("gamma", -0.5), ("tau", -0.5), ("sensitivity", -0.5)),
        ),
        ((("on_exhaustion", "keep"),),),
        # entries run out
        knobs={"theta": 0.9, "epsilon": 1.8, "gamma": 1e-3, "tau": 1e-4, "sensitivity": 1.0},
    ),
    "discrete_sgd": Row(
        {"intervals": 2.0, "bound": 0.03},
        (("intervals", 0.0), ("intervals", 2.5), ("bound", 0.0), ("bound", nan)),
        ((("interval", "fixed"),),),
    ),
    "max_norm": Row({}, ()),
    "marvell": Row(
        {"power": 5.0, "error": 0.25},
        (("power", -0.5), ("power", nan), ("error", 0.5), ("error", -0.5)),
        ((("dimension", "batch"),), (("budget", "dynamic"),)),
    ),
    "proj_pert": Row({"inverse_sum_kl": 6.25}, (("inverse_sum_kl", -0.5), ("inverse_sum_kl", nan))),
    "pe_loss": Row(
        {"alpha": 0.5, "softening": 0.1},
        (("alpha", -0.5), ("alpha", nan), ("softening", 0.0)),
        ((("distance", "angular"),),),
    ),
    "mid": Row(
        {"lambda_kl": 1.0},
        (("lambda_kl", -0.5), ("lambda_kl", nan)),
        ((("expansion", 2), ("offset", 5.0), ("output", "identity"), ("path", "released")),),
    ),
    "fedpass": Row({}, (), ((("draw", "step"), ("law", "uniform"), ("passports", 3)),)),
    "p3eft": Row({"alpha": 0.1}, (("alpha", -0.5), ("alpha", nan)), ((("deviation", 0.0),),)),
    "adversary": Row(
        {"lambda_adv": 2.0, "learning_rate": 0.1},
        (("lambda_adv", -0.5), ("lambda_adv", nan), ("learning_rate", -0.5)),
    ),
}
STEPS = 5  # of 3 an epoch: DiscreteSGD sends its first epoch raw
SLOTS = "slots return what they received, and knobs may be traced"
MAPPED = "members mapped together equal each alone"
FINITE = "whatever the batch, everything stays finite"


def classes_of(name):
    """Class counts the defense is defined for."""
    return (2,) if TABLE[name].two_classes else (2, 5)


def knobs_of(name):
    return ROWS[name].knobs or dict(TABLE[name].example)


every_defense = pytest.mark.parametrize("name", TABLE)
every_neutral = pytest.mark.parametrize("name", [n for n in TABLE if TABLE[n].neutral is not None])
every_form = pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, row in ROWS.items() for options in ((), *row.options)],
)


def federation(name, classes, knobs, options=()):
    spec = harness.make_spec(
        classes, (DefenseSpec(name, options),), passive=1, **dict(ROWS[name].changes)
    )
    return spec, harness.make_hparams(spec, {name: knobs})


def shared_parts(result):
    """What a run leaves that exists without defenses too."""
    state, exchanges, metrics = result
    return state.weights, state.optimizer, exchanges, metrics


def test_every_defense_of_the_table_has_test_values():
    assert list(ROWS) == list(TABLE)


@every_defense
def test_a_row_names_its_factory_s_parameters_and_no_others(name):
    row = TABLE[name]
    parameters = inspect.signature(row.factory).parameters
    assert [*row.knobs, *row.options] == list(parameters)  # knobs first, options keyword-only
    assert set(row.example) == set(row.knobs)
    assert row.neutral is None or set(row.neutral) == set(row.knobs)
    assert {option for options in ROWS[name].options for option, _ in options} <= set(row.options)
    assert set(row.required) <= set(row.knobs)
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
    changes = {"federation": dict(ROWS[name].changes), "classes": classes_of(name)[-1:]}
    chosen = testing.rules(name) if not options else (SLOTS, MAPPED, FINITE)
    quick = {"steps": 100} if name == "cae" else {}  # of its codebook's training
    for rule in chosen:
        testing.check(name, rule, options={**quick, **dict(options)}, **changes)


@every_defense
def test_a_report_names_the_attacks_that_know_of_it(name):
    row = TABLE[name]
    for kind, knowers in row.known_by.items():
        for attack, option in knowers:
            options = (("epoch", 0), *([("rule", option)] if option else []))
            shown = tuple(name for name, _ in options)
            assert row.known_to(kind, [AttackIdentity(attack, options, shown)])
            assert f"{attack} {option}".strip() in row.advice(kind).split(", ")


@every_form
def test_a_report_can_remark_on_any_form(name, options):
    remarks, chosen = TABLE[name].remarks, dict(options)
    for knobs in (TABLE[name].example, ROWS[name].other, TABLE[name].neutral or {}):
        if TABLE[name].knobs and not knobs:
            continue
        bound = remarks.bound(knobs, chosen, np.array([0.25, 0.75]))
        assert bound is None or [type(text) for text in bound] == [str, str]
    sentence = remarks.bound_sentence(chosen)
    assert sentence == "" or (sentence[0].isupper() and sentence[-1] == ".")
    assert all(remarks.knob_label(knob, chosen) for knob in TABLE[name].knobs)


ROUNDING = 16 * float(np.finfo(np.float32).eps)  # some roundings a step, over the steps of a run


@pytest.mark.parametrize(("classes", "split"), [(2, False), (5, True)])
@every_neutral
def test_neutral_knobs_change_some_steps_by_rounding_at_most(name, classes, split):
    classes = min(classes, max(classes_of(name)))
    plain = harness.make_spec(classes, split=split, passive=1)
    spec = dataclasses.replace(plain, defenses=(DefenseSpec(name),))
    hparams = harness.make_hparams(spec, {name: dict(TABLE[name].neutral)})
    # code as users run it; Marvell's solver takes long to optimize and is tried so with splitting alone
    jit = harness.quick_jit if (name, split) == ("marvell", False) else harness.optimized_jit
    drawn = harness.make_batches(spec, STEPS)
    for batches in (drawn, [constant(b) for b in drawn]):
        defended = harness.run_steps(spec, hparams, batches, jit=jit)
        undefended = harness.run_steps(plain, harness.make_hparams(plain), batches, jit=jit)
        # two programs are fused differently, which rounds differently on some processors (AVX2)
        harness.assert_close(shared_parts(defended), shared_parts(undefended), ROUNDING)


def constant(batch):
    """The same columns in every row, hence constant embeddings."""
    return batch._replace(features=tuple(jnp.ones_like(x) for x in batch.features))


@every_form
def test_one_trace_serves_all_knobs_and_a_static_option_changes_the_run(name, options):
    classes = classes_of(name)[-1]
    spec, hparams = federation(name, classes, knobs_of(name), options)
    batches = harness.make_batches(spec, STEPS)
    first = harness.run_steps(spec, hparams, batches)
    harness.assert_finite(first)
    traces = harness.TRACES[spec]
    hparams = harness.make_hparams(spec, {name: ROWS[name].other})
    second = harness.run_steps(spec, hparams, batches)
    assert harness.TRACES[spec] == traces
    changed = harness.differ(first[0].weights, second[0].weights)
    assert changed == (knobs_of(name) != ROWS[name].other)
    if options:
        by_default = federation(name, classes, knobs_of(name))
        plain = harness.run_steps(*by_default, batches)
        assert harness.differ(first[0].weights, plain[0].weights)


@pytest.mark.parametrize(
    ("name", "knob", "value"),
    [(name, knob, value) for name, row in ROWS.items() for knob, value in row.bad],
)
def test_knobs_out_of_range_are_refused_by_name_and_value(name, knob, value):
    with pytest.raises(ValueError, match=rf"{knob}={value}".replace(".", r"\.")) as error:
        TABLE[name](**{**knobs_of(name), knob: value})
    assert "\n" not in str(error.value)


def test_undefended_settings_never_join_a_program_that_defends_at_neutral_knobs():
    """They share the first chain whose neutral knobs change nothing. KDk anchored at the teacher
    has none: at epsilon = 0 its target is the teacher's argmax, not the label."""
    anchored = {"epsilon": (0.0, 0.4), "k": 2, "anchor": "teacher"}
    experiment = parse({"grid": {"undefended": {}, "kdk": {"kdk": anchored}}, "attacks": {}})
    shape = specs.DataShape(5, 100, (Input("table", (6,)),) * 2)
    for group in specs.groups(experiment, shape, grid.trials(experiment, [Federation()])):
        if "undefended" in {*group.trials["method"]}:
            assert [
                spec for spec in group.spec.defenses if ("anchor", "teacher") in spec.options
            ] == []
