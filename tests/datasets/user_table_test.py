"""A user's own table: formats, categories, labels, and what the notes say."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.datasets.tables import FRAME, made, refused, write
from vfljax import store
from vfljax.datasets import user_table
from vfljax.datasets.core import checksum
from vfljax.datasets.describing import columns_table
from vfljax.datasets.reading import arrow_of
from vfljax.datasets.user_table import from_frame, table
from vfljax.errors import UserError


@pytest.mark.parametrize("encoding", ["onehot", "codes"])
def test_every_format_of_the_same_content_is_the_same_data_set(tmp_path, encoding):
    options = {"label": "sick", "categorical": ("kind",), "encoding": encoding}
    frame = from_frame(FRAME, **options)
    for suffix in (".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".npz"):
        read = table(write(tmp_path, FRAME, suffix), **options)
        assert checksum(read) == checksum(frame), suffix
        assert read.columns == frame.columns
        assert read.classes == frame.classes == ("no", "yes")
        assert read.notes == frame.notes


def test_rare_categories_are_pooled_by_their_count():
    values = [f"r{k // 2:03}" for k in range(600)]
    frame = made(a=["r299", *values, None], n=range(602))
    data = from_frame(frame, label="y", max_categories=4)
    assert [c.value for c in data.columns[:4]] == ["r000", "r299", "(other)", "(missing)"]
    assert data.features[:, :4].sum(0).tolist() == [2, 3, 596, 1]
    assert "rare values became one, (other): a (298); max_categories= keeps more." in data.notes
    assert from_frame(frame, label="y", max_categories=301).features.shape == (602, 302)
    assert from_frame(frame, label="y", encoding="codes").columns[0].vocabulary == 301
    test = made(a=["r000", "r001", "new", None], n=range(4))
    tested = from_frame(frame, label="y", max_categories=4, test=test)
    np.testing.assert_array_equal(tested.features[602:, :4], np.eye(4)[[0, 2, 2, 3]])
    assert from_frame(frame, label="y", max_categories=1).columns[0].value == "(other)"


def intervals(n=40):
    """A frame with columns of ``pd.cut`` and ``pd.qcut``, one of them not as categories."""
    numbers = np.linspace(0, 119, n).round()
    band = pd.Series(pd.cut(numbers, [-np.inf, 5, 30, 100, np.inf]))
    return pd.DataFrame(
        {
            "band": band.mask(numbers == numbers[3]),
            "plain": pd.arrays.IntervalArray(band),
            "x": np.arange(n),
            "y": pd.qcut(numbers, 3, precision=0),
        }
    )


@pytest.mark.parametrize("encoding", ["onehot", "codes"])
def test_intervals_are_categories_in_order(tmp_path, encoding):
    frame = intervals()
    kinds = frame.dtypes.to_dict()
    data = from_frame(frame, label="y", encoding=encoding)
    bands = ["(-inf, 5.0]", "(5.0, 30.0]", "(30.0, 100.0]", "(100.0, inf]"]
    assert data.classes == ("(-1.0, 40.0]", "(40.0, 79.0]", "(79.0, 119.0]")
    assert data.labels.tolist() == sorted(data.labels)
    if encoding == "onehot":
        values = {name: [c.value for c in data.columns if c.name == name] for name in frame}
        assert values["band"] == [*bands, "(missing)"]
        assert values["plain"] == bands
    else:
        assert data.features[-1].tolist() == [3, 3, 39]
    assert frame.dtypes.to_dict() == kinds  # the user's frame stays as it is
    store.write_table(tmp_path / "t.parquet", arrow_of(frame, "the frame"))
    read = table(str(tmp_path / "t.parquet"), label="y", encoding=encoding)
    assert checksum(read) == checksum(data)
    assert (read.columns, read.classes) == (data.columns, data.classes)
    texts = frame.astype(dict.fromkeys(("plain", "y"), str))
    texts["band"] = frame["band"].astype(object).map(str, na_action="ignore")
    texts.to_csv(tmp_path / "t.csv", index=False)
    read = table(str(tmp_path / "t.csv"), label="y", encoding=encoding)
    assert checksum(read) == checksum(data)


def test_a_parquet_file_of_intervals_is_refused_by_its_column(tmp_path):
    path = tmp_path / "t.parquet"
    intervals()[["plain", "x"]].assign(y=np.resize(["a", "b"], 40)).to_parquet(path)
    with pytest.raises(UserError, match=r"column 'plain' is of type pandas.interval.*astype"):
        table(str(path), label="y")


def test_what_would_not_fit_is_refused_before_it_is_made(monkeypatch):
    frame = made(a=list("uvwx"), b=[1, 2, 3, 4])
    monkeypatch.setattr(user_table, "MAX_BYTES", 4 * 4 * 5)
    assert from_frame(frame, label="y").features.shape == (4, 5)
    monkeypatch.setattr(user_table, "MAX_BYTES", 4 * 4 * 5 - 1)
    refused("4 rows of 5 columns take 80 bytes, more than 79: choose encoding='codes'", frame)
    assert from_frame(frame, label="y", encoding="codes").features.shape == (4, 2)


def test_the_positive_class_is_one():
    frame = pd.DataFrame({"a": range(3), "y": ["bad", "good", "bad"]})
    assert from_frame(frame, label="y").labels.tolist() == [0, 1, 0]
    data = from_frame(frame, label="y", positive="bad")
    assert data.labels.tolist() == [1, 0, 1]
    assert data.classes == ("good", "bad")


def test_a_message_about_a_wide_table_is_short():
    wide = made(**{f"c{k}": [0, 1] for k in range(1000)})
    assert len(refused("did you mean 'c777'", wide, drop="c77 7")) < 400


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_class_is_its_number_however_it_is_spelled(tmp_path, suffix):
    y = ["1", "+1", "01", "1.0", "1e0", "0", "-0", "10", "00"]
    data = table(write(tmp_path, pd.DataFrame({"a": range(9), "y": y}), suffix), label="y")
    assert data.classes == ("0", "1", "10")
    assert data.labels.tolist() == [1, 1, 1, 1, 1, 0, 0, 2, 0]
    frame, test = made(a=[1, 2]), pd.DataFrame({"a": [1, 2], "y": ["1.0", "+0"]})
    assert from_frame(frame, label="y", test=test).labels.tolist() == [0, 1, 1, 0]
    assert from_frame(frame, label="y", positive="0.0").labels.tolist() == [1, 0]


def test_rows_without_a_label_keep_the_numbers_of_the_others():
    frame = pd.DataFrame({"a": ["1", "x", "3", "4"], "y": ["u", "?", None, "v"], "g": [1, 2, 3, 4]})
    test = pd.DataFrame({"a": ["", "5", "z"], "y": ["", "u", "v"], "g": [5, 6, 7]})
    options = {"label": "y", "drop_unlabeled": True, "groups": "g"}
    data = from_frame(frame, test=test[:2], **options)
    assert data.features[:, 0].tolist() == [1, 4, 5]
    assert data.labels.tolist() == [0, 1, 0]
    assert data.groups is not None
    assert data.test is not None
    assert (data.groups.tolist(), data.test.tolist()) == ([0, 1, 2], [False, False, True])
    assert "rows without a label, left out: 3." in data.notes
    refused("the test frame: column 'a' has 'z' in row 3", frame, test=test, **options)
    refused("missing in 1 of 2 rows, first in row 1", frame.iloc[[0, 3]], test=test[:2], groups="g")
    refused("is missing in 2 of 2 rows", frame.iloc[1:3], drop_unlabeled=True)


def test_notes_say_what_a_person_must_know():
    rows = 40
    frame = made(
        id=range(rows),
        code=[k % 5 for k in range(rows)],
        same=["x"] * rows,
        flat=[7] * rows,
        big=[2**24 + 1, 3, 2] + [1] * (rows - 3),
        gap=[None, *np.linspace(0, 1, rows - 1)],
        odd=["?", *map(str, range(rows - 1))],
    )
    notes = from_frame(frame, label="y").notes
    for note in (
        "few distinct whole numbers, taken as numbers: code (5), big (4); name those that are codes in "
        "categorical=.",
        "one value in all rows: same (x), flat (7).",
        "another whole number in every row: id; drop an identifier.",
        "whole numbers above 16,777,216 are rounded to float32: big.",
        "missing values: gap (1), odd (1); a missing number reads as its training mean, a "
        "missing category as (missing).",
        "read as missing: ? in odd (1); keep_default_na=False reads only empty fields and na_values= so.",
        "categories, one-hot: same (1).",
    ):
        assert note in notes
    alone = from_frame(frame[["y", "code", "id"]], label="y", groups="id").notes
    assert alone == (
        "few distinct whole numbers, taken as numbers: code (5); name those that are codes in categorical=.",
    )
    numeric = from_frame(frame[["y", "code", "id"]], label="y", groups="id", numeric="code")
    assert numeric.notes == ()


def test_notes_are_short_single_lines_whatever_the_values_are():
    frame = pd.DataFrame(
        {"a": ["two\nlines" * 9] * 4, "b": range(4), "y": ["no\n", "y\nes" * 20] * 2}
    )
    data = from_frame(frame, label="y")
    assert data.notes[0] == "classes: no is 0, y esy esy esy esy... is 1."
    for line in (*data.notes, *columns_table(data).splitlines()):
        assert len(line.splitlines()) == 1
        assert len(line) < 120


def test_frames_with_odd_names_or_contents():
    frame = pd.DataFrame({0: [1.5, 2.5], "a  b ": ["u", "v"], "y": [0, 1]}, index=[7, 7])
    data = from_frame(frame, label="y", categorical="a b")
    assert [c.name for c in data.columns] == ["0", "a b", "a b"]
    refused("the frame: two columns are named 'a b'", frame.rename(columns={0: "a b"}))
    refused("the frame has 3 columns and no row", frame[:0])
    refused("cannot be read .*give each column values of one type", made(a=[1, "u"]))
    refused("'a' is of type .* neither number nor text", made(a=pd.period_range("2020", periods=2)))
    refused("the frame is of type list: give a pandas DataFrame", [1, 2])
    assert checksum(from_frame(pa.Table.from_pandas(frame[["y"]].assign(n=[1, 2])), label="y"))


def test_the_table_of_columns():
    data = from_frame(FRAME, label="sick", categorical="kind")
    assert columns_table(data).splitlines() == [
        "column  kind      values                             missing",
        "age     number    29.25 to 44                        25.0%",
        "visits  number    2 to 70",
        "member  number    0 to 1",
        "city    category  4: Aix, Graz, Ulm, old, (missing)  25.0%",
        "kind    category  3: 1, 2, 10",
    ]
    codes = from_frame(FRAME, label="sick", encoding="codes")
    assert "city    code    0..3         -" in columns_table(codes).splitlines()
