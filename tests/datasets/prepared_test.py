"""The prepared form: what is written is read again, whole or not at all."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.clicks import criteo_rows, tsv
from tests.datasets.prepared_sets import LABELS, RNG, SETS, same
from vfljax import datasets
from vfljax.datasets import npy, prepared
from vfljax.datasets.core import Ragged, checksum
from vfljax.errors import UserError


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


def test_others_may_read_what_one_prepared(tmp_path):
    prepared.write(SETS["table"], tmp_path / "x")
    assert (tmp_path / "x").stat().st_mode & 0o055 == 0o055


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
        if name == "criteo":  # where the file was is no other option
            zero = datasets.prepare(name, folder, out + "0", {"file": "train.txt"})
            for asked in ({"buckets": 10_000}, {"file": ""}, {"file": "train.txt"}):
                same(zero, datasets.load(name, out + "0", asked))
            with pytest.raises(UserError, match="prepare another folder"):
                datasets.load(name, out + "0", {"file": "other.txt"})
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
