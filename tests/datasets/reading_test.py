"""Files of a user's table: each fault is one line that names it, and nothing else happens."""

import gzip
import os
import pathlib
import warnings
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import strategies as st

from tests.datasets import refusals
from tests.datasets.fuzzing import drawn
from tests.datasets.tables import mixed, write
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


def test_what_is_no_readable_file_is_named(tmp_path):
    refused("data.dir is empty: give the table's file", "")
    refused("nowhere.csv is missing", tmp_path / "nowhere.csv")
    put(tmp_path, GOOD)
    put(tmp_path, GOOD, "notes.md")
    assert "(own.csv)" in refused("is a folder: give one file of it", tmp_path)
    assert table(str(tmp_path / "notes.md"), label="y").num_classes == 2
    with pytest.raises(UserError, match="options.label is needed"):
        load("table", str(tmp_path / "own.csv"), {})


def test_a_header_without_end_is_refused_before_it_is_parsed(tmp_path):
    wide = b",".join(b"c%d" % k for k in range(1_000_000)) + b"\n"
    refused("has 1,000,000 columns, more than 100,000", put(tmp_path, wide + wide))
    refused("has 1,000,000 columns", tmp_path / "own.csv", delimiter=",")
    long = gzip.compress(b"a" * ((64 << 20) + 1), 1)
    refused("a first line of more than 64 MiB", put(tmp_path, long, "own.csv.gz"))


def test_a_header_longer_than_the_csv_module_s_longest_field_is_read(tmp_path):
    names = [f"column_{k:0100}" for k in range(1300)]
    rows = [",".join(["1"] * 1300 + [label]) for label in "0101"]
    text = "\n".join([",".join([*names, "y"]), *rows])
    assert len(text.split("\n")[0]) > 131_072
    assert read(str(put(tmp_path, text.encode()))).shape[1] == 1301
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
            words = f"{option}=|unknown {option} "
            refused(words, tmp_path / "own.csv", **{option: value})
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


def test_more_text_than_fits_is_refused_before_all_is_read(tmp_path, monkeypatch):
    text = b"a,y\n" + b"1,0\n2,1\n" * 100_000
    cut = put(tmp_path, gzip.compress(text)[:-9], "cut.csv.gz")
    refused("cannot be read", cut)  # its end, which the limit lets nobody reach
    monkeypatch.setattr(reading, "PIECE", 100)
    monkeypatch.setattr(reading, "MOST_TEXT", 500)
    for path in (cut, put(tmp_path, text)):
        refused("holds more than 500 bytes of text: give fewer rows", path)
    assert len(read(str(put(tmp_path, text[:492])))) == 122


def fail(*_, **__):
    raise AssertionError("the table was made")


def test_a_small_file_of_a_large_table_is_refused_before_it_is_made(tmp_path, monkeypatch):
    rows = pa.table({"a": np.zeros(20_000), "y": np.zeros(20_000)})
    pyarrow.parquet.write_table(rows, tmp_path / "own.parquet", compression="zstd")
    np.savez_compressed(tmp_path / "own.npz", x=np.zeros((10_000, 3)), y=np.zeros(10_000))
    for name, many in (("own.parquet", 20_000), ("own.npz", 10_000)):
        assert (tmp_path / name).stat().st_size < 5_000
        assert len(read(str(tmp_path / name))) == many
    monkeypatch.setattr(reading, "MAX_BYTES", 20_000 * 2 * 8 - 1)
    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "read", fail)
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", fail)
    for name in ("own.parquet", "own.npz"):  # of the arrays, none is too large by itself
        refused("take 320,000 bytes, more than 319,999: give fewer rows", tmp_path / name)


def test_an_array_that_only_its_header_makes_large_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "own.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("a.npy", "w") as stream:
        about = {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
        np.lib.format.write_array_header_1_0(stream, about)
    refused("values take 8,796,093,022,208 bytes, more than", path)


# ------------------------------------------------------------- damaged files


SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npz")


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
    path = pathlib.Path(write(tmp_path, mixed(30), suffix))
    whole = path.read_bytes()
    for end in range(0, len(whole), max(1, len(whole) // 100)):
        path.write_bytes(whole[:end])
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
