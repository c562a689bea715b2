"""A user's own table: files and frames, published test parts, groups, and what the records say."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.datasets import refusals
from tests.datasets.tables import FRAME, made, refused, summary, write
from vfljax.datasets import frames, load, table
from vfljax.datasets.core import SourceColumn, checksum
from vfljax.datasets.splits import split_rows
from vfljax.datasets.table import from_frame
from vfljax.errors import UserError

TRAIN = made(n=[1.5, 2.5, 3.5, 4.5], c=["u", "v", "u", "v"])
CSV = b"a,b,y\n1,u,0\n2,v,1\n"


@pytest.mark.parametrize("encoding", ["onehot", "codes"])
def test_every_format_of_the_same_content_is_the_same_data_set(tmp_path, encoding):
    options = {"label": "sick", "categorical": ("kind",), "encoding": encoding}
    frame = from_frame(FRAME, **options)
    assert checksum(from_frame(pa.Table.from_pandas(FRAME), **options)) == checksum(frame)
    for suffix in (".csv", ".csv.bz2", ".tsv", ".txt", ".parquet", ".npz"):
        read = table.table(write(tmp_path, FRAME, suffix), **options)
        assert checksum(read) == checksum(frame), suffix
        assert read.columns == frame.columns
        assert read.classes == frame.classes == ("no", "yes")
        assert read.sources == frame.sources


def test_the_one_file_of_an_archive_is_read_whatever_its_name_says(tmp_path):
    content = FRAME.to_csv(index=False).encode()
    apple = b"\0\5\x16\7"  # attributes, which macOS adds
    with zipfile.ZipFile(tmp_path / "mac.zip", "w") as archive:
        archive.writestr("t/customers.csv", content)
        archive.writestr("__MACOSX/t/._customers.csv", apple)
        archive.writestr("t/Thumbs.db", apple)
    for name, mode in (("t.tgz", "w:gz"), ("t.tar", "w"), ("t.csv", "w:xz")):
        with tarfile.open(tmp_path / name, mode) as archive:
            for member, data in (("./._customers.csv", apple), ("./customers.csv", content)):
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    (tmp_path / "t.csv.gz.zip").write_bytes((tmp_path / "mac.zip").read_bytes())
    (tmp_path / "plain.csv.gz").write_bytes(content)
    for suffix in (".xls", ".xlsx", ".parquet", ".npz"):
        (tmp_path / f"export{suffix}").write_bytes(content)
    FRAME.to_parquet(tmp_path / "t.feather", index=False)
    with pa.output_stream(tmp_path / "t.zst", compression="zstd") as stream:
        stream.write(content)
    expected = checksum(from_frame(FRAME, label="sick"))
    for path in sorted(tmp_path.iterdir()):
        assert checksum(table.table(str(path), label="sick")) == expected, path.name
    with zipfile.ZipFile(tmp_path / "mac.zip", "a") as archive:
        archive.writestr("more.csv", content)
    line = "is a zip archive of 2 files .t/customers.csv, more.csv.: unpack it"
    refusals.refused(table.table, str(tmp_path / "mac.zip"), label="sick", match=line)


def test_a_folder_of_parquet_parts_is_one_table(tmp_path):
    for k in range(2):
        part = FRAME[6 * k : 6 * k + 6]
        part.to_parquet(tmp_path / f"part-{k:05}.snappy.parquet", index=False)
    for name in ("_SUCCESS", ".part-00000.snappy.parquet.crc"):
        (tmp_path / name).write_bytes(b"")
    read = table.table(str(tmp_path), label="sick")
    assert checksum(read) == checksum(from_frame(FRAME, label="sick"))
    some = table.table(str(tmp_path), label="sick", options={"columns": ["sick", "age"]})
    assert some.features.shape == (12, 1)


def test_a_code_keeps_its_zeros_although_words_come_late_in_a_long_file(tmp_path):
    """pandas reads a long file in pieces, and would make numbers of a piece that holds only digits."""
    rows = 270_000
    (tmp_path / "own.csv").write_text("c,y\n" + "007,0\n" * rows + "x7,1\n")
    data = table.table(str(tmp_path / "own.csv"), label="y", categorical="c")
    assert [column.value for column in data.columns] == ["007", "x7"]


def test_what_is_no_readable_file_is_named(tmp_path):
    def fault(message, path):
        refusals.refused(table.table, str(path), label="y", match=message)

    fault("data.dir is empty: give the table's file", "")
    fault("nowhere.csv is missing", tmp_path / "nowhere.csv")
    (tmp_path / "own.csv").write_bytes(CSV)
    fault(r"is a folder: give one file of it \(own.csv\)", tmp_path)
    with pytest.raises(UserError, match="options.label is needed"):
        load("table", str(tmp_path / "own.csv"), {})
    (tmp_path / "own.xlsx").write_bytes(b"PK")
    fault("not read .pandas.read_excel reads it.: give that frame to", tmp_path / "own.xlsx")


def test_a_small_file_of_a_large_table_is_refused_before_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "MAX_BYTES", 12 * 6 * 8 - 1)
    monkeypatch.setattr(pyarrow.parquet.ParquetDataset, "read", None)
    path = write(tmp_path, FRAME, ".parquet")
    refusals.refused(
        table.table, path, label="sick", match="take 576 bytes, more than 575: give few"
    )


def test_features_that_would_not_fit_are_refused_before_they_are_made(monkeypatch):
    frame = made(a=list("uvwx"), b=[1, 2, 3, 4])
    monkeypatch.setattr(table, "MAX_BYTES", 4 * 4 * 5)
    assert from_frame(frame, label="y").features.shape == (4, 5)
    monkeypatch.setattr(table, "MAX_BYTES", 4 * 4 * 5 - 1)
    refused("4 rows of 5 columns take 80 bytes, more than 79: choose encoding='codes'", frame)
    assert from_frame(frame, label="y", encoding="codes").features.shape == (4, 2)


def test_options_of_pandas_may_be_json(tmp_path):
    (tmp_path / "own.csv").write_text("a;y\n0,5;u\n1,5;v\n" * 2)
    options = {"sep": ";", "decimal": ",", "nrows": 2}
    for given in (options, json.dumps(options)):
        data = load("table", str(tmp_path / "own.csv"), {"label": "y", "options": given})
        assert data.features.tolist() == [[0.5], [1.5]]


def test_columns_of_every_type_of_pandas_are_numbers_and_categories_as_pandas_says():
    plain = pd.DataFrame(
        {"x": [0.5, np.nan, 2.0, 3.0], "k": [1.0, 2.0, np.nan, 4.0], "c": ["u", "v", "u", None]}
    )
    expected = pd.get_dummies(plain.fillna({"c": "(missing)"}), columns=["c"], dtype=float)
    expected = expected[["x", "k", "c_u", "c_v", "c_(missing)"]].to_numpy(np.float32)
    y = [0, 1, 0, 1]
    frames = {
        "numpy": plain,
        "objects": plain.astype(object),
        "nullable": plain.astype({"x": "Float64", "k": "Int64", "c": "string"}),
        "Arrow": plain.astype(
            {"x": "double[pyarrow]", "k": "int32[pyarrow]", "c": "string[pyarrow]"}
        ),
        "categories": plain.astype({"c": "category"}),
        "big-endian": plain.astype({"x": ">f8", "k": ">f4"}),
        "sparse": plain.astype({"x": pd.SparseDtype(float), "k": pd.SparseDtype(float)}),
        "texts of numbers": plain.astype({"x": "string"}),
    }
    for name, frame in frames.items():
        kinds = frame.dtypes.to_dict()
        data = from_frame(frame.assign(y=y), label="y", numeric="x")
        np.testing.assert_array_equal(data.features, expected, name)
        assert frame.dtypes.to_dict() == kinds  # the user's frame stays as it is
    dummies = pd.get_dummies(plain[["c"]], sparse=True).assign(y=y)
    assert summary(from_frame(dummies, label="y")) == "c_u=1 0 1 0; c_v=0 1 0 0; classes 0 1"


def test_intervals_are_categories_in_order(tmp_path):
    numbers = np.linspace(0, 119, 40).round()
    band = pd.Series(pd.cut(numbers, [-np.inf, 5, 30, 100, np.inf]))
    label = pd.qcut(numbers, 3, precision=0)
    frame = pd.DataFrame({"band": band.mask(numbers == numbers[3]), "x": range(40), "y": label})
    data = from_frame(frame, label="y")
    bands = ["(-inf, 5.0]", "(5.0, 30.0]", "(30.0, 100.0]", "(100.0, inf]"]
    assert data.classes == ("(-1.0, 40.0]", "(40.0, 79.0]", "(79.0, 119.0]")
    assert data.labels.tolist() == sorted(data.labels)
    assert [column.value for column in data.columns] == [*bands, "(missing)", ""]
    assert from_frame(frame, label="y", encoding="codes").features[-1].tolist() == [3, 39]
    pyarrow.parquet.write_table(frames.arrow_of(frame, "the frame"), tmp_path / "t.parquet")
    assert checksum(table.table(str(tmp_path / "t.parquet"), label="y")) == checksum(data)


def test_frames_with_odd_names_or_contents():
    index = pd.CategoricalIndex(["p", "q"], name="patient")
    frame = pd.DataFrame({0: [1.5, 2.5], "a  b ": ["u", "v"], "y": [0, 1]}, index=index)
    data = from_frame(frame, label="y", categorical="a b")
    assert [c.name for c in data.columns] == ["0", "a b", "a b"]
    assert data.notes == ("the frame's index is left out: patient.",)
    refused("the frame: two columns are named 'a b'", frame.rename(columns={0: "a b"}))
    refused("'a' holds values of type Period", made(a=pd.period_range("2020", periods=2)))
    refused("the frame is of type list: give a pandas DataFrame", [1, 2])
    levels = frame.set_axis(pd.MultiIndex.from_product([["m"], ["a", "b", "y"]]), axis=1)
    refused("has column names of 2 levels: make it one level", levels)
    refused("unknown option of a table 'test_file'", frame, test_file="t.csv")


def test_rare_categories_are_pooled_by_their_count():
    values = [f"r{k // 2:03}" for k in range(600)]
    frame = made(a=["r299", *values, None], n=range(602))
    data = from_frame(frame, label="y", max_categories=4)
    assert [c.value for c in data.columns[:4]] == ["r000", "r299", "(other)", "(missing)"]
    assert data.features[:, :4].sum(0).tolist() == [2, 3, 596, 1]
    assert data.sources[1] == SourceColumn("a", "category", missing=1, categories=4, pooled=298)
    assert from_frame(frame, label="y", max_categories=301).features.shape == (602, 302)
    assert from_frame(frame, label="y", encoding="codes").columns[0].vocabulary == 301
    test = made(a=["r000", "r001", "new", None], n=range(4))
    tested = from_frame(frame, label="y", max_categories=4, test=test)
    np.testing.assert_array_equal(tested.features[602:, :4], np.eye(4)[[0, 2, 2, 3]])
    coded = from_frame(frame, label="y", encoding="codes", test=test)
    assert coded.features[602:, 0].tolist() == [0, 1, 300, 300]
    assert from_frame(frame, label="y", max_categories=1).columns[0].value == "(other)"


def test_a_class_is_its_number_however_it_is_spelled_and_the_positive_one_is_one():
    y = ["1", "+1", "1.0", "1e0", "0", "-0", "10"]
    data = from_frame(pd.DataFrame({"a": range(7), "y": y}), label="y")
    assert data.classes == ("0", "1", "10")
    assert data.labels.tolist() == [1, 1, 1, 1, 0, 0, 2]
    frame, test = made(a=[1, 2]), pd.DataFrame({"a": [1, 2], "y": ["1.0", "+0"]})
    assert from_frame(frame, label="y", test=test).labels.tolist() == [0, 1, 1, 0]
    data = from_frame(frame, label="y", positive="0.0")
    assert (data.labels.tolist(), data.classes) == ([1, 0], ("1", "0"))


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
    refused("the test frame row 3, column 'a' has 'z'", frame, test=test, **options)
    refused("is missing in 2 of 2 rows", frame.iloc[1:3], drop_unlabeled=True)


def test_records_say_how_every_column_was_read():
    rows = 40
    frame = made(
        id=range(rows),
        code=[k % 5 for k in range(rows)],
        same=["x"] * rows,
        flat=[7] * rows,
        big=[2**24 + 1, 3, 2] + [1] * (rows - 3),
        gap=[None, *np.linspace(0, 1, rows - 1)],
        member=[True, False] * (rows // 2),
        day=pd.date_range("2020-01-01", periods=rows),
        none=[None] * rows,
        gone=range(rows),
    )
    data = from_frame(frame, label="y", drop="gone", numeric="big")
    assert data.sources == (
        SourceColumn("y", "label", categories=2),
        SourceColumn("id", "number", note="another whole number in every row: drop an identifier"),
        SourceColumn("code", "number", note="5 distinct whole numbers: name codes in categorical="),
        SourceColumn("same", "category", categories=1, note="one value in all rows"),
        SourceColumn("flat", "number", note="one value in all rows"),
        SourceColumn("big", "number", note="whole numbers above 16,777,216 are rounded to float32"),
        SourceColumn("gap", "number", missing=1),
        SourceColumn("member", "boolean"),
        SourceColumn("day", "date", note="days since 2020-01-01"),
        SourceColumn("none", "left out", missing=rows, note="no value"),
        SourceColumn("gone", "left out", note="named in drop="),
    )
    assert data.notes == ("columns without any value, left out: none.",)


def test_a_test_file_is_the_published_test_part_and_looked_for_beside_the_table(
    tmp_path, monkeypatch
):
    held, other = made(n=[9.5, 8.5], c=["v", "u"])[["c", "y", "n"]], made(n=[0, 0], c=["u", "u"])
    (tmp_path / "data").mkdir()
    path = write(tmp_path / "data", TRAIN, ".csv")
    for place, frame in ((tmp_path / "data" / "t.csv", held), (tmp_path / "t.csv", other)):
        frame.to_csv(place, index=False, sep=";")
    held.to_csv(tmp_path / "u.csv", index=False)
    monkeypatch.chdir(tmp_path)
    for name in ("t.csv", "u.csv"):
        data = table.table(path, label="y", test_file=name)
        assert data.test is not None
        assert data.test.tolist() == [False] * 4 + [True] * 2
        np.testing.assert_array_equal(data.features[4:], [[9.5, 0, 1], [8.5, 1, 0]])
        assert "2 of 6 rows are the published test part" in data.notes[0]
    assert checksum(from_frame(TRAIN, label="y", test=held)) == checksum(data)
    assert set(split_rows(data, 0, 0.5, 0.5, 1.0).test) == {4, 5}


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
    split = split_rows(apart, 0, 0.4, 0.2, 1.0)
    assert not set(apart.groups[split.train]) & set(apart.groups[split.validation])


def test_groups_of_long_ids_are_not_joined_beside_an_empty_label(tmp_path):
    rows = [f"{k},{900000000000000001 + k // 2},{k % 2}" for k in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["a,g,y", *rows, "6,900000000000000004,"]))
    data = table.table(str(tmp_path / "t.csv"), label="y", groups="g", drop_unlabeled=True)
    assert data.groups is not None
    assert data.groups.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_category_of_the_test_file_alone_is_none_of_the_columns():
    frame = pd.DataFrame({"b": ["p", "q"], "a": ["u", "v"], "y": [0, 1]})
    test = pd.DataFrame({"b": ["q", "p"], "a": ["u", "w"], "y": [0, 1]})
    assert from_frame(frame, label="y", test=test).features[3].tolist() == [1, 0, 0, 0]


def test_quantiles_of_the_training_file_make_classes_of_a_label_of_numbers():
    y = [3.0, 1.0, 2.5, 2.5, 9.0, np.nan]
    frame = made(a=range(6)).assign(y=y)
    test = pd.DataFrame({"a": range(4), "y": [2.5, 400, 500, 600]})
    data = from_frame(frame, label="y", bins=2, test=test, drop_unlabeled=True)
    # the median of five rows; that of all nine is 3
    assert data.classes == ("at most 2.5", "above 2.5")
    assert data.labels.tolist() == [1, 0, 0, 0, 1, 0, 1, 1, 1]
    by_name = {source.name: source for source in data.sources}
    assert "2.5" in by_name["y"].note
    assert any("2.5" in note for note in data.notes)
    turned = from_frame(frame, label="y", bins=2, drop_unlabeled=True, positive="at most 2.5")
    assert turned.labels.tolist() == [0, 1, 1, 1, 0]
    thirds = np.random.default_rng(0).normal(size=30) + 100  # digits that differ late
    cut = from_frame(pd.DataFrame({"a": range(30), "y": thirds}), label="y", bins=3)
    np.testing.assert_array_equal(cut.labels, np.argsort(np.argsort(thirds)) // 10)
