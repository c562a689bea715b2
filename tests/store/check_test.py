"""What ``inspect`` says of every part of a sweep, and what ``mend`` sets aside."""

import shutil

import numpy as np
import pytest

from tests.sweeps import attack_units, flip
from vfljax import store
from vfljax.store import check


def damaged(workdir):
    return [f.unit for f in store.inspect(workdir) if f.state == check.DAMAGED]


def contents(workdir):
    return {path.read_bytes() for path in workdir.rglob("*") if path.is_file()}


def test_every_part_of_a_sound_sweep_is_sound(workdir):
    findings = list(store.inspect(workdir))
    units = [unit.name for unit in store.units_of(store.read_header(workdir))]
    shared = [f"shared/{name}" for name in store.shared_names(workdir)]
    assert len(shared) == 2
    assert sorted(finding.unit for finding in findings) == sorted([*units, *shared])
    assert {finding.state for finding in findings} == {check.SOUND}
    assert store.mend(workdir) == []


@pytest.mark.parametrize(
    ("pattern", "depth"),
    [
        ("shared/splits-*/arrays.npz", 2),
        ("shards/*/checkpoint/d/*", 2),
        ("local_only/*/rows.parquet", 2),
        ("attacks/*/*/manifest.json", 3),
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
    kept = [p for p in before if p not in gone]
    assert all(p.read_bytes() == before[p] for p in kept)
    assert {before[p] for p in gone} <= contents(workdir / "damaged")


def test_a_record_or_copy_that_is_damaged_is_written_from_the_other(workdir):
    for name in ("sweep.json", "sweep.copy.json"):
        whole = (workdir / name).read_bytes()
        flip(workdir / name)
        assert damaged(workdir) == [name]
        store.mend(workdir)
        assert (workdir / name).read_bytes() == whole


def test_units_that_the_plan_does_not_name_are_damage(workdir):
    units = store.units_of(store.read_header(workdir))
    names = [next(u.name for u in units if u.kind == kind) for kind in ("shards", "attacks")]
    for name in names:
        (workdir / name).rename(workdir / f"{name}9")
    states = {finding.unit: finding.state for finding in store.inspect(workdir)}
    assert {states[f"{name}9"] for name in names} == {check.DAMAGED}
    assert {states[name] for name in names} == {check.MISSING}
    assert {finding.unit for finding in store.mend(workdir)} == {f"{name}9" for name in names}
    assert damaged(workdir) == []
    assert len(store.load(workdir).unfinished) == 2


def test_a_unit_of_another_sweep_is_damage(workdir):
    header = store.read_header(workdir)
    store.write(workdir, {**header, "id": "another"})
    assert {finding.state for finding in store.inspect(workdir)} == {check.DAMAGED}
    with pytest.raises(store.Damaged, match="of the sweep "):
        store.load(workdir)


def test_a_second_damage_of_one_part_is_set_aside_beside_the_first(workdir):
    shard = sorted((workdir / "shards").iterdir())[0]
    copy = shutil.copytree(shard, workdir.parent / "copy")
    for number in range(2):
        flip(shard / "results.parquet")
        store.mend(workdir)
        assert (workdir / "damaged" / f"shards_{shard.name}.{number}").is_dir()
        shutil.copytree(copy, shard)
    assert damaged(workdir) == []


def test_saved_progress_of_missing_units_is_checked_too(workdir):
    name = store.read_header(workdir)["shards"][0]["name"]
    (attack,) = attack_units(workdir, "passive")
    for unit in (f"shards/{name}", attack):
        shutil.rmtree(workdir / unit)
    store.write_partial(workdir, name, 1, {"progress": {"00000": np.ones((2, 3))}})
    store.write_partial_rows(workdir, attack, [{"trial": 1}])
    states = {finding.unit: finding.state for finding in store.inspect(workdir)}
    saves = [f"partial/{unit}/1" for unit in (f"shards/{name}", attack)]
    for unit, save in zip((f"shards/{name}", attack), saves, strict=True):
        assert (states[unit], states[save]) == (check.MISSING, check.SOUND)
        flip(workdir / save / "manifest.json")
    assert damaged(workdir) == saves
    store.mend(workdir)
    assert damaged(workdir) == []
    assert store.read_partial(workdir, name) is None
    assert store.read_partial_rows(workdir, attack) == []
