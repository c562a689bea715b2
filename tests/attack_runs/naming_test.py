"""Names of classes: from the attack, else from known rows, else from all rows."""

import numpy as np
import pytest

from tests import harness
from tests.attack_runs.scoring_test import (
    CLASSES,
    KNOWN,
    ROWS,
    jitted,
    labels_of,
    numbers,
    output_of,
)
from tests.reference import naming as reference
from vfljax import metrics

names_of = harness.quick_jit(metrics.names)
every_count = pytest.mark.parametrize("classes", CLASSES)


def noisy(labels, classes, signal, seed=0):
    rng = np.random.default_rng(seed)
    return np.float32(rng.normal(size=(len(labels), classes)) + signal * np.eye(classes)[labels])


@pytest.mark.parametrize("classes", [2, 4])
def test_names_are_the_best_of_all_namings(classes):
    labels = np.int32(np.random.default_rng(1).integers(0, classes, 60))
    weights = np.float32(np.arange(60) % 3 > 0)
    kept = weights > 0
    for signal in (0.0, 1.0, -1.0):
        scores = noisy(labels, classes, signal)
        scores[7] = np.nan
        named_best = names_of(scores, labels, weights)
        best = reference.leak(
            scores[kept], reference.best(scores[kept], labels[kept]), labels[kept]
        )
        value = reference.leak(scores[kept], list(named_best), labels[kept])
        assert value == pytest.approx(best)
        assert sorted(named_best.tolist()) == list(range(classes))
        turned = np.roll(np.arange(classes), 1).astype(np.int32)
        for names in (np.asarray(named_best), turned):  # and every other naming too
            expected = reference.leak(scores[kept], list(names), labels[kept])
            assert float(harness.leak(scores, names, labels, weights)) == pytest.approx(expected)


def test_names_are_the_attack_s_own_where_no_row_says_otherwise():
    labels = np.int32(np.arange(60) % 4)
    scores, ones = np.float32(np.eye(4)[labels]), np.ones(60, np.float32)
    np.testing.assert_array_equal(names_of(scores, labels, 0 * ones), range(4))
    # classes 1 to 3 are called by nobody: any naming of theirs is as good
    called = np.float32(np.eye(4)[np.zeros(60, int)])
    np.testing.assert_array_equal(names_of(called, labels, ones), range(4))


def figures_of(train, classes, known=0, by=None):
    return numbers(jitted(output_of(train, known, 1, by), labels_of(classes)))


@every_count
def test_a_renaming_of_classes_protects_nobody_who_knows_labels(classes):
    labels = labels_of(classes).labels[1]
    train = noisy(labels, classes, 3.0)
    plain = figures_of(train, classes, by=KNOWN)
    renamed = np.roll(train, 1, axis=1)  # what is read of class c says class c + 1
    exchanged = figures_of(renamed, classes, by=KNOWN)
    assert exchanged["leak"] == pytest.approx(plain["leak"], abs=1e-6)
    assert exchanged["leak"] > 0.7
    assert (plain["renamed"], exchanged["renamed"]) == (0, 1)
    assert plain["success"] > 0.7
    assert exchanged["success"] < 0.2
    if classes > 2:  # the rows of which it is most certain are read under the same names
        for figures in (plain, exchanged):
            recalls = [figures[f"recall[{c}]"] for c in range(classes)]
            assert np.mean(recalls) == pytest.approx(figures["leak"], abs=1e-6)
    # an attacker who knows labels has named the classes himself
    assert figures_of(renamed, classes, known=KNOWN)["leak"] < 0.3


@every_count
def test_names_come_from_known_rows_alone_and_are_scored_on_others(classes):
    true = labels_of(classes)
    labels, known = true.labels[1], true.known_order[1][:KNOWN]
    train = noisy(labels, classes, 3.0)
    lying = train.copy()
    lying[known] = np.roll(train[known], 1, axis=1)
    plain, misled = (figures_of(scores, classes, by=KNOWN) for scores in (train, lying))
    assert misled["leak"] < 0.3 < 0.7 < plain["leak"]
    # who knows labels has named the classes by them, and is not misled
    by_own = figures_of(lying, classes, known=KNOWN)
    assert by_own["leak"] == pytest.approx(plain["leak"], abs=1e-6)
    rows = np.isin(np.arange(ROWS), known)
    names = reference.best(train[rows], labels[rows])
    expected = reference.leak(train[~rows], names, labels[~rows])
    assert plain["leak"] == pytest.approx(expected, abs=1e-6)


@every_count
def test_without_known_labels_names_come_from_all_rows(classes):
    labels = labels_of(classes).labels[1]
    train = np.roll(noisy(labels, classes, 3.0), 1, axis=1)
    figures = figures_of(train, classes, by=0)
    names = reference.best(train, labels)
    assert figures["leak"] == pytest.approx(reference.leak(train, names, labels), abs=1e-6)
    assert figures["renamed"] == 1
