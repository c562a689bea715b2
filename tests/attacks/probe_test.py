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


def problem(rule, known):
    """Labels that are a function of embeddings and gradients, and the run that holds them."""
    rng = np.random.default_rng(3)
    z, g = rng.normal(size=(2, ROWS, 4))
    margin = z[:, 0] - z[:, 1] + 2 * g[:, 0] if rule == "linear" else z[:, 0] * z[:, 1]
    labels = np.int64(margin > 0)
    arrays = {"embeddings": z[None], "gradients": 1e-4 * g[None]}  # in the units they come in
    case = cases.make_case(labels, 2, known=known, **arrays)
    return labels, np.concatenate([z, g], axis=1), case


def accuracy(case, labels, **options):
    scores = np.asarray(cases.attack(cases.build(probe, 2, **options), case).train)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    unknown = np.setdiff1d(np.arange(ROWS), cases.known_of(case))
    return np.mean(scores[unknown].argmax(axis=1) == labels[unknown])


def test_a_linear_rule_is_learned_from_forty_rows_as_well_as_by_scikit_learn():
    labels, x, case = problem("linear", 40)
    known, x = cases.known_of(case), zeta(x)
    unknown = np.setdiff1d(np.arange(ROWS), known)
    logistic = LogisticRegression().fit(x[known], labels[known]).score(x[unknown], labels[unknown])
    ours = accuracy(case, labels)
    assert ours > 0.85
    assert abs(ours - logistic) < 0.05


def test_hidden_units_learn_a_rule_that_is_not_linear():
    labels, _, case = problem("product", 150)
    assert accuracy(case, labels, inputs="embeddings", hidden=32) > 0.8
