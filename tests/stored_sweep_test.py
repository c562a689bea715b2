"""A sweep that other code stored and a kill interrupted: it loads, resumes and is attacked."""

import json
import shutil

import pytest

from tests.stored_sweep import EXPECTED, FIXTURE, KILLED, contents
from tests.sweeps import attack_units, comparable, silent
from vfljax import store
from vfljax.scheduling import running
from vfljax.store import units
from vfljax.sweep import shard_trainer
from vfljax.sweep.grid import experiment_of

pytestmark = pytest.mark.usefixtures("real_learners")


@pytest.fixture
def workdir(tmp_path):
    return shutil.copytree(FIXTURE, tmp_path / "w")


def test_a_stored_sweep_loads_exactly(workdir):
    now, stored = contents(workdir), json.loads(EXPECTED.read_text())
    assert json.dumps(now) == json.dumps(stored)  # as text: NaN too
    for unit in store.units_of(store.read_header(workdir)):
        if store.finished(workdir, unit.name):
            store.verify_unit(workdir, unit.name)


def test_a_stored_sweep_goes_on_where_it_was_killed_and_is_attacked(workdir, monkeypatch):
    def kept():
        folders = ("shared", "shards", "local_only", "attacks")
        paths = [path for name in folders for path in (workdir / name).rglob("*")]
        return {p: p.read_bytes() for p in paths if p.is_file()}

    def rows_of(sweep):
        names = ("label", "trial", "attack_configuration")
        rows = {tuple(row[name] for name in names): row for row in comparable(sweep.attacks)}
        return comparable(sweep.results), rows, comparable(sweep.local_only)

    before, names = rows_of(store.load(workdir)), attack_units(workdir, "direct/most_negative")
    unit_name = next(name for name in names if (workdir / name).is_dir())
    shutil.rmtree(workdir / unit_name)  # to be made again from what the other code stored
    files = kept()
    read, saved = [], []
    read_partial, write_partial = store.read_partial, store.write_partial

    def reading(where, name):
        partial = read_partial(where, name)
        read.append((name, partial and partial[0]))
        return partial

    def writing(where, name, done, *rest):
        saved.append((name, done))
        write_partial(where, name, done, *rest)

    monkeypatch.setattr(store, "read_partial", reading)
    monkeypatch.setattr(store, "write_partial", writing)
    monkeypatch.setattr(shard_trainer, "SAVE_SECONDS", 0.0)

    def may(unit):  # a shard and an attack alone
        some = {units.SHARD: f"shards/{KILLED}", units.ATTACK: unit_name}
        return unit.name == some.get(unit.kind, unit.name)

    experiment = experiment_of(store.load(workdir))
    running.finish(experiment, workdir, "test", silent, may=may).check()
    assert read == [(KILLED, 1)]
    # after the first of its three epochs, the killed shard's second: the first is not trained again
    assert saved == [(KILLED, 2)]
    assert not [path for path in (workdir / "partial/shards").rglob("*") if path.is_file()]

    after = kept()
    assert {path: after.get(path) for path in files} == files  # nothing stored was touched
    finished = store.load(workdir)
    assert store.finished(workdir, unit_name)
    results, attacks, alone = rows_of(finished)
    assert all(any(row.items() <= other.items() for other in results) for row in before[0])
    entries = store.read_header(workdir)["attacks"].values()
    outdated = {entry["label"] for entry in entries if entry.get("outdated")}
    # baselines may have come beside it, and attacks of an earlier rule are to be run again
    for key, row in ((key, row) for key, row in before[1].items() if key[0] not in outdated):
        for name, value in row.items():
            expected = pytest.approx(value, abs=1e-3) if isinstance(value, float) else value
            assert value is None or attacks[key][name] == expected
    assert all(any(row.items() <= other.items() for other in alone) for row in before[2])
    ids = {row["trial"] for row in results}
    assert len(ids) == len(results) == len(before[0]) + 4
