"""Epochs, records and the member that equals the same trial run alone."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.sweeps import plan_of, tiny
from vfljax import keys, machine, metrics
from vfljax.federation import evaluation, training
from vfljax.federation.evaluation import make_margins
from vfljax.federation.protocol import make_predict, make_step
from vfljax.sweep import batch_layout, initial, programs, shard_trainer, specs
from vfljax.types import Batch

SMALL = {
    "data": {"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
    "grid": {"noise": {"noise": {"scale": (0.0, 0.01)}}},
    "attacks": {},
    "model.hidden": (),
    # the last batch has 20 rows
    "training": {"epochs": 2, "batch_size": 60, "learning_rate": 0.05},
}
MEMBERS = 3
auc = harness.quick_jit(metrics.auc)


@functools.cache
def planned():
    return plan_of(tiny(**SMALL))


@functools.cache
def run(spec, epochs, margins=None):
    """Train the first trials of the first group in one program; returns what they end with."""
    plan = planned()
    layout = batch_layout.layout(MEMBERS, 2)
    member = layout.pad(specs.member_of_trials(spec, plan.groups[0].trials[:MEMBERS], []))
    weights = initial.initial_weights(spec, plan.experiment, plan.seeds, plan.table)
    table, weights = batch_layout.share((plan.table, weights))
    snapshot = layout.pad(shard_trainer.empty_snapshot(spec, member, table, weights))
    for number in range(epochs):
        now = training.epoch_of(number, plan.seeds, spec.num_rows)
        arguments = (member, snapshot), (table, weights, batch_layout.share(now))
        program = programs.program(training.make_run, (spec, margins), layout, arguments)
        snapshot, _ = program(*arguments)
    snapshot = snapshot._replace(state=snapshot.state._replace(run_key=jnp.zeros(layout.capacity)))
    return batch_layout.unpad(snapshot, MEMBERS)


def test_every_epoch_and_seed_has_its_own_order():
    first, second = (training.epoch_of(n, np.arange(2), 50) for n in (0, 1))
    assert (first.order[0] != first.order[1]).any()
    assert (first.order[0] != second.order[0]).any()
    np.testing.assert_array_equal(first.order[0][first.place[0]], np.arange(50))


@pytest.mark.parametrize("rows", [1, 50, 2000])  # the last is sorted twice
def test_an_order_is_a_permutation_of_jax_wherever_it_is_drawn(rows, monkeypatch):
    orders = [training.epoch_of(3, np.arange(2), rows)]
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(cpu=False))
    orders.append(training.epoch_of(3, np.arange(2), rows))
    expected = jax.random.permutation(keys.fold(keys.run_key(1), "order", 3), rows)
    for drawn in orders:
        np.testing.assert_array_equal(drawn.order[1], expected)
        np.testing.assert_array_equal(drawn.place[1][expected], np.arange(rows))


def jitted_parts(spec):
    """The protocol's start, its step on the rows at an index of the training part, and its prediction of
    random test rows."""
    table, step, predict = planned().table, make_step(spec), make_predict(spec)

    def step_on(state, seed, index, hparams):
        raw = table.train[seed, index]
        rows, anchor = (training.rows_of(table, seed, r) for r in (raw, table.train[seed, :1]))
        return step(state, Batch(rows, anchor, table.labels[raw], index), hparams)

    def margins_of(state, seed):
        key = keys.fold(state.run_key, "test_batch", state.step)
        rows = jax.random.permutation(key, table.test[seed])[: spec.batch_size]
        logits = predict(state.weights, training.rows_of(table, seed, rows))
        return logits[:, 1] - logits[:, 0], table.labels[rows]

    return [harness.quick_jit(f) for f in (training.make_start(spec), step_on, margins_of)]


def alone(spec, jitted, trial, epochs):
    """A trial by the protocol's own start, step and prediction: its final weights, for every epoch its loss,
    training accuracy and pooled AUC, and all that was received in the rows' order."""
    plan = planned()
    start, step_on, margins_of = jitted
    member = jax.tree.map(lambda a: jnp.asarray(a[0]), specs.member_of_trials(spec, trial, []))
    weights = initial.initial_weights(spec, plan.experiment, plan.seeds, plan.table)
    seed = int(trial["seed"].iloc[0])
    state = start(member, plan.table, weights).state
    figures, received, sent = [], [], []
    for number in range(epochs):
        now = training.epoch_of(number, plan.seeds, spec.num_rows)
        order = np.asarray(now.order)
        margins, labels, of_steps = [], [], []
        gradients, embeddings = (np.zeros((spec.num_rows, 4), np.float32) for _ in range(2))
        for first in range(0, spec.num_rows, spec.batch_size):
            index = order[seed, first : first + spec.batch_size]
            state, exchange, seen = step_on(state, seed, index, member.hparams)
            of_steps.append((float(seen.loss) * len(index), float(seen.correct)))
            gradients[index], embeddings[index] = exchange.gradients[0], exchange.embeddings[0]
            of_rows = margins_of(state, seed)
            margins.append(of_rows[0])
            labels.append(of_rows[1])
        area = auc(np.concatenate(margins), np.concatenate(labels))
        figures.append([*np.sum(of_steps, axis=0) / spec.num_rows, area])
        received.append(gradients)
        sent.append(embeddings)
    return state.weights, np.array(figures), np.array(received), np.array(sent)


