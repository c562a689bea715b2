"""A user's own table: types, labels, categories, missing values, test files, and what is fitted."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.preprocessing import OneHotEncoder

from tests.conftest import real_data
from tests.sweeps import tiny
from vfljax import lab
from vfljax.config import resolve
from vfljax.datasets import encoding, load
from vfljax.datasets.core import Split, checksum, make_table, split_rows
from vfljax.datasets.dividing import divide
from vfljax.datasets.noting import columns_table
from vfljax.datasets.own import from_arrow, from_frame, table
from vfljax.errors import UserError
from vfljax.training import rows_of

FRAME = pd.DataFrame(
    {
        "age": [31.5, np.nan, 44.0, 29.25] * 3,
        "visits": [3, 10, 2, 70] * 3,
        "member": [True, False, True, True] * 3,
        "city": ["Graz", None, "Aix", "Ulm, old"] * 3,
        "kind": [2, 10, 1, 2] * 3,
        "sick": ["no", "yes", "no", "yes"] * 3,
    }
)


def made(**columns):
    """A frame of a label of two classes and the columns."""
    rows = len(next(iter(columns.values())))
    return pd.DataFrame({"y": [k % 2 for k in range(rows)], **columns})


def refused(message, *args, **options):
    with pytest.raises(UserError, match=message) as error:
        from_frame(*args, **{"label": "y", **options})
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def names(dataset):
    return [(c.name, c.kind, c.value) for c in dataset.columns]


def write(folder, frame, suffix):
    path = folder / f"own{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif suffix == ".npz":
        texts = frame.select_dtypes(["object", "string"]).columns
        np.savez(
            path,
            **{c: frame[c].fillna("").to_numpy(str) if c in texts else frame[c] for c in frame},
        )
    else:
        separator = {".tsv": "\t", ".txt": ";"}.get(suffix, ",")
        frame.to_csv(path, index=False, sep=separator)
    return str(path)


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


def test_codes_are_places_in_the_sorted_values():
    frame = made(a=["b", "a", None, "c"], n=[1.5, 2.5, 3.5, 4.5])
    data = from_frame(frame, label="y", encoding="codes")
    assert [(c.name, c.kind, c.vocabulary) for c in data.columns] == [
        ("a", "code", 4),
        ("n", "number", 0),
    ]
    assert data.features[:, 0].tolist() == [1, 0, 3, 2]


def csv(folder, text, name="own.csv", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return table(str(path), **{"label": "y", **options})


def test_numeric_texts_with_stray_spaces_and_signs_are_numbers(tmp_path):
    data = csv(tmp_path, "a, b ,y\n 1,+2.5, 0\n1e3 ,-.5,1 \n NA ,NaN,0\n,null,1\n")
    assert [c.name for c in data.columns] == ["a", "b"]
    np.testing.assert_array_equal(
        data.features, [[1, 2.5], [1000, -0.5], [np.nan, np.nan], [np.nan, np.nan]]
    )


def test_true_and_false_are_numbers(tmp_path):
    data = csv(tmp_path, "a,y\ntrue,no\nFALSE,yes\n,no\n", positive="no")
    np.testing.assert_array_equal(data.features[:, 0], [1, 0, np.nan])
    assert data.labels.tolist() == [1, 0, 1]


def test_decimals_and_dictionaries_of_a_parquet_file():
    arrow = pa.table(
        {
            "d": [decimal.Decimal("1.25"), None, decimal.Decimal("7.50")],
            "w": pa.array(["u", "v", "u"]).dictionary_encode(),
            "y": [True, False, True],
            "__index_level_0__": [5, 6, 7],
        }
    )
    data = from_arrow(arrow, "t", label="y")
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


def test_too_many_categories_look_like_an_identifier():
    frame = made(id=[f"r{k}" for k in range(300)], n=range(300))
    refused(
        "column 'id' has 300 distinct values, more than max_categories=256, like an identifier",
        frame,
    )
    assert from_frame(frame, label="y", max_categories=300).features.shape == (300, 301)
    assert from_frame(frame, label="y", encoding="codes").columns[0].vocabulary == 300
    assert from_frame(frame, label="y", drop=("id",)).features.shape == (300, 1)
    mixed = made(a=[*map(str, range(300)), "?"])
    refused(r"first word among numbers is '\?' in row 301", mixed)
    refused("max_categories=0: give a whole number", frame, max_categories=0)


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2020-01-02", None]),
        ["2020-01-02", "2021-12-31"],
        ["2020-01-02 10:30:00", ""],
        ["31.12.1999", "1.1.2000"],
        pd.to_timedelta([1, 2], "h"),
    ],
)
def test_dates_are_refused_with_the_remedy_and_may_be_categories(values):
    refused(
        "column 'a' holds dates or times .* name it in drop=, write it as numbers", made(a=values)
    )
    data = from_frame(made(a=values), label="y", categorical="a")
    assert {c.kind for c in data.columns} == {"category"}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2]]),
        pa.array([{"u": 1}, {"u": 2}]),
        pa.array([b"a", b"b"]),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
    ],
)
def test_nested_and_binary_columns_are_refused(column):
    with pytest.raises(UserError, match="column 'a' is of type .* neither number nor text"):
        from_arrow(pa.table({"a": column, "y": [0, 1]}), "t", label="y")


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e400", "1e39"])
def test_what_is_infinite_in_float32_is_named(tmp_path, value):
    with pytest.raises(
        UserError, match="column 'a' has .* in row 2, which is (infinite|too large)"
    ):
        csv(tmp_path, f"a,y\n1,0\n{value},1\n")


def test_missing_values_may_be_refused():
    refused(
        "column 'a' has no value in row 2 and missing='refuse'",
        made(a=[1, None, 3]),
        missing="refuse",
    )
    refused("column 'a' has no value in row 3", made(a=["u", "v", "NA"]), missing="refuse")


def test_what_would_not_fit_is_refused_before_it_is_made(monkeypatch):
    frame = made(a=list("uvwx"), b=[1, 2, 3, 4])
    monkeypatch.setattr(encoding, "MAX_BYTES", 4 * 4 * 5)
    assert from_frame(frame, label="y").features.shape == (4, 5)
    monkeypatch.setattr(encoding, "MAX_BYTES", 4 * 4 * 5 - 1)
    refused("4 rows of 5 columns take 80 bytes, more than 79: choose encoding='codes'", frame)
    assert from_frame(frame, label="y", encoding="codes").features.shape == (4, 2)


def test_a_column_without_any_value_trains_as_zero():
    data = from_frame(made(a=[None, None, None, None], b=[1, 2, 3, 4]), label="y")
    assert np.isnan(data.features[:, 0]).all()
    assert scaled(data, range(4))[:, 0].tolist() == [0] * 4


LABELS = {
    "missing": ([0, 1, None], "label 'y' is missing in row 3"),
    "empty": (["a", "", "b"], "label 'y' is missing in row 2"),
    "one": (["a", "a", "a"], "is 'a' in all rows: at least two classes"),
    "floats": (
        [0.5, 1.5, 2.5],
        "has 3 distinct values that are not all whole numbers, a regression",
    ),
    "infinite": ([0.0, 1.0, np.inf], "holds an infinite number|a regression"),
    "many": (list(range(1001)), "has 1,001 distinct values, more than 1,000 classes"),
}


@pytest.mark.parametrize("case", LABELS)
def test_a_label_that_is_no_class_is_named(case):
    values, message = LABELS[case]
    refused(message, pd.DataFrame({"a": range(len(values)), "y": values}))


def test_classes_are_sorted_numbers_as_numbers():
    data = from_frame(pd.DataFrame({"a": range(4), "y": [10.0, 9.0, -1.0, 9.0]}), label="y")
    assert data.classes == ("-1", "9", "10")
    assert data.labels.tolist() == [2, 1, 0, 1]
    assert data.num_classes == 3
    assert "classes: -1 is 0, 9 is 1, 10 is 2." in data.notes


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
        "label 'y' has '01' and '1', one number, among words",
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


def test_roles_that_exclude_each_other_are_named():
    frame = made(a=[1, 2])
    refused("the frame: unknown column in label= 'z'", frame, label="z")
    refused("label='y' is also in drop=", frame, drop="*")
    refused("no feature column is left beside 'y'", frame, drop="a")
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
        "gap (1) has missing values; a missing number reads as its training mean, a missing category as "
        "(missing).",
        "taken as categories for words among numbers: odd ('?' in row 1); leave a missing number empty.",
        "2 columns are categories: same (1), odd (40), one-hot.",
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
    assert checksum(from_arrow(pa.Table.from_pandas(frame[["y"]].assign(n=[1, 2])), "t", label="y"))


def test_zero_is_one_category_however_it_is_written():
    assert len(from_frame(made(a=[-0.0, 0.0, 1.0]), label="y", categorical="a").columns) == 2
    assert len(from_frame(made(a=["-0.0", "0", "01"]), label="y", categorical="a").columns) == 2


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


# ------------------------------------------------------------- a published test part


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


TESTS = {
    "a column lacks": (made(n=[1.5, 2.5]), "the test frame lacks 'c': give it the columns"),
    "a column more": (made(n=[1, 2], c=["u", "v"], z=[1, 2]), "has also 'z'"),
    "a word": (made(n=["1", "x"], c=["u", "v"]), "column 'n' has 'x' in row 2, which is no number"),
    "a category": (
        made(n=[1, 2], c=["u", "w"]),
        "column 'c' has 'w' in row 2, an unknown category at",
    ),
    "a missing category": (made(n=[1, 2], c=["u", None]), r"column 'c' has '\(missing\)' in row 2"),
    "a label": (made(n=[1, 2], c=["u", "v"]).assign(y=[0, 2]), "label 'y' is '2' in row 2"),
    "no label": (made(n=[1, 2], c=["u", "v"]).assign(y=[0, None]), "label 'y' is missing in row 2"),
}


@pytest.mark.parametrize("case", TESTS)
def test_a_test_part_that_does_not_fit_is_one_line(case):
    held, message = TESTS[case]
    refused(message, TRAIN, test=held)


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


def test_a_word_among_a_test_part_s_numbers_blames_no_option_that_was_not_given():
    test = made(a=["3", "?"])
    said = refused("column 'a' has '\\?' in row 2, which is no number", made(a=[1, 2]), test=test)
    assert "numeric=" not in said
    assert "name it in categorical= (the frame has numbers)" in said
    refused("take the name out of numeric=", made(a=[1, 2]), test=test, numeric="a")


def test_an_unknown_category_may_be_ignored():
    held = made(n=[1.5, 2.5], c=["w", None])
    data = from_frame(TRAIN, label="y", test=held, unknown="ignore")
    np.testing.assert_array_equal(data.features[4:], [[1.5, 0, 0], [2.5, 0, 0]])
    assert any(
        "c (2) has test rows of a category that no training row has" in n for n in data.notes
    )
    codes = from_frame(TRAIN, label="y", test=held, unknown="ignore", encoding="codes")
    assert codes.columns[1].vocabulary == 3
    assert codes.features[:, 1].tolist() == [0, 1, 0, 1, 2, 2]
    gaps = from_frame(
        TRAIN.assign(c=["u", None, "v", "u"]),
        label="y",
        test=held,
        unknown="ignore",
        encoding="codes",
    )
    assert gaps.features[:, 1].tolist() == [0, 2, 1, 0, 2, 2]


def test_types_are_the_training_file_s():
    """Words of the training file stay categories although the test file's are all numbers."""
    train = made(c=["1", "2", "x", "2.0"])
    data = from_frame(train, label="y", test=made(c=[2, 1]))
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
    refused(
        "groups='patient' has no value in row 1",
        frame.assign(patient=[None] * 300),
        groups="patient",
    )


