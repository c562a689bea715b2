"""The label party's teacher."""

import jax.numpy as jnp
import numpy as np

from vfljax.datasets import TABLE
from vfljax.datasets.core import make_table, split_rows
from vfljax.teacher import TeacherConfig, teacher_scores

CONFIG = TeacherConfig(hidden=(16,), epochs=10, batch_size=32, learning_rate=3e-3, temperature=1.0)


def scores(table, config=CONFIG):
    return np.asarray(teacher_scores(table, jnp.arange(2, dtype=jnp.uint32), 10, config))


def make():
    digits = TABLE["digits"]("")
    splits = [split_rows(digits.labels, seed, 0.4, 0.2, 0.2) for seed in range(2)]
    return digits, splits, make_table(digits, 2, splits, "range")


def test_probabilities_are_right_more_often_than_chance_and_differ_by_seed():
    digits, splits, table = make()
    found = scores(table)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    for seed in range(2):
        assert (found[seed].argmax(-1) == digits.labels[splits[seed].train]).mean() > 0.6


def test_only_the_label_party_s_own_columns_are_read():
    _, _, table = make()
    blind = table._replace(features=(jnp.zeros_like(table.features[0]), table.features[1]))
    np.testing.assert_array_equal(scores(table), scores(blind))


def test_temperature_flattens_and_keeps_the_ranks():
    _, _, table = make()
    sharp, flat = scores(table), scores(table, CONFIG._replace(temperature=4.0))
    assert flat.max(-1).mean() < sharp.max(-1).mean()
    np.testing.assert_array_equal(sharp.argmax(-1), flat.argmax(-1))
