"""The prepared form: what is written is read again, whole or not at all."""

import json
import os
import pathlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.clicks import criteo_rows, tsv
from vfljax import datasets
from vfljax.datasets import npy, prepared
from vfljax.datasets.columns import Column
from vfljax.datasets.core import Dataset, Vocabulary, checksum
from vfljax.datasets.ragged import Ragged
from vfljax.errors import UserError

RNG = np.random.default_rng(0)
LABELS = np.arange(20, dtype=np.int32) % 2
OFFSETS = np.concatenate([[0], np.cumsum(RNG.integers(0, 4, 20))]).astype(np.int64)
SETS = {
    "table": Dataset(
        "mine",
        np.asfortranarray(RNG.normal(size=(20, 3)).astype(np.float32)),
        LABELS,
        2,
        columns=(
            Column("a"),
            Column("größe", "category", "\u2028x\n"),
            Column("c", "code", "", 9),
        ),
        classes=("no", "yes"),
        notes=("one note",),
    ),
    "image": Dataset("pixels", RNG.integers(0, 255, (20, 4, 5, 3), np.uint8), LABELS, 3, "image"),
    "patches": Dataset(
        "bhi",
        RNG.integers(0, 255, (20, 2, 4, 4, 3), np.uint8),
        LABELS,
        2,
        "patches",
        groups=np.arange(20, dtype=np.int32) // 3,
    ),
    "text": Dataset(
        "reviews",
        Ragged(RNG.integers(0, 50, OFFSETS[-1], np.int32), OFFSETS),
        LABELS,
        2,
        "text",
        test=np.arange(20) >= 10,
        tokens=Vocabulary(50, 0, 1, 2),
        length=16,
    ),
}


def same(a, b):
    """Equal in every field, arrays by value and type."""
    for field, x, y in zip(Dataset._fields, a, b, strict=True):
        if isinstance(x, Ragged):
            assert isinstance(y, Ragged)
        elif not isinstance(x, np.ndarray):
            assert x == y, field
            continue
        for u, v in zip(*((z if isinstance(z, Ragged) else (z,)) for z in (x, y)), strict=True):
            assert u.dtype == v.dtype
            np.testing.assert_array_equal(u, v, err_msg=field)


@pytest.mark.parametrize("name", SETS)
def test_what_is_written_is_read_again(tmp_path, name):
    out = tmp_path / "deep" / "set"
    same(SETS[name], prepared.write(SETS[name], out))
    same(SETS[name], prepared.verify(out))
    recorded = json.loads((out / "vfljax.json").read_text())["sha256"]
    assert recorded == checksum(SETS[name]) == checksum(prepared.read(out))
    assert [p.name for p in out.parent.iterdir()] == ["set"]  # nothing is left beside it


