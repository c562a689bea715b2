"""Units on disk: made once, read lazily, refused when damaged, never overwritten."""

import json
import shutil

import numpy as np
import pytest

from tests.damage import Killed
from tests.refusals import refused
from tests.sweeps import attack, drop_units, flip
from vfljax import store
from vfljax.errors import UserError
from vfljax.store import atomic, sealed, units

SHARD, ATTACK = "a", "attacks/norm.rule1/000"


def test_an_attack_on_a_damaged_shard_is_refused_with_the_remedy_and_nothing_is_lost(workdir):
    shard = sorted((workdir / "shards").iterdir())[0]
    flip(shard / "exchange.safetensors")
    drop_units(workdir, "direct/most_negative")
    others = {p: p.read_bytes() for p in workdir.rglob("*.parquet") if shard not in p.parents}
    with refused(f"{shard} is damaged", f"`vfljax sweep --workdir={workdir}`"):
        attack(workdir, ["direct"])
    assert all(p.read_bytes() == c for p, c in others.items())


@pytest.mark.parametrize("content", ["", "{}"])
def test_a_damaged_header_is_one_clear_line(tmp_path, content):
    (tmp_path / "sweep.json").write_text(content)
    message = r"sweep\.json is damaged .*: restore it, or start in a new workdir"
    with pytest.raises(UserError, match=message):
        store.load(tmp_path)


def test_a_field_that_came_later_had_its_default_then(workdir):
    stored = store.read_header(workdir)
    old = json.loads(json.dumps(stored))
    del old["config"]["training"]["class_weights"]
    sealed.write_root(workdir, old)
    assert store.begin(workdir, stored)["config"] == stored["config"]
    changed = json.loads(json.dumps(stored))
    changed["config"]["training"]["class_weights"] = [1.0] * 10
    with pytest.raises(UserError, match="training.class_weights"):
        store.begin(workdir, changed)


# --- which units there are, and in which order ---


def entry(cost, skip_settled=True, status="ok", **more):
    about = {"attack": "norm", "status": status, "cost": cost, "skip_settled": skip_settled}
    return {**about, **more}


def header_of(**attacks):
    shards = [{"name": f"{n}", "group": f"group {n // 2}", "stage": 0} for n in range(3)]
    blocks = [["0", "1"], ["2"]]
    return {"shards": shards, "blocks": blocks, "local_only": [{"known": 4}], "attacks": attacks}


def test_an_attack_comes_after_its_shards_and_after_cheaper_attacks_on_the_same_block():
    attacks = {"dear": entry(2), "cheap": entry(0), "none": entry(0, status="skipped")}
    found = {unit.name: unit for unit in store.units_of(header_of(**attacks))}
    assert [*found] == [
        *("shards/0", "shards/1", "shards/2", "local_only/000"),
        *("attacks/cheap/000", "attacks/cheap/001", "attacks/dear/000", "attacks/dear/001"),
    ]
    assert found["attacks/dear/000"].needs == ("shards/0", "shards/1")
    assert found["attacks/dear/001"].after == ("attacks/cheap/001",)
    assert found["attacks/cheap/001"].after == ()
    assert found["shards/1"].program == found["shards/0"].program != found["shards/2"].program
    # an attack that nothing settles waits for no other
    alone = header_of(dear=entry(2, skip_settled=False), cheap=entry(0))
    assert not any(unit.after for unit in store.units_of(alone))


def test_units_of_earlier_stages_come_first():
    header = header_of(a=entry(0), b=entry(1))
    header["shards"][2]["stage"] = 1
    found = [(unit.stage, unit.name) for unit in store.units_of(header)]
    assert [stage for stage, _ in found] == sorted(stage for stage, _ in found)
    assert [name for stage, name in found if stage] == [
        *("shards/2", "attacks/a/001", "attacks/b/001")
    ]


def test_units_of_an_earlier_rule_are_listed_on_request_only():
    header = header_of(old=entry(0, outdated=True), new=entry(0))
    assert {unit.of for unit in store.units_of(header) if unit.kind == units.ATTACK} == {"new"}
    every = store.units_of(header, outdated=True)
    assert {unit.of for unit in every if unit.kind == units.ATTACK} == {"old", "new"}


# --- finished units ---


def test_units_of_attacks_are_read_as_one_table_and_may_have_no_rows(tmp_path):
    names = ["attacks/a/000", "attacks/a/001", "attacks/a/002"]
    assert not store.finished(tmp_path, names[2])
    for name, rows in zip(names, ([{"trial": 1}], [{"trial": 2, "leak": 0.5}], []), strict=True):
        store.write_rows(tmp_path, name, rows)
        assert store.finished(tmp_path, name)
    rows = store.read_rows(tmp_path, names).to_pylist()
    assert rows == [{"trial": 1, "leak": None}, {"trial": 2, "leak": 0.5}]
    (tmp_path / names[0] / "rows.parquet").unlink()
    with pytest.raises(store.Damaged, match=r"rows\.parquet: no such file"):
        store.finished(tmp_path, names[0])  # it is damaged, and not made again


