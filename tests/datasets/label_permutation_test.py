"""Labels permuted over a share of the rows."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.sweeps import plan_of, tiny
from vfljax import datasets
from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.label_permutation import equal_scores, permute_labels
from vfljax.datasets.partition import divide
from vfljax.errors import UserError
from vfljax.types import Input

ROWS = 2000
LABELS = np.random.default_rng(0).choice(4, ROWS, p=[0.4, 0.3, 0.2, 0.1]).astype(np.int32)
DATA = Dataset("set", np.zeros((ROWS, 2)), LABELS, 4)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_labels_are_permuted_among_a_share_of_the_rows(share):
    before = LABELS.copy()
    labels = permute_labels(DATA, share).labels
    np.testing.assert_array_equal(LABELS, before)
    np.testing.assert_array_equal(np.bincount(labels), np.bincount(LABELS))
    # of two independent labels a share of sum p^2 is equal
    moved = share * (1 - (0.4**2 + 0.3**2 + 0.2**2 + 0.1**2))
    assert np.mean(labels != LABELS) == pytest.approx(moved, abs=0.03)
    assert labels.dtype == LABELS.dtype
    np.testing.assert_array_equal(permute_labels(DATA, share).labels, labels)


def test_a_larger_share_permutes_the_rows_of_a_smaller_one_too():
    distinct = DATA._replace(labels=np.arange(ROWS))
    small, large = (
        permute_labels(distinct, share).labels != distinct.labels for share in (0.2, 0.6)
    )
    assert np.mean(large[small]) > 0.98  # a permutation leaves about one row in its place
    assert small.sum() == pytest.approx(0.2 * ROWS, abs=5)
    test = np.arange(ROWS) < 500  # a published test part keeps its classes
    labels = permute_labels(DATA._replace(test=test), 1.0).labels
    for part in (test, ~test):
        np.testing.assert_array_equal(np.bincount(labels[part]), np.bincount(LABELS[part]))


def columns_of(x):
    return PartyColumns(x, Input("table", (x.shape[1],)))


def test_labels_are_permuted_within_groups():
    groups = np.random.default_rng(1).integers(0, 9, ROWS)
    labels = permute_labels(DATA, 1.0, groups).labels
    for group in range(9):
        before, after = (np.bincount(of[groups == group]) for of in (LABELS, labels))
        np.testing.assert_array_equal(after, before)
    assert np.mean(labels != LABELS) == pytest.approx(0.7, abs=0.03)
    # a group of one row keeps its label
    np.testing.assert_array_equal(permute_labels(DATA, 1.0, np.arange(ROWS)).labels, LABELS)


def test_equal_scores_keep_what_the_scored_columns_tell_and_no_more():
    rng = np.random.default_rng(2)
    mine, others = rng.normal(size=(2, 6000, 2))
    y = (mine[:, 0] + 2 * others[:, 0] + rng.logistic(size=6000) > 0).astype(np.int32)
    data = Dataset("set", np.zeros((6000, 1)), y, 2)
    groups = equal_scores(data, [columns_of(mine)], 10)
    sizes = np.bincount(groups)
    assert len(sizes) == 20
    for label in (0, 1):  # equally many in each group of a likeliest class
        assert np.ptp(sizes[10 * label : 10 * label + 10]) <= 1
    z = permute_labels(data, 1.0, groups).labels
    kept, lost = (roc_auc_score(z, x[:, 0]) for x in (mine, others))
    assert kept == pytest.approx(roc_auc_score(y, mine[:, 0]), abs=0.02)
    assert roc_auc_score(y, others[:, 0]) > 0.8
    assert lost == pytest.approx(0.5, abs=0.02)
    with pytest.raises(UserError, match="the rarest has 3"):
        equal_scores(data._replace(labels=(np.arange(6000) < 3) * 1), [columns_of(mine)], 10)


def test_a_plan_has_the_permuted_labels_only_if_the_config_asks_for_them():
    digits = datasets.load("digits", "", {})
    default, plan = (plan_of(tiny(**changes)) for changes in ({}, {"data.permute_labels": 1.0}))
    np.testing.assert_array_equal(default.dataset.labels, digits.labels)
    expected = permute_labels(digits, 1.0).labels
    np.testing.assert_array_equal(plan.dataset.labels, expected)
    np.testing.assert_array_equal(np.asarray(plan.table.labels), expected)
    scored = plan_of(tiny(**{"data.permute_labels": 1.0, "data.permute_groups": 3}))
    passive = divide(digits, scored.experiment.parties)[:1]
    expected = permute_labels(digits, 1.0, equal_scores(digits, passive, 3)).labels
    np.testing.assert_array_equal(scored.dataset.labels, expected)
