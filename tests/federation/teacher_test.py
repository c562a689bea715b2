"""The label party's teacher."""

import functools

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from tests.reference.common import adam, softmax
from vfljax.config import Parties, Teacher
from vfljax.datasets import LOADERS
from vfljax.datasets.partition import divide
from vfljax.datasets.splits import split_rows
from vfljax.federation.teacher import Lessons, teacher_scores, teacher_start
from vfljax.models import MLP
from vfljax.sweep.plan import make_table

TEACHER = Teacher(epochs=10, batch_size=32, learning_rate=0.05, temperature=2.0)
LINEAR = MLP((), 10)
SEEDS = jnp.arange(2, dtype=jnp.uint32)


@functools.cache
def standard():
    """Halves of digits of two seeds, whose statistics differ; nothing changes them."""
    digits = LOADERS["digits"]("")
    splits = [split_rows(digits, seed, 0.2, 0.1, 0.1) for seed in range(2)]
    return make_table(divide(digits, Parties()), digits.labels, splits, "standard")


def labels_of(table):
    return np.asarray(table.labels)[np.asarray(table.train)]


def scores(table, teacher=TEACHER, network=LINEAR, weights=None, start=None):
    labels = labels_of(table)
    weights = np.ones(labels.shape, np.float32) if weights is None else weights
    lessons = Lessons(np.arange(2), labels, weights)
    return np.asarray(teacher_scores(table, SEEDS, lessons, teacher, network, start))


def test_a_teacher_draws_units_and_moves_batch_statistics_while_it_is_trained_alone():
    """Evaluation reads digits by the statistics, and one row as another that is the same."""
    table = standard()
    train = table.train.at[:, 1].set(table.train[:, 0])
    network = MLP((16,), 10, dropout=0.25, batch_norm=True)
    probabilities = scores(table._replace(train=train), network=network)
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(probabilities[:, 0], probabilities[:, 1], atol=1e-6)
    right = probabilities.argmax(-1) == labels_of(table._replace(train=train))
    assert (right.mean(axis=1) > 0.6).all()


def test_a_teacher_may_start_from_given_weights():
    """Each seed's own random start, given back to it, is the start it would have drawn."""
    table, still = standard(), msgspec.structs.replace(TEACHER, learning_rate=0.0, epochs=1)
    drawn = [teacher_start(table, LINEAR, seed) for seed in range(2)]
    start = jax.tree.map(lambda *parts: np.stack(parts), *drawn)
    np.testing.assert_allclose(scores(table, still, start=start), scores(table, still), atol=1e-6)
    kernels = start["params"]["Dense_0"]["kernel"]
    assert np.abs(kernels[0] - kernels[1]).max() > 0.01


def test_training_is_adam_s_with_the_rate_of_kdk_on_rows_of_weight_1():
    """In NumPy: all rows a batch, the rate times .1 after 50 % and 80 % of the epochs. What it reads are the
    label party's columns, scaled as the seed's."""
    table = standard()
    labels = labels_of(table)
    weights = np.random.default_rng(0).integers(0, 2, labels.shape).astype(np.float32)
    teacher = msgspec.structs.replace(TEACHER, batch_size=10_000)
    zeros = jax.tree.map(lambda a: np.zeros((2, *a.shape)), teacher_start(table, LINEAR, 0))
    probabilities = scores(table, teacher, weights=weights, start=zeros)
    for seed in range(2):
        x = np.asarray(table.features[-1], np.float64)[np.asarray(table.train[seed])]
        x = (x - np.asarray(table.mean[-1][seed])) / np.asarray(table.scale[-1][seed])
        x = np.c_[x.reshape(len(x), -1), np.ones(len(x))]  # the last weights are the bias
        x_seen, y = x[weights[seed] > 0], np.eye(10)[labels[seed][weights[seed] > 0]]
        theta, state = np.zeros((x.shape[1], 10)), None
        for epoch in range(teacher.epochs):
            g = x_seen.T @ (softmax(x_seen @ theta) - y) / len(y)
            rate = 0.05 * 0.1 ** ((epoch >= 5) + (epoch >= 8))  # of 10 epochs
            (theta,), state = adam([theta], [g], state, rate)
        expected = softmax(x @ theta / 2.0)
        np.testing.assert_allclose(probabilities[seed], expected, atol=1e-3)
