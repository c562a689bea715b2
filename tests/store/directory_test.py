"""What is on disk: read lazily, refused when damaged, never overwritten."""

import json
import shutil

import numpy as np
import pytest

from tests.damage import Killed, silent
from tests.refusals import refused
from tests.sweeps import TINY, comparable, flip, plan_of, train
from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.errors import UserError
from vfljax.store import atomic, directory, sealed


@pytest.fixture(scope="module")
def planned():
    """The tiny sweep's plan: what attacks it."""
    return plan_of(TINY)


def one_shard(workdir):
    return sorted((workdir / "shards").iterdir())[0]


def test_the_directory_describes_itself(tiny_sweep):
    header = store.load(tiny_sweep).header
    assert header["schema"] == store.SCHEMA
    assert header["config"]["grid"]["kdk"]["kdk"]["epsilon"] == [0.0, 0.45]
    assert set(header["versions"]) >= {"jax", "flax", "numpy", "python"}
    assert sum(len(s["trials"]) for s in header["shards"]) == header["trials"] == 24
    assert header["data"]["party_shapes"] == [[8, 4], [8, 4]]


@pytest.mark.parametrize("part", ["exchange/party0_gradients.npy", "results.parquet", "checkpoint"])
def test_a_damaged_shard_is_named_with_its_remedy_and_nothing_is_lost(workdir, planned, part):
    shard = one_shard(workdir)
    path = shard / part
    if path.is_dir():
        path = max((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    flip(path)
    others = {p: p.read_bytes() for p in workdir.rglob("*.parquet") if shard not in p.parents}
    with refused(f"{shard} is damaged", f"`vfljax sweep --workdir={workdir} --mend`"):
        attack_sweep(planned, workdir, say=silent)
    assert all(p.read_bytes() == c for p, c in others.items())
    assert [finding.unit for finding in store.mend(workdir)] == [f"shards/{shard.name}"]
    assert not shard.exists()
    assert all(p.read_bytes() == c for p, c in others.items())


def test_a_deleted_damaged_shard_is_trained_again(workdir, tiny_sweep):
    shutil.rmtree(one_shard(workdir))
    assert comparable(train(workdir, TINY).attacks) == comparable(store.load(tiny_sweep).attacks)


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_a_damaged_header_is_one_clear_line(tmp_path, content):
    (tmp_path / "sweep.json").write_text(content)
    message = r"sweep\.json is damaged .*: restore it, or start in a new workdir"
    with pytest.raises(UserError, match=message):
        store.load(tmp_path)


def test_a_field_that_came_later_had_its_default_then(workdir):
    stored = store.read_header(workdir)
    old = json.loads(json.dumps(stored))
    del old["config"]["training"]["class_weights"]
    sealed.write_root(workdir, "sweep", old)
    assert store.begin(workdir, stored)["config"] == old["config"]
    changed = json.loads(json.dumps(stored))
    changed["config"]["training"]["class_weights"] = [1.0] * 10
    with pytest.raises(UserError, match="training.class_weights"):
        store.begin(workdir, changed)


def test_a_folder_without_a_sweep_says_so(tmp_path):
    with pytest.raises(UserError, match="holds no sweep"):
        store.load(tmp_path)


def tree(value):
    return {"progress": {"00000": np.full((2, 3), value, np.float32)}}


def saved_after(workdir):
    """The epochs that the last save is of, and its value."""
    done, saved = store.read_partial(workdir, "a")
    return done, float(saved["progress"]["00000"].mean())


def test_saved_progress_is_read_back_and_the_last_save_alone_stays(tmp_path):
    assert store.read_partial(tmp_path, "a") is None
    for done in (1, 2):
        store.write_partial(tmp_path, "a", done, tree(done))
        assert saved_after(tmp_path) == (done, done)
    assert [path.name for path in (tmp_path / "partial" / "a").iterdir()] == ["2"]


def test_no_flipped_bit_of_saved_progress_is_trained_on(tmp_path):
    store.write_partial(tmp_path, "a", 1, tree(1))
    save = tmp_path / "partial" / "a" / "1"
    for path in sorted(p for p in save.rglob("*") if p.is_file() and p.stat().st_size):
        content = path.read_bytes()
        flip(path)
        with pytest.raises(store.Damaged, match=r"partial/a/1 is damaged .*--mend` sets it aside"):
            store.read_partial(tmp_path, "a")
        path.write_bytes(content)
    assert saved_after(tmp_path) == (1, 1)


def test_a_renamed_save_is_not_believed(tmp_path):
    store.write_partial(tmp_path, "a", 1, tree(1))
    folder = tmp_path / "partial" / "a"
    for name, why in (("7", "it is partial/a/1"), ("x", "it holds what no sweep writes")):
        (folder / "1").rename(folder / name)
        with pytest.raises(store.Damaged, match=why):
            store.read_partial(tmp_path, "a")
        (folder / name).rename(folder / "1")
    folder.rename(folder.with_name("b"))
    with pytest.raises(store.Damaged, match="it is partial/a/1"):
        store.read_partial(tmp_path, "b")


@pytest.mark.parametrize(("where", "kept"), [("replace", 1), ("remove", 2)])
def test_a_kill_between_two_saves_loses_neither(tmp_path, monkeypatch, where, kept):
    """Before the new save is in place, and after that, before the old one goes."""
    store.write_partial(tmp_path, "a", 1, tree(1), width=1)

    def kill(*arguments):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(
            *{"replace": (atomic.os, "replace"), "remove": (directory, "remove")}[where], kill
        )
        with pytest.raises(Killed):
            store.write_partial(tmp_path, "a", 2, tree(2), width=2)
    assert saved_after(tmp_path) == (kept, kept)
    assert store.width_of_shard(tmp_path, "a") == kept
    store.write_partial(tmp_path, "a", 3, tree(3))
    assert saved_after(tmp_path) == (3, 3)
    assert [path.name for path in (tmp_path / "partial" / "a").iterdir()] == ["3"]


def test_a_full_disk_keeps_the_last_save_and_no_half_of_the_next(tmp_path, monkeypatch):
    store.write_partial(tmp_path, "a", 1, tree(1))

    def full(path, arrays):
        path.mkdir()
        (path / "half").write_text("half")
        raise ValueError("Error writing file: No space left on device [source locations='x']")

    with monkeypatch.context() as patched:
        patched.setattr(directory.checkpoint, "save", full)
        for write, unit in (
            (lambda: store.write_partial(tmp_path, "a", 2, tree(2)), "partial/a/2"),
            (lambda: store.write_shard(tmp_path, "a", [], tree(2), {}), "shards/a"),
        ):
            line = rf"^{tmp_path / unit} cannot be written: about 70 kB are needed and .* are free on this"
            with pytest.raises(UserError, match=line) as error:
                write()
            assert len(str(error.value).splitlines()) == 1
    assert saved_after(tmp_path) == (1, 1)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.name.endswith(".tmp")) == []
    assert list((tmp_path / "shards").iterdir()) == []
