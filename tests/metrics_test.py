"""Metrics agree with scikit-learn, also with ties, weights and absent classes."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from vfljax import metrics

ROWS = 40
few = settings(deadline=None, max_examples=30, database=None, derandomize=True)
seeds = st.integers(0, 2**16)
auc, accuracy, balanced = (
    harness.quick_jit(f) for f in (metrics.auc, metrics.accuracy, metrics.balanced_accuracy)
)
leak, cross_entropy = harness.quick_jit(metrics.leak), harness.quick_jit(metrics.cross_entropy)
topk = harness.quick_jit(metrics.topk, static_argnums=2)
f1 = harness.quick_jit(metrics.f1)
leak_named = harness.quick_jit(metrics.leak_named)


def binary(seed, levels):
    """Scores with few levels have many ties; the labels depend on them a little."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(levels, size=ROWS).astype(np.float32)
    labels = (rng.random(ROWS) < 0.2 + 0.6 * scores / levels).astype(np.int32)
    labels[:2] = 0, 1
    weights = (rng.random(ROWS) < 0.7).astype(np.float32)
    weights[:2] = 1
    return scores, labels, weights


def multiclass(seed, classes=5, decimals=None):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(ROWS, classes)).astype(np.float32)
    weights = (rng.random(ROWS) < 0.7).astype(np.float32)
    weights[0] = 1
    scores = scores if decimals is None else np.round(scores, decimals)
    return scores, rng.integers(classes, size=ROWS), weights


@given(seed=seeds, levels=st.sampled_from([2, 5, 1000]))
@few
def test_auc_agrees_with_scikit_learn_with_and_without_ties_and_weights(seed, levels):
    scores, labels, weights = binary(seed, levels)
    expected = sklearn.metrics.roc_auc_score(labels, scores)
    np.testing.assert_allclose(auc(scores, labels), expected, rtol=1e-5)
    expected = sklearn.metrics.roc_auc_score(labels, scores, sample_weight=weights)
    np.testing.assert_allclose(auc(scores, labels, weights), expected, rtol=1e-5)


@given(seed=seeds, levels=st.sampled_from([2, 5, 1000]))
@few
def test_exchanged_names_turn_an_auc_just_as_negated_scores_do(seed, levels):
    scores, labels, weights = binary(seed, levels)
    both = np.stack([np.zeros_like(scores), scores], axis=1)
    for names, sign in (((0, 1), 1), ((1, 0), -1)):
        got = leak_named(both, np.array(names), labels, weights)
        np.testing.assert_array_equal(got, auc(sign * scores, labels, weights))


def test_aucs_of_the_same_scores_share_one_sort():
    def three(scores, labels, weights):
        both = jnp.stack([jnp.zeros_like(scores), scores], axis=1)
        return (
            metrics.leak(both, labels),
            jax.vmap(lambda w: metrics.leak(both, labels, w))(jnp.stack([weights, 1 - weights])),
            metrics.leak_named(both, jnp.array([1, 0]), labels, weights),
        )

    text = jax.jit(three).lower(*binary(0, 5)).compile().as_text()
    assert text.count(" sort(") == 1


@pytest.mark.parametrize("label", [0, 1])
def test_auc_is_nan_where_one_class_is_absent_or_weighted_away(label):
    scores = np.arange(ROWS, dtype=np.float32)
    one_class = np.full(ROWS, label, np.int32)
    assert np.isnan(auc(scores, one_class))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(sklearn.metrics.roc_auc_score(one_class, scores))
    both = np.arange(ROWS) % 2
    assert np.isnan(auc(scores, both, (both == label).astype(np.float32)))
    assert np.isnan(auc(scores, both, np.zeros(ROWS, np.float32)))


def test_auc_is_exact_where_the_pairs_exceed_what_float32_counts():
    rows = 20_000  # 1e8 pairs
    labels = np.arange(rows) % 2
    scores = np.random.default_rng(0).normal(size=rows).astype(np.float32) + labels
    expected = sklearn.metrics.roc_auc_score(labels, scores)
    np.testing.assert_allclose(auc(scores, labels), expected, rtol=1e-5)


def test_auc_of_a_score_that_is_not_finite_is_nan():
    scores, labels, _ = binary(0, 5)
    for bad in (np.nan, np.inf):
        scores[3] = bad
        assert np.isnan(auc(scores, labels))


@given(seed=seeds)
@few
def test_accuracy_agrees_with_scikit_learn_with_and_without_weights(seed):
    scores, labels, weights = multiclass(seed)
    guess = scores.argmax(axis=1)
    expected = sklearn.metrics.accuracy_score(labels, guess)
    np.testing.assert_allclose(accuracy(scores, labels), expected, rtol=1e-5)
    expected = sklearn.metrics.accuracy_score(labels, guess, sample_weight=weights)
    np.testing.assert_allclose(accuracy(scores, labels, weights), expected, rtol=1e-5)


@given(seed=seeds, k=st.integers(1, 5))
@few
def test_topk_agrees_with_scikit_learn(seed, k):
    scores, labels, weights = multiclass(seed)
    expected = (
        sklearn.metrics.top_k_accuracy_score(
            labels, scores, k=k, sample_weight=weights, labels=np.arange(5)
        )
        if k < 5
        else 1.0
    )
    np.testing.assert_allclose(topk(scores, labels, k, weights), expected, rtol=1e-5)


