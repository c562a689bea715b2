"""The learners on ranks: their features, their formulas, and their limits."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import ranks as reference
from vfljax.attacks import ranks as ours

ROWS, CLASSES, KNOWN = 120, 3, 15
midranks = harness.quick_jit(ours.midranks)
features = harness.quick_jit(ours.features, static_argnums=1)


def run(known=KNOWN, sent=None, columns=6):
    """Columns, embeddings and gradients that each tell a little of the labels."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(ROWS) % CLASSES
    hot = np.eye(CLASSES)[labels]
    parts = {
        "features": np.tile(hot, columns // CLASSES) + rng.normal(size=(ROWS, columns)),
        "test_features": np.zeros((10, columns)),
        "embeddings": 5 + hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES)),
        "gradients": 1e-4 * (-hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES))),
    }
    return labels, parts, cases.make_case(labels, CLASSES, known=known, sent=sent, **parts)


def scores(case, known=KNOWN, **options):
    return np.asarray(
        cases.attack(cases.build(ours.ranks, CLASSES, **options), case, known=known).train
    )


def test_midranks_share_ties_and_leave_out_rows_that_were_not_sent():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, size=(50, 3)).astype(np.float32)
    x[:, 2] = 7
    sent = rng.uniform(size=50) < 0.7
    found = np.asarray(midranks(jnp.asarray(x), jnp.asarray(sent)))
    np.testing.assert_allclose(found, reference.ranked(x, sent), atol=1e-5)
    assert np.all(found[:, 2] == 0)


@pytest.mark.parametrize("learner", ours.LEARNERS)
def test_agrees_with_the_numpy_twin(learner):
    sent = np.random.default_rng(2).uniform(size=(2, ROWS)) < 0.8
    labels, parts, case = run(sent=sent)
    ever, known = sent.any(axis=0), case.common.known_order[0][:KNOWN]
    known = known[ever[known]]
    x = reference.features(parts["features"], parts["embeddings"], parts["gradients"], sent)
    of_twin = getattr(reference, learner)(x, ever, known, labels[known], CLASSES)
    found = scores(case, learner=learner)
    assert np.all(np.isnan(found[~ever]))
    np.testing.assert_allclose(found[ever], of_twin[ever], atol=5e-3)


@pytest.mark.parametrize("learner", ours.LEARNERS)
def test_labels_beyond_the_most_are_not_read(learner):
    _, _, case = run(known=60)
    _, _, fewer = run()
    np.testing.assert_allclose(
        scores(case, known=60, learner=learner, most=KNOWN),
        scores(fewer, learner=learner, most=KNOWN),
        atol=1e-5,
    )


@pytest.mark.parametrize("learner", ours.LEARNERS)
def test_without_a_known_label_all_rows_score_alike(learner):
    _, _, case = run(known=0)
    found = scores(case, known=0, learner=learner)
    assert np.ptp(found) == 0


def test_blocks_part_what_is_read():
    _, _, case = run()
    _, _, bare = run()
    bare.run.exchange["gradients"][:] = 0
    bare.run.exchange["sum_gradient"][:] = 0
    of_columns = [scores(c, blocks="columns") for c in (case, bare)]
    np.testing.assert_array_equal(*of_columns)
    assert not np.allclose(scores(case), scores(bare))


def test_columns_weigh_as_much_as_eight_of_the_exchange_however_many():
    _, parts, case = run()
    view, _ = cases.seen_of(case)
    many = np.random.default_rng(3).normal(size=(ROWS, 20)).astype(np.float32)
    found = features(view._replace(features=(jnp.asarray(many),)), "all")
    sent = np.ones((2, ROWS), bool)
    due = reference.features(many, parts["embeddings"], parts["gradients"], sent)
    np.testing.assert_allclose(found, due, atol=1e-4)
    np.testing.assert_allclose(np.sum(np.asarray(found)[:, -20:] ** 2) / ROWS, 8, rtol=1e-3)
