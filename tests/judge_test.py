"""The judge: every figure of a claim against scikit-learn, on the rows it is meant to cover."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics

from tests import harness
from vfljax.judge import NULL, Claim, Truth, judge, permuted_labels
from vfljax.types import Scores

ROWS, TEST, BATCH, KNOWN = 190, 40, 20, 30
jitted = harness.quick_jit(judge, static_argnums=2)


@functools.cache
def truth_of(classes, rows=ROWS, seeds=2):
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, (seeds, rows))
    half = rng.permuted(np.tile(np.arange(rows) % 2 == 0, (seeds, 1)), axis=1)
    return Truth(
        labels=np.int32(labels),
        test_labels=np.int32(rng.integers(0, classes, (seeds, TEST))),
        known_order=np.int32(rng.permuted(np.tile(np.arange(rows), (seeds, 1)), axis=1)),
        selects=half,
        null=np.int32(permuted_labels(labels)),
    )


@functools.cache
def constructed(classes):
    """A claim that knows a little, the rows of it that were sent, and its figures: seed 1, 30 known
    labels, one row without a guess, the last ten rows of the epoch never sent."""
    rng, truth = np.random.default_rng(5), truth_of(classes)
    labels = truth.labels[1]
    train = np.float32(rng.normal(size=(ROWS, classes)) + np.eye(classes)[labels])
    test = np.float32(rng.normal(size=(TEST, classes)) + np.eye(classes)[truth.test_labels[1]])
    order = np.int32(rng.permutation(ROWS))
    sent = order < ROWS - 10
    train[~sent] = np.nan
    train[np.flatnonzero(order == 7)] = np.nan
    claim = Claim(Scores(train, test), np.int32(1), np.int32(KNOWN), order, sent, np.bool_(False))
    return claim, truth, {k: float(v) for k, v in jitted(claim, truth, BATCH).items()}


def rows_of(truth, sent, known=KNOWN):
    """Unlabeled rows that were sent, and those of them on which the worst attack is chosen."""
    unlabeled = sent & ~np.isin(np.arange(ROWS), truth.known_order[1][:known])
    return unlabeled, unlabeled & truth.selects[1]


def auc(scores, labels):
    """Of s_1 - s_0, where a row without a guess stands in the middle."""
    difference = np.nan_to_num(scores[:, 1] - scores[:, 0])
    return sklearn.metrics.roc_auc_score(labels, difference)


def leak(scores, labels):
    if scores.shape[1] == 2:
        a = auc(scores, labels)
        return max(a, 1 - a)
    guess = np.where(np.isfinite(scores).all(1), np.nan_to_num(scores).argmax(1), -1)
    return np.mean([np.mean(guess[labels == c] == c) for c in np.unique(labels)])


def turned(scores, labels, chosen, rows):
    """The leak of the reported rows in the direction of the chosen ones."""
    if scores.shape[1] > 2:
        return leak(scores[rows], labels[rows])
    a = auc(scores[rows], labels[rows])
    return a if auc(scores[chosen], labels[chosen]) >= 0.5 else 1 - a


def test_the_direction_is_that_of_the_half_on_which_attacks_are_chosen():
    """Scores that point one way on that half and the other way on the rest leak less than nothing."""
    truth = truth_of(2)
    sign = np.where(truth.selects[0], 1, -1) * np.where(truth.labels[0] == 1, 1, -1)
    for turn in (1, -1):
        scores = np.float32(turn * np.stack([-sign, sign], axis=1))
        rows = np.arange(ROWS, dtype=np.int32)
        found = judge(
            Claim(Scores(scores), jnp.int32(0), jnp.int32(0), rows, rows >= 0, np.bool_(False)),
            truth,
            BATCH,
        )
        assert found["leak_select"] == 1
        assert found["leak_report"] < 1e-6


def test_a_trained_attack_without_any_guess_diverged_and_one_that_is_silent_did_not():
    claim, truth, figures = constructed(2)
    lost = Scores(claim.scores.train * np.nan, claim.scores.test * np.nan)
    found = judge(claim._replace(scores=lost, trained=np.bool_(True)), truth, BATCH)
    assert all(np.isnan(value) for value in found.values())
    silent = judge(claim._replace(scores=lost), truth, BATCH)
    assert silent["success"] == 0
    assert silent["leak"] == 0.5
    some = judge(claim._replace(trained=np.bool_(True)), truth, BATCH)
    assert {k: float(v) for k, v in some.items()} == pytest.approx(figures, nan_ok=True)


def test_an_attacker_who_knows_every_label_leaves_no_row_to_judge():
    truth, rows = truth_of(4), np.arange(ROWS, dtype=np.int32)
    scores = Scores(np.float32(np.eye(4)[truth.labels[0]]))
    claim = Claim(scores, jnp.int32(0), jnp.int32(ROWS), rows, rows >= 0, np.bool_(False))
    found = judge(claim, truth, BATCH)
    assert found["success"] == 1
    assert np.isnan(found["leak"])
    assert np.isnan(found["success_unlabeled"])


@pytest.mark.parametrize("classes", [2, 4, 7])
def test_success_counts_all_rows_and_rows_without_known_labels(classes):
    claim, truth, found = constructed(classes)
    unlabeled, _ = rows_of(truth, claim.sent)
    scores = np.asarray(claim.scores.train)
    hit = np.isfinite(scores).all(1) & (np.nan_to_num(scores).argmax(1) == truth.labels[1])
    assert found["success"] == pytest.approx(hit[claim.sent].mean())
    assert found["success_unlabeled"] == pytest.approx(hit[unlabeled].mean())
    test = claim.scores.test
    hit = test.argmax(1) == truth.test_labels[1]
    assert found["test_success"] == pytest.approx(hit.mean())
    assert ("success_top5" in found) == (classes > 5)
    if classes > 5:
        five = [label in np.argsort(-row)[:5] for row, label in zip(scores, truth.labels[1])]
        five = np.array(five) & np.isfinite(scores).all(1)
        assert found["success_top5"] == pytest.approx(five[claim.sent].mean())
        assert found["success_top5_unlabeled"] == pytest.approx(five[unlabeled].mean())


@pytest.mark.parametrize("classes", [2, 4])
def test_f1_and_the_leaks_are_scikit_learns_on_unlabeled_rows_whole_and_by_half(classes):
    claim, truth, found = constructed(classes)
    unlabeled, chosen = rows_of(truth, claim.sent)
    scores, labels = np.asarray(claim.scores.train), truth.labels[1]
    guess = np.where(np.isfinite(scores).all(1), np.nan_to_num(scores).argmax(1), -1)
    f1 = sklearn.metrics.f1_score(
        labels[unlabeled],
        guess[unlabeled],
        labels=[1] if classes == 2 else range(classes),
        average="macro",
    )
    assert found["f1"] == pytest.approx(f1, abs=1e-6)
    for name, rows in (
        ("leak", unlabeled),
        ("leak_select", chosen),
    ):
        assert found[name] == pytest.approx(leak(scores[rows], labels[rows]), abs=1e-6), name
    rows = unlabeled & ~chosen
    assert found["leak_report"] == pytest.approx(turned(scores, labels, chosen, rows), abs=1e-6)
    test = leak(claim.scores.test, truth.test_labels[1])
    assert found["test_leak"] == pytest.approx(test, abs=1e-6)


def test_two_classes_are_judged_by_batch_too_on_unlabeled_rows_that_were_sent():
    claim, truth, found = constructed(2)
    unlabeled, _ = rows_of(truth, claim.sent)
    scores, labels = np.asarray(claim.scores.train), truth.labels[1]
    values = []
    for batch in range(-(-ROWS // BATCH)):
        own = unlabeled & claim.sent & (claim.order // BATCH == batch)
        if len(np.unique(labels[own])) == 2:
            values.append(auc(scores[own], labels[own]))
    assert found["auc_batch_q95"] == pytest.approx(np.quantile(values, 0.95), abs=1e-5)
    turned = [max(a, 1 - a) for a in values]
    assert found["leak_batch_mean"] == pytest.approx(np.mean(turned), abs=1e-5)
    assert "auc_batch_q95" not in constructed(4)[2]


@pytest.mark.parametrize("classes", [2, 4])
def test_the_null_band_is_what_permuted_labels_reach_on_the_reporting_half(classes):
    claim, truth, found = constructed(classes)
    unlabeled, chosen = rows_of(truth, claim.sent)
    rows = unlabeled & ~chosen
    scores = np.asarray(claim.scores.train)[rows]
    plain = auc if classes == 2 else leak  # the direction is not the reporting half's
    values = [plain(scores, permuted[rows]) for permuted in truth.null[1]]
    assert found["leak_null"] == pytest.approx(np.quantile(values, 0.95), abs=1e-5)


def test_permutations_are_the_seeds_own_and_keep_the_class_balance():
    labels = truth_of(4).labels
    found = permuted_labels(labels)
    assert found.shape == (2, NULL, ROWS)
    np.testing.assert_array_equal(found, permuted_labels(labels))
    np.testing.assert_array_equal(found[1], permuted_labels(labels[[0, 1]])[1])
    for seed in range(2):
        for one in found[seed]:
            np.testing.assert_array_equal(np.sort(one), np.sort(labels[seed]))
        assert len(np.unique(found[seed], axis=0)) == NULL


@pytest.mark.parametrize("classes", [2, 5])
def test_about_one_in_twenty_claims_without_information_exceeds_its_null_band(classes):
    """One more draw exceeds the .95 quantile of 64 permutations with probability 1 - (.95 * 63 + 1) / 65,
    about 6 %: few permutations make the band a little narrow."""
    rng, truth = np.random.default_rng(0), truth_of(classes)
    claims = 600
    scores = np.float32(rng.normal(size=(claims, ROWS, classes)))

    def one(train, order, truth):
        claim = Claim(
            Scores(train), jnp.int32(0), jnp.int32(KNOWN), order, order >= 0, np.bool_(False)
        )
        found = judge(claim, truth, BATCH)
        return found["leak_report"] > found["leak_null"]

    many = harness.quick_jit(jax.vmap(one, in_axes=(0, None, None)))
    exceeded = np.mean(many(scores, np.arange(ROWS, dtype=np.int32), truth))
    expected = 1 - (0.95 * (NULL - 1) + 1) / (NULL + 1)
    assert abs(exceeded - expected) < 4 * np.sqrt(expected * (1 - expected) / claims)


def test_labels_known_to_the_attacker_move_no_leak():
    claim, truth, found = constructed(2)
    known = truth.known_order[1][:KNOWN]
    wrong = np.array(claim.scores.train)
    wrong[known] = np.eye(2)[1 - truth.labels[1][known]]
    other = jitted(claim._replace(scores=Scores(wrong, claim.scores.test)), truth, BATCH)
    changed = {name for name, value in found.items() if float(other[name]) != pytest.approx(value)}
    assert changed == {"success"}