# ------------------------------------------------------------- fitted on training rows only


def scaled(data, train, scaling_rows="train"):
    """All rows' features as a network reads them that is trained on ``train``, [R, F]."""
    parts = divide(data, resolve({"parties": {"passive": 1, "label_features": False}})["parties"])
    split = Split(*(np.asarray(train, np.int32) for _ in range(3)))
    made = make_table(parts, data.labels, [split], "standard", scaling_rows)
    return np.asarray(rows_of(made, 0, np.arange(len(data.labels)))[0])


def mixed(rows=80):
    rng = np.random.default_rng(3)
    frame = made(n=rng.normal(size=rows), m=rng.normal(size=rows), c=rng.choice(list("uvw"), rows))
    frame.loc[frame.index % 7 == 0, "m"] = np.nan
    return frame


def changed(frame, rows):
    """Test rows: other numbers, missing ones, a category no other row has."""
    out = frame.copy()
    out.loc[rows[:4], "n"] = 1e6
    out.loc[rows[4:8], "n"] = np.nan
    out.loc[rows[:8], "m"] = -55.0
    out.loc[rows[:5], "c"] = "new"
    return out


def test_test_rows_never_change_a_training_row():
    frame = mixed()
    base = from_frame(frame, label="y")
    split = split_rows(base, 0, 0.5, 0.25, 0.25)
    other = from_frame(changed(frame, split.test), label="y")
    before, after = scaled(base, split.train), scaled(other, split.train)
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
    frame = mixed()
    base = from_frame(frame, label="y")
    split = split_rows(base, 0, 0.5, 0.25, 0.25)
    other = from_frame(changed(frame, split.test), label="y")
    before, after = scaled(base, split.train, "all"), scaled(other, split.train, "all")
    assert (before[split.train, 0] != after[split.train, 0]).all()
    assert (after[:, [c.value == "new" for c in other.columns]] != 0).any()


