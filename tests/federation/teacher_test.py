"""The label party's teacher."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.config import Parties
from vfljax.datasets import LOADERS
from vfljax.datasets.partition import divide
from vfljax.datasets.splits import split_rows
from vfljax.federation.teacher import Lessons, TeacherSpec, teacher_scores, teacher_start
from vfljax.models import MLP, ResNet
from vfljax.sweep.plan import make_table

CONFIG = TeacherSpec(MLP((16,), 10), epochs=10, batch_size=32, learning_rate=3e-3, temperature=1.0)


def scores(table, config=CONFIG, lessons=None):
    labels = np.asarray(table.labels)[np.asarray(table.train)]
    raw = Lessons(np.arange(2), labels, np.ones(labels.shape, np.float32))
    seeds = jnp.arange(2, dtype=jnp.uint32)
    return np.asarray(teacher_scores(table, seeds, lessons or raw, config))


@functools.cache
def plain_scores():
    """Those of ``make``'s table by CONFIG: several tests compare with them."""
    return scores(make()[2])


@functools.cache
def make(scaling="range"):
    """Halves of digits of two seeds; nothing changes them."""
    digits = LOADERS["digits"]("")
    splits = [split_rows(digits, seed, 0.4, 0.2, 0.2) for seed in range(2)]
    return digits, splits, make_table(divide(digits, Parties()), digits.labels, splits, scaling)


def standard():
    """As ``make``, but with statistics that differ by seed."""
    return make("standard")[2]


def test_probabilities_are_right_more_often_than_chance_and_differ_by_seed():
    digits, splits, _ = make()
    probabilities = plain_scores()
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    for seed in range(2):
        assert (probabilities[seed].argmax(-1) == digits.labels[splits[seed].train]).mean() > 0.6


def test_only_the_label_party_s_own_columns_are_read():
    _, _, table = make()
    blind = table._replace(features=(jnp.zeros_like(table.features[0]), table.features[1]))
    np.testing.assert_array_equal(plain_scores(), scores(blind))


def test_temperature_flattens_and_keeps_the_ranks():
    _, _, table = make()
    sharp, flat = plain_scores(), scores(table, CONFIG._replace(temperature=4.0))
    assert flat.max(-1).mean() < sharp.max(-1).mean()
    np.testing.assert_array_equal(sharp.argmax(-1), flat.argmax(-1))


def test_rows_of_weight_0_teach_nothing():
    """Whatever their labels say."""
    _, _, table = make()
    labels = np.asarray(table.labels)[np.asarray(table.train)]
    weights = np.random.default_rng(0).integers(0, 2, labels.shape).astype(np.float32)
    other = np.where(weights > 0, labels, (labels + 3) % 10)
    one, two = (scores(table, lessons=Lessons(np.arange(2), y, weights)) for y in (labels, other))
    np.testing.assert_array_equal(one, two)
    assert np.any(one != scores(table, lessons=Lessons(np.arange(2), other, np.ones_like(weights))))


def test_a_teacher_may_be_any_network_that_reads_the_columns():
    digits, splits, table = make()
    network = ResNet(out=10, width=8, blocks=(1,))
    config = TeacherSpec(network, epochs=8, batch_size=32, learning_rate=1e-2, temperature=1.0)
    probabilities = scores(table, config)
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    for seed in range(2):  # its batch statistics have moved: evaluation mode reads digits
        assert (probabilities[seed].argmax(-1) == digits.labels[splits[seed].train]).mean() > 0.4


def test_a_teacher_may_start_from_given_weights():
    _, _, table = make()
    still = CONFIG._replace(learning_rate=0.0)
    start = starts(table, still)
    raw = Lessons(np.arange(2), *lesson_of(table))
    seeds = jnp.arange(2, dtype=jnp.uint32)
    # each seed's own random start, given back to it, is the start it would have drawn
    drawn, put_in = (teacher_scores(table, seeds, raw, still, one) for one in (None, start))
    np.testing.assert_allclose(put_in, drawn, atol=1e-6)
    kernels = start["params"]["Dense_0"]["kernel"]
    assert np.abs(kernels[0] - kernels[1]).max() > 0.01
    zero = jax.tree.map(np.zeros_like, start)
    np.testing.assert_allclose(teacher_scores(table, seeds, raw, still, zero), 0.1, atol=1e-6)


