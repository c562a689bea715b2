"""The embedded data sets and the division of columns and rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfljax.datasets import TABLE
from vfljax.datasets.core import Dataset, checksum, classes
from vfljax.datasets.partition import Parties, divide
from vfljax.datasets.scaling import statistics
from vfljax.datasets.splits import split_rows
from vfljax.errors import UserError
from vfljax.federation.training import rows_of
from vfljax.sweep.plan import make_table


def blocks(dataset, parties):
    changes = {"passive": parties, "label_features": False}
    return divide(dataset, Parties(**changes))


def tabled(dataset, parties, splits, *scaling):
    return make_table(blocks(dataset, parties), dataset.labels, splits, *scaling)


def test_digits_are_divided_into_left_and_right_halves():
    digits = TABLE["digits"]("")
    left, right = (block.features for block in blocks(digits, 2))
    assert digits.features.shape == (1797, 8, 8)
    np.testing.assert_array_equal(left, digits.features[:, :, :4])
    np.testing.assert_array_equal(right, digits.features[:, :, 4:])


def test_breast_cancer_is_divided_into_first_and_second_half_with_malignant_as_one():
    table = TABLE["breast_cancer"]("")
    first, second = (block.features for block in blocks(table, 2))
    assert first.shape == second.shape == (569, 15)
    assert table.labels.sum() == 212


def test_synthetic_rows_are_the_same_every_time_and_of_two_equal_classes():
    one, again = TABLE["synthetic"](""), TABLE["synthetic"]("")
    assert one.features.shape == (52_000, 32)
    np.testing.assert_array_equal(one.features, again.features)
    assert abs(one.labels.mean() - 0.5) < 0.01
    gap = one.features[one.labels == 1].mean(0) - one.features[one.labels == 0].mean(0)
    np.testing.assert_allclose(gap, 0.3, atol=0.05)


def test_equal_data_has_an_equal_checksum_and_one_changed_value_another():
    digits = TABLE["digits"]("")
    changed = digits.features.copy()
    changed[5, 3, 3] ^= 1
    assert checksum(digits) == checksum(TABLE["digits"](""))
    assert checksum(digits) != checksum(digits._replace(features=changed))


@given(seed=st.integers(0, 1000), train=st.floats(0.2, 0.6), rest=st.floats(0.1, 0.2))
def test_parts_are_disjoint_and_stratified(seed, train, rest):
    labels = np.repeat([0, 1], [300, 100])
    made = Dataset("made", np.zeros((400, 1)), labels, 2)
    split = split_rows(made, seed, train, rest, rest)
    rows = np.concatenate(split)
    assert len(rows) == len(set(rows))
    for part in split:
        assert abs(labels[part].mean() - 0.25) < 0.05


def test_scaling_uses_training_rows_only():
    x = np.concatenate([np.zeros((10, 1)), np.full((10, 1), 100.0)])
    mean, scale = statistics(x, np.arange(10), "standard")
    assert mean == 0
    assert scale == 1  # a constant column is left at 0, not divided by 0


def test_scaling_may_be_asked_to_use_all_rows():
    digits = TABLE["digits"]("")
    splits = [split_rows(digits, seed, 0.6, 0.2, 0.2) for seed in (0, 1)]
    table = tabled(digits, 1, splits, "standard", "all")
    np.testing.assert_allclose(table.mean[0][0], digits.features.mean(0), rtol=1e-5)
    np.testing.assert_array_equal(table.mean[0][0], table.mean[0][1])
    assert (tabled(digits, 1, splits, "standard").mean[0][0] != table.mean[0][0]).any()


def test_minmax_scaling_puts_every_column_between_zero_and_one():
    x = np.array([[1.0, 7.0, -5.0], [3.0, 7.0, 5.0]])
    mean, scale = statistics(x, np.arange(2), "minmax")
    np.testing.assert_array_equal((x - mean) / scale, [[0, 0, 0], [1, 0, 1]])


def test_range_scaling_puts_training_pixels_between_zero_and_one():
    digits = TABLE["digits"]("")
    split = split_rows(digits, 0, 0.6, 0.2, 0.2)
    table = tabled(digits, 2, [split], "range")
    left, _ = rows_of(table, 0, split.train)
    assert float(left.min()) == 0
    assert float(left.max()) == 1


@pytest.mark.parametrize("labels", [[0, 1.5], [0, -1], [0, float("nan")], [0, 7]])
def test_a_label_that_is_no_integer_class_is_named(labels):
    with pytest.raises(UserError, match=r"row 2 is not an integer class: labels must be 0\.\.2"):
        classes("t", np.array(labels), 3)


def test_one_class_is_refused():
    with pytest.raises(UserError, match="at least two classes"):
        classes("t", np.ones(5))
