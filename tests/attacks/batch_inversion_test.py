"""Batch inversion: against the twin, its limits, and its way through a sweep."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import batch_inversion as reference
from tests.sweeps import plan_of, tiny, train
from vfljax.attack_runs import jobs
from vfljax.attack_runs.view import summed
from vfljax.attacks.batch_inversion import batch_inversion
from vfljax.errors import UserError
from vfljax.models import MLP, last_layer
from vfljax.store import exchange
from vfljax.sweep import size
from vfljax.sweep.variants import attack_variants

CLASSES, BATCHES = 10, 3


def run(hidden):
    """Inputs of a last layer, and gradients of untrained logits: near uniform, less the label."""
    rng = np.random.default_rng(0)
    rows = cases.BATCH * BATCHES
    labels = rng.permutation(rows) % CLASSES
    inputs = np.maximum(rng.normal(size=(1, rows, hidden)), 0)
    powers = np.exp(0.3 * rng.normal(size=(1, rows, CLASSES)))
    g = (powers / powers.sum(axis=-1, keepdims=True) - np.eye(CLASSES)[labels]) / cases.BATCH
    arrays = {"gradients": g, "inputs": inputs, "cut": CLASSES}
    case = cases.make_case(labels, CLASSES, known=0, **arrays)
    return labels, inputs[0], g[0], case


def test_agrees_with_the_numpy_twin_where_the_layer_is_narrower_than_a_batch():
    _, inputs, g, case = run(8)
    view, _ = cases.seen_of(case)
    got = cases.attack(cases.build(batch_inversion, CLASSES, CLASSES), case).train
    for t in range(BATCHES):
        rows = slice(t * cases.BATCH, (t + 1) * cases.BATCH)
        total = reference.gradient(inputs[rows], g[rows])
        np.testing.assert_allclose(view.parameter_gradients[0, t, 0], total, atol=1e-5)
        expected = -reference.rows(inputs[rows], total)
        guessed = ~np.isnan(got[rows]).any(axis=1)
        np.testing.assert_allclose(got[rows][guessed], expected[guessed], atol=1e-4)
        assert guessed.mean() > 0.9


def test_colluders_see_each_his_own_sums_and_average_the_rows_they_solve_for():
    """Where the layer is wider than a batch, every label is read."""
    labels, _, g, case = run(30)
    view, known = cases.seen_of(case)
    other = jnp.float32(np.random.default_rng(9).normal(size=view.inputs.shape))
    noise = jnp.float32(1e-6 * np.arange(CLASSES))[None, None] + 0 * view.gradients
    both = view._replace(
        inputs=jnp.concatenate([view.inputs, other], axis=-1),
        gradients=jnp.concatenate([view.gradients, view.gradients + noise], axis=-1),
        features=view.features * 2,
    )
    both = both._replace(parameter_gradients=harness.quick_jit(summed)(both))
    first, second = (both.parameter_gradients[:, :, p] for p in range(2))
    np.testing.assert_allclose(first, view.parameter_gradients[:, :, 0], atol=1e-6)
    total = reference.gradient(other[0, :20], g[:20] + np.asarray(noise)[0, :20])
    np.testing.assert_allclose(second[0, 0], total, atol=1e-5)
    one = cases.build(batch_inversion, CLASSES, CLASSES)
    got = np.asarray(cases.jitted(one.run)(jax.random.key(0), both, known, {}).train)
    np.testing.assert_array_equal(got.argmax(axis=1), labels)


def test_the_sum_is_the_gradient_that_a_party_s_own_parameters_receive():
    """With batch statistics and dropout, of the very draws of the step."""
    bottom = MLP((7,), 5, dropout=0.5, batch_norm=True)
    spec = dataclasses.replace(
        harness.make_spec(split=False), bottoms=(bottom,) * 3, record_inputs=True
    )
    hparams = harness.make_hparams(spec, momentum=0.0, weight_decay=0.0)
    batch = harness.make_batch(spec, 0)
    before = harness.make_state(spec, hparams)
    inputs = harness.quick_jit(last_layer.make_inputs(spec))(before, batch)
    after, (crossed,), _ = harness.run_steps(spec, hparams, [batch])
    for p in range(spec.passive):
        total = last_layer.parameter_gradient(inputs[p], crossed.gradients[p], batch.labels >= 0)
        layer, new = (s.weights.bottoms[p]["params"]["Dense_1"] for s in (before, after))
        moved = [(layer[k] - new[k]) / hparams.learning_rate for k in ("kernel", "bias")]
        np.testing.assert_allclose(total, np.vstack([moved[0], moved[1][None]]), atol=1e-5)
        assert np.abs(total).max() > 1e-2


CHANGES = {
    "seeds": 1,
    "federations": ("no_split",),
    "grid": {"undefended": {}},
    "training.record": (0,),
    "training.epochs": 1,
    "training.batch_size": 24,
    "model.hidden": (32,),
    "attacks": {"batch_inversion": {}},
}
RECORD = {"training.record_parameter_gradients": True}


def test_a_sweep_that_records_inputs_is_attacked_through_sums_alone(tmp_path):
    config = tiny(**CHANGES, **RECORD)
    sweep = train(tmp_path, config)
    (row,) = sweep.attacks.to_pylist()
    assert row["leak"] > 0.97
    inputs = sweep.trial(0).exchange()["party0_inputs"]
    assert inputs.shape == (1, 320, 32)
    assert np.all(np.ptp(inputs, axis=1).max(axis=1) > 0)
    spec = plan_of(config).groups[0].spec
    written = (sweep.trial(0).shard / exchange.FILE).stat().st_size
    assert written == pytest.approx(size.exchange_bytes(spec, 1, 1), rel=0.05)


def test_a_sweep_that_does_not_is_skipped_with_the_remedy_and_with_splitting_nothing_is_recorded():
    plan = plan_of(tiny(**CHANGES))
    (form,) = attack_variants(plan.experiment, 10, plan.party_columns[0].input)
    reason = jobs._planned(form, plan).skipped
    assert "set config.training.record_parameter_gradients" in reason
    split = {**CHANGES, "federations": ("split",), "attacks": {}}
    for spec in (plan.groups[0].spec, plan_of(tiny(**split, **RECORD)).groups[0].spec):
        assert last_layer.recorded_width(spec) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.record_rows": 100}, r"record_rows=100.*choose 0"),
        ({"model.hidden": ()}, r"record_parameter_gradients: MLP does not end.*choose False"),
    ],
)
def test_what_cannot_be_recorded_is_refused_when_planned(changes, message):
    with pytest.raises(UserError, match=message) as error:
        plan_of(tiny(**{**CHANGES, **RECORD, **changes}))
    assert "\n" not in str(error.value)
