"""The embedded data sets and the division of columns and rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfljax.datasets import TABLE
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.scaling import statistics
from vfljax.datasets.splits import split_rows
from vfljax.errors import UserError


def test_synthetic_rows_are_the_same_every_time_and_of_two_equal_classes():
    one, again = TABLE["synthetic"](""), TABLE["synthetic"]("")
    assert one.features.shape == (52_000, 32)
    np.testing.assert_array_equal(one.features, again.features)
    assert abs(one.labels.mean() - 0.5) < 0.01
    gap = one.features[one.labels == 1].mean(0) - one.features[one.labels == 0].mean(0)
    np.testing.assert_allclose(gap, 0.3, atol=0.05)
    assert TABLE["synthetic"]("", rows=30, columns=4).features.shape == (30, 4)


@given(seed=st.integers(0, 1000), train=st.floats(0.2, 0.6), rest=st.floats(0.1, 0.2))
def test_parts_are_disjoint_and_stratified(seed, train, rest):
    labels = np.repeat([0, 1], [300, 100])
    made = Dataset("made", np.zeros((400, 1)), labels, 2)
    split = split_rows(made, seed, train, rest, rest)
    rows = np.concatenate(split)
    assert len(rows) == len(set(rows))
    for part in split[:3]:
        assert abs(labels[part].mean() - 0.25) < 0.05


def test_scaling_uses_training_rows_only():
    x = np.concatenate([np.zeros((10, 1)), np.full((10, 1), 100.0)])
    mean, scale = statistics(x, np.arange(10), "standard")
    assert mean == 0
    assert scale == 1  # a constant column is left at 0, not divided by 0


def test_one_class_is_refused():
    with pytest.raises(UserError, match="at least two classes"):
        classes("t", np.ones(5))
