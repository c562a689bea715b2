"""The prepared form: what is written is read again, whole or not at all."""

import json
import os
import pathlib

import numpy as np
import pytest

from tests.datasets import small
from tests.datasets.prepared_sets import LABELS, OFFSETS, SETS, same
from tests.datasets.refusals import one_line
from vfljax import datasets
from vfljax.datasets import npy, prepared
from vfljax.datasets.core import Block, Conversion, Ragged, checksum
from vfljax.errors import UserError


def conversion(data, cuts):
    """The rows of a data set between cuts, as a converter yields them."""

    def blocks():
        for a, b in zip([0, *cuts], [*cuts, 20], strict=True):
            x = data.features
            if isinstance(x, Ragged):
                edges = x.offsets[a : b + 1]
                x = Ragged(x.values[edges[0] : edges[-1]], edges - edges[0])
            else:
                x = x[a:b]
            parts = (None if rows is None else rows[a:b] for rows in (data.test, data.groups))
            yield Block(x, data.labels[a:b], *parts)

    about = {field: getattr(data, field) for field in prepared.ABOUT}
    return Conversion(data.name, data.num_classes, blocks(), about)


@pytest.mark.parametrize("name", SETS)
def test_what_is_written_at_once_or_in_blocks_is_read_again(tmp_path, name):
    data, out = SETS[name], tmp_path / "deep" / "set"
    same(data, prepared.write(data, out))
    same(data, prepared.verify(out))
    assert name == "text" or not prepared.read(out).features.flags.writeable
    recorded = json.loads((out / "vfljax.json").read_text())["sha256"]
    assert recorded == checksum(data) == checksum(prepared.read(out))
    assert [p.name for p in out.parent.iterdir()] == ["set"]  # nothing is left beside it
    assert out.stat().st_mode & 0o055 == 0o055  # others may read what one prepared
    same(data, prepared.write(conversion(data, (0, 3, 3, 11)), tmp_path / "blocks"))
    for file in out.iterdir():
        assert file.read_bytes() == (tmp_path / "blocks" / file.name).read_bytes()


def test_a_block_is_on_disk_before_the_next_is_made(tmp_path):
    """Memory does not grow with rows: of the blocks that were written none is kept."""
    rows = np.zeros((1 << 14, 4), np.float32)

    def blocks():
        for k in range(3):
            if k:
                (partial,) = tmp_path.glob(".x.partial-*")
                assert (partial / "features.npy").stat().st_size >= k * rows.nbytes
            yield Block(rows, np.full(len(rows), k % 2))

    prepared.write(Conversion("x", 2, blocks()), tmp_path / "x")


def test_a_fault_leaves_nothing(tmp_path, monkeypatch):
    def broken():
        yield Block(SETS["table"].features, LABELS)
        raise UserError("the file is damaged.")

    def full(self, array):
        raise OSError(28, "No space left on device")

    one_line(lambda: prepared.write(Conversion("x", 2, broken()), tmp_path / "x"), "damaged")
    monkeypatch.setattr(npy.Growing, "append", full)
    one_line(lambda: prepared.write(SETS["table"], tmp_path / "x"), "x cannot be written", "No spa")
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_exists_is_overwritten(tmp_path):
    (tmp_path / "x").mkdir()  # an empty folder is free
    prepared.write(SETS["table"], tmp_path / "x")
    small.write(tmp_path, {"other/thesis.tex": b"", "file": b""})
    for taken in ("x", "other", "file"):
        out, said = str(tmp_path / taken), "is not overwritten: name a new folder"
        one_line(lambda o=out: prepared.write(SETS["image"], o), said)
        one_line(lambda o=out: datasets.prepare("bhi", "nowhere", o, {}), said)  # nothing is read
    same(SETS["table"], prepared.verify(tmp_path / "x"))
    below = tmp_path / "file" / "below"
    one_line(lambda: prepared.write(SETS["table"], below), "cannot be written")
    one_line(lambda: prepared.write(SETS["table"], ""), "is empty")


