"""The probe: standardized inputs, and what a classifier makes of a few known rows."""

import functools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from tests import harness
from tests.attacks import cases
from vfljax.attacks.probe import probe, standardized

few = settings(deadline=None, max_examples=15, database=None, derandomize=True)
jitted = harness.quick_jit(standardized)
ROWS = 200


def twin(x, sent):
    """Columns of mean 0 and variance 1 over the rows sent, one number at a time."""
    out = np.zeros(x.shape)
    for j in range(x.shape[1]):
        column = [float(x[i, j]) for i in range(len(x)) if sent[i]]
        mean = sum(column) / len(column)
        spread = (sum((v - mean) ** 2 for v in column) / len(column)) ** 0.5
        for i in range(len(x)):
            if sent[i] and spread > 0:
                out[i, j] = (x[i, j] - mean) / spread
    return out


@given(seed=st.integers(0, 2**16), scale=st.sampled_from([1e-25, 1.0, 1e25]))
@few
def test_standardizing_agrees_with_the_twin_in_any_units(seed, scale):
    rng = np.random.default_rng(seed)
    x = np.float32(scale) * np.float32(rng.normal(size=(30, 3)) * [1, 50, 0.1] + [0, 20, -1])
    sent = rng.random(30) < 0.8
    ours = np.asarray(jitted(np.where(sent[:, None], x, np.nan), sent))
    np.testing.assert_allclose(ours, twin(np.float64(x), sent), atol=1e-4)


def test_constant_columns_and_rows_not_sent_are_0():
    x = np.tile(np.float32([0.0, 1 / 3, -7e8]), (30, 1))
    np.testing.assert_array_equal(jitted(x, np.arange(30) < 20), 0)
    np.testing.assert_array_equal(jitted(x, np.zeros(30, bool)), 0)


# The attack as a whole.


@functools.cache
def problem(rule, sent_share=1.0):
    """Labels that are a function of embeddings and gradients, and the run that holds them."""
    rng = np.random.default_rng(3)
    z, g = rng.normal(size=(2, ROWS, 4))
    margin = z[:, 0] - z[:, 1] + 2 * g[:, 0] if rule == "linear" else z[:, 0] * z[:, 1]
    labels = np.int64(margin > 0)
    sent = (np.arange(ROWS) < sent_share * ROWS)[None]
    # a constant column, and gradients in the units they come in
    z[:, 3] = 5.0
    case = cases.make_case(
        labels, 2, embeddings=z[None], gradients=1e-4 * g[None], sent=sent, known=40
    )
    return labels, z, g, case


def accuracy(case, labels, known=40, **options):
    one = cases.build(probe, 2, **options)
    case = case._replace(run=case.run._replace(knobs={"known": np.float32(known)}))
    scores = np.asarray(cases.attack(one, case, **{**one.knobs, "known": known}).train)
    _, known_rows = cases.seen_of(case)
    unknown = np.asarray(known_rows.rows)[int(known_rows.count) :]
    return np.mean(scores[unknown].argmax(axis=1) == labels[unknown]), scores


def test_a_linear_rule_is_learned_from_forty_rows_as_well_as_by_scikit_learn():
    labels, z, g, case = problem("linear")
    ours, scores = accuracy(case, labels)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
    x = np.concatenate([twin(z, np.ones(ROWS, bool)), twin(g, np.ones(ROWS, bool))], axis=1)
    _, known_rows = cases.seen_of(case)
    known, unknown = np.split(np.asarray(known_rows.rows), [40])
    model = LogisticRegression().fit(x[known], labels[known])
    logistic = model.score(x[unknown], labels[unknown])
    assert ours > 0.85
    assert abs(ours - logistic) < 0.05
    leaks = [
        float(harness.leak(p, labels, np.float32(np.isin(np.arange(ROWS), unknown))))
        for p in (scores, np.float32(model.predict_proba(x)))
    ]
    assert abs(leaks[0] - leaks[1]) < 0.05


def test_a_rule_that_is_not_linear_needs_hidden_units():
    labels, _, _, case = problem("product")
    linear, _ = accuracy(case, labels, known=150, inputs="embeddings")
    deep, _ = accuracy(case, labels, known=150, inputs="embeddings", hidden=32)
    assert deep > 0.8 > linear + 0.1
