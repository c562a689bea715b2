"""Labels that are numbers: how a table's column is read, and how rows are drawn by tenths."""

import numpy as np
import pandas as pd
import pytest

from tests.datasets.refusals import refused
from vfljax.datasets import load, prepared
from vfljax.datasets.core import Dataset, PartyColumns, clipped
from vfljax.datasets.label_permutation import equal_scores, permute_labels
from vfljax.datasets.splits import split_rows
from vfljax.datasets.strata import class_counts, strata, stratified
from vfljax.datasets.table import from_frame
from vfljax.errors import UserError
from vfljax.sweep.known import split_arrays
from vfljax.types import Input

AMOUNTS = pd.DataFrame({"a": range(6), "y": ["1.5", "-2", "1e3", "0", "0.25", "7"]})


def test_a_label_of_numbers_is_kept_as_it_is():
    data = from_frame(AMOUNTS, label="y", task="regression")
    assert (data.num_classes, data.classes, data.labels.dtype) == (1, (), np.float32)
    np.testing.assert_array_equal(data.labels, np.float32([1.5, -2, 1000, 0, 0.25, 7]))
    assert "of numbers from -2 to 1000" in data.notes[0]
    assert from_frame(AMOUNTS.assign(y=range(6)), label="y").num_classes == 6
    bounded = clipped(data, (0.0, 10.0))
    (label,) = [source for source in bounded.sources if source.read_as == "label"]
    assert label.note == "of numbers, clipped to 0 to 10"
    assert not [note for note in bounded.notes if "1000" in note]  # it would tell the largest label


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (["1.5", "high", "2"], {"task": "regression"}, "'high', which is no finite number"),
        (["1.5", "1e39", "2"], {"task": "regression"}, "which is no finite number"),
        (["1.5", "1.5", "1.5"], {"task": "regression"}, "at least two numbers are needed"),
        (
            ["1700000001", "1700000002", "1700000009"],
            {"task": "regression"},
            "too little for float32",
        ),
        (["1e-42", "2e-42", "3e-42"], {"task": "regression"}, "too little for float32"),
        (["1.5", "0.5", "2"], {"task": "regression", "bins": 2}, "bins=2 is of classes"),
        (["1.5", "0.5", "2"], {"task": "numbers"}, "unknown task 'numbers'"),
        (["1.5", "0.5", "2"], {}, "give task=regression to keep the numbers, or bins=2"),
    ],
)
def test_what_is_no_label_of_numbers_is_refused(y, options, message):
    refused(from_frame, pd.DataFrame({"a": range(3), "y": y}), label="y", **options, match=message)


def test_classes_are_their_own_strata_and_numbers_have_their_tenths():
    classes = np.int32([2, 0, 1, 2])
    assert strata(classes) is classes
    labels = np.random.default_rng(0).lognormal(size=1000).astype(np.float32)
    found = strata(labels)
    assert np.bincount(found).tolist() == [100] * 10
    assert all(labels[found < k].max() < labels[found >= k].min() for k in range(1, 10))
    many = np.float32([0] * 70 + [*range(1, 31)])  # most tenths hold zeros alone
    assert sorted(np.bincount(strata(many))) == [10, 10, 10, 70]
    data = load("diabetes", "", {})
    assert class_counts(data, 442) == [442]
    assert stratified(data).classes[0].startswith("25 to ")


def test_parts_and_known_labels_have_the_tenths_in_proportion():
    data = load("diabetes", "", {})
    split = split_rows(data, 0, 0.6, 0.2, 0.2)
    assert sorted(np.concatenate(split[:3])) == list(range(442))
    whole = strata(data.labels)
    for part in split[:3]:
        counts = np.bincount(whole[part], minlength=10)
        assert np.abs(counts - len(part) / 10).max() <= 2
    arrays = split_arrays(data.labels, [split], draws=2)
    assert arrays["labels"].dtype == np.float32
    for order in arrays["known_order"]:
        known = whole[split.train[order[:40]]]
        assert np.bincount(known, minlength=10).tolist() == [4] * 10


def test_numbers_are_prepared_and_read_back(tmp_path):
    data = load("diabetes", "", {})
    again = prepared.write(data, tmp_path / "kept")
    np.testing.assert_array_equal(again.labels, data.labels)
    assert (again.num_classes, again.labels.dtype) == (1, np.float32)
    prepared.verify(tmp_path / "kept")


def test_labels_that_are_too_rare_to_be_in_all_parts_are_refused_by_their_range():
    labels = np.float32([0] * 199 + [7.5])
    data = load("diabetes", "", {})
    data = data._replace(features=data.features[:200], labels=labels)
    with pytest.raises(UserError, match=r"data: labels from 7\.5 to 7\.5 has 1 rows"):
        split_rows(data, 0, 0.6, 0.2, 0.2)


def test_rows_are_grouped_by_the_numbers_that_columns_predict():
    """Labels that are permuted within groups are as well predicted, and only by that."""
    rng = np.random.default_rng(2)
    mine, hidden = rng.normal(size=(2, 2000, 1)).astype(np.float32)
    labels = (mine + hidden)[:, 0]
    data = Dataset("sum", np.hstack([mine, hidden]), labels, 1)
    columns = PartyColumns(mine, Input("table", (1,)))
    groups = equal_scores(data, [columns], 10)
    assert np.bincount(groups).tolist() == [200] * 10
    again = permute_labels(data, 1.0, groups).labels
    by_mine, by_hidden = (abs(np.corrcoef(again, x[:, 0])[0, 1]) for x in (mine, hidden))
    assert by_mine == pytest.approx(np.corrcoef(labels, mine[:, 0])[0, 1], abs=0.05)
    assert by_hidden < 0.1
