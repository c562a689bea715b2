"""Training refuses arrays whose shapes are not those its records promise."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from vfljax.federation import evaluation, training
from vfljax.federation.training import Member, Table

SEEDS, VALIDATION = 2, 5


@pytest.fixture(scope="module")
def spec():
    return harness.make_spec(defenses=("kdk",))


@pytest.fixture(scope="module")
def arguments(spec):
    """(member, table, initial weights, epoch) of two seeds."""
    rows, owners = spec.num_rows, len(spec.bottoms)
    hparams = harness.make_hparams(spec, {"kdk": {"epsilon": 0.5, "k": 2}})
    places = jnp.tile(jnp.arange(rows, dtype=jnp.int32), (SEEDS, 1))
    table = Table(
        features=(jnp.zeros((rows, harness.COLUMNS)),) * owners,
        labels=jnp.zeros(rows, jnp.int32),
        train=places,
        validation=places[:, :VALIDATION],
        test=places[:, :VALIDATION],
        mean=(jnp.zeros((SEEDS, harness.COLUMNS)),) * owners,
        scale=(jnp.ones((SEEDS, harness.COLUMNS)),) * owners,
        scores=jnp.zeros((1, rows, spec.num_classes)),
    )
    member = Member(jnp.int32(0), jnp.int32(0), hparams)
    seeds = jnp.arange(SEEDS, dtype=jnp.uint32)
    initial = jax.eval_shape(training.make_initial(spec), seeds, table)
    epoch = training.Epoch(jnp.int32(0), places, places)
    return member, table, initial, epoch


def traced(spec, member, table, initial, epoch):
    """One epoch of training and an evaluation, by shape alone."""
    snapshot = jax.eval_shape(training.make_start(spec), member, table, initial)
    shared = (table, initial, epoch)
    snapshot, finite = jax.eval_shape(training.make_run(spec), (member, snapshot), shared)
    trained = (member.seed, snapshot.state.weights, {})
    figures = jax.eval_shape(evaluation.make_evaluate(spec), trained, table)
    return finite, figures


def test_promised_shapes_pass(spec, arguments):
    finite, figures = traced(spec, *arguments)
    assert finite.shape == ()
    assert all(value.shape == () for value in figures.values())


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("labels", lambda a: a[:, None]),
        ("labels", lambda a: a[1:]),
        ("train", lambda a: a[0]),
        ("train", lambda a: a[:, 1:]),
        ("test", lambda a: a[:1]),
        ("features", lambda parts: (parts[0][1:], *parts[1:])),
        ("mean", lambda parts: (parts[0][0], *parts[1:])),
        ("scale", lambda parts: (parts[0][:, 1:], *parts[1:])),
        ("scores", lambda a: a[0]),
        ("scores", lambda a: a[:, 1:]),
        ("scores", lambda a: a[..., 1:]),
    ],
)
def test_a_table_of_other_shapes_is_refused(spec, arguments, field, change):
    member, table, initial, epoch = arguments
    wrong = table._replace(**{field: change(getattr(table, field))})
    with pytest.raises(AssertionError):
        traced(spec, member, wrong, initial, epoch)


def test_several_settings_or_seeds_in_place_of_one_are_refused(spec, arguments):
    member, table, initial, epoch = arguments
    several = jax.tree.map(lambda a: jnp.stack([a, a]), member)
    for wrong in (
        several,
        member._replace(seed=several.seed),
        member._replace(hparams=several.hparams),
    ):
        with pytest.raises(AssertionError):
            traced(spec, wrong, table, initial, epoch)
    one_seed = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), initial)
    with pytest.raises(AssertionError):
        traced(spec, member, table, one_seed, epoch)
    with pytest.raises(AssertionError):
        training.make_initial(spec)(jnp.uint32(0), table)


def test_orders_of_other_rows_are_refused(spec, arguments):
    member, table, initial, epoch = arguments
    shorter = epoch._replace(order=epoch.order[:, 1:], place=epoch.place[:, 1:])
    for wrong in (shorter, epoch._replace(order=epoch.order[0])):
        with pytest.raises(AssertionError):
            traced(spec, member, table, initial, wrong)
    with pytest.raises(AssertionError):
        training.epoch_of(jnp.int32(0), jnp.uint32(0), 5)
    with pytest.raises(AssertionError):
        training.rows_of(table, jnp.int32(0), table.train)


@pytest.mark.parametrize("classes", [10, 12])
def test_the_top_5_accuracy_is_of_more_than_ten_classes(spec, arguments, monkeypatch, classes):
    _, table, _, _ = arguments
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((spec.num_rows, classes)).astype(np.float32)
    labels = rng.integers(0, classes, spec.num_rows).astype(np.int32)
    monkeypatch.setattr(evaluation, "make_predict", lambda spec: lambda weights, x, states: x[0])
    table = table._replace(
        features=(jnp.asarray(logits),),
        labels=jnp.asarray(labels),
        mean=(jnp.zeros((SEEDS, classes)),),
        scale=(jnp.ones((SEEDS, classes)),),
        scores=None,
    )
    many = dataclasses.replace(spec, num_classes=classes, defenses=())
    figures = evaluation.make_evaluate(many)((jnp.int32(0), None, {}), table)
    assert ("test_top5_accuracy" in figures) == (classes > 10)
    if classes > 10:
        rows = np.asarray(table.test[0])
        five = [labels[row] in np.argsort(-logits[row])[:5] for row in rows]
        assert float(figures["test_top5_accuracy"]) == pytest.approx(np.mean(five))
