"""What is on disk: read lazily, refused when damaged, never overwritten."""

import json
import shutil

import numpy as np
import pytest

from tests.sweeps import TINY, comparable, train
from vfljax import attacking, checkpoint, lab, store
from vfljax.errors import UserError


@pytest.fixture
def workdir(tiny_sweep, tmp_path):
    return shutil.copytree(tiny_sweep, tmp_path / "w")


def one_shard(workdir):
    return sorted((workdir / "shards").iterdir())[0]


def test_the_directory_describes_itself(tiny_sweep):
    header = store.load(tiny_sweep).header
    assert header["schema"] == store.SCHEMA
    assert header["config"]["grid"]["kdk"]["kdk"]["epsilon"] == [0.0, 0.45]
    assert set(header["versions"]) >= {"jax", "flax", "numpy", "python"}
    assert sum(len(s["settings"]) for s in header["shards"]) == header["settings"] == 24
    assert header["data"]["party_shapes"] == [[8, 4], [8, 4]]


def test_reading_one_setting_leaves_the_other_shards_alone(workdir):
    stored = store.load(workdir)
    setting = stored.setting(0)
    for shard in (workdir / "shards").iterdir():
        if shard != setting.shard:
            shutil.rmtree(shard)
    assert setting.weights()["bottoms"]["0"]["params"]["Dense_0"]["bias"].shape == (8,)
    assert setting.exchange()["party0_embeddings"].shape == (2, 320, 4)


def test_one_lane_equals_that_lane_of_the_whole_checkpoint(tiny_sweep):
    stored = store.load(tiny_sweep)
    setting = stored.setting(7)
    whole = checkpoint.load(setting.shard / "checkpoint")
    import jax

    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a[setting.lane], b), whole, setting.weights()
    )


def test_splits_hold_disjoint_stratified_rows(tiny_sweep):
    splits = store.load(tiny_sweep).splits()
    for seed in range(2):
        parts = [splits[part][seed] for part in ("train", "validation", "test")]
        assert len(set(np.concatenate(parts))) == 640
        assert np.bincount(splits["labels"][parts[0]]).min() >= 28


@pytest.mark.parametrize("damage", ["truncate", "flip", "delete"])
@pytest.mark.parametrize("part", ["exchange/party0_gradients.npy", "results.parquet", "checkpoint"])
def test_a_damaged_shard_is_named_with_its_remedy_and_nothing_is_lost(workdir, damage, part):
    shard = one_shard(workdir)
    path = shard / part
    if path.is_dir():
        path = max((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    content = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    else:
        path.unlink()
    others = {p: p.read_bytes() for p in workdir.rglob("*.parquet") if shard not in p.parents}
    made = lab.prepare(TINY)
    shutil.rmtree(workdir / "attacks")
    with pytest.raises(UserError) as error:
        attacking.run(made, workdir, say=lambda line: None)
    assert str(shard) in str(error.value)
    assert "delete" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert all(p.read_bytes() == c for p, c in others.items() if "attacks" not in str(p))


def test_a_damaged_checkpoint_read_by_setting_is_one_clear_line(workdir):
    setting = store.load(workdir).setting(0)
    for path in (setting.shard / "checkpoint").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with pytest.raises(UserError, match="corrupted"):
        setting.weights()


def test_a_deleted_damaged_shard_is_trained_again(workdir, tiny_sweep):
    shutil.rmtree(one_shard(workdir))
    assert comparable(train(workdir, TINY).attacks) == comparable(store.load(tiny_sweep).attacks)


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "corrupted"), ("{}", "corrupted"), ("[]", "corrupted"), ('{"schema": 99}', "schema 99")],
)
def test_a_damaged_header_is_one_clear_line(tmp_path, content, message):
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(UserError, match=message):
        store.load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_damaged_summary_of_attacks_is_one_clear_line(tmp_path, content):
    (tmp_path / "attacks.json").write_text(content)
    with pytest.raises(UserError, match="attacks.json is corrupted: delete it"):
        store.attack_summary(tmp_path)


def test_a_field_that_came_later_had_its_default_then(workdir):
    header = store.read_header(workdir)
    old = json.loads(json.dumps(header))
    del old["config"]["training"]["class_weights"]
    (workdir / "sweep.json").write_text(json.dumps(old))
    assert store.begin(workdir, header)["config"] == old["config"]
    changed = json.loads(json.dumps(header))
    changed["config"]["training"]["class_weights"] = [1.0] * 10
    with pytest.raises(UserError, match="training.class_weights"):
        store.begin(workdir, changed)


def test_a_folder_without_a_sweep_says_so(tmp_path):
    with pytest.raises(UserError, match="holds no sweep"):
        store.load(tmp_path)


def test_an_unknown_setting_is_named(tiny_sweep):
    with pytest.raises(UserError, match="setting 999"):
        store.load(tiny_sweep).setting(999)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    store.write_text(path, "old")
    monkeypatch.setattr(store.os, "replace", lambda *a: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        store.write_text(path, "new")
    assert path.read_text() == "old"


def test_tables_are_exported_whole(workdir):
    store.export(workdir)
    import pyarrow.parquet as pq

    assert pq.read_table(workdir / "results.parquet").num_rows == 24
    assert (workdir / "results.csv").read_text().count("\n") == 25
    attacks = json.loads((workdir / "attacks.json").read_text())
    assert attacks["passive"]["compiles"] == 1
