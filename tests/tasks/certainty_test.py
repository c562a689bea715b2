"""What is read with certainty, against scikit-learn's ROC and counts of rows."""

import numpy as np
import pytest
import sklearn.metrics

from tests import harness
from vfljax.tasks import certainty as module
from vfljax.tasks.certainty import CURVE_SHARES

ROWS = 1500
certainty = harness.quick_jit(module.certainty)


def drawn(classes, decimals, seed=0):
    """Scores that know a little, with ties where they are rounded; labels, and weights of some of the rows."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, ROWS)
    scores = np.round(rng.normal(size=(ROWS, classes)) + 2 * np.eye(classes)[labels], decimals)
    return np.float32(scores), np.int32(labels), np.float32(rng.random(ROWS) < 0.8)


@pytest.mark.parametrize("decimals", [9, 0])
@pytest.mark.parametrize("positive", [0, 1])
def test_a_roc_is_scikit_learns_of_the_positive_class(decimals, positive):
    scores, labels, weights = drawn(2, decimals)
    kept = weights > 0
    toward = np.diff(scores[kept])[:, 0] * (1 if positive else -1)
    false, true, _ = sklearn.metrics.roc_curve(
        labels[kept] == positive, toward, drop_intermediate=False
    )
    negatives = (labels[kept] != positive).sum()
    expected = np.interp(np.floor(CURVE_SHARES * negatives + 1e-6) / negatives, false, true)
    figures = certainty(scores, labels, weights, positive)
    shown = np.isfinite(figures["roc"])
    np.testing.assert_allclose(figures["roc"][shown], expected[shown], atol=1e-5)
    assert [float(figures[f"tpr_at_1e-{k}"]) for k in (2, 1)] == [
        pytest.approx(float(figures["roc"][place]), nan_ok=True) for place in (8, 16)
    ]
    recall = np.asarray(figures["recall"])
    mistakes = (1 - recall) * np.bincount(labels[kept])
    # as many rows are named positive as are, so that every mistake has a counterpart, but for equal scores
    assert abs(mistakes[0] - mistakes[1]) <= (1e-2 if decimals == 9 else 150)
    assert 0.8 < recall.mean() < 1


def test_a_rate_is_refused_where_fewer_than_ten_rows_are_beyond_its_threshold():
    labels = np.int32(np.arange(20_000) % 2)  # at .001 ten of 10,000 rows
    scores = np.float32(np.eye(2)[labels])
    all_rows = np.ones(len(labels), np.float32)
    one_less = np.where(np.arange(len(labels)) == 0, np.float32(0), all_rows)
    for weights, known in ((all_rows, True), (one_less, False)):
        rates = certainty(scores, labels, weights)
        assert np.isfinite(rates["tpr_at_1e-3"]) == np.isfinite(rates["roc"][0]) == known
        assert rates["tpr_at_1e-2"] == rates["tpr_at_1e-1"] == 1
        assert np.isfinite(rates["roc"][1:]).all()


@pytest.mark.parametrize("decimals", [9, 1])
def test_of_more_classes_the_most_certain_rows_are_counted(decimals):
    scores, labels, weights = drawn(4, decimals)
    scores = scores * np.float32([[1], [3]] * (ROWS // 2))  # a row's scale is its certainty
    scores[::50] = np.nan
    figures = certainty(scores, labels, weights)
    kept = weights > 0
    scores, labels = scores[kept], labels[kept]
    ordered = np.sort(scores, axis=1)
    apart = np.nan_to_num(ordered[:, -1] - ordered[:, -2], nan=-1)
    right = ~np.isnan(scores[:, 0]) & (np.nan_to_num(scores).argmax(axis=1) == labels)
    counts = np.array([(apart >= level).sum() for level in np.unique(apart)])
    hits = np.array([right[apart >= level].sum() for level in np.unique(apart)])
    enough = (counts >= 100) & (hits >= 0.99 * counts - 1e-9)
    assert float(figures["read_99"]) == pytest.approx(counts[enough].max(initial=0) / len(labels))
    assert figures["read_99"] > 0.1
    places = np.floor(CURVE_SHARES * len(labels) + 1e-6)
    precision = np.interp(places, [0, *counts[::-1]], [0, *hits[::-1]]) / np.maximum(places, 1)
    few, stored = places < 10, figures["precision"]
    np.testing.assert_allclose(stored[~few], precision[~few], atol=1e-5)
    assert np.isnan(stored[few]).all()
    recalls = [right[labels == c].mean() for c in range(4)]
    np.testing.assert_allclose(figures["recall"], recalls, atol=1e-6)
    few = weights * (np.cumsum(weights) < 100)
    assert np.isnan(certainty(*drawn(4, decimals)[:2], few)["read_99"])
