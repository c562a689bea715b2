"""Batch inversion: against the twin, what it reads and does not, its laws, and its way through a sweep."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import batch_inversion as reference
from tests.sweeps import plan_of, tiny, train
from vfljax.attacking import jobs
from vfljax.attacking.view import summed
from vfljax.attacks.batch_inversion import batch_inversion, least_solution
from vfljax.errors import UserError
from vfljax.models import MLP, last_layer
from vfljax.store import exchange
from vfljax.sweep import size
from vfljax.sweep.variants import attack_variants

solve = harness.quick_jit(least_solution)
CLASSES = 10


def run(hidden, batch=cases.BATCH, batches=3, seed=0, sent=None, relu=False):
    """Inputs of a last layer, and gradients of untrained logits: near uniform, less the label."""
    rng = np.random.default_rng(seed)
    rows = batch * batches
    labels = rng.permutation(rows) % CLASSES
    inputs = rng.normal(size=(1, rows, hidden))
    inputs = np.maximum(inputs, 0) if relu else inputs
    powers = np.exp(0.3 * rng.normal(size=(1, rows, CLASSES)))
    g = (powers / powers.sum(axis=-1, keepdims=True) - np.eye(CLASSES)[labels]) / batch
    case = cases.make_case(
        labels, CLASSES, gradients=g, inputs=inputs, sent=sent, cut=CLASSES, known=0
    )
    return labels, inputs[0], g[0], case


def scores(case, **options):
    one = cases.build_without_splitting(batch_inversion, CLASSES, **options)
    return np.asarray(cases.attack(one, case).train)


@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (8, 8)])
def test_the_least_solution_is_the_pseudoinverse_s(shape):
    rng = np.random.default_rng(0)
    equations = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, size=(shape[0], 1))
    equations[1] = 0
    equations[3] = equations[2] - 2 * equations[0]  # a rank less
    sums = equations @ rng.normal(size=(shape[1], 3))
    unit = np.linalg.norm(equations, axis=1, keepdims=True)
    unit = np.where(unit > 0, unit, 1)
    expected = np.linalg.pinv(equations / unit, rcond=1e-4) @ (sums / unit)
    ours = solve(np.float32(equations), np.float32(sums))
    np.testing.assert_allclose(ours, expected, atol=2e-3)


@pytest.mark.parametrize("hidden", [8, 30])
def test_agrees_with_the_numpy_twin(hidden):
    _, inputs, g, case = run(hidden, relu=True)
    view, _ = cases.seen_of(case)
    got = scores(case)
    for t in range(3):
        rows = slice(t * cases.BATCH, (t + 1) * cases.BATCH)
        total = reference.gradient(inputs[rows], g[rows])
        np.testing.assert_allclose(view.parameter_gradients[0, t, 0], total, atol=1e-5)
        expected = -reference.rows(inputs[rows], total)
        guessed = ~np.isnan(got[rows]).any(axis=1)
        np.testing.assert_allclose(got[rows][guessed], expected[guessed], atol=1e-4)
        assert guessed.mean() > 0.9


def accuracy_at(batch, seed):
    """Of one batch of that size, by a last layer of 40 inputs."""
    labels, inputs, g, _ = run(40, batch, 1, seed)
    a = np.float32(np.column_stack([inputs, np.ones(batch)])).T
    return np.mean(np.asarray(solve(a, a @ np.float32(g))).argmin(axis=1) == labels)


def test_it_is_exact_up_to_the_rank_and_fades_with_the_batch():
    """The laws of a simulation: 1.00, .83 and .34 of the labels."""
    assert accuracy_at(41, 0) == 1
    for batch, law in ((60, 1.0), (100, 0.83), (400, 0.34)):
        assert abs(np.mean([accuracy_at(batch, seed) for seed in range(4)]) - law) < 0.08


def test_it_reads_sums_over_batches_and_no_row_s_gradient():
    *_, case = run(8)
    view, known = cases.seen_of(case)
    one = cases.build_without_splitting(batch_inversion, CLASSES)
    attack = cases.jitted(one.run)
    blind = view._replace(
        gradients=jnp.full_like(view.gradients, 9),
        embeddings=jnp.full_like(view.embeddings, 9),
        sums=jax.tree.map(jnp.zeros_like, view.sums),
    )
    first, other = (attack(jax.random.key(0), v, known, {}).train for v in (view, blind))
    np.testing.assert_array_equal(first, other)


def test_colluders_see_each_his_own_sums_and_average_the_rows_they_solve_for():
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
    np.testing.assert_allclose(
        both.parameter_gradients[:, :, 0], view.parameter_gradients[:, :, 0], atol=1e-6
    )
    total = reference.gradient(other[0, :20], g[:20] + np.asarray(noise)[0, :20])
    np.testing.assert_allclose(both.parameter_gradients[0, 0, 1], total, atol=1e-5)
    one = cases.build_without_splitting(batch_inversion, CLASSES)
    got = np.asarray(cases.jitted(one.run)(jax.random.key(0), both, known, {}).train)
    assert np.mean(got.argmax(axis=1) == labels) == 1


def test_rows_that_were_not_sent_have_no_guess_and_add_nothing():
    sent = np.ones((1, 60), bool)
    sent[0, 55:] = False
    labels, inputs, _, case = run(30, sent=sent)
    got = scores(case)
    np.testing.assert_array_equal(np.isnan(got).any(axis=1), ~sent[0])
    assert np.all(got[:55].argmax(axis=1) == labels[:55])
    changed = np.where(sent[:, :, None], inputs[None], 9)
    other = case._replace(
        run=case.run._replace(exchange={**case.run.exchange, "inputs": np.float32(changed)})
    )
    np.testing.assert_array_equal(got, scores(other))


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
    "training.epochs": 2,
    "training.batch_size": 24,
    "model.hidden": (32,),
    "attacks": {"batch_inversion": {}, "direct": {"rule": "most_negative"}},
}
RECORD = {"training.record_parameter_gradients": True}


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    return [
        train(folder / str(i), tiny(**CHANGES, **extra)) for i, extra in enumerate(({}, RECORD))
    ]


def test_a_sweep_that_records_them_is_attacked_through_sums_alone(sweeps):
    *_, sweep = sweeps
    leak = {row["label"]: row["leak"] for row in sweep.attacks.to_pylist()}
    assert leak["direct/most_negative"] == 1
    assert leak["batch_inversion"] > 0.97
    whole = sweep.trial(0).exchange()
    assert whole["party0_inputs"].shape == (2, 320, 32)
    assert np.all(np.ptp(whole["party0_inputs"], axis=1).max(axis=1) > 0)
    spec = plan_of(tiny(**CHANGES, **RECORD)).groups[0].spec
    written = (sweep.trial(0).shard / exchange.FILE).stat().st_size
    assert written == pytest.approx(size.exchange_bytes(spec, 1, 2), rel=0.02)


def test_recording_them_changes_no_other_number(sweeps):
    plain, recorded = (sweep.trial(0) for sweep in sweeps)
    one, other = plain.exchange(), recorded.exchange()
    assert set(other) - set(one) == {"party0_inputs"}
    for name in one:
        np.testing.assert_allclose(one[name], other[name], atol=1e-6)
    assert set(exchange.of_parties(exchange.read(plain.shard / exchange.FILE), 0, (0,))) == set(
        exchange.FIELDS
    )


def test_a_sweep_that_did_not_is_skipped_with_the_remedy(sweeps):
    plan = plan_of(tiny(**CHANGES))
    form = next(
        f
        for f in attack_variants(plan.experiment, 10, plan.party_columns[0].input)
        if f.name == "batch_inversion"
    )
    reason = jobs._planned(form, plan).skipped
    assert "set config.training.record_parameter_gradients" in reason
    assert {row["label"] for row in sweeps[0].attacks.to_pylist()} == {"direct/most_negative"}


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


def test_nothing_is_recorded_with_splitting_or_unasked():
    for changes in ({**RECORD, "federations": ("split",)}, {}):
        spec = plan_of(tiny(**{**CHANGES, "attacks": {}, **changes})).groups[0].spec
        assert last_layer.recorded_width(spec) == 0
