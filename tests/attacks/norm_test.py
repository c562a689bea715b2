"""The norm attack scores rows by the length of their gradients."""

import numpy as np

from tests.attacks import cases
from vfljax.attacks.norm import norm


def problem(rows):
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(rows) % 2)
    return labels, np.float32(rng.normal(size=(rows, 3)) * (1 + labels)[:, None])


def scores_of(labels, gradients, epoch=-1, **case):
    run = cases.make_case(labels, 2, gradients=gradients, **case)
    return np.asarray(cases.attack(cases.build(norm, 2, epoch=epoch), run).train)


def test_scores_are_norms_around_their_median_of_the_last_epoch_or_the_one_chosen():
    labels, g = problem(101)
    length = np.sqrt((g.astype(np.float64) ** 2).sum(axis=1))
    expected = length - np.median(length)
    for epoch, order in ((-1, (0 * g, g)), (0, (g, 0 * g))):
        scores = scores_of(labels, order, epoch)
        np.testing.assert_allclose(scores, np.stack([-expected, expected], axis=1), atol=1e-5)


def test_over_epochs_rows_that_no_epoch_sent_have_no_score():
    labels, g = problem(10)
    sent = np.array([np.arange(10) > 3, (np.arange(10) > 3) | (np.arange(10) == 0)])
    scores = scores_of(labels, [g, g], "mean", sent=sent)
    some = sent.any(axis=0)
    np.testing.assert_array_equal(np.isnan(scores).all(axis=1), ~some)
    length = np.linalg.norm(g[some], axis=1)
    np.testing.assert_allclose(scores[some, 1], length - np.median(length), atol=1e-5)
