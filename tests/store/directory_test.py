"""What is on disk: read lazily, refused when damaged, never overwritten."""

import json
import shutil

import pytest

from tests.sweeps import TINY, comparable, plan_of, train
from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.errors import UserError
from vfljax.store import directory, files, roots


@pytest.fixture
def workdir(tiny_sweep, tmp_path):
    return shutil.copytree(tiny_sweep, tmp_path / "w")


@pytest.fixture(scope="module")
def planned():
    """The tiny sweep's plan: what attacks it."""
    return plan_of(TINY)


def one_shard(workdir):
    return sorted((workdir / "shards").iterdir())[0]


def test_a_damaged_result_table_is_named_when_it_is_read(workdir):
    path = one_shard(workdir) / "results.parquet"
    path.write_bytes(path.read_bytes()[::-1])  # of the right size: the manifest's sizes agree
    refusal = (
        r"results\.parquet does not match its checksum.*--mend` sets it aside and makes it again"
    )
    with pytest.raises(UserError, match=refusal) as error:
        store.load(workdir)
    assert f"{one_shard(workdir)} is damaged" in str(error.value)


def test_the_directory_describes_itself(tiny_sweep):
    header = store.load(tiny_sweep).header
    assert header["schema"] == store.SCHEMA
    assert header["config"]["grid"]["kdk"]["kdk"]["epsilon"] == [0.0, 0.45]
    assert set(header["versions"]) >= {"jax", "flax", "numpy", "python"}
    assert sum(len(s["settings"]) for s in header["shards"]) == header["settings"] == 24
    assert header["data"]["party_shapes"] == [[8, 4], [8, 4]]


@pytest.mark.parametrize("damage", ["truncate", "flip", "delete"])
@pytest.mark.parametrize("part", ["exchange/party0_gradients.npy", "results.parquet", "checkpoint"])
def test_a_damaged_shard_is_named_with_its_remedy_and_nothing_is_lost(
    workdir, planned, damage, part
):
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
    with pytest.raises(UserError) as error:
        attack_sweep(planned, workdir, say=lambda line: None)
    assert f"{shard} is damaged" in str(error.value)
    assert f"`python -m launch.sweep --workdir={workdir} --mend`" in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert all(p.read_bytes() == c for p, c in others.items())
    assert [finding.unit for finding in store.mend(workdir)] == [f"shards/{shard.name}"]
    assert not shard.exists()
    assert all(p.read_bytes() == c for p, c in others.items())


def test_a_deleted_damaged_shard_is_trained_again(workdir, tiny_sweep):
    shutil.rmtree(one_shard(workdir))
    assert comparable(train(workdir, TINY).attacks) == comparable(store.load(tiny_sweep).attacks)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"sweep\.json is damaged .*: restore it, or start in a new workdir"),
        ("{}", r"sweep\.json is damaged .*: restore it, or start in a new workdir"),
        ("[]", r"sweep\.json is damaged .*: restore it, or start in a new workdir"),
        ('{"schema": 99}', "schema 99"),
    ],
)
def test_a_damaged_header_is_one_clear_line(tmp_path, content, message):
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(UserError, match=message):
        store.load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_damaged_summary_of_attacks_is_one_clear_line(tmp_path, content):
    (tmp_path / "attacks.json").write_text(content)
    with pytest.raises(UserError, match=r"attacks\.json is damaged .*--mend` sets it aside"):
        store.attack_summary(tmp_path)


def test_a_field_that_came_later_had_its_default_then(workdir):
    header = directory.read_header(workdir)
    old = json.loads(json.dumps(header))
    del old["config"]["training"]["class_weights"]
    roots.write_root(workdir, "sweep", old)
    assert directory.begin(workdir, header)["config"] == old["config"]
    changed = json.loads(json.dumps(header))
    changed["config"]["training"]["class_weights"] = [1.0] * 10
    with pytest.raises(UserError, match="training.class_weights"):
        directory.begin(workdir, changed)


def test_a_folder_without_a_sweep_says_so(tmp_path):
    with pytest.raises(UserError, match="holds no sweep"):
        store.load(tmp_path)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    store.write_text(path, "old")
    monkeypatch.setattr(files.os, "replace", lambda *a: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        store.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
