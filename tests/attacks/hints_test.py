"""Cosine, inner product and n-hint: likeness to the gradients of known positives."""

import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import gradients as reference
from vfljax.attacks.hints import cosine, hint, inner

ROWS = 50


@pytest.mark.parametrize("known", [20, 4])
def test_scores_are_those_of_the_numpy_twin(known):
    """The first known positive counts, or up to 1, 3 and 5: of 4 known rows 2 are positive; all are used."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, ROWS)
    g = np.float32(rng.normal(size=(ROWS, 3)) + labels[:, None])
    zero = ROWS - 1
    g[zero] = 0  # which has cosine 0
    case = cases.make_case(labels, 2, gradients=g[None], known=known)
    positives = [int(i) for i in cases.known_of(case) if labels[i] == 1]
    assert zero not in positives
    assert len(positives) == known // 2
    first, others = g[positives[0]].astype(float), g[:zero].astype(float)
    expected = [np.append(reference.cosine(others, first), 0), reference.inner(g, first)]
    expected += [reference.hint(g, g[positives[:count]]) for count in (1, 3, 5)]
    forms = [cases.build(attack, 2) for attack in (cosine, inner)]
    forms += [cases.build(hint, 2, count=count) for count in (1, 3, 5)]
    for scores, twin in zip(cases.attack_all(forms, case, known=known), expected, strict=True):
        np.testing.assert_allclose(scores[:, 1], twin - np.median(twin), atol=1e-5)
        np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])


def test_of_several_classes_each_row_is_compared_with_every_class_s_known_rows():
    """Cosine and inner product with the mean of the class's known rows that were sent, distances with
    the first of them."""
    rng = np.random.default_rng(1)
    labels = np.arange(ROWS) % 3
    g = rng.normal(size=(1, ROWS, 3)) + np.eye(3)[labels]
    rows, lost = np.arange(12), 1  # known, and of these not sent
    sent = (np.arange(ROWS) != lost)[None]
    case = cases.make_case(labels, 3, gradients=g, sent=sent, known=12)
    np.testing.assert_array_equal(cases.known_of(case), rows)
    members = [[i for i in rows if labels[i] == c and i != lost] for c in range(3)]
    x = np.float32(g[0]).astype(float)
    means = [x[rows].mean(axis=0) for rows in members]
    expected = [
        [reference.cosine(x, mean) for mean in means],
        [reference.inner(x, mean) for mean in means],
        [reference.hint(x, x[rows[:2]]) for rows in members],
    ]
    forms = [cases.build(cosine, 3), cases.build(inner, 3), cases.build(hint, 3, count=2)]
    for scores, columns in zip(cases.attack_all(forms, case, known=12), expected, strict=True):
        assert np.isnan(scores[lost]).all()
        np.testing.assert_allclose(scores[sent[0]], np.stack(columns, 1)[sent[0]], atol=1e-5)
