"""Labels permuted over a share of the rows, and what that leaves to attackers."""

import numpy as np
import pytest

from tests.sweeps import tiny, train
from vfljax import datasets
from vfljax.datasets.core import Dataset
from vfljax.datasets.label_permutation import permute_labels
from vfljax.sweep.grid import experiment_of, parse
from vfljax.sweep.plan import make_plan

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
        permute_labels(distinct, share).labels != np.arange(ROWS) for share in (0.2, 0.6)
    )
    assert np.mean(large[small]) > 0.98  # a permutation leaves about one row in its place
    assert small.sum() == pytest.approx(0.2 * ROWS, abs=5)


def test_a_published_test_part_keeps_its_classes():
    test = np.arange(ROWS) < 500
    labels = permute_labels(DATA._replace(test=test), 1.0).labels
    for part in (test, ~test):
        np.testing.assert_array_equal(np.bincount(labels[part]), np.bincount(LABELS[part]))


def test_every_plan_of_a_config_has_the_permuted_labels_and_the_default_those_of_the_set():
    digits = datasets.load("digits", "", {})
    default, plan = (
        make_plan(parse(tiny(**changes))) for changes in ({}, {"data.permute_labels": 1.0})
    )
    np.testing.assert_array_equal(default.dataset.labels, digits.labels)
    expected = permute_labels(digits, 1.0).labels
    np.testing.assert_array_equal(plan.dataset.labels, expected)
    np.testing.assert_array_equal(np.asarray(plan.table.labels), expected)
    assert np.mean(expected == digits.labels) < 0.15


def test_where_all_labels_are_permuted_only_the_federation_tells_them(tmp_path):
    changes = {
        "seeds": 1,
        "grid": {"undefended": {}},
        "attacks": {"direct": {"rule": "first_negative"}, "mean": {"known": 40}},
        "federations": ("no_split",),
        "training.epochs": 1,
        "data.permute_labels": 1.0,
    }
    sweep = train(tmp_path, tiny(**changes))
    assert experiment_of(sweep).data.permute_labels == 1
    by_attack = {row["label"]: row for row in sweep.attacks.to_pylist()}
    assert by_attack["direct/first_negative"]["success"] == 1
    # balanced top-1 of ten classes on 280 rows: .1, give or take three times .018
    assert all(away["leak"] < 0.1 + 0.054 for away in sweep.local_only.to_pylist())
    (result,) = sweep.results.to_pylist()
    assert result["test_accuracy"] < 0.25
