"""Labels that are numbers: concordance, maps from scores to labels, losses and utility, against libraries."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import somersd
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import r2_score

from tests import harness
from vfljax import metrics, tasks
from vfljax.tasks import regression

concordance, auc = (harness.quick_jit(f) for f in (metrics.concordance, metrics.auc))
ROWS = 31


def drawn(levels, seed, rows=ROWS):
    """Labels with many ties where there are few levels, scores that know a little, and weights."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, levels, rows).astype(np.float32)
    scores = np.round(rng.normal(size=rows) + 2 * labels / levels, seed % 3).astype(np.float32)
    return scores, labels, (rng.random(rows) < 0.7).astype(np.float32)


@pytest.mark.parametrize("levels", [3, 10, 10_000])
def test_the_concordance_is_somers_d(levels):
    """Somers' D counts the pairs of different labels, of which equal scores name no order."""
    for seed in range(4):
        scores, labels, weights = drawn(levels, seed)
        for kept in (np.ones(ROWS, np.float32), weights):
            of = somersd(labels[kept > 0], scores[kept > 0]).statistic
            np.testing.assert_allclose(concordance(scores, labels, kept), (of + 1) / 2, rtol=1e-5)
            turned = concordance(scores, labels, kept, True)
            np.testing.assert_allclose(turned, (1 - of) / 2, rtol=1e-5)


def test_of_two_label_values_the_concordance_is_the_auc_to_the_bit():
    for seed in range(6):
        scores, labels, weights = drawn(2, seed)
        for turned in (False, True):
            expected = auc(scores, np.int32(labels), weights, turned)
            assert concordance(scores, 7 * labels - 3, weights, turned) == expected


def test_a_concordance_has_no_value_without_two_labels_or_with_an_infinite_score():
    scores, labels, weights = drawn(9, 0)
    assert np.isnan(concordance(scores, 0 * labels, weights))
    infinite = np.where(np.arange(ROWS) == 5, np.inf, scores).astype(np.float32)
    assert np.isnan(concordance(infinite, labels, np.ones(ROWS, np.float32)))
    without = np.where(np.arange(ROWS) == 5, 0, 1).astype(np.float32)
    np.testing.assert_array_equal(
        concordance(infinite, labels, without), concordance(scores, labels, without)
    )


def test_the_counts_of_many_rows_are_divided_before_they_are_added():
    """50,000 rows have 1.25e9 pairs, far beyond the whole numbers of float32."""
    rng = np.random.default_rng(0)
    labels = np.exp(2 * rng.normal(size=50_000)).astype(np.float32)
    scores = (np.log(labels) + rng.normal(size=50_000)).astype(np.float32)
    pairs = rng.integers(0, 50_000, (2, 2_000_000))
    named = np.diff(scores[pairs], axis=0) * np.diff(labels[pairs], axis=0) > 0
    assert concordance(scores, labels) == pytest.approx(named.mean(), abs=2e-3)
    assert concordance(labels, labels) == 1


def test_scores_are_mapped_to_labels_by_the_best_maps_of_the_other_half():
    rng = np.random.default_rng(1)
    s = np.round(rng.normal(size=200), 1).astype(np.float32)
    y = (s + 0.5 * rng.normal(size=200)).astype(np.float32) * 100 + 7
    weights = (rng.random(200) < 0.8).astype(np.float32)
    kept = weights > 0
    found = harness.quick_jit(regression.sure)(s[:, None], y, weights)
    half, predicted = np.cumsum(weights) % 2, np.zeros((2, 200))
    for part in (0, 1):
        fit = kept & (half == part)
        steps = IsotonicRegression().fit(s[fit], y[fit])
        # a step function: the value of the next fitted score that is not above
        places = np.array([s[fit][s[fit] <= v].max(initial=s[fit].min()) for v in s])
        predicted[0, half != part] = steps.predict(places)[half != part]
        predicted[1, half != part] = np.polyval(np.polyfit(s[fit], y[fit], 1), s)[half != part]
    for name, of in zip(("r2_monotone", "r2_linear"), predicted, strict=True):
        away = 1 - ((y - of)[kept] ** 2).sum() / ((y[kept] - y[kept].mean()) ** 2).sum()
        np.testing.assert_allclose(found[name], away, rtol=1e-4)
    low, high = np.quantile(y[kept], [0.25, 0.75])
    right = np.abs(predicted[0] - y) <= (high - low) / 10
    np.testing.assert_allclose(found["within_tenth"], right[kept].mean(), atol=1.1 / kept.sum())
    assert np.isnan(np.asarray(found["right"])[~kept]).all()


