"""Fusion: standardized logits less standardized gradients, against the twin and at its limits."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.attacks import cases
from tests.reference import fusion as reference
from vfljax.attacks.fusion import fusion

ROWS, CLASSES = 200, 5


def scores(case, weight=1.0, **options):
    one = cases.build(fusion, CLASSES, **options)
    return np.asarray(cases.attack(one, case, weight=weight).train)


def noisy_run(seed=0, epochs=20, noise=1.0, **changes):
    """Logits that tell a little of the labels, and gradients under noise of mean 0."""
    rng = np.random.default_rng(seed)
    labels = np.arange(ROWS) % CLASSES
    logits = np.eye(CLASSES)[labels] + 0.8 * rng.normal(size=(ROWS, CLASSES))
    g = 1 / CLASSES - np.eye(CLASSES)[labels]
    received = 1e-3 * (g + noise * rng.normal(size=(epochs, ROWS, CLASSES)))
    arrays = {"embeddings": np.tile(logits, (epochs, 1, 1)), "gradients": received, **changes}
    return labels, logits, received, cases.make_case(labels, CLASSES, known=0, **arrays)


@given(seed=st.integers(0, 2**16), weight=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
@settings(deadline=None, max_examples=15, database=None, derandomize=True)
def test_agrees_with_the_numpy_twin(seed, weight):
    _, logits, received, case = noisy_run(seed, epochs=3)
    expected = reference.scores(logits, received, weight)
    np.testing.assert_allclose(scores(case, weight), expected, rtol=1e-3, atol=1e-3)
    turned = reference.scores(logits, -received, weight)
    np.testing.assert_allclose(scores(case, weight, sign="add"), turned, rtol=1e-3, atol=1e-3)


def test_weight_0_is_the_logits_alone_whatever_was_received_and_a_large_one_the_gradients_alone():
    labels, logits, received, case = noisy_run()
    np.testing.assert_allclose(scores(case, 0.0), reference.zeta(logits), atol=1e-4)
    flat = cases.make_case(labels, CLASSES, embeddings=[logits], gradients=[0 * received[0]])
    np.testing.assert_array_equal(scores(flat, 0.0), scores(flat, 2.0))
    large = np.argmax(scores(case, 1e4), axis=1)
    np.testing.assert_array_equal(large, np.argmin(reference.zeta(received.mean(0)), axis=1))


def test_colluders_add_what_they_sent_and_average_what_they_received():
    _, logits, received, case = noisy_run(epochs=2)
    both = cases.make_case(
        np.arange(ROWS) % CLASSES,
        CLASSES,
        embeddings=np.tile(np.concatenate([0.25 * logits, 0.75 * logits], axis=1), (2, 1, 1)),
        gradients=np.concatenate([received, received], axis=2),
        known=0,
    )
    np.testing.assert_allclose(scores(both), scores(case), atol=1e-4)


def test_rows_never_sent_have_no_score_and_those_missing_in_the_last_epoch_their_gradients():
    sent = np.ones((2, ROWS), bool)
    sent[:, 0], sent[1, 1] = False, False
    _, logits, received, case = noisy_run(epochs=2, sent=sent)
    np.testing.assert_array_equal(np.isnan(scores(case)).all(axis=1), ~sent.any(axis=0))
    np.testing.assert_array_equal(scores(case, 0.0)[1], 0)
    mean = np.where(sent[1][:, None], received.mean(0), received[0])[sent.any(axis=0)]
    standardized = reference.zeta(logits[sent[1]])
    np.testing.assert_allclose(scores(case, 0.0)[sent[1]], standardized, atol=1e-4)
    both = standardized - reference.zeta(mean)[1:]
    np.testing.assert_allclose(scores(case)[sent[1]], both, atol=1e-3)
