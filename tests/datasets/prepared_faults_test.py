"""Changed, broken and mutated prepared folders: each loads or is one line."""

import json
import os
import pathlib

import numpy as np
import pytest

from tests.datasets.prepared_sets import LABELS, OFFSETS, SETS
from tests.datasets.refusals import one_line
from vfljax import datasets
from vfljax.datasets import prepared
from vfljax.errors import UserError


def change(**fields):
    def write(folder: pathlib.Path):
        path = folder / "vfljax.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return write


def overwrite(name, array):
    return lambda folder: np.save(folder / name, array, allow_pickle=True)


def rename(folder, field):
    path = folder / "vfljax.json"
    path.write_text(path.read_text().replace(f'"{field}"', f'"{field}_"'))


def folder_for_a_file(folder):
    (folder / "labels.npy").unlink()
    (folder / "labels.npy").mkdir()


ARRAYS = {"features": {"dtype": "float32", "shape": [20, 3]}}
TWO_LINES = ARRAYS | {"labels": {"dtype": "a\u2028b", "shape": [20]}}
NEGATIVE = ARRAYS | {"labels": {"dtype": "int32", "shape": [-20]}}
CODES = [["a", "code", "", 10**30]] * 3
F_ORDER = np.zeros((20, 3), np.float32, "F")
FAULTS = {
    "no json": (lambda f: (f / "vfljax.json").write_text("{"), "cannot be read"),
    "a list": (lambda f: (f / "vfljax.json").write_text("[]"), "'schema'"),
    "another schema": (change(schema=1), "'schema'"),
    "a schema of true": (change(schema=True), "'schema'"),
    "no tokens": (lambda f: rename(f, "tokens"), "'tokens' is missing"),
    "no name": (change(name=""), "has no name"),
    "a kind unknown": (change(kind="sound"), "'kind'"),
    "a kind of a wrong type": (change(kind=["table"]), "'kind'"),
    "one class": (change(num_classes=1), "'num_classes'"),
    "classes without number": (change(num_classes=10**30), "'num_classes'"),
    "codes without number": (change(columns=CODES), "'columns'"),
    "a loader of a wrong type": (change(loader=None), "'loader'"),
    "a bool for a number": (change(length=True), "'length'"),
    "columns cut": (
        change(columns=[["a", "number", "", 0]]),
        "names 1 columns of features (20, 3)",
    ),
    "classes cut": (change(classes=["no"]), "names 1 of 2 classes"),
    "a type of two lines": (change(arrays=TWO_LINES), "is recorded"),
    "rows below none": (change(arrays=NEGATIVE), "'arrays'"),
    "columns broken": (change(columns=[["a"]]), "'columns'"),
    "arrays missing": (change(arrays=ARRAYS), "has the arrays ['features']"),
    "tokens of a table": (change(tokens=[5, 0, 1, 2]), "gives tokens, and no text"),
    "three tokens": (change(tokens=[5, 0, 1]), "'tokens'"),
    "a file gone": (lambda f: (f / "labels.npy").unlink(), "labels.npy cannot be read"),
    "a folder for a file": (folder_for_a_file, "labels.npy cannot be read"),
    "a file cut": (lambda f: os.truncate(f / "features.npy", 200), "features.npy cannot be read"),
    "a file grown": (lambda f: (f / "features.npy").open("ab").write(b"x"), "1 bytes too many"),
    "pickled objects": (overwrite("features.npy", np.array([{}])), "features.npy cannot be read"),
    "another type": (overwrite("features.npy", np.zeros((20, 3))), "float64 (20, 3)"),
    "columns first": (overwrite("features.npy", F_ORDER), "prepare the data set again"),
    "a label too large": (overwrite("labels.npy", LABELS * 2), "label 2 in row 2 of 2 classes"),
    "a negative label": (overwrite("labels.npy", -LABELS), "label -1 in row 2"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_folder_is_one_line(tmp_path, fault):
    break_it, message = FAULTS[fault]
    prepared.write(SETS["table"], tmp_path / "x")
    break_it(tmp_path / "x")
    one_line(lambda: prepared.read(tmp_path / "x"), message)


def test_texts_need_offsets_that_divide_them(tmp_path):
    out = tmp_path / "x"
    prepared.write(SETS["text"], out)
    for offsets in (OFFSETS[::-1], OFFSETS + 1, np.minimum(OFFSETS, OFFSETS[-1] - 1)):
        np.save(out / "offsets.npy", np.ascontiguousarray(offsets))
        with pytest.raises(UserError, match="offsets that do not divide"):
            prepared.read(out)


@pytest.mark.parametrize(
    ("kind", "array"), [("table", "features"), ("text", "test"), ("patches", "groups")]
)
def test_a_changed_value_is_found_by_verify(tmp_path, kind, array):
    prepared.write(SETS[kind], tmp_path / "x")
    file = tmp_path / "x" / f"{array}.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    prepared.read(tmp_path / "x")
    with pytest.raises(UserError, match="arrays that are not what was recorded .sha256"):
        prepared.verify(tmp_path / "x")


CHANGES = {
    "num_classes": 3,
    "classes": ["yes", "no"],
    "options": {"rows": 1},
    "loader": "criteo",
    "name": "other",
    "notes": [],
    "columns": [["b", "number", "", 0]] * 3,
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_description_is_found_by_verify(tmp_path, field):
    prepared.write(SETS["table"]._replace(classes=()), tmp_path / "x")
    if field == "classes":
        prepared.write(SETS["table"], tmp_path / "named")
    folder = tmp_path / ("named" if field == "classes" else "x")
    change(**{field: CHANGES[field]})(folder)
    prepared.read(folder)
    with pytest.raises(UserError, match=r"vfljax.json is not what was recorded"):
        prepared.verify(folder)


VALUES = [{"a", "b"}, {"a": 1}, b"x", [["a"]], float("nan"), object()]


@pytest.mark.parametrize("value", VALUES)
def test_an_option_that_no_file_can_record_is_refused(tmp_path, value):
    for call in (
        lambda: datasets.load("table", "x.csv", {"label": "y", "drop": value}),
        lambda: datasets.prepare("table", "x.csv", str(tmp_path / "x"), {"label": value}),
    ):
        with pytest.raises(UserError, match=r"options\.(drop|label)=.*give a number, a text"):
            call()
