"""Files and folders that one may not read: said so in one line, and not called damaged."""

import builtins
import gzip
import io
import os
import pathlib

import numpy as np
import pandas as pd
import pytest

from tests.datasets import refusals, yahoo_test
from vfljax import datasets
from vfljax.datasets import bundled, prepared
from vfljax.errors import UserError

FRAME = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [0, 1, 0]})


# name -> (loader, what is denied, options, how it is written)
FILES = {
    "a CSV": ("table", "own.csv", {"label": "y"}, lambda p: FRAME.to_csv(p, index=False)),
    "a zipped CSV": ("table", "own.csv.gz", {"label": "y"}, lambda p: FRAME.to_csv(p, index=False)),
    "Parquet": ("table", "own.parquet", {"label": "y"}, FRAME.to_parquet),
    "a table of arrays": ("table", "own.npz", {"label": "y"}, lambda p: np.savez(p, y=[0, 1])),
    "arrays": ("npz", "own.npz", {}, lambda p: np.savez(p, x=np.eye(2), y=[0, 1])),
    "Spambase": ("spambase", "spambase.data", {}, lambda p: p.write_text("1")),
    "Criteo": ("criteo", "train.txt", {}, lambda p: p.write_text("1")),
    "Yahoo": ("yahoo", "train.csv", {}, lambda p: yahoo_test.write(p.parent)),
    "IMDB": ("imdb", "imdb.csv.gz", {}, lambda p: p.write_bytes(gzip.compress(b"split"))),
    "CIFAR-10": ("cifar10", "data_batch_1.bin", {}, lambda p: p.write_bytes(b"1")),
    "a prepared folder": ("digits", "vfljax.json", {}, lambda p: None),
    "a prepared array": ("digits", "features.npy", {}, lambda p: None),
}
ARROW = ("Parquet", "Criteo")  # opened by Arrow


def place(folder, case):
    """(loader, the file, what is loaded, options)."""
    loader, name, options, write = FILES[case]
    path = folder / "set" / name
    if loader == "digits":
        prepared.write(bundled.digits(""), path.parent, loader="digits")
    else:
        path.parent.mkdir()
        write(path)
    return loader, path, str(path if loader == "table" else path.parent), options


def refused(path, *args):
    message = refusals.refused(datasets.load, *args, match="may not be read: check its permissions")
    assert str(path) in message
    assert "damaged" not in message


@pytest.mark.parametrize("case", [case for case in FILES if case not in ARROW])
def test_a_file_that_may_not_be_opened_is_not_called_damaged(tmp_path, monkeypatch, case):
    loader, path, where, options = place(tmp_path, case)
    real = io.open

    def guarded(file, *args, **kwargs):
        if not isinstance(file, int) and os.fspath(file) == str(path):
            raise PermissionError(13, "Permission denied", str(file))
        return real(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", guarded)
    monkeypatch.setattr(io, "open", guarded)
    refused(path, loader, where, options)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("case", FILES)
def test_a_file_without_permission_is_not_called_damaged(tmp_path, case):
    loader, path, where, options = place(tmp_path, case)
    path.chmod(0)
    refused(path, loader, where, options)


def deny(self):
    raise PermissionError(13, "Permission denied", str(self))


@pytest.mark.parametrize("loader", ["spambase", "prepared", "npz", "bhi"])
def test_a_folder_that_may_not_be_entered_is_one_line(tmp_path, monkeypatch, loader):
    monkeypatch.setattr(pathlib.Path, "is_file", deny)  # as Python up to 3.13 lets it through
    refused(tmp_path, loader, str(tmp_path), {})
    with pytest.raises(UserError, match="may not be read: check its permissions"):
        prepared.is_prepared(tmp_path)


def test_a_table_s_folder_that_may_not_be_listed_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(pathlib.Path, "iterdir", deny)
    refused(tmp_path, "table", str(tmp_path), {"label": "y"})
