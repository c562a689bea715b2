"""Rows that are copies of each other: how they are found, and where they go."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfljax.datasets import copies as module
from vfljax.datasets.copies import equal_rows
from vfljax.datasets.splits import split_rows
from vfljax.datasets.table import from_frame


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.0, -0.0, 1.0, np.nan]), st.integers(0, 2), st.integers(0, 1)),
        min_size=1,
        max_size=12,
    ),
    piece=st.sampled_from([1, 40, 1 << 20]),
)
def test_equal_rows_of_one_label_are_a_group(rows, piece):
    features = np.array([row[:2] for row in rows], np.float32)
    labels = np.array([row[2] for row in rows], np.int32)
    names = [("nan" if np.isnan(a) else a + 0.0, b, y) for a, b, y in rows]
    expected = [list(dict.fromkeys(names)).index(name) for name in names]
    with mock.patch.object(module, "PIECE", piece):
        found = equal_rows([*features.T], labels)
    if len(set(names)) == len(names):
        assert found is None
    else:
        assert found is not None
        assert found.tolist() == expected


def test_missing_numbers_of_other_bytes_are_equal():
    features = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)[:, None]
    assert np.isnan(features).all()
    assert equal_rows([*features.T], np.zeros(2, np.int32)) is not None


def repeated(times=10, rows=60):
    """A table of few different rows, each of which comes several times."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(rows, 3)), columns=list("abc"))
    frame["y"] = np.arange(rows) % 2
    return pd.concat([frame] * times, ignore_index=True)


def test_copies_in_a_table_are_counted_and_stay_in_one_part():
    data = from_frame(repeated(), label="y")
    assert any("540 of 600 rows are copies" in note for note in data.notes)
    assert data.groups is not None
    owners = [set(data.groups[part]) for part in split_rows(data, 0, 0.6, 0.2, 0.2)[:3]]
    assert not owners[0] & owners[1] | owners[0] & owners[2] | owners[1] & owners[2]


def test_equal_rows_of_different_people_may_part():
    frame = repeated()
    data = from_frame(frame.assign(row=range(600)), label="y", groups="row")
    assert not any("copies" in note for note in data.notes)
    unequal = from_frame(frame.assign(a=np.random.default_rng(1).normal(size=600)), label="y")
    for part, other in zip(
        split_rows(data, 0, 0.6, 0.2, 0.2), split_rows(unequal, 0, 0.6, 0.2, 0.2)
    ):
        np.testing.assert_array_equal(part, other)


@pytest.mark.parametrize("label", [0, 1])
def test_a_training_row_that_is_a_copy_of_a_test_row_is_not_used(label):
    frame = repeated(times=1)
    test = frame.iloc[:20].assign(y=lambda t: t["y"] if label else 1 - t["y"])
    data = from_frame(frame, label="y", test=test)
    split = split_rows(data, 0, 0.5, 0.3, 1.0)
    used = {*split.train, *split.validation}
    assert bool(used & {*range(20)}) == (not label)
    assert any("20 training rows are copies of test rows" in n for n in data.notes) == bool(label)


def test_equal_rows_of_few_different_values_are_different_people():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({c: random.choice(list("xyz"), 400) for c in ("a", "b", "y")})
    frame["c"] = frame["a"]  # columns that depend on each other have more equal rows
    data = from_frame(frame, label="y")
    assert data.groups is None
    assert any("different people" in note for note in data.notes)
