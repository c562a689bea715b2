"""Rows that are copies of each other: how they are found, and where they go."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest

from vfljax.datasets import copies
from vfljax.datasets.copies import equal_rows
from vfljax.datasets.splits import split_rows
from vfljax.datasets.table import from_frame


@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_equal_rows_of_one_label_are_a_group(piece):
    random = np.random.default_rng(0)
    a, b = random.choice([0.0, -0.0, 1.0, np.nan], 40), random.integers(0, 3, 40)
    a[:2] = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)  # both are NaN
    labels = random.integers(0, 2, 40).astype(np.int32)
    names = [("nan" if np.isnan(x) else x + 0.0, y, z) for x, y, z in zip(a, b, labels)]
    with mock.patch.object(copies, "PIECE", piece):
        found = equal_rows([a.astype(np.float32), b], labels)
        assert equal_rows([np.arange(40)], labels) is None
    assert found is not None
    assert found.tolist() == [list(dict.fromkeys(names)).index(name) for name in names]


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
    data = from_frame(repeated().assign(row=range(600)), label="y", groups="row")
    assert not any("copies" in note for note in data.notes)
    owners = [{*data.features[part, 0]} for part in split_rows(data, 0, 0.6, 0.2, 0.2)[:3]]
    assert owners[0] & owners[2]


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