X, TABLE = SETS["table"].features, SETS["table"]
UNFIT = {
    "columns": (Block(X, LABELS), Block(X[:, :2], LABELS), "all blocks need the same"),
    "objects": (Block(np.array([{}]), LABELS[:1]), "is not rows"),
    "one class": (Block(X, LABELS * 0), "all labels are 0"),
    "a large label": (Block(X, LABELS * 2), "label 2 in row 2 of 2 classes"),
    "no name": (TABLE._replace(name=""), "name"),
    "classes cut": (TABLE._replace(classes=("no",)), "names 1 of 2 classes"),
    "tokens": (TABLE._replace(tokens=SETS["text"].tokens), "tokens are of texts alone"),
    "another kind": (TABLE._replace(kind="image"), "which are no image of 20 rows"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_fit_together_is_not_written(tmp_path, case):
    *parts, message = UNFIT[case]
    unfit = Conversion("x", 2, parts) if isinstance(parts[0], Block) else parts[0]
    one_line(lambda: prepared.write(unfit, tmp_path / "x"), message)
    assert list(tmp_path.iterdir()) == []


def change(**fields):
    def write(folder: pathlib.Path):
        path = folder / "vfljax.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return write


def overwrite(name, array):
    return lambda folder: np.save(folder / name, array, allow_pickle=True)


FAULTS = {
    "another schema": (change(schema=1), "is not of schema 2"),
    "another class": (change(num_classes=3), "vfljax.json is not what was recorded"),
    "a file cut": (lambda f: os.truncate(f / "features.npy", 200), "features.npy cannot be read"),
    "a file grown": (lambda f: (f / "features.npy").open("ab").write(b"x"), "1 bytes too many"),
    "another type": (overwrite("features.npy", np.zeros((20, 3))), "float64 (20, 3)"),
    "columns first": (overwrite("features.npy", np.zeros((20, 3), np.float32, "F")), "prepare"),
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
        one_line(lambda: prepared.read(out), "offsets that do not divide")


@pytest.mark.parametrize(("kind", "array"), [("table", "features"), ("patches", "groups")])
def test_a_changed_value_is_found_by_verify(tmp_path, kind, array):
    prepared.write(SETS[kind], tmp_path / "x")
    file = tmp_path / "x" / f"{array}.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    prepared.read(tmp_path / "x")
    one_line(lambda: prepared.verify(tmp_path / "x"), "arrays that are not what was recorded (sha2")


@pytest.mark.parametrize("name", ["npz", "isic"])
def test_a_prepared_folder_stands_in_place_of_the_original(tmp_path, name):
    if name == "npz":
        x = np.arange(320, dtype=np.uint8).reshape(20, 4, 4)
        np.savez(tmp_path / "mine.npz", x=x, target=LABELS)
        folder, options, others = str(tmp_path), {"y": "target"}, {"y": "y"}
    else:
        folder = small.write(tmp_path, {"ham.npz": small.lesions()})
        options, others = {"size": 4, "gray": True}, {"size": 4}
    made = datasets.prepare(name, folder, str(tmp_path / "x"), options)
    assert checksum(made) == checksum(datasets.load(name, folder, options))
    again = datasets.prepare("prepared", str(tmp_path / "x"), str(tmp_path / "again"), {})
    same(made, again)
    for out in (str(tmp_path / "x"), str(tmp_path / "again")):
        for asked in ({}, options):
            same(made, datasets.load(name, out, asked))
            same(made, datasets.load("prepared", out, asked))
        if name == "isic":
            same(made, datasets.load("ham10000", out, options))
        for words, asked, given in (
            (f"was prepared by {name!r} and config.data.name is", "spambase", {}),
            (f"unknown option of the data set {name} 'surplus'", "prepared", {"surplus": 1}),
            ("prepare another folder", "prepared", others),
        ):
            one_line(lambda a=asked, g=given, o=out: datasets.load(a, o, g), words)


def test_what_no_loader_made_is_loaded_by_the_name_prepared(tmp_path):
    out = str(tmp_path / "x")
    prepared.write(SETS["table"], out)
    same(SETS["table"], datasets.load("prepared", out, {}))
    for name, folder, message in (
        ("spambase", out, "from no loader and config.data.name is 'spambase'"),
        ("mine", out, "unknown config.data.name 'mine'"),
        ("prepared", str(tmp_path), "is not a prepared data set"),
        ("digits", str(tmp_path), "digits comes with this package"),
    ):
        one_line(lambda n=name, f=folder: datasets.load(n, f, {}), message)


@pytest.mark.parametrize("value", [{"a", "b"}, [["a"]], float("nan")])
def test_an_option_that_no_file_can_record_is_refused(tmp_path, value):
    out, options = str(tmp_path / "x"), {"y": value}
    one_line(lambda: datasets.load("npz", "x.npz", options), "options.y=", "give a number, a text")
    one_line(lambda: datasets.prepare("npz", "x.npz", out, options), "options.y=")


def test_a_folder_that_may_not_be_read_is_one_line(monkeypatch):
    def denied(folder):
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(prepared, "is_prepared", denied)
    one_line(lambda: datasets.load("npz", "set", {}), "set", "may not be read")
