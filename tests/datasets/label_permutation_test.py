"""Labels permuted over a share of the rows."""

import numpy as np
import pytest

from tests.sweeps import plan_of, tiny
from vfljax import datasets
from vfljax.datasets.core import Dataset
from vfljax.datasets.label_permutation import permute_labels

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


def test_a_plan_has_the_permuted_labels_only_if_the_config_asks_for_them():
    digits = datasets.load("digits", "", {})
    default, plan = (plan_of(tiny(**changes)) for changes in ({}, {"data.permute_labels": 1.0}))
    np.testing.assert_array_equal(default.dataset.labels, digits.labels)
    expected = permute_labels(digits, 1.0).labels
    np.testing.assert_array_equal(plan.dataset.labels, expected)
    np.testing.assert_array_equal(np.asarray(plan.table.labels), expected)