def test_a_unit_that_another_process_makes_meanwhile_stays(tmp_path, monkeypatch):
    rename, made = atomic.os.replace, []

    def late(source, target):
        if not made and str(target).endswith(ATTACK):
            made.append(shutil.copytree(tmp_path / "other" / ATTACK, target))
        rename(source, target)

    store.write_rows(tmp_path / "other", ATTACK, [{"trial": 1}])
    monkeypatch.setattr(atomic.os, "replace", late)
    store.write_rows(tmp_path, ATTACK, [{"trial": 2}])
    assert made
    assert store.read_rows(tmp_path, [ATTACK])["trial"].to_pylist() == [1]
    assert [path.name for path in (tmp_path / ATTACK).parent.iterdir()] == ["000"]


# --- arrays that units share ---


def test_keyed_arrays_are_added_to_and_none_is_replaced(tmp_path):
    store.write_keyed(tmp_path, "teachers", {"0-ab": np.arange(3)})
    store.write_keyed(tmp_path, "teachers", {"1-cd": np.arange(2)})
    store.write_keyed(tmp_path, "teachers", {"0-ab": np.zeros(3)})
    store.write_keyed(tmp_path, "teachers", {})
    found = store.read_keyed(tmp_path, "teachers")
    assert {name: array.tolist() for name, array in found.items()} == {
        "0-ab": [0, 1, 2],
        "1-cd": [0, 1],
    }
    assert store.read_keyed(tmp_path, "codebooks") == {}
    path = next((tmp_path / "shared").glob("*/arrays.npz"))
    flip(path)
    with pytest.raises(store.Damaged, match=f"shared/{path.parent.name} is damaged"):
        store.read_keyed(tmp_path, "teachers")


# --- progress of unfinished units ---


def tree(value):
    return {"progress": {"00000": np.full((2, 3), value, np.float32)}}


def saved_after(workdir):
    """The epochs that the last save is of, and its value."""
    done, saved = store.read_partial(workdir, SHARD)
    return done, float(saved["progress"]["00000"].mean())


def saves(workdir):
    return [path.name for path in (workdir / "partial" / "shards" / SHARD).iterdir()]


def test_saved_progress_is_read_back_and_the_last_save_alone_stays(tmp_path):
    assert store.read_partial(tmp_path, SHARD) is None
    for done in (1, 2):
        store.write_partial(tmp_path, SHARD, done, tree(done))
        assert saved_after(tmp_path) == (done, done)
    assert saves(tmp_path) == ["2"]


def test_saved_rows_are_read_back_and_gone_when_the_unit_is_finished(tmp_path):
    assert store.read_partial_rows(tmp_path, ATTACK) == []
    rows = [{"trial": 1}, {"trial": 2}]
    for count in (1, 2):
        store.write_partial_rows(tmp_path, ATTACK, rows[:count])
        assert store.read_partial_rows(tmp_path, ATTACK) == rows[:count]
    assert [path.name for path in (tmp_path / "partial" / ATTACK).iterdir()] == ["2"]
    flip(tmp_path / "partial" / ATTACK / "2" / "rows.parquet")
    with pytest.raises(store.Damaged, match=f"partial/{ATTACK}/2 is damaged"):
        store.read_partial_rows(tmp_path, ATTACK)
    store.write_rows(tmp_path, ATTACK, rows)
    assert not (tmp_path / "partial" / ATTACK).exists()


def test_no_flipped_bit_of_saved_progress_is_trained_on(tmp_path):
    store.write_partial(tmp_path, SHARD, 1, tree(1))
    save = tmp_path / "partial" / "shards" / SHARD / "1"
    for path in sorted(p for p in save.rglob("*") if p.is_file() and p.stat().st_size):
        content = path.read_bytes()
        flip(path)
        match = r"partial/shards/a/1 is damaged .*: delete it, and"
        with pytest.raises(store.Damaged, match=match):
            store.read_partial(tmp_path, SHARD)
        path.write_bytes(content)
    assert saved_after(tmp_path) == (1, 1)
    save.rename(save.with_name("x"))
    with pytest.raises(store.Damaged, match="it holds what no sweep writes"):
        store.read_partial(tmp_path, SHARD)


@pytest.mark.parametrize(("where", "kept"), [("replace", 1), ("remove", 2)])
def test_a_kill_between_two_saves_loses_neither(tmp_path, monkeypatch, where, kept):
    """Before the new save is in place, and after that, before the old one goes."""
    store.write_partial(tmp_path, SHARD, 1, tree(1), width=1)

    def kill(*arguments):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(
            *{"replace": (atomic.os, "replace"), "remove": (units, "remove_at_once")}[where], kill
        )
        with pytest.raises(Killed):
            store.write_partial(tmp_path, SHARD, 2, tree(2), width=2)
    assert saved_after(tmp_path) == (kept, kept)
    assert store.width_of_shard(tmp_path, SHARD) == kept
    store.write_partial(tmp_path, SHARD, 3, tree(3), width=4)
    assert saved_after(tmp_path) == (3, 3)
    assert saves(tmp_path) == ["3"]
    # a job elsewhere may remove a save that it has replaced, file by file
    shutil.rmtree(tmp_path / "partial" / "shards" / SHARD / "3" / "checkpoint")
    assert store.width_of_shard(tmp_path, SHARD) == 4
