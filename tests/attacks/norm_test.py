"""The norm attack scores rows by the length of their gradients."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests import harness
from tests.attacks import cases
from vfljax.attacks.norm import norm


def problem(seed=0, rows=101):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(rows) % 2)
    g = rng.normal(size=(rows, 3)) * (1 + labels)[:, None]
    return labels, g.astype(np.float32)


def scores_of(labels, gradients, epoch=-1, **case):
    run = cases.make_case(labels, 2, gradients=gradients, **case)
    return np.asarray(cases.attack(cases.build(norm, 2, epoch=epoch), run).train)


def test_scores_are_euclidean_norms_around_their_median():
    labels, g = problem()
    length = np.sqrt((g.astype(np.float64) ** 2).sum(axis=1))
    expected = length - np.median(length)
    scores = scores_of(labels, [g])
    np.testing.assert_allclose(scores, np.stack([-expected, expected], axis=1), atol=1e-5)


def test_the_leak_is_the_auc_of_the_norm():
    labels, g = problem(1)
    a = roc_auc_score(labels, np.linalg.norm(g, axis=1))
    leak = harness.leak(scores_of(labels, [g]), labels)
    assert 0.6 < a < 1
    np.testing.assert_allclose(leak, a, rtol=1e-5)


def test_the_leak_does_not_depend_on_which_class_has_the_longer_gradients():
    labels, g = problem(2)
    scores = scores_of(labels, [g])
    np.testing.assert_allclose(
        harness.leak(scores, labels), harness.leak(scores, 1 - labels), rtol=1e-6
    )


def test_half_of_the_rows_are_guessed_positive():
    labels, g = problem(3)
    guess = np.argmax(scores_of(labels, [g]), axis=1)
    assert guess.sum() == len(labels) // 2


def test_the_last_epoch_is_the_default_and_the_first_can_be_chosen():
    labels, g = problem(4)
    flat = np.ones_like(g)
    np.testing.assert_array_equal(scores_of(labels, [g, flat]), np.zeros((len(g), 2)))
    np.testing.assert_array_equal(scores_of(labels, [flat, g], 0), np.zeros((len(g), 2)))
    assert np.any(scores_of(labels, [flat, g]) != 0)


def test_rows_never_sent_have_no_score():
    labels, g = problem(5)
    sent = np.arange(len(g)) != 7
    scores = scores_of(labels, [g], sent=[sent])
    np.testing.assert_array_equal(np.isnan(scores).all(axis=1), ~sent)


def test_rows_never_sent_leave_a_finite_leak():
    """drop_last leaves some rows unsent: they must not hide the leak of the others."""
    labels, g = problem(6)
    scores = scores_of(labels, [g], sent=[np.arange(len(g)) != 7])
    assert np.isfinite(harness.leak(scores, labels))


def test_is_defined_for_two_classes_only_and_has_no_test_scores():
    labels, g = problem(7)
    attack = cases.build(norm, 2, epoch=-1)
    assert attack.binary
    assert cases.attack(attack, cases.make_case(labels, 2, gradients=[g])).test is None


def test_what_is_no_epoch_is_refused():
    with pytest.raises(ValueError, match="epoch=-5 is not an epoch"):
        norm(cases.BOTTOMS, 2, epoch=-5)


def test_over_epochs_rows_that_no_epoch_sent_have_no_score():
    g = np.ones((2, 10, 2), np.float32)
    sent = np.array([np.arange(10) > 3, (np.arange(10) > 3) | (np.arange(10) == 0)])
    case = cases.make_case(np.arange(10) % 2, 2, gradients=g, sent=sent)
    scores = cases.attack(cases.build(norm, 2, epoch="mean"), case)
    np.testing.assert_array_equal(np.isnan(scores.train).all(axis=1), ~sent.any(axis=0))
