"""Fusion: standardized logits less standardized gradients, against the twin."""

import numpy as np

from tests.attacks import cases
from tests.reference import fusion as reference
from vfljax.attacks.fusion import fusion

ROWS, CLASSES, EPOCHS = 60, 5, 2
FORMS = [cases.build(fusion, CLASSES, sign=sign) for sign in ("subtract", "add")]


def noisy_run(**changes):
    """Logits that tell a little of the labels, and gradients under noise of mean 0."""
    rng = np.random.default_rng(0)
    labels = np.arange(ROWS) % CLASSES
    logits = np.eye(CLASSES)[labels] + 0.8 * rng.normal(size=(ROWS, CLASSES))
    g = 1 / CLASSES - np.eye(CLASSES)[labels]
    received = 1e-3 * (g + rng.normal(size=(EPOCHS, ROWS, CLASSES)))
    arrays = {"embeddings": np.stack([0 * logits, logits]), "gradients": received, **changes}
    return logits, received, cases.make_case(labels, CLASSES, known=0, **arrays)


def test_agrees_with_the_numpy_twin():
    logits, received, case = noisy_run()
    for weight in (0.0, 0.5, 3.0):
        results = cases.attack_all(FORMS, case, weight=weight)
        for scores, sign in zip(results, (1, -1)):
            expected = reference.scores(logits, sign * received, weight)
            np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3)


def test_colluders_add_what_they_sent_and_average_what_they_received():
    logits, received, case = noisy_run()
    shares = np.concatenate([0.25 * logits, 0.75 * logits], axis=1)
    both = {"embeddings": np.stack([0 * shares, shares])}
    both["gradients"] = np.concatenate([0.5 * received, 1.5 * received], axis=2)
    _, _, together = noisy_run(**both)
    for alone, colluders in zip(*(cases.attack_all(FORMS, c) for c in (case, together))):
        np.testing.assert_allclose(colluders, alone, atol=1e-4)


def test_rows_never_sent_have_no_score_and_those_missing_in_the_last_epoch_their_gradients():
    sent = np.ones((2, ROWS), bool)
    sent[:, 0], sent[1, 1] = False, False
    logits, received, case = noisy_run(sent=sent)
    without, scores = (cases.attack_all(FORMS, case, weight=w)[0] for w in (0.0, 1.0))
    np.testing.assert_array_equal(np.isnan(scores).all(axis=1), ~sent.any(axis=0))
    np.testing.assert_array_equal(without[1], 0)
    standardized = reference.zeta(logits[sent[1]])
    np.testing.assert_allclose(without[sent[1]], standardized, atol=1e-4)
    mean = np.where(sent[1][:, None], received.mean(0), received[0])[sent.any(axis=0)]
    both = standardized - reference.zeta(mean)[1:]
    np.testing.assert_allclose(scores[sent[1]], both, atol=1e-3)
