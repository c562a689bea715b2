"""The learners on ranks: their features, their formulas, and their limits."""

import numpy as np

from tests.attacks import cases
from tests.reference import ranks as reference
from vfljax.attacks.ranks import LEARNERS, ranks

ROWS, CLASSES, KNOWN = 120, 3, 15
FORMS = [cases.build(ranks, CLASSES, learner=learner, most=KNOWN) for learner in LEARNERS]
SENT = np.random.default_rng(2).uniform(size=(2, ROWS)) < 0.8


def run(known=KNOWN):
    """Columns, embeddings and gradients that each tell a little of the labels. The columns are more than 8,
    have ties, and one is constant."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(ROWS) % CLASSES
    hot = np.eye(CLASSES)[labels]
    columns = np.rint(np.tile(hot, 4) + rng.normal(size=(ROWS, 12)))
    columns[:, 11] = 7
    parts = {
        "features": columns,
        "test_features": np.zeros((10, 12)),
        "embeddings": 5 + hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES)),
        "gradients": 1e-4 * (-hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES))),
    }
    return labels, parts, cases.make_case(labels, CLASSES, known=known, sent=SENT, **parts)


def test_every_learner_agrees_with_the_numpy_twin_on_rows_of_which_some_were_not_sent():
    labels, parts, case = run()
    ever, known = SENT.any(axis=0), cases.known_of(case)
    known = known[ever[known]]
    x = reference.features(parts["features"], parts["embeddings"], parts["gradients"], SENT)
    for learner, found in zip(LEARNERS, cases.attack_all(FORMS, case, known=KNOWN)):
        expected = getattr(reference, learner)(x, ever, known, labels[known], CLASSES)
        assert np.all(np.isnan(found[~ever]))
        np.testing.assert_allclose(found[ever], expected[ever], atol=5e-3)


def test_labels_beyond_the_most_are_not_read_and_without_any_all_rows_score_alike():
    many, few, none = (
        cases.attack_all(FORMS, run(known)[-1], known=known) for known in (60, KNOWN, 0)
    )
    for one, other, blind in zip(many, few, none):
        np.testing.assert_allclose(one, other, atol=1e-5)
        assert np.nanmax(blind) == np.nanmin(blind)
