"""Cosine, inner product and n-hint: likeness to the gradients of known positives."""

import functools

import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import gradients as reference
from vfljax.attacks.hints import cosine, hint, inner

ROWS = 50


@functools.cache
def problem(known=20, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, ROWS)
    g = rng.normal(size=(1, ROWS, 3)) + labels[None, :, None]
    case = cases.make_case(labels, 2, gradients=g, known=known)
    positives = [int(i) for i in cases.known_of(case) if labels[i] == 1]
    return np.float32(g[0]), positives, case


def number(scores):
    """The score itself, up to where the halves were divided."""
    return np.asarray(scores)[:, 1]


@pytest.mark.parametrize(("attack", "twin"), [(cosine, reference.cosine), (inner, reference.inner)])
def test_cosine_and_inner_product_are_taken_with_the_first_known_positive(attack, twin):
    g, positives, case = problem()
    scores = number(cases.attack(cases.build(attack, 2), case, known=20).train)
    expected = twin(g.astype(float), g[positives[0]].astype(float))
    np.testing.assert_allclose(scores, expected - np.median(expected), atol=1e-5)


def test_n_hint_is_minus_the_distance_to_the_nearest_of_n_known_positives():
    g, positives, case = problem()
    counts = (1, 3, 5)
    forms = [cases.build(hint, 2, count=count) for count in counts]
    for count, scores in zip(counts, cases.attack_all(forms, case, known=20)):
        expected = reference.hint(g, g[positives[:count]])
        np.testing.assert_allclose(number(scores.train), expected - np.median(expected), atol=1e-5)


def test_fewer_known_positives_than_hints_are_all_used_and_nothing_else():
    g, positives, case = problem(known=4)
    assert len(positives) == 2
    scores = number(cases.attack(cases.build(hint, 2, count=5), case, known=4).train)
    expected = reference.hint(g, g[positives])
    np.testing.assert_allclose(scores, expected - np.median(expected), atol=1e-5)


def test_a_zero_gradient_has_cosine_0_and_not_nan():
    labels, g = np.array([1, 0, 1, 0]), np.zeros((1, 4, 2))
    g[0, :3] = [[1, 0], [-1, 0], [0.5, 0.5]]
    case = cases.make_case(labels, 2, gradients=g, known=2)
    assert np.isfinite(cases.attack(cosine(cases.BOTTOMS, 2), case, known=2).train).all()


def test_of_several_classes_each_row_is_compared_with_every_class_s_known_rows():
    """Cosine and inner product with the mean of the class's known rows that were sent, distances with
    the first of them."""
    rng = np.random.default_rng(1)
    labels = np.arange(ROWS) % 3
    g = rng.normal(size=(1, ROWS, 3)) + np.eye(3)[labels]
    sent = np.ones((1, ROWS), bool)
    case = cases.make_case(labels, 3, gradients=g, sent=sent, known=12)
    rows = cases.known_of(case)
    lost = rows[1]
    sent[0, lost] = False
    case = cases.make_case(labels, 3, gradients=g, sent=sent, known=12)
    members = [[i for i in rows if labels[i] == c and i != lost] for c in range(3)]
    x = np.float32(g[0]).astype(float)
    means = [x[rows].mean(axis=0) for rows in members]
    expected = {
        cosine: [reference.cosine(x, mean) for mean in means],
        inner: [reference.inner(x, mean) for mean in means],
        hint: [reference.hint(x, x[rows[:2]]) for rows in members],
    }
    for attack, columns in expected.items():
        options = {"count": 2} if attack is hint else {}
        form = cases.build(attack, 3, **options)
        scores = np.asarray(cases.attack(form, case, known=12).train)
        assert np.isnan(scores[lost]).all()
        np.testing.assert_allclose(scores[sent[0]], np.stack(columns, 1)[sent[0]], atol=1e-5)