@given(seed=seeds, k=st.integers(1, 4))
@few
def test_ties_go_to_the_lower_class(seed, k):
    scores, labels, _ = multiclass(seed, decimals=0)
    expected = [label in np.argsort(-row, kind="stable")[:k] for row, label in zip(scores, labels)]
    np.testing.assert_allclose(topk(scores, labels, k), np.mean(expected), rtol=1e-5)


@given(seed=seeds, absent=st.booleans())
@few
def test_balanced_accuracy_agrees_with_scikit_learn_also_without_some_class(seed, absent):
    scores, labels, weights = multiclass(seed)
    labels = np.where(labels == 3, 0, labels) if absent else labels
    guess = scores.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # guesses of a class that no row has
        plain = sklearn.metrics.balanced_accuracy_score(labels, guess)
        rows = weights > 0
        weighted = sklearn.metrics.balanced_accuracy_score(labels[rows], guess[rows])
    np.testing.assert_allclose(balanced(scores, labels), plain, rtol=1e-5)
    np.testing.assert_allclose(balanced(scores, labels, weights), weighted, rtol=1e-5)


@given(seed=seeds)
@few
def test_cross_entropy_agrees_with_scikit_learn(seed):
    logits, labels, _ = multiclass(seed)
    p = np.exp(np.float64(logits))
    p /= p.sum(axis=1, keepdims=True)
    expected = sklearn.metrics.log_loss(labels, p, labels=np.arange(5))
    np.testing.assert_allclose(cross_entropy(logits, labels), expected, rtol=1e-5)


def test_rows_without_finite_scores_are_wrong_whatever_their_label():
    scores, labels, _ = multiclass(1)
    right = np.eye(5, dtype=np.float32)[labels]
    for bad in (np.nan, np.inf, -np.inf):
        broken = right.copy()
        broken[:10] = bad
        np.testing.assert_allclose(accuracy(broken, labels), 0.75, rtol=1e-6)
        assert topk(broken, labels, 5) == 0.75
        assert balanced(broken, labels) < 1
    half = right.copy()
    half[:10, 0] = np.nan
    np.testing.assert_allclose(accuracy(half, labels), 0.75, rtol=1e-6)
    assert scores.shape == half.shape


@given(seed=seeds, levels=st.sampled_from([2, 1000]))
@few
def test_leak_of_two_classes_is_the_auc_on_its_better_side(seed, levels):
    scores, labels, weights = binary(seed, levels)
    a = sklearn.metrics.roc_auc_score(labels, scores, sample_weight=weights)
    both = np.stack([-scores / 2, scores / 2], axis=1)
    np.testing.assert_allclose(leak(both, labels, weights), max(a, 1 - a), rtol=1e-5)
    np.testing.assert_allclose(leak(both[:, ::-1], labels, weights), max(a, 1 - a), rtol=1e-5)


def test_leak_of_more_classes_is_the_balanced_accuracy():
    scores, labels, weights = multiclass(2)
    np.testing.assert_array_equal(leak(scores, labels, weights), balanced(scores, labels, weights))


def test_leak_counts_rows_without_a_guess_as_ties_in_the_middle():
    scores, labels, _ = binary(3, 1000)
    scores -= np.median(scores)
    both = np.stack([-scores, scores], axis=1)
    both[::4] = np.nan
    filled = np.where(np.arange(ROWS) % 4 == 0, 0, scores)
    a = sklearn.metrics.roc_auc_score(labels, filled)
    np.testing.assert_allclose(leak(both, labels), max(a, 1 - a), rtol=1e-5)


def test_no_information_is_a_leak_of_one_half_or_one_over_c():
    labels = np.arange(ROWS) % 2
    np.testing.assert_allclose(leak(np.zeros((ROWS, 2), np.float32), labels), 0.5)
    labels = np.arange(ROWS) % 5
    np.testing.assert_allclose(leak(np.zeros((ROWS, 5), np.float32), labels), 0.2)


def test_a_row_left_out_of_the_auc_may_hold_anything():
    scores = jnp.array([0.1, 0.9, jnp.nan, 0.4])
    labels = jnp.array([0, 1, 1, 1])
    weights = jnp.array([1.0, 1.0, 0.0, 1.0])
    assert float(auc(scores, labels, weights)) == 1
    assert np.isnan(auc(scores, labels))


@given(seed=seeds, classes=st.sampled_from([2, 5]), absent=st.booleans(), broken=st.booleans())
@few
def test_f1_agrees_with_scikit_learn_also_without_some_class_or_some_scores(
    seed, classes, absent, broken
):
    scores, labels, weights = multiclass(seed, classes)
    labels = np.where(labels == classes - 1, 0, labels) if absent else labels
    scores[: 10 * broken] = np.nan
    guess = np.where(np.isnan(scores[:, 0]), -1, scores.argmax(axis=1))
    for kept in (np.ones(ROWS, bool), weights > 0):
        over = [1] if classes == 2 else np.unique(labels[kept])
        expected = sklearn.metrics.f1_score(
            labels[kept], guess[kept], labels=over, average="macro", zero_division=0
        )
        np.testing.assert_allclose(f1(scores, labels, np.float32(kept)), expected, atol=1e-6)
        if kept.all():
            np.testing.assert_array_equal(f1(scores, labels), f1(scores, labels, np.ones(ROWS)))
