"""Cosine, inner product and n-hint: likeness to the gradients of known positives."""

import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import gradients as reference
from vfljax.attacks.hints import cosine, hint, inner

ROWS = 50


def problem(known=20, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, ROWS)
    g = rng.normal(size=(1, ROWS, 3)) + labels[None, :, None]
    case = cases.make_case(labels, 2, gradients=g, known=known)
    _, held = cases.sight(case)
    rows = np.asarray(held.rows)[: int(held.count)]
    positives = [int(i) for i in rows if labels[i] == 1]
    return np.float32(g[0]), positives, case


def number(scores):
    """The score itself, up to where the halves were divided."""
    return np.asarray(scores)[:, 1]


@pytest.mark.parametrize(("attack", "twin"), [(cosine, reference.cosine), (inner, reference.inner)])
def test_cosine_and_inner_product_are_taken_with_the_first_known_positive(attack, twin):
    g, positives, case = problem()
    found = number(cases.attack(attack(cases.BOTTOMS, 2), case, known=20).train)
    expected = twin(g.astype(float), g[positives[0]].astype(float))
    np.testing.assert_allclose(found, expected - np.median(expected), atol=1e-5)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_n_hint_is_minus_the_distance_to_the_nearest_of_n_known_positives(count):
    g, positives, case = problem()
    found = number(cases.attack(hint(cases.BOTTOMS, 2, count=count), case, known=20).train)
    expected = reference.hint(g, g[positives[:count]])
    np.testing.assert_allclose(found, expected - np.median(expected), atol=1e-5)


def test_fewer_known_positives_than_hints_are_all_used_and_nothing_else():
    g, positives, case = problem(known=4)
    assert len(positives) == 2
    found = number(cases.attack(hint(cases.BOTTOMS, 2, count=5), case, known=4).train)
    expected = reference.hint(g, g[positives])
    np.testing.assert_allclose(found, expected - np.median(expected), atol=1e-5)


def test_a_zero_gradient_has_cosine_0_and_not_nan():
    labels, g = np.array([1, 0, 1, 0]), np.zeros((1, 4, 2))
    g[0, :3] = [[1, 0], [-1, 0], [0.5, 0.5]]
    case = cases.make_case(labels, 2, gradients=g, known=2)
    assert np.isfinite(cases.attack(cosine(cases.BOTTOMS, 2), case, known=2).train).all()


@pytest.mark.parametrize("attack", [cosine, inner, hint])
def test_a_positive_that_was_never_sent_is_no_hint(attack):
    """Nothing was received for it: its zeros are like every row and tell nothing."""
    g, positives, case = problem()
    sent = np.ones((1, ROWS), bool)
    sent[0, positives[0]] = False
    exchange = case.target.exchange
    gradients = np.where(sent[:, :, None], exchange["gradients"], 0)
    rest = case.target._replace(exchange={**exchange, "sent": sent, "gradients": gradients})
    found = number(
        cases.attack(attack(cases.BOTTOMS, 2), case._replace(target=rest), known=20).train
    )
    assert np.isnan(found).sum() == 1
    twin = {cosine: reference.cosine, inner: reference.inner}.get(
        attack, lambda g, one: reference.hint(g, one[None])
    )
    expected = twin(g[sent[0]].astype(float), g[positives[1]].astype(float))
    np.testing.assert_allclose(found[sent[0]], expected - np.median(expected), atol=1e-5)