def test_figures_of_sure_rows_do_not_depend_on_the_labels_unit():
    """Squares of large labels leave float32."""
    rng = np.random.default_rng(5)
    s = rng.normal(size=300).astype(np.float32)
    y = np.round(s + 0.3 * rng.normal(size=300), 1)
    weights = (rng.random(300) < 0.8).astype(np.float32)
    sure = harness.quick_jit(regression.sure)
    found, expected = (sure(s[:, None], np.float32(of), weights) for of in (1e21 * y, y))
    for name in ("r2_monotone", "r2_linear", "within_tenth"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4)


def test_scores_without_a_direction_are_turned_and_rows_without_a_guess_are_in_the_middle():
    scores, labels, weights = drawn(50, 3)
    task, scores = tasks.of(1), scores[:, None]
    leak, names = (harness.quick_jit(f) for f in (task.leak, task.names))
    upright, turned = (names(sign * scores, labels, weights) for sign in (1, -1))
    assert (upright.tolist(), turned.tolist()) == ([0], [1])
    np.testing.assert_allclose(
        leak(-scores, turned, labels, weights), leak(scores, upright, labels, weights)
    )
    np.testing.assert_array_equal(task.named(-scores, turned), scores)
    missing = jnp.full_like(scores, jnp.nan)
    assert leak(missing, upright, labels, weights) == 0.5


def test_the_losses_of_numbers():
    """A large delta is the squared error, and no residual pulls harder than delta."""
    rng = np.random.default_rng(2)
    f, y = rng.normal(size=(2, 20, 1)).astype(np.float32)
    square = regression.loss(f, y)
    np.testing.assert_allclose(square, np.mean((f - y) ** 2), rtol=1e-6)
    np.testing.assert_allclose(regression.loss(f, y, (), 100.0), square, rtol=1e-6)
    away = np.abs(f - y)
    each = np.where(away <= 0.5, away**2, away - 0.25)
    np.testing.assert_allclose(regression.loss(f, y, (), 0.5), each.mean(), rtol=1e-5)


def test_utility_is_scikit_learns_r2_in_the_labels_unit():
    rng = np.random.default_rng(3)
    raw = rng.gamma(2.0, 50.0, 90).astype(np.float32)
    unit, y = raw.std(), (raw - raw.mean()) / raw.std()
    f = (y + 0.3 * rng.normal(size=90)).astype(np.float32)
    found = tasks.of(1).evaluate(lambda part: (jnp.asarray(f)[:, None], jnp.asarray(y)), 1, unit)
    np.testing.assert_allclose(found["test_r2"], r2_score(y, f), rtol=1e-4)
    np.testing.assert_allclose(found["test_mae"], np.abs(f - y).mean() * unit, rtol=1e-4)
    np.testing.assert_allclose(found["test_rmse"], (((f - y) ** 2).mean()) ** 0.5 * unit, rtol=1e-4)
    credit = tasks.of(1).credit(jnp.asarray(f)[:, None], jnp.asarray(y)) / len(y)
    np.testing.assert_allclose(credit, r2_score(y, f), rtol=1e-4)


def test_rows_of_one_frequent_label_bound_no_spread():
    """As with two classes, whose concordance is the AUC, rows of the rarer labels do."""
    counted, of_classes = tasks.of(1).counted_rows, tasks.of(2).counted_rows
    assert counted([1000], 600, 3) == counted([1000], 600, 0) == 600
    for tied in (500, 950, 999):
        assert counted([1000], 600, tied) == of_classes([tied, 1000 - tied], 600, 0)
    assert counted([1000], 600, 1000) == 1
    # what random scores really do
    rng, labels = np.random.default_rng(6), np.maximum(np.arange(400.0) - 380, 0).astype(np.float32)
    found = [float(concordance(np.float32(rng.normal(size=400)), labels)) for _ in range(300)]
    few, every = (tasks.of(1).null_spread(1, counted([400], 400, of)) for of in (381, 1))
    assert every < np.std(found) / 2
    assert few == pytest.approx(np.std(found), rel=0.5)


def test_a_tenth_is_of_the_standard_deviation_where_most_labels_are_equal():
    y = np.where(np.arange(200) % 5 == 0, 100.0 + np.arange(200), 3.0).astype(np.float32)
    exact, blind = (
        harness.quick_jit(regression.sure)(s[:, None], y, np.ones(200, np.float32))
        for s in (y, np.zeros(200, np.float32))
    )
    assert exact["within_tenth"] > 0.95
    # the same mean for all, which lies between the many and the few
    assert blind["within_tenth"] == 0


def test_the_spread_of_random_scores_is_that_of_kendalls_tau():
    rng, rows = np.random.default_rng(4), 40
    labels = np.arange(rows, dtype=np.float32)
    found = [
        float(concordance(rng.permutation(labels), labels, np.ones(rows, np.float32)))
        for _ in range(300)
    ]
    assert np.std(found) == pytest.approx(tasks.of(1).null_spread(1, rows), rel=0.15)
