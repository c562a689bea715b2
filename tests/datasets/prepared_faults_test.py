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
from vfljax.datasets.core import Column
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


F_ORDER = np.zeros((20, 3), np.float32, "F")
FAULTS = {
    "no json": (lambda f: (f / "vfljax.json").write_text("{"), "cannot be read"),
    "a list": (lambda f: (f / "vfljax.json").write_text("[]"), "is not of schema 2"),
    "another schema": (change(schema=1), "is not of schema 2"),
    "no tokens": (lambda f: rename(f, "tokens"), "vfljax.json is not what was recorded"),
    "no sum": (lambda f: rename(f, "sha256_description"), "is not what was recorded"),
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
    "arrays": {},
    "length": True,
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_description_is_refused(tmp_path, field):
    prepared.write(SETS["table"], tmp_path / "x")
    change(**{field: CHANGES[field]})(tmp_path / "x")
    one_line(lambda: prepared.read(tmp_path / "x"), "vfljax.json is not what was recorded")


WRONG = {  # what a data set of one's own may have
    "no name": ({"name": ""}, "has no name"),
    "columns cut": ({"columns": (Column("a"),)}, "names 1 columns of features (20, 3)"),
    "classes cut": ({"classes": ("no",)}, "names 1 of 2 classes"),
    "tokens of a table": ({"tokens": SETS["text"].tokens}, "tokens are of texts alone"),
    "an unknown kind": ({"kind": "sound"}, "has kind='sound', which no data set may have"),
    "one class": ({"num_classes": 1}, "has num_classes='1'"),
    "codes without number": ({"columns": (Column("a", "code", "", 10**30),) * 3}, "has columns="),
    "a column of no kind": ({"columns": (Column("a", "colour"),) * 3}, "has columns="),
    "texts without length": ({"length": 0}, "has length='0'"),
    "a length of true": ({"length": True}, "has length='True'"),
    "classes that are numbers": ({"classes": (1, 2)}, "has classes='[1, 2]'"),
    "notes that are numbers": ({"notes": (3,)}, "has notes='[3]'"),
    "a reader that is no number": ({"reader": "2"}, "has reader='2'"),
    "another kind": ({"kind": "image"}, "has features (20, 3), which are no image of 20 rows"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_set_that_does_not_fit_together_is_not_written(tmp_path, wrong):
    fields, message = WRONG[wrong]
    one_line(lambda: prepared.write(SETS["table"]._replace(**fields), tmp_path / "x"), message)
    assert not list(tmp_path.iterdir())


VALUES = [{"a", "b"}, {"a": 1}, b"x", [["a"]], float("nan"), object()]


@pytest.mark.parametrize("value", VALUES)
def test_an_option_that_no_file_can_record_is_refused(tmp_path, value):
    for call in (
        lambda: datasets.load("table", "x.csv", {"label": "y", "drop": value}),
        lambda: datasets.prepare("table", "x.csv", str(tmp_path / "x"), {"label": value}),
    ):
        with pytest.raises(UserError, match=r"options\.(drop|label)=.*give a number, a text"):
            call()
