"""Names of classes: from the attack, else from known rows, else from all rows."""

import numpy as np
import pytest

from tests import harness
from tests.attacking.scoring_test import KNOWN, ROWS, jitted, labels_of, numbers, output_of
from tests.reference import naming as reference
from vfljax import metrics

names_of = harness.quick_jit(metrics.names)
leak_named = harness.quick_jit(metrics.leak_named)


def noisy(labels, classes, signal, seed=0):
    rng = np.random.default_rng(seed)
    return np.float32(rng.normal(size=(len(labels), classes)) + signal * np.eye(classes)[labels])


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("signal", [0.0, 1.0, -1.0])
def test_names_are_the_best_of_all_namings(classes, signal):
    labels = np.int32(np.random.default_rng(1).integers(0, classes, 60))
    scores = noisy(labels, classes, signal)
    scores[7] = np.nan
    weights = np.float32(np.arange(60) % 3 > 0)
    kept = weights > 0
    named_best = names_of(scores, labels, weights)
    expected = reference.best(scores[kept], labels[kept])
    assert reference.leak(scores[kept], list(named_best), labels[kept]) == pytest.approx(
        reference.leak(scores[kept], expected, labels[kept])
    )
    assert sorted(named_best.tolist()) == list(range(classes))
    value = leak_named(scores, named_best, labels, weights)
    assert float(value) == pytest.approx(
        reference.leak(scores[kept], list(named_best), labels[kept])
    )
    # every other naming too
    turned = np.roll(np.arange(classes), 1).astype(np.int32)
    value = leak_named(scores, turned, labels, weights)
    assert float(value) == pytest.approx(reference.leak(scores[kept], turned, labels[kept]))


def test_names_are_the_attack_s_own_where_no_row_says_otherwise():
    labels = np.int32(np.arange(30) % 3)
    scores = np.float32(np.eye(3)[labels])
    nothing = np.zeros(30, np.float32)
    np.testing.assert_array_equal(names_of(scores, labels, nothing), [0, 1, 2])
    # classes 1 and 2 are called by nobody: either naming of theirs is as good
    called = np.float32(np.eye(3)[np.zeros(30, int)])
    np.testing.assert_array_equal(names_of(called, labels, np.ones(30, np.float32)), [0, 1, 2])


def figures_of(train, classes, known=0, by=None):
    return numbers(jitted(output_of(train, known, 1, by), labels_of(classes)))


@pytest.mark.parametrize("classes", [2, 5])
def test_a_renaming_of_classes_protects_nobody_who_knows_labels(classes):
    labels = labels_of(classes).labels[1]
    train = noisy(labels, classes, 2.0)
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


@pytest.mark.parametrize("classes", [2, 5])
def test_names_come_from_known_rows_alone_and_are_scored_on_others(classes):
    true = labels_of(classes)
    labels, known = true.labels[1], true.known_order[1][:KNOWN]
    train = noisy(labels, classes, 2.0)
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


@pytest.mark.parametrize("classes", [2, 5])
def test_without_known_labels_names_come_from_all_rows(classes):
    labels = labels_of(classes).labels[1]
    train = np.roll(noisy(labels, classes, 2.0), 1, axis=1)
    figures = figures_of(train, classes, by=0)
    names = reference.best(train, labels)
    assert figures["leak"] == pytest.approx(reference.leak(train, names, labels), abs=1e-6)
    assert figures["leak"] > 0.7
    assert figures["renamed"] == 1


def test_labels_drawn_beside_the_scores_do_not_make_renaming_tell_more():
    """Names from few known rows are no free lunch: of scores without information they stay at chance."""
    values = [
        figures_of(noisy(labels_of(5).labels[1], 5, 0.0, seed), 5, by=KNOWN)["leak"]
        for seed in range(20)
    ]
    assert abs(np.mean(values) - 0.2) < 0.03


def test_who_names_by_all_labels_leaves_no_row_to_score():
    train = noisy(labels_of(5).labels[1], 5, 1.0)
    figures = figures_of(train, 5, by=ROWS)
    assert np.isnan(figures["leak"])
    assert not np.isnan(figures["success_unlabeled"])