def test_a_test_file_changes_no_training_row():
    held = made(n=[1e9, -1e9], m=[None, 5.0], c=["u", "new"])
    alone = from_frame(mixed(), label="y")
    data = from_frame(mixed(), label="y", test=held, unknown="ignore")
    train = np.arange(40)
    assert data.columns == alone.columns
    np.testing.assert_array_equal(scaled(data, train)[:80], scaled(alone, train))


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
    made = lab.prepare(config)
    passive, own = made.blocks
    assert [column.name for column in passive.columns] == ["m", "c", "c", "c"]
    assert [column.name for column in own.columns] == ["n"]
    x, _ = rows_of(made.table, 0, made.table.train[0])
    np.testing.assert_allclose(x[:, 0].mean(), 0, atol=1e-6)  # a missing number reads as the mean
    np.testing.assert_array_equal(x[:, 1:].sum(1), 1)


# ------------------------------------------------------------- real tables


def test_default_of_credit_card_clients_is_a_table_of_one_s_own():
    path = real_data("default_credit") / "UCI_Credit_Card.csv.gz"
    options = {
        "label": "default.payment.next.month",
        "drop": ["ID"],
        "categorical": ["SEX", "EDUCATION", "MARRIAGE"],
    }
    data = load("table", str(path), options)
    assert data.labels.sum() == 6636
    assert data.features.shape == (30_000, 20 + 2 + 7 + 4)
    frame = pd.read_csv(path)
    assert checksum(from_frame(frame, **options)) == checksum(data)
    kept = frame.drop(columns=["ID", options["label"]])
    expected = pd.get_dummies(kept[["SEX", "EDUCATION", "MARRIAGE"]].astype(str))
    own = [c.kind == "category" for c in data.columns]
    np.testing.assert_array_equal(data.features[:, own], expected)
    np.testing.assert_array_equal(
        data.features[:, ~np.array(own)],
        kept.drop(columns=options["categorical"]).to_numpy(np.float32),
    )
    assert sum("PAY_0 (11)" in note for note in data.notes) == 1


def test_bank_marketing_is_a_table_of_one_s_own():
    path = real_data("bank_marketing") / "bank-full.csv.gz"
    data = load("table", str(path), {"label": "y", "positive": "yes"})
    frame = pd.read_csv(path, sep=";")
    assert (data.labels == (frame.y == "yes")).all()
    expected = pd.get_dummies(frame.drop(columns="y"), dtype=np.float32)
    names = [f"{c.name}_{c.value}" if c.value else c.name for c in data.columns]
    np.testing.assert_array_equal(data.features, expected[names])
    assert len(names) == expected.shape[1]
