"""A user's own table: published test parts, groups, parties, and what is fitted on which rows."""

import numpy as np
import pandas as pd

from tests.conftest import real_data
from tests.datasets import refusals
from tests.datasets.tables import made, mixed, refused, write
from tests.sweeps import plan_of, tiny
from vfljax.config import Parties
from vfljax.datasets import load
from vfljax.datasets.core import checksum
from vfljax.datasets.partition import divide
from vfljax.datasets.splits import Split, split_rows
from vfljax.datasets.user_table import from_frame, table
from vfljax.federation.training import rows_of
from vfljax.sweep.plan import make_table

TRAIN = made(n=[1.5, 2.5, 3.5, 4.5], c=["u", "v", "u", "v"])


def test_a_test_file_is_the_published_test_part(tmp_path):
    held = made(n=[9.5, 8.5], c=["v", "u"])[["c", "y", "n"]]
    (tmp_path / "t.csv").write_text(held.to_csv(index=False, sep=";"))
    data = table(write(tmp_path, TRAIN, ".csv"), label="y", test_file="t.csv")
    assert data.test is not None
    assert data.test.tolist() == [False] * 4 + [True] * 2
    np.testing.assert_array_equal(data.features[4:], [[9.5, 0, 1], [8.5, 1, 0]])
    assert checksum(from_frame(TRAIN, label="y", test=held)) == checksum(data)
    assert "2 of 6 rows are the published test part." in data.notes
    split = split_rows(data, 0, 0.5, 0.5, 1.0)
    assert set(split.test) == {4, 5}


def test_the_table_itself_is_no_test_file(tmp_path):
    path = write(tmp_path, TRAIN, ".csv")
    (tmp_path / "linked.csv").symlink_to("own.csv")
    for name in ("own.csv", path, "linked.csv"):
        message = "is the table itself: give another file"
        refusals.refused(table, path, label="y", test_file=name, match=message)
    message = "unknown option of a table 'test_file'"  # a frame has test= in its place
    refusals.refused(from_frame, TRAIN, label="y", test_file="t.csv", match=message)


