"""The learners on the host as attacks: what they are given, and rows that were not sent."""

import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from vfljax.attacks import learners
from vfljax.attacks.ranks import features
from vfljax.attacks.reader import reader

pytestmark = pytest.mark.usefixtures("real_learners")


def test_a_learner_reads_the_ranks_of_the_exchange_and_scores_the_rows_that_were_sent():
    rng = np.random.default_rng(0)
    labels = rng.permutation(100) % 2
    gradients = np.tile((2 * labels - 1 + 0.2 * rng.normal(size=100))[:, None], (2, 1, 3))
    sent = np.arange(100) % 5 != 4
    arrays = {"gradients": gradients, "sent": np.tile(sent, (2, 1))}
    case = cases.make_case(labels, 2, known=20, **arrays)
    attack = cases.build(reader, 2, learner="naive Bayes on ranks")
    view, _ = cases.seen_of(case)
    found = np.asarray(cases.jitted(attack.run)(None, view, None, {}).train)
    ranked = np.asarray(harness.quick_jit(features, static_argnums=1)(view, "all"))
    np.testing.assert_allclose(found[sent], ranked[sent], atol=1e-6)
    assert np.all(np.isnan(found[~sent]))
    known = cases.known_of(case)[None]
    scores = attack.host(found, known, labels[known], 2, 0)[0]
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
