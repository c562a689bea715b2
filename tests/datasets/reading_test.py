"""Files of a user's table: each fault is one line that names it, and nothing else happens."""

import gzip
import os
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import strategies as st

from tests.datasets import refusals
from tests.datasets.fuzzing import drawn
from vfljax.datasets import load, reading
from vfljax.datasets.user_table import table
from vfljax.errors import UserError


def read(path, *options):
    return reading.read(path, *options)[0]


GOOD = b"a,b,y\n1,u,0\n2,v,1\n"


def refused(message, path, **options):
    return refusals.refused(table, str(path), match=message, **{"label": "y", **options})


def put(folder, content, name="own.csv"):
    (folder / name).write_bytes(content)
    return folder / name


FILES = {
    "nothing": (b"", "is empty"),
    "blank lines": (b"\n\r\n\n", "is empty"),
    "a mark only": (b"\xef\xbb\xbf", "is empty"),
    "a header only": (b"a,y", "has a header and no row"),
    "a header and blank lines": (b"a,y\n\n\n", "has a header and no row"),
    "a long row": (b"a,y\n1,0\n2,1\n3,4,1\n", "row 3 has 3 values for 2 columns: correct it .* needs quotes"),
    "an open quote in the last field": (b'a,b,y\n1,u,0\n2,v,"1\n3,u,0\n4,v,1\n', "row 2 has a quote"),
    "a quote that closes rows later": (b'a,b,y\n1,"u,0\n2,v,1\n3,"w",0\n4,u,1\n', "row 1 has a quote"),
    "a quote closed too early": (b'a,b,y\n1,"u"v,0\n2,v,1\n', "row 1 has a quote"),
    "an open quote in the header": (b'a,b,"y\n1,u,0\n2,v,1\n', "has in its header a quote"),
    "no header, as if counted": (b"2,0,1\n6,8,0\n", "numbers in its first line, .*called 0 to 2"),
    "another delimiter": (b"a:y\n1:0\n", "unknown column"),
    "a row with the delimiter of decimals": (b"a;y\n0,5;1\n1,5\n", "row 2 has .*or give delimiter= if"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_bad_csv_is_one_line(tmp_path, case):
    content, message = FILES[case]
    said = refused(message, put(tmp_path, content))
    assert str(tmp_path / "own.csv") in said


def test_what_is_no_readable_file_is_named(tmp_path):
    refused("data.dir is empty: give the table's file", "")
    refused("nowhere.csv is missing", tmp_path / "nowhere.csv")
    put(tmp_path, GOOD)
    put(tmp_path, GOOD, "notes.md")
    assert "(own.csv)" in refused("is a folder: give one file of it", tmp_path)
    assert table(str(tmp_path / "notes.md"), label="y").num_classes == 2
    refused("delimiter=',,': give one character", tmp_path / "own.csv", delimiter=",,")
    refused("delimiter='\"': give one character", tmp_path / "own.csv", delimiter='"')
    refused("test.csv is missing", tmp_path / "own.csv", test_file="test.csv")
    with pytest.raises(UserError, match="options.label is needed"):
        load("table", str(tmp_path / "own.csv"), {})


def test_a_header_without_end_is_refused_before_it_is_parsed(tmp_path):
    wide = b",".join(b"c%d" % k for k in range(1_000_000)) + b"\n"
    refused("has 1,000,000 columns, more than 100,000", put(tmp_path, wide + wide))
    refused("has 1,000,000 columns", tmp_path / "own.csv", delimiter=",")
    long = gzip.compress(b"a" * ((64 << 20) + 1), 1)
    refused("a first line of more than 64 MiB", put(tmp_path, long, "own.csv.gz"))


def test_a_header_longer_than_the_csv_module_s_longest_field_is_read(tmp_path):
    names = [f"column_{k:06}" for k in range(20_000)]
    text = ",".join([*names, "y"]) + "\n"
    text += "\n".join(",".join(["1"] * 20_000 + [y]) for y in "0101") + "\n"
    assert len(text.split("\n")[0]) > 131_072
    assert read(str(put(tmp_path, text.encode()))).shape[1] == 20_001
    refused("a header that cannot be parsed .*give delimiter=", tmp_path / "own.csv", delimiter="|")


def test_options_of_wrong_types_are_named(tmp_path):
    put(tmp_path, b"a,3,y\n1,2,0\n2,3,1\n3,5,1\n")
    for option, values in {
        "delimiter": (3, None, [","]),
        "drop": (None, True, [None]),
        "categorical": (None, True),
        "numeric": (3.5, None),
        "test_file": (3, None, ["x"]),
        "max_categories": (True, 0, 2.0, None),
        "na_values": (None, True, [None]),
        "keep_default_na": (1, None),
        "drop_unlabeled": ("yes",),
        "header": (0, None),
        "file_encoding": (None, "", "hex"),
        "label": (None, True, 2),
        "groups": (None, False),
        "positive": (None, 7),
        "encoding": (None, 1, ["onehot"]),
        "missing": (None,),
        "unknown": (True,),
    }.items():
        for value in values:
            said = f"{option}=|unknown {option} "
            refused(said, tmp_path / "own.csv", **{option: value})
    data = table(str(tmp_path / "own.csv"), label="y", drop=3)
    assert [c.name for c in data.columns] == ["a"]
    data = table(str(tmp_path / "own.csv"), label=3, categorical=("a",), numeric="y")
    assert data.num_classes == 3


class Exploit:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_a_pickle_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "own.npz", a=np.array([Exploit(), 1], object), y=np.array([0, 1]))
    refused("a holds Python objects, never opened", tmp_path / "own.npz")
    assert not (tmp_path / "executed").exists()


ARRAYS = {
    "lengths": ({"a": np.ones(3), "y": np.ones(2)}, r"y is float64 of shape \(2,\): it must be of 3 rows"),
    "one array of many": (
        {**{c: np.ones(5) for c in "abcdef"}, "odd": np.ones(4), "y": np.ones(5)},
        r"odd is float64 of shape \(4,\): it must be of 5 rows",
    ),
    "the first array": (
        {"a": np.ones(2), "b": np.ones(3), "y": np.ones(3)},
        r"a is float64 of shape \(2,\): it must be of 3 rows",
    ),
    "a cube": ({"x": np.ones((2, 2, 2)), "y": np.ones(2)}, r"array 'x' has shape \(2, 2, 2\)"),
    "another matrix": ({"z": np.ones((2, 2)), "y": np.ones(2)}, r"array 'z' has shape \(2, 2\)"),
    "a scalar": ({"a": np.float64(1), "y": np.ones(2)}, r"a is float64 of shape \(\): it must be of"),
    "complex numbers": ({"a": np.ones(2, complex), "y": np.ones(2)}, "'a' is of type complex128"),
    "too wide": ({"x": np.ones((2, 100_001), bool), "y": np.arange(2)}, "has 100,001 columns, more"),
    "no rows": ({"a": np.ones(0), "y": np.ones(0)}, "must be of some rows"),
    "bytes that are no text": ({"a": np.array([b"\xff", b"a"]), "y": np.arange(2)}, "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_are_no_columns_are_named(tmp_path, case):
    arrays, message = ARRAYS[case]
    np.savez(tmp_path / "own.npz", **arrays)
    refused(message, tmp_path / "own.npz")


@pytest.mark.parametrize("name", ["own.csv", "own.csv.gz"])
def test_more_text_than_fits_is_refused_while_it_is_read(tmp_path, monkeypatch, name):
    text = b"a,y\n" + b"1,0\n2,1\n" * 500
    put(tmp_path, gzip.compress(text) if name.endswith(".gz") else text, name)
    monkeypatch.setattr(reading, "PIECE", 100)
    assert len(read(str(tmp_path / name))) == 1000
    monkeypatch.setattr(reading, "MOST_TEXT", 500)
    taken = []
    monkeypatch.setattr(reading, "_opened", lambda path: Counted(_opened(path), taken))
    refused("holds more than 500 bytes of text: give fewer rows", tmp_path / name)
    assert sum(taken) <= 600


_opened = reading._opened


class Counted:
    """A stream that notes how much was read."""

    def __init__(self, stream, taken):
        self.stream, self.taken = stream, taken

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def readline(self, size):
        return self.stream.readline(size)

    def read(self, size=-1):
        self.taken.append(len(out := self.stream.read(size)))
        return out


def test_a_parquet_of_one_value_repeated_is_refused_by_its_size_as_a_table(tmp_path, monkeypatch):
    path = tmp_path / "own.parquet"
    rows = pa.table({"a": np.zeros(20_000), "y": np.zeros(20_000)})
    pyarrow.parquet.write_table(rows, path, compression="zstd")
    assert path.stat().st_size < 5_000
    assert len(read(str(path))) == 20_000
    monkeypatch.setattr(reading, "MAX_BYTES", 20_000 * 2 * 8 - 1)

    def fail(*_):
        raise AssertionError("the table was read")

    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "read", fail)
    refused("20000x2 values take 320,000 bytes, more than 319,999: give fewer rows", path)


def test_arrays_that_do_not_fit_together_are_refused_before_they_are_made(tmp_path, monkeypatch):
    path = tmp_path / "own.npz"
    np.savez_compressed(path, x=np.zeros((2000, 3)), y=np.zeros(2000, np.int8))
    assert len(read(str(path))) == 2000
    monkeypatch.setattr(reading, "MAX_BYTES", 50_000 - 1)

    def fail(*_, **__):
        raise AssertionError("the arrays were made")

    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", fail)
    refused("take 50,[0-9]{3} bytes, more than 49,999: give fewer rows", path)


def test_an_array_that_only_its_header_makes_large_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "own.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("a.npy", "w") as stream:
        about = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
        np.lib.format.write_array_header_1_0(stream, about)
    refused("values take 8,796,093,022,208 bytes, more than", path)


# ------------------------------------------------------------- damaged files


def content(suffix):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=30),
            "b": rng.integers(0, 50, 30),
            "c": rng.choice(["u", "v w", 'x"y'], 30),
            "y": ["no", "yes"] * 15,
        }
    )
    if suffix == ".parquet":
        sink = pa.BufferOutputStream()
        pyarrow.parquet.write_table(pa.Table.from_pandas(frame), sink)
        return sink.getvalue().to_pybytes()
    if suffix == ".npz":
        import io

        sink = io.BytesIO()
        np.savez_compressed(
            sink, **{c: frame[c].to_numpy(str if c in "cy" else None) for c in frame}
        )
        return sink.getvalue()
    text = frame.to_csv(index=False).encode()
    return gzip.compress(text, mtime=0) if suffix.endswith(".gz") else text


SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npz")
BYTES = {suffix: content(suffix) for suffix in SUFFIXES}


def loads_or_one_line(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            data = table(str(path), label="y", encoding="codes")
        except UserError as error:
            assert str(path) in str(error)
            assert len(str(error).splitlines()) == 1
        else:
            assert len(data.features) == len(data.labels)
            assert not np.isinf(data.features).any()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_cut_off_anywhere_loads_or_is_one_line(tmp_path, suffix):
    good = BYTES[suffix]
    path = tmp_path / f"cut{suffix}"
    for end in range(0, len(good), max(1, len(good) // 200)):
        path.write_bytes(good[:end])
        loads_or_one_line(path)
        if suffix != ".csv":
            with pytest.raises(UserError):  # only text may lose its end unseen
                read(str(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
@drawn(junk=st.binary(max_size=300))
def test_a_file_of_anything_loads_or_is_one_line(tmp_path_factory, suffix, junk):
    path = tmp_path_factory.getbasetemp() / f"junk{suffix}"
    path.write_bytes(junk)
    loads_or_one_line(path)
