"""Epochs, records and the member that equals the same trial run alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.sweeps import plan_of, tiny
from vfljax import keys, metrics
from vfljax.federation import evaluation, training
from vfljax.federation.evaluation import pooled_auc
from vfljax.federation.protocol import make_predict, make_step
from vfljax.sweep import batch_layout, initial, programs, specs, trainer
from vfljax.types import Batch

SMALL = {
    "attacks": {},
    "seeds": 3,
    "data.train": 330,  # 5 batches of 64 and one of 10
    "grid": {"noise": {"noise": {"scale": (0.0, 0.01, 0.02)}}},
}


@functools.cache
def planned(**changes):
    return plan_of(tiny(**SMALL, **changes))


def run(places, spec=None, epochs=3, width=None, plan=None, observe=training.unobserved):
    """Train the trials at ``places`` of the first group in one program; returns what they end with."""
    plan = plan or planned()
    group = plan.groups[0]
    spec = spec or group.spec
    layout = batch_layout.layout(len(places), width)
    member = layout.pad(specs.members_of(spec, group.trials.iloc[list(places)], []))
    weights = initial.initial_weights(spec, plan.experiment, plan.seeds, plan.table)
    table, weights = batch_layout.share((plan.table, weights))
    snapshot = layout.pad(trainer.empty_snapshot(spec, member, table, weights))
    program = None
    for number in range(epochs):
        now = training.epoch_of(jnp.int32(number), jnp.asarray(plan.seeds), spec.num_rows)
        arguments = (member, snapshot), (table, weights, batch_layout.share(now))
        if program is None:
            program = programs.program(training.make_run, (spec, observe), layout, *arguments)
        snapshot, _ = program(*arguments)
    snapshot = snapshot._replace(state=snapshot.state._replace(run_key=jnp.zeros(layout.capacity)))
    return batch_layout.unpad(snapshot, len(places))


@functools.cache
def all_nine(epochs=3):
    """Every trial of the plan in one program, one at a time on each device."""
    return run(range(9), epochs=epochs, width=1)


def pick(tree, i):
    return jax.tree.map(lambda a: a[i], tree)


def close(a, b, tolerance):
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, atol=tolerance, rtol=tolerance), a, b
    )


def test_a_member_equals_the_same_setting_run_alone():
    first = all_nine(epochs=1)
    for place in (0, 4, 8):
        alone = run([place], epochs=1)
        close(pick(first.record.gradients, place), pick(alone.record.gradients, 0), 1e-5)
        close(pick(first.state.weights, place), pick(alone.state.weights, 0), 1e-5)
    wide = run(range(9), width=4)
    close(all_nine().record.loss, wide.record.loss, 1e-3)


def test_the_same_program_gives_the_same_bits_again():
    jax.tree.map(
        np.testing.assert_array_equal, all_nine(epochs=1), run(range(9), epochs=1, width=1)
    )


def test_every_epoch_and_seed_has_its_own_order():
    first, second = (training.epoch_of(jnp.int32(n), jnp.arange(2), 50) for n in (0, 1))
    assert (first.order[0] != first.order[1]).any()
    assert (first.order[0] != second.order[0]).any()
    np.testing.assert_array_equal(first.order[0][first.place[0]], np.arange(50))


def test_every_row_is_sent_once_an_epoch_also_those_left_over():
    record = run([0]).record
    assert record.sent.all()
    np.testing.assert_array_equal(np.sort(record.order[0]), np.arange(330))
    assert (record.sums[0].count == 3).all()
    # the last, short batch carries 1/10 where full ones carry 1/64: longer gradients
    length = np.linalg.norm(record.gradients[0][0], axis=-1)
    short = record.order[0] >= 320
    assert length[short].mean() > 2 * length[~short].mean()


def test_drop_last_leaves_the_rest_unsent():
    spec = dataclasses.replace(planned().groups[0].spec, drop_last=True)
    record = run([0], spec=spec, epochs=1).record
    assert record.sent.sum() == 320
    assert (record.gradients[0][0][~record.sent[0]] == 0).all()


def test_sums_go_over_all_epochs_and_count_the_epochs_a_row_was_sent_in():
    spec = dataclasses.replace(planned().groups[0].spec, drop_last=True)
    records = [run([4], spec=spec, epochs=epochs).record for epochs in (1, 2)]
    first, both = (record.sums[0] for record in records)
    second = records[1].gradients[0]
    np.testing.assert_allclose(both.gradient, first.gradient + second, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(both.sign, first.sign + np.sign(second))
    np.testing.assert_array_equal(both.count, records[0].sent + 1 * records[1].sent)
    assert set(np.unique(both.count)) == {0, 1, 2} or not records[0].sent.all()


def test_the_loss_of_an_epoch_is_the_mean_over_its_rows():
    """Of the honest, undefended loss at a rate of 0, which is then the same in every batch order."""
    still = planned(**{"training.learning_rate": 0.0, "model.top": "mlp"})
    loss = run([0], plan=still, epochs=1).record.loss[0, 0]
    spec, weights = (
        still.groups[0].spec,
        initial.initial_weights(still.groups[0].spec, still.experiment, still.seeds, still.table),
    )
    rows = still.table.train[0]
    first = jax.tree.map(lambda a: a[0], weights)
    logits = make_predict(spec)(first, training.rows_of(still.table, 0, rows))
    expected = metrics.cross_entropy(logits, still.table.labels[rows])
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_sums_add_up_what_was_received():
    one = run([4], epochs=1).record
    np.testing.assert_allclose(one.sums[0].gradient, one.gradients[0])
    np.testing.assert_array_equal(one.sums[0].sign, np.sign(one.gradients[0]))
    np.testing.assert_allclose(one.sums[0].square, one.gradients[0] ** 2)


def test_nobody_observes_by_default_and_nothing_is_left_of_it_in_the_epoch():
    spec = planned().groups[0].spec
    observer = training.unobserved(spec)
    assert observer.step(None, None, None) == ()
    observed = np.full(3, 7.0)
    assert observer.end(observed, 0, [(), ()]) is observed
    assert np.isnan(all_nine().record.observed).all()

    def program(observe):
        def epoch(*arguments):
            return training.make_epoch(spec, *observe)(*arguments)

        plan, group = planned(), planned().groups[0]
        member = pick(specs.members_of(spec, group.trials[:1], []), 0)
        weights = initial.weight_shapes(spec, plan.seeds, plan.table)
        start = jax.eval_shape(training.make_start(spec), member, plan.table, weights)
        now = training.epoch_of(jnp.int32(0), jnp.asarray(plan.seeds), spec.num_rows)
        return str(jax.make_jaxpr(epoch)(start, member, plan.table, now))

    silent = training.Observer(lambda *_: (), lambda observed, number, pieces: observed)
    assert program(()) == program((lambda spec: silent,))
    assert program(()) != program((pooled_auc,))


CANCER = {
    "data": {"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
    "grid": {"undefended": {}},
    "attacks": {},
    "training": {"epochs": 2, "batch_size": 60, "learning_rate": 0.05},
}


def test_the_pooled_auc_is_that_of_each_step_s_random_test_rows_under_its_weights():
    """Recomputed step by step: 3 full batches and one of 20 rows, each scored on 60 test rows."""
    plan = plan_of(tiny(**CANCER))
    spec = plan.groups[0].spec
    watched = run([0, 1], plan=plan, observe=pooled_auc, epochs=2)
    plain = run([0, 1], plan=plan, epochs=2)
    harness.assert_close(watched.state, plain.state, 1e-6)  # it only looks
    assert np.isnan(plain.record.observed).all()
    assert np.isfinite(watched.record.observed).all()
    jitted = [jax.jit(make(spec)) for make in (training.make_start, make_step, make_predict)]
    for place in (0, 1):
        expected = recomputed(plan, spec, jitted, plan.groups[0].trials.iloc[[place]], epochs=2)
        np.testing.assert_allclose(watched.record.observed[place], expected, atol=1e-5)


def recomputed(plan, spec, jitted, trial, epochs):
    """The pooled AUC of every epoch of a trial, from the protocol's own start, step and prediction."""
    start, step, predict = jitted
    member = jax.tree.map(lambda a: jnp.asarray(a)[0], specs.members_of(spec, trial, []))
    weights = initial.initial_weights(spec, plan.experiment, plan.seeds, plan.table)
    table, seed = plan.table, int(trial["seed"].iloc[0])
    state = start(member, table, weights).state
    out = []
    for number in range(epochs):
        order = training.epoch_of(jnp.int32(number), jnp.asarray(plan.seeds), spec.num_rows).order
        margins, labels = [], []
        for first in range(0, spec.num_rows, spec.batch_size):
            index = order[seed, first : first + spec.batch_size]
            raw = table.train[seed, index]
            rows, anchor = (training.rows_of(table, seed, r) for r in (raw, table.train[seed, :1]))
            batch = Batch(rows, anchor, table.labels[raw], index)
            state, _, _ = step(state, batch, member.hparams)
            key = keys.fold(state.run_key, "test_batch", state.step)
            rows = jax.random.permutation(key, table.test[seed])[: spec.batch_size]
            logits = predict(state.weights, training.rows_of(table, seed, rows))
            margins.append(logits[:, 1] - logits[:, 0])
            labels.append(table.labels[rows])
        out.append(metrics.auc(jnp.concatenate(margins), jnp.concatenate(labels)))
    return np.asarray(out)


@pytest.mark.parametrize("classes", [10, 12])
def test_the_top_5_accuracy_is_of_more_than_ten_classes(monkeypatch, classes):
    rng, rows = np.random.default_rng(0), 40
    logits = rng.standard_normal((rows, classes)).astype(np.float32)
    labels = rng.integers(0, classes, rows).astype(np.int32)
    places = jnp.arange(rows, dtype=jnp.int32)[None]
    monkeypatch.setattr(evaluation, "make_predict", lambda spec: lambda weights, x, states: x[0])
    rows = (places, places[:, :5], places[:, :5])  # to train on, to validate and to test with
    scaling = ((jnp.zeros((1, classes)),), (jnp.ones((1, classes)),))
    table = training.Table((jnp.asarray(logits),), jnp.asarray(labels), *rows, *scaling, None)
    spec = dataclasses.replace(harness.make_spec(), num_classes=classes)
    figures = evaluation.make_evaluate(spec)((jnp.int32(0), None, {}), table)
    assert ("test_top5_accuracy" in figures) == (classes > 10)
    if classes > 10:
        five = [labels[row] in np.argsort(-logits[row])[:5] for row in range(5)]
        assert float(figures["test_top5_accuracy"]) == pytest.approx(np.mean(five))
