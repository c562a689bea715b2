"""A user's own table: labels, classes, roles of columns and what the notes say."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.datasets.tables import FRAME, made, refused, write
from vfljax.datasets.core import checksum
from vfljax.datasets.describing import columns_table
from vfljax.datasets.user_table import from_frame, table


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_class_is_its_number_however_it_is_spelled(tmp_path, suffix):
    y = ["1", "+1", "01", "1.0", "1e0", "0", "-0", "10", "00"]
    data = table(write(tmp_path, pd.DataFrame({"a": range(9), "y": y}), suffix), label="y")
    assert data.classes == ("0", "1", "10")
    assert data.labels.tolist() == [1, 1, 1, 1, 1, 0, 0, 2, 0]
    frame, test = made(a=[1, 2]), pd.DataFrame({"a": [1, 2], "y": ["1.0", "+0"]})
    assert from_frame(frame, label="y", test=test).labels.tolist() == [0, 1, 1, 0]
    assert from_frame(frame, label="y", positive="0.0").labels.tolist() == [1, 0]
    refused(
        "label 'y' has '01' and '1', which are one number, among words",
        pd.DataFrame({"a": range(3), "y": ["1", "01", "none"]}),
    )
    huge = pd.DataFrame({"a": range(3), "y": ["1e99999999999999999999", "1e9999", "1"]})
    refused("not all whole numbers|infinite", huge)


def test_the_positive_class_is_one():
    frame = pd.DataFrame({"a": range(3), "y": ["bad", "good", "bad"]})
    assert from_frame(frame, label="y").labels.tolist() == [0, 1, 0]
    data = from_frame(frame, label="y", positive="bad")
    assert data.labels.tolist() == [1, 0, 1]
    assert data.classes == ("good", "bad")
    refused("unknown class \\(positive=\\) 'bade': did you mean 'bad'", frame, positive="bade")
    three = pd.DataFrame({"a": range(3), "y": list("abc")})
    refused("positive='a': .* has 3 classes, not two", three, positive="a")


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


def test_roles_that_exclude_each_other_are_named():
    frame = made(a=[1, 2])
    refused("the frame: unknown column in label= 'z'", frame, label="z")
    refused("label='y' is also in drop=", frame, drop="*")
    refused("has no column beside 'y' left: drop fewer", frame, drop="a")
    refused("label='y' is also groups=", frame, groups="y")
    refused("unknown encoding 'one-hot': did you mean 'onehot'", frame, encoding="one-hot")
    wide = made(**{f"c{k}": [0, 1] for k in range(1000)})
    assert len(refused("did you mean 'c777'", wide, drop="c77 7")) < 400


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
    for one in (
        "few distinct whole numbers, taken as numbers: code (5), big (4); name those that are codes in "
        "categorical=.",
        "one value in all rows: same (x), flat (7).",
        "another whole number in every row: id; drop an identifier.",
        "whole numbers above 16,777,216 are rounded to float32: big.",
        "2 columns have missing values: gap (1), odd (1); a missing number reads as its training mean, a "
        "missing category as (missing).",
        "read as missing: ? in odd (1); keep_default_na=False reads only empty fields and na_values= so.",
        "same (1) is a category, one-hot.",
    ):
        assert one in notes
    alone = from_frame(frame[["y", "code"]], label="y").notes
    assert alone == (
        "code: 5 distinct whole numbers, taken as a number; name it in categorical= if it is a code.",
    )
    assert from_frame(frame[["y", "code"]], label="y", numeric="code").notes == ()


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
