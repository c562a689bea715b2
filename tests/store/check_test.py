"""What ``inspect`` says of every part of a sweep."""

import errno
import os
import shutil
import stat

import numpy as np
import pytest

from tests.sweeps import attack_units, flip
from vfljax import store
from vfljax.errors import UserError
from vfljax.store import check, exchange, manifest, units


def damaged(workdir):
    return [f.unit for f in store.inspect(workdir) if f.state == check.DAMAGED]


def test_every_part_of_a_sound_sweep_is_sound(workdir):
    findings = list(store.inspect(workdir))
    units = [unit.name for unit in store.units_of(store.read_header(workdir))]
    shared = [f"shared/{name}" for name in store.shared_names(workdir)]
    assert len(shared) == 2
    assert sorted(finding.unit for finding in findings) == sorted([*units, *shared])
    assert {finding.state for finding in findings} == {check.SOUND}


@pytest.mark.parametrize(
    ("pattern", "depth"),
    [
        ("shared/splits-*/arrays.npz", 2),
        ("shards/*/checkpoint/d/*", 2),
        ("local_only/*/rows.parquet", 2),
        ("attacks/*/*/manifest.json", 3),
    ],
)
def test_a_flipped_bit_is_found_in_its_part_alone(workdir, pattern, depth):
    path = sorted(workdir.glob(pattern))[-1]
    unit = "/".join(path.relative_to(workdir).parts[:depth])
    flip(path)
    before = {p: p.read_bytes() for p in workdir.rglob("*") if p.is_file()}
    assert damaged(workdir) == [unit]
    assert {p: p.read_bytes() for p in before} == before  # it only looks


def test_a_record_or_copy_that_is_damaged_is_written_from_the_other(workdir):
    for name in ("sweep.json", "sweep.copy.json"):
        whole = (workdir / name).read_bytes()
        flip(workdir / name)
        assert damaged(workdir) == [name]
        store.write(workdir, store.read_header(workdir))
        assert (workdir / name).read_bytes() == whole


def test_units_that_the_plan_does_not_name_are_damage(workdir):
    units = store.units_of(store.read_header(workdir))
    names = [next(u.name for u in units if u.kind == kind) for kind in ("shards", "attacks")]
    for name in names:
        (workdir / name).rename(workdir / f"{name}9")
    states = {finding.unit: finding.state for finding in store.inspect(workdir)}
    assert {states[f"{name}9"] for name in names} == {check.DAMAGED}
    assert {states[name] for name in names} == {check.MISSING}


def test_a_unit_of_another_sweep_is_damage(workdir):
    header = store.read_header(workdir)
    store.write(workdir, {**header, "id": "another"})
    assert {finding.state for finding in store.inspect(workdir)} == {check.DAMAGED}
    with pytest.raises(store.Damaged, match="of the sweep "):
        store.load(workdir)


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


def test_a_file_that_may_not_be_read_is_not_damaged(workdir, monkeypatch):
    """Permissions do not hold for root, so that the reader of files is replaced."""
    place = sorted(workdir.glob("shards/*/exchange.safetensors"))[0]
    digest, tables = manifest.digest, units.pq.read_table
    unit = str(place.parent.relative_to(workdir))

    def forbidden(path):
        if path == place:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return digest(path)

    monkeypatch.setattr(manifest, "digest", forbidden)
    monkeypatch.setattr(manifest, "_CHECKED", {})
    states = {finding.unit: finding for finding in store.inspect(workdir)}
    assert states[unit].state == check.UNREADABLE
    assert {of.state for name, of in states.items() if name != unit} == {check.SOUND}
    with pytest.raises(UserError, match="may not be read .*chmod -R g") as error:
        manifest.open_folder(workdir, unit).check_all()
    assert not isinstance(error.value, store.Damaged)

    def tensors(path):
        raise ValueError("cannot open: Permission denied")

    monkeypatch.setattr(units.pq, "read_table", tensors)
    monkeypatch.setattr(units.pa, "ArrowException", ValueError)
    with pytest.raises(UserError, match="may not be read"):
        store.load(workdir)
    monkeypatch.setattr(units.pq, "read_table", tables)


def test_every_file_has_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o002)
    try:
        exchange.write(tmp_path / "exchange.safetensors", {"a": np.zeros((1, 2))})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "exchange.safetensors").stat().st_mode) == 0o664
    assert [path.name for path in tmp_path.iterdir()] == ["exchange.safetensors"]
