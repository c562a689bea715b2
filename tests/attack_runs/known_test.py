"""What the known rows tell of labels that an attacker does not know: nothing."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vfljax.attack_runs.view import known_rows
from vfljax.datasets.splits import Split
from vfljax.federation.training import Table
from vfljax.sweep.known import split_arrays

ROWS, KNOWN = 4000, 40


@pytest.fixture(scope="module")
def common():
    """Two classes, one of them rare, in one seed's training rows."""
    labels = (np.random.default_rng(3).random(ROWS) < 0.2).astype(np.int32)
    rows = np.arange(ROWS)
    arrays = split_arrays(labels, [Split(rows, rows[:0], rows[:0])])
    nothing = (jnp.zeros((ROWS, 1)),)
    no_rows = jnp.asarray(rows[:0])[None]
    return Table(
        features=nothing,
        labels=jnp.asarray(labels),
        train=jnp.asarray(rows)[None],
        validation=no_rows,
        test=no_rows,
        mean=nothing,
        scale=nothing,
        scores=None,
        known_order=jnp.asarray(arrays["known_order"]),
    )


def known_of(common, count=KNOWN):
    return known_rows(common, jnp.int32(0), jnp.float32(count))


def test_an_attacker_who_reads_the_order_of_the_unknown_rows_is_at_chance(common):
    labels, places = np.asarray(common.labels), np.arange(ROWS - KNOWN)
    unknown = np.asarray(known_of(common).rows)[KNOWN:]
    for scores in (places, places % 2, -np.abs(places - len(places) / 3)):
        assert abs(roc_auc_score(labels[unknown], scores) - 0.5) < 0.04
    # the order in which labels are given, classes in turn, would tell him much
    in_turn = np.asarray(common.known_order[0])[KNOWN:]
    assert roc_auc_score(labels[in_turn], -places) > 0.75


def test_unknown_rows_come_in_an_order_that_labels_have_no_part_in(common):
    for count in (0, KNOWN, ROWS, ROWS + 5):
        known = known_of(common, count)
        rows, first = np.asarray(known.rows), min(count, ROWS)
        assert int(known.count) == first
        np.testing.assert_array_equal(rows[:first], common.known_order[0][:first])
        np.testing.assert_array_equal(known.labels[:first], common.labels[rows[:first]])
        np.testing.assert_array_equal(rows[first:], np.setdiff1d(np.arange(ROWS), rows[:first]))
        assert np.all(np.asarray(known.labels)[first:] == -1)