def test_features_are_mapped_and_cannot_be_written(tmp_path):
    data = prepared.write(SETS["image"], tmp_path / "x")
    assert isinstance(data.features, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        data.features[0] = 0


def parts(data, cuts):
    """Rows between cuts, in the form ``append`` takes."""
    for a, b in zip([0, *cuts], [*cuts, 20], strict=True):
        x = data.features
        if isinstance(x, Ragged):
            edges = x.offsets[a : b + 1]
            x = Ragged(x.values[edges[0] : edges[-1]], edges - edges[0])
        else:
            x = x[a:b]
        more = {k: v[a:b] for k in ("test", "groups") if (v := getattr(data, k)) is not None}
        yield x, data.labels[a:b], more


@settings(max_examples=20, deadline=None)
@given(name=st.sampled_from(list(SETS)), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_blocks_give_what_the_whole_gives(tmp_path_factory, name, cuts):
    data, folder = SETS[name], tmp_path_factory.mktemp("x")
    with prepared.begin(folder / "blocks") as writer:
        for features, labels, more in parts(data, sorted(cuts)):
            writer.append(features, labels, **more)
        about = ("kind", "columns", "classes", "tokens", "length", "notes")
        streamed = writer.finish(
            data.name, data.num_classes, **{k: getattr(data, k) for k in about}
        )
    same(data, streamed)
    prepared.write(data, folder / "whole")
    for file in (folder / "whole").iterdir():
        assert file.read_bytes() == (folder / "blocks" / file.name).read_bytes()


def test_what_a_writer_holds_does_not_grow(tmp_path):
    peaks = []
    block = np.zeros((1000, 50), np.float32), np.arange(1000, dtype=np.int32) % 2
    for blocks in (20, 80):
        tracemalloc.start()
        with prepared.begin(tmp_path / str(blocks)) as writer:
            for _ in range(blocks):
                writer.append(*block)
            writer.finish("x", 2)
        peaks.append(
            tracemalloc.get_traced_memory()[1] - 4 * 1000 * blocks
        )  # the labels it returns
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_unfinished_nothing_appears(tmp_path):
    with prepared.begin(tmp_path / "x") as writer:
        writer.append(SETS["table"].features, LABELS)
    assert list(tmp_path.iterdir()) == []
    writer = prepared.begin(tmp_path / "x")  # killed without any chance to tidy up
    writer.append(SETS["table"].features, LABELS)
    assert not prepared.is_prepared(tmp_path / "x")
    for left in tmp_path.iterdir():
        assert left.name.startswith(".x.partial-")
        assert not prepared.is_prepared(left)
        with pytest.raises(UserError, match="is not a prepared data set"):
            prepared.prepared(str(left))
    prepared.write(SETS["table"], tmp_path / "x")
    same(SETS["table"], prepared.read(tmp_path / "x"))


def test_nothing_that_exists_is_overwritten(tmp_path):
    (tmp_path / "x").mkdir()  # an empty folder is free
    prepared.write(SETS["table"], tmp_path / "x")
    for again in (SETS["image"], SETS["table"]):
        with pytest.raises(UserError, match="is not overwritten: name a new folder"):
            prepared.write(again, tmp_path / "x")
    same(SETS["table"], prepared.verify(tmp_path / "x"))
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    for taken in ("other", "file"):
        with pytest.raises(UserError, match="is not overwritten"):
            prepared.begin(tmp_path / taken)
    with pytest.raises(UserError, match="cannot be written"):
        prepared.begin(tmp_path / "file" / "below")
    with pytest.raises(UserError, match="is empty"):
        prepared.begin("")


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    def full(self, array):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(npy.Growing, "append", full)
    with pytest.raises(UserError, match=r"x cannot be written: .*No space left"):
        prepared.write(SETS["table"], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_taken_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("criteo", "spambase"):
        with pytest.raises(UserError, match="is not overwritten"):
            datasets.prepare(name, str(tmp_path / "nowhere"), str(tmp_path / "file"), {})
    with pytest.raises(UserError, match="did you mean 'criteo'"):
        datasets.prepare("critea", "", "", {})
    with pytest.raises(UserError, match="unknown option of the data set criteo 'row'"):
        datasets.prepare("criteo", "", "", {"row": 3})


def test_blocks_that_do_not_fit_are_named(tmp_path):
    x = SETS["table"].features
    with prepared.begin(tmp_path / "x") as writer:
        writer.append(x, LABELS)
        with pytest.raises(UserError, match="all blocks need the same"):
            writer.append(x[:, :2], LABELS)
    with prepared.begin(tmp_path / "x") as writer:
        writer.append(x, LABELS[:10])
        with pytest.raises(UserError, match="are no table of 10 rows"):
            writer.finish("x", 2)
    with prepared.begin(tmp_path / "x") as writer, pytest.raises(UserError, match="is not rows"):
        writer.append(np.array([{}]), LABELS[:1])
    with prepared.begin(tmp_path / "x") as writer:
        with pytest.raises(UserError, match="there are no rows"):
            writer.finish("x", 2)
        writer.append(x, LABELS * 0)
        with pytest.raises(UserError, match="all labels are 0"):
            writer.finish("x", 2)
    assert list(tmp_path.iterdir()) == []


def change(folder: pathlib.Path, **fields):
    path = folder / "vfljax.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def overwrite(name, array):
    return lambda folder: np.save(folder / name, array, allow_pickle=True)


ARRAYS = {"features": {"dtype": "float32", "shape": [20, 3]}}
FAULTS = {
    "no json": (lambda f: (f / "vfljax.json").write_text("{"), "does not describe"),
    "another schema": (lambda f: change(f, schema=1), "its schema is not 2"),
    "a kind unknown": (lambda f: change(f, kind="sound"), "'kind'"),
    "a kind of a wrong type": (lambda f: change(f, kind=["table"]), "'kind'"),
    "one class": (lambda f: change(f, num_classes=1), "'num_classes'"),
    "classes without number": (lambda f: change(f, num_classes=10**30), "'num_classes'"),
    "codes without number": (
        lambda f: change(f, columns=[["a", "code", "", 10**30]] * 3),
        "'columns'",
    ),
    "a loader of a wrong type": (lambda f: change(f, loader=None), "'loader'"),
    "a bool for a number": (lambda f: change(f, length=True), "'length'"),
    "columns cut": (lambda f: change(f, columns=[["a", "number", "", 0]]), "1 columns are named"),
    "classes cut": (lambda f: change(f, classes=["no"]), "1 of 2 classes are named"),
    "a type of two lines": (
        lambda f: change(f, arrays=ARRAYS | {"labels": {"dtype": "a\u2028b", "shape": [20]}}),
        "is recorded",
    ),
    "columns broken": (lambda f: change(f, columns=[["a"]]), "'columns'"),
    "arrays missing": (lambda f: change(f, arrays=ARRAYS), "its arrays are ['features']"),
    "tokens of a table": (lambda f: change(f, tokens=[5, 0, 1, 2]), "tokens are given for texts"),
    "a file gone": (lambda f: (f / "labels.npy").unlink(), "is missing"),
    "a folder for a file": (
        lambda f: ((f / "labels.npy").unlink(), (f / "labels.npy").mkdir()),
        "is not an array",
    ),
    "a file cut": (lambda f: os.truncate(f / "features.npy", 200), "is not an array"),
    "a file grown": (
        lambda f: (f / "features.npy").open("ab").write(b"x"),
        "has 1 bytes too many",
    ),
    "pickled objects": (overwrite("features.npy", np.array([{}])), "is not an array"),
    "another type": (overwrite("features.npy", np.zeros((20, 3))), "float64 (20, 3)"),
    "columns first": (
        overwrite("features.npy", np.zeros((20, 3), np.float32, "F")),
        "prepare the data set again",
    ),
    "a label too large": (overwrite("labels.npy", LABELS * 2), "label 2 in row 2 of 2 classes"),
    "a negative label": (overwrite("labels.npy", -LABELS), "label -1 in row 2"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_folder_is_one_line(tmp_path, fault):
    break_it, message = FAULTS[fault]
    prepared.write(SETS["table"], tmp_path / "x")
    break_it(tmp_path / "x")
    with pytest.raises(UserError) as error:
        prepared.read(tmp_path / "x")
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_texts_need_offsets_that_divide_them(tmp_path):
    out = tmp_path / "x"
    prepared.write(SETS["text"], out)
    for offsets in (OFFSETS[::-1], OFFSETS + 1, np.minimum(OFFSETS, OFFSETS[-1] - 1)):
        np.save(out / "offsets.npy", np.ascontiguousarray(offsets))
        with pytest.raises(UserError, match="offsets do not divide"):
            prepared.read(out)


@pytest.mark.parametrize(("kind", "array"), [("table", "features"), ("text", "test")])
def test_a_changed_value_is_found_by_verify(tmp_path, kind, array):
    prepared.write(SETS[kind], tmp_path / "x")
    file = tmp_path / "x" / f"{array}.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    prepared.read(tmp_path / "x")
    with pytest.raises(UserError, match="they were changed"):
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
    change(folder, **{field: CHANGES[field]})
    prepared.read(folder)
    with pytest.raises(UserError, match=r"vfljax.json is not what was recorded"):
        prepared.verify(folder)


def test_what_no_loader_made_is_loaded_by_the_name_prepared(tmp_path):
    out = str(tmp_path / "x")
    prepared.write(SETS["table"], out)
    same(SETS["table"], datasets.load("prepared", out, {}))
    with pytest.raises(UserError, match=r"from no loader and config.data.name is 'spambase'"):
        datasets.load("spambase", out, {})
    with pytest.raises(UserError, match=r"unknown config.data.name 'mine'"):
        datasets.load("mine", out, {})
    with pytest.raises(UserError, match="was prepared with no options and"):
        datasets.load("prepared", out, {"rows": 3})
    with pytest.raises(UserError, match="is not a prepared data set"):
        datasets.load("prepared", str(tmp_path), {})
    with pytest.raises(UserError, match="is not a prepared data set"):
        datasets.load("prepared", "", {})


def original(name, folder):
    """(where a small original of the data set lies, its loader's options, other options)."""
    if name == "table":
        (folder / "mine.csv").write_text("a,b,y\n" + "1,u,no\n2,v,yes\n" * 4)
        return str(folder / "mine.csv"), {"label": "y", "drop": ("a",)}, {"label": "y"}
    if name == "npz":
        x = RNG.integers(0, 255, (20, 4, 4), np.uint8)
        np.savez(folder / "mine.npz", x=x, target=LABELS)
        return str(folder), {"y": "target"}, {"y": "y"}
    if name == "isic":
        x = RNG.integers(0, 255, (20, 4, 4, 3), np.uint8)
        np.savez(folder / "ham.npz", x=x, y=LABELS, lesion_id=np.arange(20))
        return str(folder), {"size": 4, "gray": True}, {"size": 4}
    if name == "criteo":
        (folder / "train.txt").write_bytes(tsv(criteo_rows(30)))
        return str(folder), {"buckets": 50}, {"buckets": 60}
    return "", {}, None


@pytest.mark.parametrize("name", ["digits", "breast_cancer", "table", "npz", "isic", "criteo"])
def test_a_prepared_folder_stands_in_place_of_the_original(tmp_path, name):
    folder, options, others = original(name, tmp_path)
    made = datasets.prepare(name, folder, str(tmp_path / "x"), options)
    direct = datasets.load(name, folder, options)
    assert checksum(made) == checksum(direct)
    again = datasets.prepare("prepared", str(tmp_path / "x"), str(tmp_path / "again"), {})
    same(made, again)
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
    for out in (str(tmp_path / "x"), str(tmp_path / "again")):
        for asked in ({}, options, listed):
            same(made, datasets.load(name, out, asked))
            same(made, datasets.load("prepared", out, asked))
        if name == "isic":
            same(made, datasets.load("ham10000", out, options))
        with pytest.raises(UserError, match=f"was prepared by {name!r} and config.data.name is"):
            datasets.load("spambase", out, {})
        for asked in [] if others is None else [others]:
            with pytest.raises(UserError, match=r"was prepared with .*prepare another folder"):
                datasets.load("prepared", out, asked)
        with pytest.raises(UserError, match=f"unknown option of the data set {name} 'surplus'"):
            datasets.load("prepared", out, {"surplus": 1})


def test_an_embedded_set_needs_no_folder(tmp_path):
    with pytest.raises(UserError, match="digits comes with this package: leave it empty"):
        datasets.load("digits", str(tmp_path), {})


VALUES = [{"a", "b"}, {"a": 1}, b"x", [["a"]], float("nan"), object()]


@pytest.mark.parametrize("value", VALUES)
def test_an_option_that_no_file_can_record_is_refused(tmp_path, value):
    for call in (
        lambda: datasets.load("table", "x.csv", {"label": "y", "drop": value}),
        lambda: datasets.prepare("table", "x.csv", str(tmp_path / "x"), {"label": value}),
    ):
        with pytest.raises(UserError, match=r"options\.(drop|label)=.*give a number, a text"):
            call()


@settings(max_examples=200, deadline=None)
@given(
    kind=st.sampled_from(["table", "text"]),
    which=st.integers(0, 9),
    at=st.integers(0, 2000),
    what=st.binary(min_size=0, max_size=6),
    cut=st.integers(0, 6),
)
def test_a_mutated_folder_loads_or_is_one_line(tmp_path_factory, kind, which, at, what, cut):
    out = tmp_path_factory.mktemp("mutated") / "x"
    prepared.write(SETS[kind], out)
    files = sorted(out.iterdir())
    file = files[which % len(files)]
    content = file.read_bytes()
    at %= len(content)
    file.write_bytes(content[:at] + what + content[at + cut :])
    try:
        assert len(prepared.read(out).labels) == 20
    except UserError as error:
        assert len(str(error).splitlines()) == 1
