"""Metrics agree with scikit-learn, also with ties, weights and absent classes."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics

from tests import harness
from vfljax import metrics

ROWS = 40
ONES = np.ones(ROWS, np.float32)
SEEDS = range(8)
auc, accuracy, balanced = (
    harness.quick_jit(f) for f in (metrics.auc, metrics.accuracy, metrics.balanced_accuracy)
)
cross_entropy = harness.quick_jit(metrics.cross_entropy)
topk = harness.quick_jit(metrics.topk, static_argnums=2)
f1 = harness.quick_jit(metrics.f1)


def binary(seed, levels):
    """Scores with few levels have many ties; the labels depend on them a little."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(levels, size=ROWS).astype(np.float32)
    labels = (rng.random(ROWS) < 0.2 + 0.6 * scores / levels).astype(np.int32)
    labels[:2] = 0, 1
    weights = (rng.random(ROWS) < 0.7).astype(np.float32)
    weights[:2] = 1
    return scores, labels, weights


def multiclass(seed, classes=5, decimals=9, absent=False):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=(ROWS, classes)), decimals).astype(np.float32)
    weights = (rng.random(ROWS) < 0.7).astype(np.float32)
    weights[0] = 1
    labels = rng.integers(classes - absent, size=ROWS)
    return scores, labels, weights


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_the_auc_and_the_leak_of_two_classes_are_scikit_learns(levels):
    """With and without ties and weights; the leak is the AUC on its better side, and exchanged names turn it
    just as negated scores do."""
    for seed in SEEDS:
        scores, labels, weights = binary(seed, levels)
        both = np.stack([-scores / 2, scores / 2], axis=1)
        for kept in (ONES, weights):
            expected = sklearn.metrics.roc_auc_score(labels, scores, sample_weight=kept)
            np.testing.assert_allclose(auc(scores, labels, kept), expected, rtol=1e-5)
            better = max(expected, 1 - expected)
            np.testing.assert_allclose(harness.best_leak(both, labels, kept), better, rtol=1e-5)
            np.testing.assert_allclose(
                harness.best_leak(both[:, ::-1], labels, kept), better, rtol=1e-5
            )
            for names, sign in (((0, 1), 1), ((1, 0), -1)):
                got = harness.leak(both, np.array(names), labels, kept)
                np.testing.assert_array_equal(got, auc(sign * scores, labels, kept))
        np.testing.assert_array_equal(auc(scores, labels), auc(scores, labels, ONES))


def test_aucs_of_the_same_scores_share_one_sort():
    def three(scores, labels, weights):
        both, names = jnp.stack([jnp.zeros_like(scores), scores], axis=1), jnp.arange(2)
        return (
            metrics.leak(both, names, labels),
            jax.vmap(lambda w: metrics.leak(both, names, labels, w))(
                jnp.stack([weights, 1 - weights])
            ),
            metrics.leak(both, names[::-1], labels, weights),
        )

    text = jax.jit(three).lower(*binary(0, 5)).compile().as_text()
    assert text.count(" sort(") == 1


def test_an_auc_without_a_class_or_a_finite_score_is_nan():
    scores, both = np.arange(ROWS, dtype=np.float32), np.arange(ROWS) % 2
    for label in (0, 1):
        assert np.isnan(auc(scores, np.full(ROWS, label, np.int32), ONES))
        assert np.isnan(auc(scores, both, (both == label).astype(np.float32)))
    assert np.isnan(auc(scores, both, 0 * ONES))
    for bad in (np.nan, np.inf):
        scores[3] = bad
        assert np.isnan(auc(scores, both, ONES))
        left_out = np.where(
            np.isfinite(scores), ONES, 0
        )  # a row that is left out may hold anything
        assert np.isfinite(auc(scores, both, left_out))


def test_auc_is_exact_where_the_pairs_exceed_what_float32_counts():
    rows = 20_000  # 1e8 pairs
    labels = np.arange(rows) % 2
    scores = np.random.default_rng(0).normal(size=rows).astype(np.float32) + labels
    expected = sklearn.metrics.roc_auc_score(labels, scores)
    np.testing.assert_allclose(auc(scores, labels), expected, rtol=1e-5)


