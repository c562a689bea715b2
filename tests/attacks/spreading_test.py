"""Propagation as an attack: its twin, what it reads, and what names classes without known labels."""

import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import neighbors as propagation
from tests.reference import spreading as reference
from vfljax.attacks import neighbors
from vfljax.attacks.spreading import spreading

ROWS, CLASSES, KNOWN = 120, 3, 15
SENT = np.random.default_rng(2).uniform(size=(2, ROWS)) < 0.8


def run(known=KNOWN):
    """Columns of different scales, embeddings and gradients that each tell a little of the labels."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(ROWS) % CLASSES
    hot = np.eye(CLASSES)[labels]
    parts = {
        "features": (hot + rng.normal(size=(ROWS, 3))) * [1, 5, 0.2],
        "test_features": np.zeros((10, 3)),
        "embeddings": 5 + hot + rng.normal(size=(2, ROWS, CLASSES)),
        "gradients": 1e-4 * (-hot + rng.normal(size=(2, ROWS, CLASSES))) * [1, 9, 1],
    }
    return labels, parts, cases.make_case(labels, CLASSES, known=known, sent=SENT, **parts)


def test_it_agrees_with_the_numpy_twin_on_rows_of_which_some_were_not_sent():
    labels, parts, case = run()
    ever, known = SENT.any(axis=0), cases.known_of(case)
    known = known[ever[known]]
    y = propagation.seeds(known, labels[known], ROWS, CLASSES)
    exchange = (np.asarray(case.run.exchange[name]) for name in ("embeddings", "gradients"))
    expected = reference.scores(parts["features"], *exchange, SENT, y, 0.9)
    attack = cases.build(spreading, CLASSES)
    found = np.asarray(cases.attack(attack, case, known=KNOWN, alpha=0.9).train)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.all(np.isnan(found[~ever]))
    assert harness.accuracy(found[ever], labels[ever]) > 0.6


def test_without_known_labels_all_rows_score_alike():
    found = np.asarray(cases.attack(cases.build(spreading, CLASSES), run(0)[-1], known=0).train)
    assert np.nanmax(found) == np.nanmin(found)


def test_columns_keep_their_scale_but_as_ranks():
    rng = np.random.default_rng(1)
    labels = rng.permutation(ROWS) % CLASSES
    # the columns of large variance name the class, and more of small variance do not
    columns = np.hstack([8 * np.eye(CLASSES)[labels], rng.normal(size=(ROWS, 30))])
    parts = {"features": columns, "test_features": np.zeros((10, 33))}
    case = cases.make_case(labels, CLASSES, known=KNOWN, **parts)
    forms = [cases.build(spreading, CLASSES, blocks=blocks) for blocks in ("columns", "ranks")]
    own, ranks = cases.attack_all(forms, case, known=15)
    assert harness.accuracy(own, labels) > 0.95
    assert harness.accuracy(ranks, labels) < 0.9


@pytest.mark.parametrize(
    ("names", "leak", "classes"),
    [("direct", "signs_and_features", 3), ("spectral", "clusters", 2), ("enumeration", "tops", 2)],
)
def test_other_attacks_name_classes_without_known_labels(names, leak, classes):
    rng = np.random.default_rng(0)
    labels = np.int64(np.arange(ROWS) % 5 == 0) if classes == 2 else rng.permutation(ROWS) % classes
    case = cases.make_case(
        labels, classes, known=0, cut=classes, **cases.LEAKS[leak](rng, labels, classes)
    )
    attack = cases.build(spreading, classes, classes, names=names)
    assert "known" not in attack.knobs
    found = np.asarray(cases.attack(attack, case).train)
    right = np.mean(found.argmax(axis=1) == labels)
    # enumeration cannot tell which class is which
    assert (max(right, 1 - right) if names == "enumeration" else right) > 0.9


def test_of_more_rows_neighbors_are_drawn_from_the_key(monkeypatch):
    monkeypatch.setattr(neighbors, "MOST_ROWS", 80)
    labels, _, case = run()
    attack = spreading(cases.ONE_BOTTOM, CLASSES)
    found = np.asarray(cases.attack(attack, case, known=KNOWN).train)
    ever = SENT.any(axis=0)
    assert np.array_equal(np.isfinite(found).all(axis=1), ever)
    assert harness.accuracy(found[ever], labels[ever]) > 0.55