def test_a_test_file_is_looked_for_beside_the_table_first(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").mkdir()
    path = write(tmp_path / "data", made(a=[1, 2]), ".csv")
    write(tmp_path / "data", made(a=[3, 4]), ".tsv")
    write(tmp_path / "elsewhere", made(a=[5, 6]), ".tsv")
    write(tmp_path / "elsewhere", made(a=[7, 8]), ".txt")
    monkeypatch.chdir(tmp_path / "elsewhere")
    data = table(path, label="y", test_file="own.tsv")
    assert data.features[:, 0].tolist() == [1, 2, 3, 4]
    assert f"the test rows are of {tmp_path / 'data' / 'own.tsv'}." in data.notes
    data = table(path, label="y", test_file="own.txt")
    assert data.features[:, 0].tolist() == [1, 2, 7, 8]
    assert "the test rows are of own.txt." in data.notes


def test_an_unknown_category_may_be_ignored():
    held = made(n=[1.5, 2.5], c=["w", None])
    data = from_frame(TRAIN, label="y", test=held, unknown="ignore")
    np.testing.assert_array_equal(data.features[4:], [[1.5, 0, 0], [2.5, 0, 0]])
    assert any(
        "category that no training row has, which reads as none: c (2)." in n for n in data.notes
    )
    codes = from_frame(TRAIN, label="y", test=held, unknown="ignore", encoding="codes")
    assert codes.columns[1].vocabulary == 3
    assert codes.features[:, 1].tolist() == [0, 1, 0, 1, 2, 2]
    train = TRAIN.assign(c=["u", None, "v", "u"])
    gaps = from_frame(train, label="y", test=held, unknown="ignore", encoding="codes")
    assert gaps.features[:, 1].tolist() == [0, 2, 1, 0, 2, 2]


def test_types_are_the_training_file_s():
    """Words of the training file stay categories although the test file's are all numbers."""
    train = made(c=["1", "2", "x", "2.0"])
    data = from_frame(train, label="y", test=made(c=[2, 1]), categorical="c")
    assert [c.value for c in data.columns] == ["1", "2", "x"]
    np.testing.assert_array_equal(data.features[4:], [[0, 1, 0], [1, 0, 0]])


def test_rows_of_a_group_stay_in_one_part():
    rng = np.random.default_rng(1)
    frame = made(n=rng.normal(size=300)).assign(patient=[f"p{k}" for k in rng.integers(0, 60, 300)])
    data = from_frame(frame, label="y", groups="patient")
    assert [c.name for c in data.columns] == ["n"]
    assert data.groups is not None
    for name, codes in frame.groupby("patient").indices.items():
        assert len(set(data.groups[codes])) == 1, name
    assert len(set(data.groups)) == frame.patient.nunique()
    held = frame.assign(patient=["q1", *frame.patient[1:]])
    refused("has rows in both files", frame, groups="patient", test=held)
    apart = from_frame(frame, label="y", groups="patient", test=frame.assign(patient="q"))
    assert apart.groups is not None
    assert len(apart.groups) == 600
    split = split_rows(apart, 0, 0.4, 0.2, 1.0)
    assert not set(apart.groups[split.train]) & set(apart.groups[split.validation])


# ------------------------------------------------------------- fitted on training rows only


def scaled(data, train, scaling_rows="train"):
    """All rows' features as a network reads them that is trained on ``train``, [R, F]."""
    parts = divide(data, Parties(label_features=False))
    split = Split(*(np.asarray(train, np.int32) for _ in range(3)))
    made = make_table(parts, data.labels, [split], "standard", scaling_rows)
    return np.asarray(rows_of(made, 0, np.arange(len(data.labels)))[0])


def changed(frame, rows):
    """Test rows: other numbers, missing ones, a category no other row has."""
    out = frame.copy()
    out.loc[rows[:4], "n"] = 1e6
    out.loc[rows[4:8], "n"] = np.nan
    out.loc[rows[:8], "m"] = -55.0
    out.loc[rows[:5], "c"] = "new"
    return out


def before_and_after(scaling_rows):
    """A data set and its rows as networks read them, before and after its test rows change."""
    base = from_frame(mixed(), label="y")
    split = split_rows(base, 0, 0.5, 0.25, 0.25)
    other = from_frame(changed(mixed(), split.test), label="y")
    return base, other, split, *(scaled(data, split.train, scaling_rows) for data in (base, other))


def test_test_rows_never_change_a_training_row():
    base, other, split, before, after = before_and_after("train")
    keep = [j for j, column in enumerate(other.columns) if column.value != "new"]
    assert [other.columns[j] for j in keep] == list(base.columns)
    for rows in (split.train, split.validation):
        np.testing.assert_array_equal(before[rows], after[rows][:, keep])
    (new,) = set(range(len(other.columns))) - set(keep)
    assert (other.features[:, new] != 0).any()
    assert (after[:, new] == 0).all()  # no training row has it: it reads 0 everywhere
    missing = np.isnan(other.features[:, 0])
    assert missing.sum() == 4
    assert (after[missing, 0] == 0).all()  # 0 is the training rows' mean


def test_statistics_of_all_rows_do_change_training_rows():
    _, other, split, before, after = before_and_after("all")
    assert (before[split.train, 0] != after[split.train, 0]).all()
    assert (after[:, [c.value == "new" for c in other.columns]] != 0).any()


def test_a_config_names_a_file_and_its_parties_columns(tmp_path):
    write(tmp_path, mixed(), ".csv")
    config = tiny(
        data={
            "name": "table",
            "dir": str(tmp_path / "own.csv"),
            "options": {"label": "y", "categorical": ("c",)},
            "train": 40,
            "validation": 20,
            "test": 20,
        },
        grid={"undefended": {}},
        **{"parties.columns": (("c", "m"), ("*",)), "training.batch_size": 32},
    )
    made = plan_of(config)
    passive, label_party = made.party_columns
    assert [column.name for column in passive.columns] == ["m", "c", "c", "c"]
    assert [column.name for column in label_party.columns] == ["n"]
    x, _ = rows_of(made.table, 0, made.table.train[0])
    np.testing.assert_allclose(x[:, 0].mean(), 0, atol=1e-6)  # a missing number reads as the mean
    np.testing.assert_array_equal(x[:, 1:].sum(1), 1)


# ------------------------------------------------------------- real tables


def test_bank_marketing_is_a_table_of_one_s_own():
    path = real_data("bank_marketing") / "bank-full.csv.gz"
    data = load("table", str(path), {"label": "y", "positive": "yes"})
    frame = pd.read_csv(path, sep=";")
    assert (data.labels == (frame.y == "yes")).all()
    expected = pd.get_dummies(frame.drop(columns="y"), dtype=np.float32)
    names = [f"{c.name}_{c.value}" if c.value else c.name for c in data.columns]
    np.testing.assert_array_equal(data.features, expected[names])
    assert len(names) == expected.shape[1]


def test_a_column_without_any_value_trains_as_zero():
    data = from_frame(made(a=[None, None, None, None], b=[1, 2, 3, 4]), label="y")
    assert np.isnan(data.features[:, 0]).all()
    assert scaled(data, range(4))[:, 0].tolist() == [0] * 4