@pytest.mark.parametrize("absent", [False, True])
def test_accuracies_and_cross_entropy_agree_with_scikit_learn(absent):
    """With and without weights and some class."""
    for seed in SEEDS:
        scores, labels, weights = multiclass(seed, absent=absent)
        guess, classes = scores.argmax(axis=1), np.arange(5)
        for kept in (ONES, weights):
            rows = kept > 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # guesses of a class that no row has
                expected = sklearn.metrics.balanced_accuracy_score(labels[rows], guess[rows])
            np.testing.assert_allclose(balanced(scores, labels, kept), expected, rtol=1e-5)
            unchanged = harness.leak(scores, classes, labels, kept)
            np.testing.assert_allclose(unchanged, expected, rtol=1e-5)
            expected = sklearn.metrics.accuracy_score(labels, guess, sample_weight=kept)
            np.testing.assert_allclose(accuracy(scores, labels, kept), expected, rtol=1e-5)
            expected = sklearn.metrics.top_k_accuracy_score(
                labels, scores, k=2, sample_weight=kept, labels=classes
            )
            np.testing.assert_allclose(topk(scores, labels, 2, kept), expected, rtol=1e-5)
        expected = sklearn.metrics.accuracy_score(labels, guess)
        np.testing.assert_allclose(accuracy(scores, labels), expected, rtol=1e-5)
        p = np.exp(np.float64(scores))
        expected = sklearn.metrics.log_loss(
            labels, p / p.sum(axis=1, keepdims=True), labels=classes
        )
        np.testing.assert_allclose(cross_entropy(scores, labels), expected, rtol=1e-5)


def test_ties_go_to_the_lower_class():
    for seed in SEEDS:
        scores, labels, _ = multiclass(seed, decimals=0)
        first = np.argsort(-scores, axis=1, kind="stable")[:, :2]
        expected = np.mean([label in two for label, two in zip(labels, first)])
        np.testing.assert_allclose(topk(scores, labels, 2, ONES), expected, rtol=1e-5)


def test_rows_without_finite_scores_are_wrong_whatever_their_label():
    _, labels, _ = multiclass(1)
    right = np.eye(5, dtype=np.float32)[labels]
    for bad in ([np.nan] * 5, [np.inf] * 5, [-np.inf] * 5, [np.nan, 0, 0, 0, 1]):
        broken = right.copy()
        broken[:10] = bad
        np.testing.assert_allclose(accuracy(broken, labels, ONES), 0.75, rtol=1e-6)
        assert topk(broken, labels, 2, ONES) == 0.75
        assert balanced(broken, labels, ONES) < 1


def test_leak_counts_rows_without_a_guess_as_ties_in_the_middle():
    scores, labels, _ = binary(3, 1000)
    scores -= np.median(scores)
    both = np.stack([-scores, scores], axis=1)
    both[::4] = np.nan
    filled = np.where(np.arange(ROWS) % 4 == 0, 0, scores)
    a = sklearn.metrics.roc_auc_score(labels, filled)
    np.testing.assert_allclose(harness.best_leak(both, labels, ONES), max(a, 1 - a), rtol=1e-5)


@pytest.mark.parametrize("classes", [2, 5])
def test_no_information_is_a_leak_of_one_half_or_one_over_c(classes):
    scores, labels = np.zeros((ROWS, classes), np.float32), np.arange(ROWS) % classes
    leak = harness.leak(scores, np.arange(classes), labels, ONES)
    np.testing.assert_allclose(leak, 1 / classes)


@pytest.mark.parametrize("classes", [2, 5])
def test_f1_agrees_with_scikit_learn_also_without_some_class_or_some_scores(classes):
    for seed, absent in zip(SEEDS, (False, True) * 4):
        scores, labels, weights = multiclass(seed, classes, absent=absent)
        scores[: 5 * (seed // 2)] = np.nan
        guess = np.where(np.isnan(scores[:, 0]), -1, scores.argmax(axis=1))
        for kept in (ONES, weights):
            rows = kept > 0
            over = [1] if classes == 2 else np.unique(labels[rows])
            expected = sklearn.metrics.f1_score(
                labels[rows], guess[rows], labels=over, average="macro", zero_division=0
            )
            np.testing.assert_allclose(f1(scores, labels, kept), expected, atol=1e-6)
