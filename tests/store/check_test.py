"""What ``inspect`` says of every part of a sweep, and what ``mend`` sets aside."""

import shutil

import numpy as np
import pytest

from tests.sweeps import flip
from vfljax import store
from vfljax.store import check, directory


def damaged(workdir):
    return [f.unit for f in store.inspect(workdir) if f.state == check.DAMAGED]


def contents(workdir):
    return {path.read_bytes() for path in workdir.rglob("*") if path.is_file()}


def test_every_part_of_a_sound_sweep_is_sound(workdir):
    findings = list(store.inspect(workdir))
    shards = sorted(f"shards/{path.name}" for path in (workdir / "shards").iterdir())
    forms = sorted(f"attacks/{path.name}" for path in (workdir / "attacks").iterdir())
    units = sorted(finding.unit for finding in findings)
    assert units == sorted(["splits.npz", "teacher.npz", *shards, *forms])
    assert {finding.state for finding in findings} == {check.SOUND}
    assert store.mend(workdir) == []


@pytest.mark.parametrize(
    ("pattern", "depth"),
    [
        ("splits.npz", 1),
        ("teacher.npz", 1),
        ("shards/*/results.parquet", 2),
        ("shards/*/exchange/*.npy", 2),
        ("shards/*/checkpoint/d/*", 2),
        ("shards/*/manifest.json", 2),
        ("attacks/*/*.parquet", 2),
        ("attacks/*/manifest.json", 2),
    ],
)
def test_a_flipped_bit_is_found_and_its_part_alone_is_set_aside(workdir, pattern, depth):
    path = sorted(workdir.glob(pattern))[-1]
    unit = "/".join(path.relative_to(workdir).parts[:depth])
    flip(path)
    before = {p: p.read_bytes() for p in workdir.rglob("*") if p.is_file()}
    assert damaged(workdir) == [unit]
    assert {p: p.read_bytes() for p in before} == before  # it only looks
    assert [finding.unit for finding in store.mend(workdir)] == [unit]
    assert damaged(workdir) == []
    assert (workdir / "damaged" / f"{unit.replace('/', '_')}.0").exists()
    gone = [p for p in before if p.is_relative_to(workdir / unit)]
    kept = [p for p in before if p not in gone and p.name != "manifest.json"]
    assert all(p.read_bytes() == before[p] for p in kept)
    assert {before[p] for p in gone} <= contents(workdir / "damaged")


@pytest.mark.parametrize(
    "name", ["sweep.json", "sweep.copy.json", "attacks.json", "attacks.copy.json"]
)
def test_a_record_or_copy_that_is_damaged_is_written_from_the_other(workdir, name):
    whole = (workdir / name).read_bytes()
    flip(workdir / name)
    assert damaged(workdir) == [name]
    store.mend(workdir)
    assert (workdir / name).read_bytes() == whole


@pytest.mark.parametrize("harm", [flip, lambda path: path.unlink()], ids=["flip", "delete"])
def test_where_both_copies_of_what_attacks_are_is_lost_the_rows_are_set_aside_too(workdir, harm):
    rows = {path.read_bytes() for path in workdir.glob("attacks/*/*.parquet")}
    for name in ("attacks.json", "attacks.copy.json"):
        harm(workdir / name)
    store.mend(workdir)
    assert damaged(workdir) == []
    assert store.attack_summary(workdir) == {}
    assert store.load(workdir).attacks.num_rows == 0
    assert rows <= contents(workdir / "damaged")


def test_folders_that_the_plan_does_not_name_are_damage(workdir):
    shard = sorted((workdir / "shards").iterdir())[0]
    shard.rename(shard.with_name("new"))
    states = {finding.unit: finding.state for finding in store.inspect(workdir)}
    assert states["shards/new"] == check.DAMAGED
    assert states[f"shards/{shard.name}"] == check.MISSING
    with pytest.raises(store.Damaged, match="the plan names no such shard"):
        store.load(workdir)
    store.mend(workdir)
    assert "1 of 4 shards are not trained" in store.load(workdir).unfinished


def test_a_second_damage_of_one_part_is_set_aside_beside_the_first(workdir):
    shard = sorted((workdir / "shards").iterdir())[0]
    copy = shutil.copytree(shard, workdir.parent / "copy")
    for number in range(2):
        flip(shard / "results.parquet")
        store.mend(workdir)
        assert (workdir / "damaged" / f"shards_{shard.name}.{number}").is_dir()
        shutil.copytree(copy, shard)
    assert damaged(workdir) == []


def test_saved_progress_of_a_missing_shard_is_checked_too(workdir):
    name = store.read_header(workdir)["shards"][0]["name"]
    shutil.rmtree(workdir / "shards" / name)
    directory.write_partial(workdir, name, 1, {"progress": {"00000": np.ones((2, 3))}})
    states = {finding.unit: finding.state for finding in store.inspect(workdir)}
    assert states[f"shards/{name}"] == check.MISSING
    assert states[f"partial/{name}"] == check.SOUND
    flip(workdir / "partial" / name / "1" / "manifest.json")
    assert damaged(workdir) == [f"partial/{name}/1"]
    store.mend(workdir)
    assert damaged(workdir) == []
    assert store.read_partial(workdir, name) is None
