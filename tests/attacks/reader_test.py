"""The learners on the host as attacks: what they are given, and rows that were not sent."""

import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from vfljax.attacks import learners
from vfljax.attacks.ranks import features
from vfljax.attacks.reader import reader

pytestmark = pytest.mark.usefixtures("real_learners")

ranked = harness.quick_jit(features, static_argnums=1)


@pytest.fixture(scope="module")
def made():
    """Two classes; a gradient tells them apart, and a fifth of the rows was never sent."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(100) % 2
    gradients = np.tile((2 * labels - 1 + 0.2 * rng.normal(size=100))[:, None], (2, 1, 3))
    sent = np.tile(np.arange(100) % 5 != 4, (2, 1))
    return labels, sent[0], cases.make_case(labels, 2, gradients=gradients, sent=sent, known=20)


def test_run_gives_the_ranks_and_no_scores_of_classes(made):
    _, sent, case = made
    view, _ = cases.seen_of(case)
    found = np.asarray(cases.jitted(cases.build(reader, 2).run)(None, view, None, {}).train)
    np.testing.assert_allclose(found[sent], np.asarray(ranked(view, "all"))[sent], atol=1e-6)
    assert np.all(np.isnan(found[~sent]))


@pytest.mark.parametrize("learner", ["extra trees", "naive Bayes on ranks", "logistic C=.1"])
def test_a_learner_scores_the_rows_that_were_sent(made, learner):
    labels, sent, case = made
    scores = np.asarray(cases.attack(cases.build(reader, 2, learner=learner), case).train)
    assert scores.shape == (100, 2)
    assert np.all(np.isnan(scores[~sent]))
    assert np.mean(scores[sent].argmax(1) == labels[sent]) > 0.9


def test_rows_that_were_not_sent_teach_nothing():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 4)).astype(np.float32)
    x[:5] = np.nan
    known, labels = np.arange(12), np.arange(12) % 2
    other = np.where(known < 5, 1 - labels, labels)
    draws = np.stack([known, known]), np.stack([labels, other])
    one, two = learners.read("extra trees", x, *draws, 2, 0)
    np.testing.assert_array_equal(one, two)
    few = np.stack([known[:3], known[:3]]), np.array([[1, 1, 1], [0, 1, 1]])
    nothing, something = learners.read("logistic", x[5:], *few, 2, 0)
    np.testing.assert_array_equal(nothing, np.zeros((25, 2)))  # one class tells nothing
    assert something.any()
