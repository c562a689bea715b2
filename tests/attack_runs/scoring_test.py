"""Scoring: every figure of an output against scikit-learn, on the rows it is meant to cover."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics

from tests import harness
from vfljax.attack_runs import scoring
from vfljax.attack_runs.scoring import AttackOutput, TrueLabels, score
from vfljax.attack_runs.view import AttackInput
from vfljax.types import Scores

ROWS, TEST, KNOWN = 190, 40, 30
CLASSES = (2, 6)  # more than five have top-5 figures
jitted = harness.quick_jit(score)


@functools.cache
def labels_of(classes, rows=ROWS, seeds=2, draws=2):
    """The labels of every seed, and orders in which they become known: of each seed, then of its next draw."""
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, (seeds, rows))
    return TrueLabels(
        labels=np.int32(labels),
        test_labels=np.int32(rng.integers(0, classes, (seeds, TEST))),
        known_order=np.int32(rng.permuted(np.tile(np.arange(rows), (seeds * draws, 1)), axis=1)),
        positive=np.ones(seeds, np.int32),
    )


def numbers(figures):
    """Every figure by name, those of a curve or a class by name and place."""
    return {
        name if np.ndim(value) == 0 else f"{name}[{place}]": float(number)
        for name, value in figures.items()
        for place, number in enumerate(np.atleast_1d(value))
    }


def output_of(train, known=0, seed=0, by=None, test=None, sent=None):
    """Scores of rows that were all sent, in their own order; always of the same types, for one program."""
    test = np.zeros((TEST, train.shape[1]), np.float32) if test is None else test
    sent, naming = np.ones(ROWS, bool) if sent is None else sent, known if by is None else by
    numbers = (np.int32(seed), np.int32(known), sent, np.bool_(False), np.int32(naming))
    return AttackOutput(Scores(train, test), *numbers, draw=np.int32(0))


@functools.cache
def constructed(classes):
    """An output that knows a little, the rows of it that were sent, and its figures: seed 1, 30 known
    labels, one row without a guess, the last ten rows of the epoch never sent."""
    rng, true = np.random.default_rng(5), labels_of(classes)
    labels = true.labels[1]
    train = np.float32(rng.normal(size=(ROWS, classes)) + np.eye(classes)[labels])
    test = np.float32(rng.normal(size=(TEST, classes)) + np.eye(classes)[true.test_labels[1]])
    order = np.int32(rng.permutation(ROWS))
    sent = order < ROWS - 10
    train[~sent] = np.nan
    train[np.flatnonzero(order == 7)] = np.nan
    output = output_of(train, KNOWN, 1, test=test, sent=sent)
    return output, true, numbers(jitted(output, true))


def rows_of(true, sent, known=KNOWN):
    """Unlabeled rows that were sent."""
    return sent & ~np.isin(np.arange(ROWS), true.known_order[1][:known])


def auc(scores, labels):
    """Of s_1 - s_0, where a row without a guess stands in the middle."""
    difference = np.nan_to_num(scores[:, 1] - scores[:, 0])
    return sklearn.metrics.roc_auc_score(labels, difference)


def leak(scores, labels):
    if scores.shape[1] == 2:
        return auc(scores, labels)
    guess = np.where(np.isfinite(scores).all(1), np.nan_to_num(scores).argmax(1), -1)
    return np.mean([np.mean(guess[labels == c] == c) for c in np.unique(labels)])


def test_a_trained_attack_without_any_guess_diverged_and_one_that_is_silent_did_not():
    output, true, figures = constructed(2)
    lost = Scores(output.scores.train * np.nan, output.scores.test * np.nan)
    diverged = jitted(output._replace(scores=lost, trained=np.bool_(True)), true)
    assert all(np.isnan(value) for value in numbers(diverged).values())
    silent = jitted(output._replace(scores=lost), true)
    assert silent["success"] == 0
    assert silent["leak"] == 0.5
    # a guess at a row that was never sent is none
    unsent = np.where(output.sent[:, None], np.nan, np.ones_like(output.scores.train))
    only_unsent = output._replace(scores=lost._replace(train=unsent), trained=np.bool_(True))
    assert np.isnan(jitted(only_unsent, true)["success"])
    some = jitted(output._replace(trained=np.bool_(True)), true)
    assert numbers(some) == pytest.approx(figures, nan_ok=True)


def test_an_attacker_who_knows_every_label_leaves_no_row_to_score():
    true = labels_of(6)
    output = output_of(np.float32(np.eye(6)[true.labels[0]]), known=ROWS)
    figures = jitted(output, true)
    assert figures["success"] == 1
    assert np.isnan(figures["leak"])
    assert np.isnan(figures["success_unlabeled"])


def test_the_rows_of_another_draw_are_known_in_its_own_order():
    output, true, figures = constructed(2)
    turned = true._replace(known_order=np.roll(true.known_order, 2, axis=0))
    again = numbers(jitted(output._replace(draw=np.int32(1)), turned))
    assert again == pytest.approx(figures, nan_ok=True)
    assert numbers(jitted(output, turned)) != pytest.approx(figures, nan_ok=True)


def test_copies_of_known_rows_are_not_scored():
    """Each row has a copy. An attack that reads copies of known rows alone reads nothing of others."""
    true = labels_of(2)
    groups = np.tile(np.arange(ROWS, dtype=np.int32) // 2, (2, 1))
    true = true._replace(labels=np.repeat(true.labels[:, ::2], 2, axis=1), groups=groups)
    known = true.known_order[1][:KNOWN]
    told = np.isin(groups[1], groups[1][known])
    scores = np.float32(np.eye(2)[true.labels[1]]) * told[:, None]
    figures = jitted(output_of(scores, KNOWN, 1), true)
    assert figures["leak"] == 0.5
    assert figures["success_unlabeled"] == pytest.approx(np.mean(true.labels[1][~told] == 0))
    apart = jitted(output_of(scores, KNOWN, 1), true._replace(groups=None))
    assert apart["leak"] > 0.52
    # names come from known rows alone, of which copies are not scored either
    misnamed = np.roll(np.float32(np.eye(2)[true.labels[1]]), 1, axis=1)
    misnamed[told & ~np.isin(np.arange(ROWS), known)] *= -1
    assert jitted(output_of(misnamed, 0, 1, KNOWN), true)["leak"] == pytest.approx(1)


@pytest.mark.parametrize("classes", CLASSES)
def test_success_counts_all_rows_and_rows_without_known_labels(classes):
    output, true, figures = constructed(classes)
    unlabeled = rows_of(true, output.sent)
    scores = np.asarray(output.scores.train)
    hit = np.isfinite(scores).all(1) & (np.nan_to_num(scores).argmax(1) == true.labels[1])
    assert figures["success"] == pytest.approx(hit[output.sent].mean())
    assert figures["success_unlabeled"] == pytest.approx(hit[unlabeled].mean())
    test = output.scores.test
    hit = test.argmax(1) == true.test_labels[1]
    assert figures["test_success"] == pytest.approx(hit.mean())
    assert ("success_top5" in figures) == (classes > 5)
    if classes > 5:
        five = [label in np.argsort(-row)[:5] for row, label in zip(scores, true.labels[1])]
        five = np.array(five) & np.isfinite(scores).all(1)
        assert figures["success_top5"] == pytest.approx(five[output.sent].mean())
        assert figures["success_top5_unlabeled"] == pytest.approx(five[unlabeled].mean())


@pytest.mark.parametrize("classes", CLASSES)
def test_f1_and_the_leak_are_scikit_learns_on_unlabeled_rows(classes):
    output, true, figures = constructed(classes)
    unlabeled = rows_of(true, output.sent)
    scores, labels = np.asarray(output.scores.train), true.labels[1]
    guess = np.where(np.isfinite(scores).all(1), np.nan_to_num(scores).argmax(1), -1)
    f1 = sklearn.metrics.f1_score(
        labels[unlabeled],
        guess[unlabeled],
        labels=[1] if classes == 2 else range(classes),
        average="macro",
    )
    assert figures["f1"] == pytest.approx(f1, abs=1e-6)
    assert ("test_f1" in figures) == (classes == 2)
    if classes == 2:
        on_test = sklearn.metrics.f1_score(true.test_labels[1], output.scores.test.argmax(1))
        assert figures["test_f1"] == pytest.approx(on_test, abs=1e-6)
    expected = leak(scores[unlabeled], labels[unlabeled])
    assert figures["leak"] == pytest.approx(expected, abs=1e-6)
    test = leak(output.scores.test, true.test_labels[1])
    assert figures["test_leak"] == pytest.approx(test, abs=1e-6)


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("direction", [1, -1])
def test_who_knows_labels_is_never_turned_and_who_knows_none_is_turned_by_labels(
    direction, positive
):
    """The first rows to be known point the other way, so that they turn an attack to read nothing."""
    true = labels_of(2)._replace(positive=np.full(2, positive, np.int32))
    known = np.isin(np.arange(ROWS), true.known_order[0][:KNOWN])
    sign = direction * np.where(true.labels[0] == 1, 1, -1) * np.where(known, -1, 1)
    scores = np.float32(np.stack([-sign, sign], axis=1))
    tests = Scores(scores, np.float32(direction * (2 * np.eye(2)[true.test_labels[0]] - 1)))
    for output, reads, turned in (
        (output_of(scores, known=KNOWN), direction == 1, False),
        (output_of(scores, by=KNOWN), False, direction == 1),
    ):
        figures = jitted(output._replace(scores=tests), true)
        assert figures["renamed"] == turned
        for name in ("leak", "test_leak"):
            assert figures[name] == pytest.approx(float(reads), abs=1e-6)
        curve = np.asarray(figures["roc"])
        curve = curve[np.isfinite(curve)][:-1]
        assert len(curve)
        assert curve == pytest.approx(float(reads), abs=1e-6)
        # as many rows are named positive as are, so of two classes of unlike sizes some are right anyway
        recall = np.asarray(figures["recall"])
        assert (recall == 1).all() if reads else (recall < 0.3).all()
    by_all = jitted(output_of(scores, by=0), true)  # most of which agree
    assert by_all["renamed"] == (direction == -1)
    assert 0.5 < by_all["leak"] < 1


def test_labels_known_to_the_attacker_move_no_leak():
    output, true, figures = constructed(2)
    known = true.known_order[1][:KNOWN]
    wrong = np.array(output.scores.train)
    wrong[known] = np.eye(2)[1 - true.labels[1][known]]
    other = jitted(output._replace(scores=Scores(wrong, output.scores.test)), true)
    other = numbers(other)
    changed = {
        name for name, value in figures.items() if other[name] != pytest.approx(value, nan_ok=True)
    }
    assert changed == {"success"}


def test_true_labels_of_one_seed_in_place_of_all_are_refused():
    output, true, _ = constructed(2)
    candidates = jnp.zeros((*true.labels.shape, 2), jnp.int32)
    true = true._replace(candidates=candidates, selects=true.labels > 0, groups=true.labels)
    for field in TrueLabels._fields:
        with pytest.raises(AssertionError):
            jax.eval_shape(score, output, true._replace(**{field: getattr(true, field)[0]}))


def test_a_draw_without_a_figure_takes_no_part_in_the_mean():
    mean = scoring._mean(np.float32([0.75, 0.5]), np.float32([np.nan, 0.25]))
    np.testing.assert_allclose(mean, [0.75, 0.375])


def test_rows_are_scored_that_were_sent_in_what_is_read(monkeypatch):
    scorer, seen = object.__new__(scoring.Scorer), []
    scorer._naming = 0

    def figures(output, capacity, point):
        seen.append(output.sent[0].tolist())
        return {}

    monkeypatch.setattr(scorer, "_figures", figures)
    sent = np.array([[[True, True, False], [True, False, False]]])
    exchange = {"epochs": np.array([[0, 3]]), "sent": sent, "sum_count": np.array([[4, 3, 0]])}
    inputs = AttackInput(np.zeros(1, int), np.zeros(1, int), {}, exchange, ())
    for epoch in (None, 0, -1):  # all epochs, the first, the last
        attack = SimpleNamespace(epoch=epoch, oracle=False, steps=0)
        scorer.figures(Scores(np.zeros((1, 1, 1, 3, 2))), inputs, attack, 1, 0)
    assert seen == [[True, True, False], [True, True, False], [True, False, False]]