def starts(table, config):
    drawn = [teacher_start(table, config, seed) for seed in range(2)]
    return jax.tree.map(lambda *parts: np.stack(parts), *drawn)


def lesson_of(table):
    labels = np.asarray(table.labels)[np.asarray(table.train)]
    return labels, np.ones(labels.shape, np.float32)


def test_a_teacher_reads_the_rows_and_statistics_of_its_own_seed():
    """The two seeds in the other order give the same two teachers."""
    table, few = standard(), CONFIG._replace(epochs=2)
    labels, weights = lesson_of(table)
    turned = table._replace(
        train=table.train[::-1],
        mean=tuple(m[::-1] for m in table.mean),
        scale=tuple(s[::-1] for s in table.scale),
    )
    seeds = jnp.arange(2, dtype=jnp.uint32)
    one = teacher_scores(table, seeds, Lessons(np.arange(2), labels, weights), few)
    two = teacher_scores(turned, seeds[::-1], Lessons(np.array([1, 0]), labels, weights), few)
    assert np.abs(np.asarray(one[0]) - np.asarray(one[1])).max() > 0.1
    np.testing.assert_allclose(one, two, atol=1e-6)
    alone = teacher_scores(table, seeds, Lessons(np.array([1]), labels[1:], weights[1:]), few)
    np.testing.assert_allclose(alone[0], one[1], atol=1e-5)


def test_training_is_adam_s_with_the_rate_of_kdk_on_rows_of_weight_1():
    """PyTorch beside it: all rows a batch, the rate times .1 after 50 % and 80 % of the epochs."""
    torch = pytest.importorskip("torch")
    table = standard()
    labels, weights = lesson_of(table)
    weights = np.random.default_rng(0).integers(0, 2, weights.shape).astype(np.float32)
    config = CONFIG._replace(
        network=MLP((), 10), batch_size=10_000, learning_rate=0.05, temperature=2.0
    )
    start = jax.tree.map(np.zeros_like, starts(table, config))
    seeds = jnp.arange(2, dtype=jnp.uint32)
    probabilities = teacher_scores(
        table, seeds, Lessons(np.arange(2), labels, weights), config, start
    )
    for seed in range(2):
        x = np.asarray(table.features[-1], np.float32)[np.asarray(table.train[seed])]
        x = (x - np.asarray(table.mean[-1][seed])) / np.asarray(table.scale[-1][seed])
        x, y = torch.tensor(x.reshape(len(x), -1)), torch.tensor(labels[seed]).long()
        seen = torch.tensor(weights[seed]) > 0
        net = torch.nn.Linear(x.shape[1], 10)
        for p in net.parameters():
            torch.nn.init.zeros_(p)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [5, 8], 0.1)  # of 10 epochs
        for _ in range(config.epochs):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[seen]), y[seen]).backward()
            optimizer.step()
            schedule.step()
        expected = torch.softmax(net(x) / 2.0, 1).detach().numpy()
        np.testing.assert_allclose(probabilities[seed], expected, atol=1e-4)


def test_dropout_acts_while_a_teacher_is_trained_and_not_on_its_scores():
    table = standard()
    labels, weights = lesson_of(table)
    seeds, lessons = jnp.arange(2, dtype=jnp.uint32), Lessons(np.arange(2), labels, weights)
    dry, wet = (CONFIG._replace(network=MLP((16,), 10, dropout=d), epochs=2) for d in (0.0, 0.5))
    one, two = (teacher_scores(table, seeds, lessons, config) for config in (dry, wet))
    assert np.abs(np.asarray(one) - np.asarray(two)).max() > 0.01
    still = [config._replace(learning_rate=0.0) for config in (dry, wet)]
    one, two = (teacher_scores(table, seeds, lessons, config) for config in still)
    np.testing.assert_allclose(one, two, atol=1e-6)