def test_members_of_a_program_are_trained_and_recorded_as_the_same_trials_alone():
    """Three full batches and one of 20 rows an epoch; the pooled AUC is that of each step's random test
    rows under its weights, and observing it changes nothing."""
    spec = planned().groups[0].spec
    watched = run(spec, 2, make_margins)
    jitted = jitted_parts(spec)
    for place in (0, 2):
        trial = planned().groups[0].trials.iloc[[place]]
        weights, figures, received, sent = alone(spec, jitted, trial, epochs=2)
        ours = jax.tree.map(lambda a, place=place: np.asarray(a[place]), watched)
        harness.assert_close(ours.state.weights, weights, 1e-4)
        record = ours.record
        for name, expected in zip(("loss", "accuracy", "observed"), figures.T, strict=True):
            np.testing.assert_allclose(getattr(record, name), expected, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(record.gradients[0], received[-1], atol=1e-5)
        np.testing.assert_allclose(record.embeddings[0], sent[-1], atol=1e-4)
        sums = record.sums[0]
        np.testing.assert_allclose(sums.gradient, received.sum(axis=0), atol=1e-5)
        np.testing.assert_allclose(sums.square, (received**2).sum(axis=0), atol=1e-5)
        assert np.mean(sums.sign == np.sign(received).sum(axis=0)) > 0.99
        assert (sums.count == 2).all()
        assert record.sent.all()
        np.testing.assert_array_equal(np.sort(record.order), np.arange(200))


def test_drop_last_leaves_the_rest_unsent_and_sums_count_the_epochs_a_row_was_sent_in():
    spec = dataclasses.replace(planned().groups[0].spec, drop_last=True)
    first, both = (run(spec, epochs).record for epochs in (1, 2))
    assert np.isnan(both.observed).all()
    assert (first.sent.sum(axis=1) == 180).all()
    assert (first.gradients[0][~first.sent] == 0).all()
    np.testing.assert_array_equal(both.sums[0].count, first.sent + 1 * both.sent)
    of_epochs = np.stack([first.gradients[0], both.gradients[0]])
    sums = both.sums[0]
    np.testing.assert_allclose(sums.gradient, of_epochs.sum(axis=0), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(sums.sign, np.sign(of_epochs).sum(axis=0))


def test_places_of_recorded_rows_are_counted_among_them():
    spec = dataclasses.replace(planned().groups[0].spec, recorded=50)
    record = run(spec, 1).record
    place = training.epoch_of(0, planned().seeds, spec.num_rows).place[:, :50]
    earlier = (place[:, None, :] < place[:, :, None]).sum(axis=2)
    seeds = planned().groups[0].trials["seed"].iloc[:MEMBERS]
    np.testing.assert_array_equal(record.order, earlier[seeds])


@pytest.mark.parametrize("classes", [2, 10, 12])
def test_two_classes_have_an_oriented_auc_and_more_than_ten_a_top_5_accuracy(monkeypatch, classes):
    """Two classes are learned inverted in training, whatever the test rows say."""
    rng, rows = np.random.default_rng(0), 40
    logits = rng.standard_normal((rows, classes)).astype(np.float32)
    labels = rng.integers(0, classes, rows).astype(np.int32)
    if classes == 2:  # the first ten rows, with which it is tested, are learned rightly
        turn = np.where(np.arange(rows) < 10, 1, -1)
        logits = (turn * (2 * labels - 1))[:, None] * np.float32([-1, 1])
    places = jnp.arange(rows, dtype=jnp.int32)[None]
    monkeypatch.setattr(evaluation, "make_predict", lambda spec: lambda weights, x, states: x[0])
    of_parts = (places, places[:, :10], places[:, :10])  # to train on, to validate and to test with
    scaling = ((jnp.zeros((1, classes)),), (jnp.ones((1, classes)),))
    table = training.Table((jnp.asarray(logits),), jnp.asarray(labels), *of_parts, *scaling, None)
    spec = dataclasses.replace(harness.make_spec(), num_classes=classes)
    evaluate = harness.quick_jit(evaluation.make_evaluate(spec))
    figures = evaluate((jnp.int32(0), None, {}), table)
    assert ("test_top5_accuracy" in figures) == (classes > 10)
    assert float(figures["test_accuracy"]) == pytest.approx(
        np.mean(logits[:10].argmax(axis=1) == labels[:10])
    )
    if classes > 10:
        five = [labels[row] in np.argsort(-logits[row])[:5] for row in range(10)]
        assert float(figures["test_top5_accuracy"]) == pytest.approx(np.mean(five))
    if classes == 2:
        assert figures["inverted"] == 1
        assert figures["test_auc"] == 1
        assert figures["test_oriented_auc"] == figures["test_oriented_accuracy"] == 0


def member_of(group, place):
    """One trial of a group."""
    members = specs.member_of_trials(group.spec, group.trials.iloc[[place]], [])
    return jax.tree.map(lambda a: np.asarray(a)[0], members)


def test_a_trial_starts_from_the_weights_of_its_seed():
    plan = planned()
    group = plan.groups[0]
    weights = initial.initial_weights(group.spec, plan.experiment, plan.seeds, plan.table)
    start = harness.quick_jit(training.make_start(group.spec))
    for place in (0, 1):
        begun = start(member_of(group, place), plan.table, weights)
        seed = int(group.trials["seed"].iloc[place])
        own = jax.tree.map(lambda a, seed=seed: np.asarray(a)[seed], weights)
        harness.assert_same_bits(begun.state.weights, own)


def test_a_trial_learns_from_its_own_teacher():
    plan = plan_of(tiny(grid={"kdk": {"kdk": {"epsilon": 0.4, "k": 2}}}, attacks={}))
    group = plan.groups[0]
    rows, classes = group.spec.num_rows, plan.dataset.num_classes
    weights = initial.initial_weights(group.spec, plan.experiment, plan.seeds, plan.table)
    certain = np.eye(classes, dtype=np.float32)[np.arange(rows) % classes]
    scores = np.stack([np.full(certain.shape, np.float32(1 / classes)), certain])
    table, member = plan.table._replace(scores=scores), member_of(group, 0)
    begun = harness.quick_jit(training.make_start(group.spec))(member, table, weights)
    now = training.epoch_of(0, plan.seeds, rows)
    epoch = harness.quick_jit(training.make_epoch(group.spec))
    first, second = (
        epoch(begun, member._replace(teacher=jnp.int32(teacher)), table, now).record.loss[0]
        for teacher in (0, 1)
    )
    assert first != second
