"""The probe: standardized inputs, and what a classifier makes of a few known rows."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from tests import harness
from tests.attacks import cases
from tests.reference.fusion import zeta
from vfljax.attacks.probe import probe, standardized

ROWS = 200


def test_standardizing_agrees_with_the_twin_in_any_units_over_the_rows_sent():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 5)) * [1e-25, 1e25, 50, 0, 0] + [0, 0, 20, 1 / 3, -7e8]
    x, sent = np.float32(x), rng.random(30) < 0.8
    ours = np.asarray(harness.quick_jit(standardized)(np.where(sent[:, None], x, np.nan), sent))
    np.testing.assert_allclose(ours[sent], zeta(np.float64(x[sent])), atol=1e-4)
    np.testing.assert_array_equal(ours[~sent], 0)
    np.testing.assert_array_equal(ours[:, 3:], 0)  # constant columns


def problem(known):
    """Labels that are a linear function of embeddings and gradients, and the run that holds them."""
    rng = np.random.default_rng(3)
    z, g = rng.normal(size=(2, ROWS, 4))
    labels = np.int64(z[:, 0] - z[:, 1] + 2 * g[:, 0] > 0)
    arrays = {"embeddings": z[None], "gradients": 1e-4 * g[None]}  # in the units they come in
    case = cases.make_case(labels, 2, known=known, **arrays)
    return labels, np.concatenate([z, g], axis=1), case


def test_it_is_scikit_learn_s_logistic_regression_on_the_known_rows():
    """Of more known rows than it may learn from, on the first ones."""
    for known, most in ((40, 256), (60, 40)):
        labels, x, case = problem(known)
        rows = cases.known_of(case)[:most]
        model = LogisticRegression(tol=1e-8, max_iter=1000).fit(zeta(x)[rows], labels[rows])
        one = cases.build(probe, 2, steps=300, most=most)
        scores = np.asarray(cases.attack(one, case, known=known).train)
        # of two columns of weights with one penalty, their difference has half of it
        ours = cases.attack(one, case, known=known, ridge=2.0).train
        margin = ours[:, 1] - ours[:, 0]
        np.testing.assert_allclose(margin, model.decision_function(zeta(x)), atol=5e-3)
        assert np.mean(scores.argmax(axis=1) == labels) > 0.85


def test_gradients_of_all_epochs_are_read_of_rows_that_are_not_in_the_last():
    """As on a wire of one epoch a step."""
    labels, x, whole = problem(40)
    g = np.float32(1e-4 * x[:, 4:])
    sent = np.arange(4)[:, None] == np.arange(ROWS) % 4
    arrays = {"embeddings": np.where(sent[..., None], x[:, :4], 0), "gradients": [g] * 4}
    case = cases.make_case(labels, 2, known=40, sent=sent, **arrays)
    gradients = cases.build(probe, 2, inputs="gradients", epoch="mean")
    found, expected = (cases.attack(gradients, of, known=40).train for of in (case, whole))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    both = cases.attack(cases.build(probe, 2, epoch="mean"), case, known=40).train
    assert np.isfinite(both).all()
    last = cases.attack(cases.build(probe, 2, inputs="embeddings", epoch="mean"), case, known=40)
    np.testing.assert_array_equal(np.isfinite(last.train).all(axis=1), sent[-1])
