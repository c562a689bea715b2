"""The similarity attack: nearest known rows and named clusters, against the twin and at their limits."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import similarity as reference
from vfljax.attacks.similarity import COSINE, ROUNDS, nearest, similarity
from vfljax.types import Known

ROWS, CLASSES, WIDTH, KNOWN = 120, 4, 3, 12
RULES = ("nearest", "clusters")
FORMS = [
    cases.build(similarity, CLASSES, signal=signal, rule=rule, epoch=epoch)
    for signal, epoch in (("gradients", "mean"), ("embeddings", -1))
    for rule in RULES
]


def run(scale=1e-5, lost=()):
    """Signals of rows around one point of each class; gradients in units of their own."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(ROWS) % CLASSES
    points = rng.normal(size=(2, 1, CLASSES, WIDTH))
    z, g = points[:, :, labels] + 0.5 * rng.normal(size=(2, 2, ROWS, WIDTH))
    g = scale * g * rng.uniform(0.1, 1, size=(1, ROWS, 1))
    sent = np.ones((2, ROWS), bool)
    sent[:, lost] = False
    arrays = {"embeddings": z, "gradients": g, "sent": sent}
    return labels, z, g, cases.make_case(labels, CLASSES, known=KNOWN, **arrays)


def test_agrees_with_the_numpy_twin():
    labels, z, g, case = run()
    given = cases.known_of(case), labels, CLASSES
    g, z = np.float32(g.mean(axis=0)), np.float32(z[-1])
    expected = [
        reference.nearest(g, *given, True),
        reference.clusters(g, *given, True, ROUNDS),
        reference.nearest(z, *given, False),
        reference.clusters(z, *given, False, ROUNDS),
    ]
    for ours, twin in zip(cases.attack_all(FORMS, case, known=KNOWN), expected, strict=True):
        np.testing.assert_allclose(ours, twin, atol=1e-4)


def test_a_class_without_a_known_row_that_was_sent_leaves_finite_scores():
    labels, _, _, whole = run()
    lost = [k for k in cases.known_of(whole) if labels[k] == 2]
    *_, case = run(lost=lost)
    sent = case.run.exchange["sent"][0]
    for rule, scores in zip(2 * RULES, cases.attack_all(FORMS, case, known=KNOWN)):
        assert np.all(np.isfinite(scores[sent]))
        guess, others = scores.argmax(axis=1), sent & (labels != 2)
        assert np.mean(guess[others] == labels[others]) > 0.7
        assert rule == "clusters" or not np.any(guess[sent] == 2)


def test_zero_gradients_are_alike_to_none():
    *_, case = run(scale=0.0)
    for scores in cases.attack_all(FORMS, case, known=KNOWN)[:2]:
        np.testing.assert_array_equal(scores, 0)


def test_embeddings_have_no_average_over_epochs():
    with pytest.raises(ValueError, match=r"epoch='mean'.*signal='gradients'"):
        similarity(cases.ONE_BOTTOM, CLASSES, signal="embeddings", epoch="mean")


def test_a_known_row_that_was_never_sent_is_no_neighbor():
    x = jnp.asarray([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.2]])
    known = Known(jnp.arange(3), jnp.asarray([0, 1, -1]), jnp.int32(2))
    scores = nearest(COSINE, x, known, jnp.asarray([True, False, True]), 2)
    assert scores[2].argmax() == 0
