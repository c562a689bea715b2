"""What every defense of the table promises. A new defense adds one row to ``ROWS``."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from vfljax import config, defenses, grid, protocol
from vfljax.datasets.core import Input
from vfljax.types import DefenseSpec


class Row(NamedTuple):
    knobs: dict  # values at which the defense does something
    other: dict  # other such values
    bad: tuple  # (knob, value) pairs out of range
    options: tuple = ()  # static options with other values
    classes: tuple = (2, 5)  # class counts it is defined for
    changes: tuple = ()  # of the federation it is tried in


nan = float("nan")
ROWS = {
    "kdk": Row(
        {"epsilon": 0.4, "k": 2.0},
        {"epsilon": 0.9, "k": 1.0},
        (("epsilon", -0.1), ("epsilon", 1.5), ("k", 0.0), ("k", 1.5), ("epsilon", nan)),
        ((("anchor", "teacher"),),),
    ),
    "label_dp": Row(
        {"epsilon": 1.0},
        {"epsilon": 0.0},
        (("epsilon", -0.5), ("epsilon", nan)),
        (
            (("mechanism", "rr_with_prior"),),
            (("guarantee", "none"), ("mechanism", "rr_with_prior"), ("prior", "teacher")),
        ),
    ),
    "dcor": Row(
        {"alpha": 0.1},
        {"alpha": 0.02},
        (("alpha", -0.5), ("alpha", nan)),
        ((("form", "squared"),), (("form", "log_root"),), (("form", "root"),)),
    ),
    "gafm": Row(
        {"delta": 0.3, "gamma": 1.0, "sigma": 0.01, "clip": 0.1, "learning_rate": 1e-3},
        {"delta": 0.05, "gamma": 5.0, "sigma": 0.1, "clip": 0.05, "learning_rate": 1e-2},
        (
            *(("delta", -0.1), ("delta", 0.6), ("gamma", -1.0), ("sigma", -0.5)),
            *(("clip", -0.5), ("learning_rate", nan)),
        ),
        ((("terms", "gan"),), (("terms", "ce"),), (("discriminator", "10"),)),
        classes=(2,),
        changes=(("label_features", False),),
    ),
    "noise": Row(
        {"scale": 0.01},
        {"scale": 1.0},
        (("scale", -0.5), ("scale", nan)),
        ((("law", "gaussian"),), (("law", "isotropic"),)),
    ),
    "compression": Row(
        {"keep_rate": 0.3},
        {"keep_rate": 0.8},
        (("keep_rate", -0.1), ("keep_rate", 1.5), ("keep_rate", nan)),
    ),
    "ppdl": Row(
        {"theta": 0.9, "epsilon": 1.8, "gamma": 1e-3, "tau": 1e-4, "sensitivity": 1.0},
        {"theta": 0.2, "epsilon": 8.0, "gamma": 1e-2, "tau": 0.0, "sensitivity": 0.5},
        (
            *(("theta", -0.1), ("theta", 1.5), ("epsilon", 0.0), ("epsilon", nan)),
            *(("gamma", -0.5), ("tau", -0.5), ("sensitivity", -0.5)),
        ),
        ((("on_exhaustion", "keep"),),),
    ),
    "discrete_sgd": Row(
        {"intervals": 6.0, "bound": 0.03},
        {"intervals": 2.0, "bound": 0.03},
        (("intervals", 0.0), ("intervals", 2.5), ("bound", 0.0), ("bound", nan)),
        ((("interval", "fixed"),),),
    ),
    "max_norm": Row({}, {}, ()),
    "marvell": Row(
        {"power": 1.0, "error": 0.25},
        {"power": 5.0, "error": 0.25},
        (("power", -0.5), ("power", nan), ("error", 0.5), ("error", -0.5)),
        ((("dimension", "batch"),), (("budget", "dynamic"),)),
        classes=(2,),
    ),
}
STEPS = 5  # of 3 an epoch: DiscreteSGD sends its first epoch raw
every_defense = pytest.mark.parametrize("name", ROWS)
every_neutral = pytest.mark.parametrize("name", defenses.NEUTRAL)
every_class_count = pytest.mark.parametrize(
    ("name", "classes"), [(name, c) for name, row in ROWS.items() for c in row.classes]
)
every_form = pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, row in ROWS.items() for options in ((), *row.options)],
)

every_form_and_class_count = pytest.mark.parametrize(
    ("name", "options", "classes"),
    [
        *((name, (), classes) for name, row in ROWS.items() for classes in row.classes),
        *((name, options, 2) for name, row in ROWS.items() for options in row.options),
    ],
)


def federation(name, classes, knobs, options=()):
    spec = harness.make_spec(
        classes, (DefenseSpec(name, options),), passive=1, **dict(ROWS[name].changes)
    )
    return spec, harness.make_hparams(spec, {name: knobs})


def batches_of(spec, steps=STEPS):
    return [harness.make_batch(spec, i) for i in range(steps)]


def seen(result):
    """Everything a run leaves that exists without defenses too."""
    state, exchanges, metrics = result
    return state.weights, state.optimizer, exchanges, metrics


def test_every_defense_of_the_table_has_a_row_here():
    assert set(ROWS) == set(defenses.TABLE)
    assert set(defenses.NEUTRAL) <= set(defenses.TABLE)
    assert set(defenses.NEEDS_TOP) <= set(defenses.TABLE)


@pytest.mark.parametrize(("classes", "split"), [(2, False), (5, True)])
@every_neutral
def test_neutral_knobs_change_no_bit_of_some_steps(name, classes, split):
    classes = min(classes, max(ROWS[name].classes))
    plain = harness.make_spec(classes, split=split, passive=1)
    spec = dataclasses.replace(plain, defenses=(DefenseSpec(name),))
    hparams = harness.make_hparams(spec, {name: defenses.NEUTRAL[name]})
    for batches in (batches_of(spec), [constant(b) for b in batches_of(spec)]):
        # fully optimized, as sweeps run it
        defended = harness.run_steps(spec, hparams, batches, jit=jax.jit)
        undefended = harness.run_steps(plain, harness.make_hparams(plain), batches, jit=jax.jit)
        harness.assert_same_bits(seen(defended), seen(undefended))


def constant(batch):
    """The same columns in every row, hence constant embeddings."""
    return batch._replace(features=tuple(jnp.ones_like(x) for x in batch.features))


@every_class_count
def test_other_knobs_do_change_something(name, classes):
    spec, hparams = federation(name, classes, ROWS[name].knobs)
    plain = dataclasses.replace(spec, defenses=())
    defended = harness.run_steps(spec, hparams, batches_of(spec))
    undefended = harness.run_steps(plain, harness.make_hparams(plain), batches_of(spec))
    pairs = zip(harness.numbers(defended[0].weights), harness.numbers(undefended[0].weights))
    assert any(np.any(a != b) for a, b in pairs)


@every_form_and_class_count
def test_one_trace_serves_all_knobs(name, options, classes):
    spec, hparams = federation(name, classes, ROWS[name].knobs, options)
    first = harness.run_steps(spec, hparams, batches_of(spec))
    traces = harness.TRACES[spec]
    second = harness.run_steps(
        spec, harness.make_hparams(spec, {name: ROWS[name].other}), batches_of(spec)
    )
    assert harness.TRACES[spec] == traces
    pairs = zip(harness.numbers(first[0].weights), harness.numbers(second[0].weights))
    assert any(np.any(a != b) for a, b in pairs) == (ROWS[name].knobs != ROWS[name].other)


@every_form_and_class_count
def test_a_vmapped_lane_equals_the_setting_alone(name, options, classes):
    row = ROWS[name]
    spec, _ = federation(name, classes, row.knobs, options)
    settings_ = [
        harness.make_hparams(spec, {name: row.knobs}),
        harness.make_hparams(spec, {name: row.other}, learning_rate=0.02),
    ]
    step = harness.quick_jit(jax.vmap(protocol.make_step(spec), in_axes=(0, None, 0)))
    states = harness.stack([harness.make_state(spec, own, seed=3) for own in settings_])
    hparams, batches, lanes = harness.stack(settings_), batches_of(spec, 2), []
    for batch in batches:
        states, exchange, metrics = step(states, batch, hparams)
        lanes.append((exchange, metrics))
    for i, own in enumerate(settings_):
        state, exchanges, metrics = harness.run_steps(spec, own, batches, seed=3)
        alone = state, list(zip(exchanges, metrics))
        harness.assert_close(harness.lane((states, lanes), i), alone, 1e-5)


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, row in ROWS.items() for options in row.options],
)
def test_a_static_option_changes_the_run_and_leaves_it_finite(name, options):
    classes = ROWS[name].classes[-1]
    batches = batches_of(federation(name, classes, ROWS[name].knobs)[0])
    runs = [
        harness.run_steps(*federation(name, classes, ROWS[name].knobs, given), batches)
        for given in ((), options)
    ]
    harness.assert_finite(runs[1])
    pairs = zip(harness.numbers(runs[0][0].weights), harness.numbers(runs[1][0].weights))
    assert any(np.any(a != b) for a, b in pairs)


@every_form_and_class_count
def test_degenerate_batches_leave_everything_finite(name, options, classes):
    spec, hparams = federation(name, classes, ROWS[name].knobs, options)
    state = harness.make_state(spec, hparams)

    @given(
        seed=st.integers(0, 2**16),
        exponent=st.integers(-30, 15),
        same_rows=st.booleans(),
        one_class=st.booleans(),
        dead=st.booleans(),
    )
    @settings(deadline=None, max_examples=25, database=None, derandomize=True)
    def check(seed, exponent, same_rows, one_class, dead):
        batch = harness.make_batch(spec, seed)
        scale = 0.0 if dead else 10.0**exponent
        features = tuple(
            scale * (jnp.broadcast_to(x[:1], x.shape) if same_rows else x) for x in batch.features
        )
        labels = jnp.full_like(batch.labels, classes - 1) if one_class else batch.labels
        scores = jnp.full_like(batch.scores, 1 / classes) if one_class else batch.scores
        batch = batch._replace(features=features, labels=labels, scores=scores)
        harness.assert_finite(harness.jitted_step(spec)(state, batch, hparams))

    check()


@every_form
def test_a_batch_of_one_row_leaves_everything_finite(name, options):
    spec, hparams = federation(name, ROWS[name].classes[-1], ROWS[name].knobs, options)
    batches = [harness.make_batch(spec, i, rows=1) for i in range(2)]
    harness.assert_finite(harness.run_steps(spec, hparams, batches))


@every_form
def test_any_gradients_leave_the_gradient_slot_finite_and_in_shape(name, options):
    defense = defenses.TABLE[name](**ROWS[name].knobs, **dict(options))
    transform = optax.with_extra_args_support(defense.gradient)
    context = harness.make_context(6)

    @jax.jit
    def treat(g):
        state = transform.init((g, g))
        return transform.update((g, g), state, None, embeddings=(g, g), context=context)

    @given(
        seed=st.integers(0, 2**16),
        exponent=st.integers(-38, 30),
        zero_rows=st.integers(0, 6),
    )
    @settings(deadline=None, max_examples=25, database=None, derandomize=True)
    def check(seed, exponent, zero_rows):
        g = np.random.default_rng(seed).normal(size=(6, 2)).astype(np.float32)
        g *= np.float32(10.0**exponent)
        g[:zero_rows] = 0
        sent, _ = treat(g)
        harness.assert_finite(sent)
        assert [one.shape for one in sent] == [(6, 2)] * 2

    check()


bad_knobs = pytest.mark.parametrize(
    ("name", "knob", "value"),
    [(name, knob, value) for name, row in ROWS.items() for knob, value in row.bad],
)


@bad_knobs
def test_knobs_out_of_range_are_refused_by_name_and_value(name, knob, value):
    with pytest.raises(ValueError, match=rf"{knob}={value}".replace(".", r"\.")) as error:
        defenses.TABLE[name](**{**ROWS[name].knobs, knob: value})
    assert "\n" not in str(error.value)


@bad_knobs
def test_traced_knobs_pass_silently(name, knob, value):
    def build(traced):
        defenses.TABLE[name](**{**ROWS[name].knobs, knob: traced})
        return traced

    np.testing.assert_array_equal(jax.jit(build)(value), np.float32(value))


def test_undefended_settings_never_join_a_program_that_defends_at_neutral_knobs():
    """They share the first chain whose neutral knobs change nothing. KDk anchored at the teacher
    has none: at epsilon = 0 its target is the teacher's argmax, not the label."""
    anchored = {"epsilon": (0.0, 0.4), "k": 2, "anchor": "teacher"}
    values = config.resolve({"grid": {"undefended": {}, "kdk": {"kdk": anchored}}, "attacks": {}})
    settings_ = grid.settings(values, [grid.Structure()])
    for group in grid.groups(values, settings_, 5, 100, (Input("table", (6,)),) * 2):
        if any(setting.arm == "undefended" for setting in group.settings):
            assert [
                spec for spec in group.spec.defenses if ("anchor", "teacher") in spec.options
            ] == []
