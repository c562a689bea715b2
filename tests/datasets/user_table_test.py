"""A user's own table: formats, types, missing values and categories."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.preprocessing import OneHotEncoder

from tests.datasets.tables import FRAME, csv, made, names, refused, write
from vfljax.datasets import user_table
from vfljax.datasets.core import checksum
from vfljax.datasets.user_table import from_frame, table


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


def test_an_npz_of_x_and_y_is_a_table_too(tmp_path):
    x = np.arange(12, dtype=np.float16).reshape(4, 3)
    np.savez(tmp_path / "a.npz", x=x, y=np.array([3, 5, 3, 5], ">i2"))
    data = table(str(tmp_path / "a.npz"), label="y")
    np.testing.assert_array_equal(data.features, x.astype(np.float32))
    assert [c.name for c in data.columns] == ["x0", "x1", "x2"]
    assert data.labels.tolist() == [0, 1, 0, 1]


def test_numbers_categories_and_their_columns():
    data = from_frame(FRAME, label="sick", categorical="kind")
    assert names(data) == [
        ("age", "number", ""),
        ("visits", "number", ""),
        ("member", "number", ""),
        ("city", "category", "Aix"),
        ("city", "category", "Graz"),
        ("city", "category", "Ulm, old"),
        ("city", "category", "(missing)"),
        ("kind", "category", "1"),
        ("kind", "category", "2"),
        ("kind", "category", "10"),
    ]
    np.testing.assert_array_equal(data.features[0], [31.5, 3, 1, 0, 1, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(data.features[1], [np.nan, 10, 0, 0, 0, 0, 1, 0, 0, 1])
    assert data.features.dtype == np.float32
    assert data.labels.dtype == np.int32


def test_one_hot_columns_are_scikit_learn_s_and_pandas_s():
    rng = np.random.default_rng(0)
    frame = made(a=rng.choice(list("zyxé"), 200), b=rng.integers(-3, 12, 200))
    data = from_frame(frame, label="y", categorical=("a", "b"))
    encoder = OneHotEncoder(sparse_output=False).fit(frame[["a", "b"]])
    np.testing.assert_array_equal(data.features, encoder.transform(frame[["a", "b"]]))
    np.testing.assert_array_equal(
        data.features, pd.get_dummies(frame[["a", "b"]], columns=["a", "b"])
    )


def test_decimals_and_dictionaries_of_a_parquet_file():
    arrow = pa.table(
        {
            "d": [decimal.Decimal("1.25"), None, decimal.Decimal("7.50")],
            "w": pa.array(["u", "v", "u"]).dictionary_encode(),
            "y": [True, False, True],
            "__index_level_0__": [5, 6, 7],
        }
    )
    data = from_frame(arrow, label="y")
    np.testing.assert_array_equal(data.features, [[1.25, 1, 0], [np.nan, 0, 1], [7.5, 1, 0]])
    assert data.classes == ("False", "True")
    assert "__index_level_0__: a data frame's index, left out." in data.notes


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_delimiters_quotes_and_byte_order_marks(tmp_path, delimiter, start):
    rows = [("a;b,c", "y"), ('say ""hi"", you', "0"), ("two\nlines", "1"), ("=cmd()", "0")]
    text = "\r\n".join(delimiter.join(f'"{v}"' for v in row) for row in rows)
    data = csv(tmp_path, start + text.encode())
    assert [c.value for c in data.columns] == ["=cmd()", 'say "hi", you', "two\nlines"]
    assert {c.name for c in data.columns} == {"a;b,c"}
    again = csv(tmp_path, text, delimiter="tab" if delimiter == "\t" else delimiter)
    assert checksum(again) == checksum(data)


def test_kinds_are_overridden_by_name_and_glob():
    frame = made(c1=[1, 2, 3, 1], c2=[4, 5, 6, 4], n=[1.5, 2.5, 3.5, 0.5])
    data = from_frame(frame, label="y", categorical=("c*",), numeric=("n",))
    assert [c.kind for c in data.columns] == ["category"] * 6 + ["number"]
    refused(
        r"column 'a' has 'high' in row 3, which is no number",
        made(a=["1", "", "high"]),
        numeric="a",
    )
    refused(
        "column 'a' is in categorical= and in numeric=",
        made(a=[1, 2]),
        numeric="a",
        categorical="*",
    )
    refused(
        "the frame: unknown column in drop= 'ag': did you mean 'age'",
        made(age=[1, 2]),
        drop="ag",
    )


def test_rare_categories_are_pooled_by_their_count():
    values = [f"r{k // 2:03}" for k in range(600)]
    frame = made(a=["r299", *values, None], n=range(602))
    data = from_frame(frame, label="y", max_categories=4)
    assert names(data)[:4] == [
        ("a", "category", v) for v in ("r000", "r299", "(other)", "(missing)")
    ]
    assert data.features[:, :4].sum(0).tolist() == [2, 3, 596, 1]
    assert (
        "a (298) has rare values that became one, (other): max_categories= keeps more."
        in data.notes
    )
    assert from_frame(frame, label="y", max_categories=301).features.shape == (602, 302)
    assert from_frame(frame, label="y", encoding="codes").columns[0].vocabulary == 301
    test = made(a=["r000", "r001", "new", None], n=range(4))
    tested = from_frame(frame, label="y", max_categories=4, test=test)
    np.testing.assert_array_equal(tested.features[602:, :4], np.eye(4)[[0, 2, 2, 3]])
    refused("max_categories=0: give an integer from 1", frame, max_categories=0)
    assert from_frame(frame, label="y", max_categories=1).columns[0].value == "(other)"


def test_days_of_a_test_part_are_since_the_training_file_s_first():
    frame, held = made(a=["1.2.2020", "3.2.2020"]), made(a=["5.1.2020", "1.2.2020"])
    data = from_frame(frame, label="y", test=held)
    assert data.features[:, 0].tolist() == [0, 2, -27, 0]
    assert "dates or times, taken as days since the first: a (2020-02-01, %d.%m.%Y)." in data.notes
    refused("'soon' in row 2, which is no date as", frame, test=made(a=["5.1.2020", "soon"]))


def test_a_point_is_no_decimal_where_commas_are():
    refused("give decimal='.'", made(a=["1.5", "2.5", "3.5"]), decimal=",")
    data = from_frame(made(a=["1.500", "2", "3,5"]), label="y", decimal=",", thousands=".")
    assert data.features[:, 0].tolist() == [1500, 2, 3.5]
    wrong = from_frame(made(a=["1,5", "u", "v"]), label="y", thousands=",")  # no group of three
    assert [c.value for c in wrong.columns] == ["1,5", "u", "v"]
    for option, value, said in (
        ("decimal", ";", "unknown decimal ';': choose from ., ,"),
        ("thousands", ";", "unknown thousands ';': choose from"),
        ("percent", 1, "percent=1: give True or False"),
        ("date_format", 1, "date_format=1: give a text"),
        ("date_format", "dmy", "no column of dates for date_format='dmy': correct it"),
    ):
        refused(said, made(a=[1, 2]), **{"decimal": ".", option: value})
    refused("thousands=',' is also decimal=", made(a=[1, 2]), thousands=",", decimal=",")


def test_what_would_not_fit_is_refused_before_it_is_made(monkeypatch):
    frame = made(a=list("uvwx"), b=[1, 2, 3, 4])
    monkeypatch.setattr(user_table, "MAX_BYTES", 4 * 4 * 5)
    assert from_frame(frame, label="y").features.shape == (4, 5)
    monkeypatch.setattr(user_table, "MAX_BYTES", 4 * 4 * 5 - 1)
    refused("4 rows of 5 columns take 80 bytes, more than 79: choose encoding='codes'", frame)
    assert from_frame(frame, label="y", encoding="codes").features.shape == (4, 2)
