"""A sweep that other code stored (schema 3) and a kill interrupted: it loads, resumes and is attacked.

tests/fixtures/stored_sweep: 00000 to 00004 are trained, 00005 was killed after one of three epochs, 00006
was never begun; direct, probe and norm were run on what was trained then, passive was killed after its
first block, active was never run. stored_sweep_expected.json: what was stored. Of what is
trained and attacked anew only the rows are compared, since its last digits are those of a processor. The
completions' rule has changed since: what was stored of passive is kept under its rule's number, and all of
it is attacked by the present rule.
"""

import hashlib
import json
import math
import pathlib
import shutil
from typing import Any

import jax
import numpy as np
import pytest

from tests.sweeps import comparable
from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.report import not_run, summary
from vfljax.sweep import train, trainer
from vfljax.sweep.experiment import experiment_of

FIXTURE = pathlib.Path(__file__).parent / "fixtures" / "stored_sweep"
EXPECTED = json.loads(FIXTURE.with_name("stored_sweep_expected.json").read_text())
KILLED = "00005-kdk+noise"


def rows_of(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values())]


def digest(array: np.ndarray) -> str:
    array = np.ascontiguousarray(array)
    text = f"{array.dtype} {array.shape} ".encode()
    return hashlib.sha256(text + array.tobytes()).hexdigest()[:16]


def digests(tree: Any) -> dict[str, str]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {"/".join(str(key.key) for key in path): digest(leaf) for path, leaf in leaves}


@pytest.fixture
def workdir(tmp_path):
    return shutil.copytree(FIXTURE, tmp_path / "w")


def test_a_stored_sweep_loads_exactly(workdir):
    loaded, stored = store.load(workdir), EXPECTED["stored"]
    assert loaded.results.to_pylist() == rows_of(stored["results"])
    assert loaded.attacks.to_pylist() == rows_of(stored["attacks"])
    for name in loaded.results["shard"].unique().to_pylist():
        store.verify(workdir / "shards" / name, deep=True)
    for number, expected in stored["weights"].items():
        setting = loaded.setting(int(number))
        assert digests(setting.weights()) == expected
        arrays = {name: digest(array) for name, array in setting.exchange().items()}
        assert arrays == stored["exchange"][number]
    assert loaded.splits()["train"].shape == (2, 48)
    # nobody who stays away was scored then: he is no candidate, and the report says so
    assert loaded.alone.num_rows == 0
    points = summary.points(loaded)
    assert all(math.isnan(worst.excess.mean) for p in points for worst in p.worst.values())
    (said,) = [line for line in not_run.not_attacked(loaded, points) if "no candidate" in line]
    assert "with 10 or 20 known labels" in said


def test_a_stored_sweep_goes_on_where_it_was_killed(workdir, monkeypatch):
    def contents():
        kept = [*workdir.glob("shards/*/**/*"), *workdir.glob("attacks/*/*-*.parquet")]
        return {p: p.read_bytes() for p in kept if p.is_file()}

    before, attacked = contents(), comparable(store.load(workdir).attacks)
    read, saved = [], []
    original, write = store.read_partial, store.write_partial

    def reading(where, name):
        partial = original(where, name)
        read.append((name, partial and partial[0]))
        return partial

    def writing(where, name, done, *rest):
        saved.append((name, done))
        write(where, name, done, *rest)

    monkeypatch.setattr(store, "read_partial", reading)
    monkeypatch.setattr(store, "write_partial", writing)
    monkeypatch.setattr(trainer, "SAVE_SECONDS", 0.0)
    experiment = experiment_of(store.load(workdir))
    plan = train.train_sweep(experiment, workdir, "test", say=lambda line: None)
    assert read == [(KILLED, 1), ("00006-kdk+noise-no_split", None)]
    # after the first of its three epochs, the killed shard's second: the first is not trained again
    assert [done for name, done in saved if name == KILLED] == [2]
    assert [done for name, done in saved if name != KILLED] == [1, 2]
    assert not any((workdir / "partial").iterdir())
    attack_sweep(plan, workdir, say=lambda line: None)

    after = contents()
    assert {path: after.get(path) for path in before} == before  # nothing stored was touched
    loaded, expected = store.load(workdir), EXPECTED["continued"]
    results, attacks = loaded.results.to_pylist(), loaded.attacks.to_pylist()
    stored = {row["setting"]: row for row in rows_of(EXPECTED["stored"]["results"])}
    for row in results:
        if row["setting"] in stored:
            assert row == stored[row["setting"]]
        assert row["status"] == "ok"
        assert 0 < row["test_accuracy"] <= 1
    assert [row["setting"] for row in results] == expected["settings"]
    by_name = {(row["attack"], row["setting"], row["point"]): row for row in attacks}
    present = [row for row in attacks if "/rule=" not in row["attack"]]
    rows = [[row["attack"], row["setting"], row["point"]] for row in present]
    assert rows == expected["attacks"]
    assert all(0 <= row["leak"] <= 1 for row in present)
    assert {row["attack"] for row in attacks} - {row["attack"] for row in present} == {
        store.with_rule("passive", 1)
    }
    for row in attacked:  # exactly, where it stood before; baselines may have come beside it
        label = store.with_rule("passive", 1) if row["attack"] == "passive" else row["attack"]
        row = {**row, "attack": label}
        now = by_name[row["attack"], row["setting"], row["point"]]
        assert {n: now[n] for n, v in row.items() if v is not None} == {
            n: v for n, v in row.items() if v is not None
        }
    assert {(row["attack.known"], row["seed"]) for row in loaded.alone.to_pylist()} == {
        *((10, 0), (10, 1), (20, 0), (20, 1))
    }
    described = store.attack_summary(workdir)
    assert {
        label: {name: described[label].get(name) for name in values}
        for label, values in expected["summary"].items()
    } == expected["summary"]
