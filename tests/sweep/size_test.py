"""What a plan needs: disk as a stored sweep has it, and a refusal before anything is written."""

import dataclasses
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from tests.sweeps import TINY, plan_of, tiny
from vfljax import store
from vfljax.errors import UserError
from vfljax.store import exchange
from vfljax.sweep import size
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan
from vfljax.types import Sums


def bytes_in(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_estimate_of_disk_is_that_of_a_stored_sweep_within_a_fifth(tiny_sweep):
    plan = plan_of(TINY)
    needs = size._size_of(plan, plan.shards)
    assert needs.disk == pytest.approx(bytes_in(tiny_sweep / "shards"), rel=0.2)
    assert needs.trials == 24
    for shard in plan.shards:
        stored = bytes_in(tiny_sweep / "shards" / shard.name)
        assert size.bytes_of(plan, shard) == pytest.approx(stored, rel=0.3)


def test_a_large_shard_is_as_large_as_estimated(tmp_path):
    """Written with as many bytes as training would, without training."""
    data = {"name": "synthetic", "train": 4000, "validation": 100, "test": 100}
    changes = {"training.record": (0, 1, -1), "model.cut": 16, "model.hidden": (512,)}
    plan = plan_of(tiny(data=data, attacks={}, grid={"undefended": {}}, **changes))
    shard, spec, rng = plan.shards[0], plan.groups[0].spec, np.random.default_rng(0)
    members, rows = len(shard.trials), spec.recorded_rows
    z = np.zeros((members, rows, 16), np.float32)
    order, sent = np.zeros((members, rows), np.int32), np.zeros((members, rows), bool)
    record = SimpleNamespace(order=order, sent=sent, embeddings=[z], gradients=[z], inputs=())
    epoch = exchange.epoch_arrays(record)
    arrays = exchange.all_arrays(
        dict.fromkeys(range(3), epoch),
        range(3),
        [Sums(z, z, z, np.zeros((members, rows), np.int32))],
    )
    weights = {"w": rng.normal(size=(members, plan.groups[0].weights)).astype(np.float32)}
    store.write_shard(tmp_path, shard.name, [{"loss": [0.1] * 3}] * members, weights, arrays)
    stored = bytes_in(tmp_path / "shards")
    assert size.bytes_of(plan, shard) == pytest.approx(stored, rel=0.05)
    written = (tmp_path / "shards" / shard.name / exchange.FILE).stat().st_size
    assert size.exchange_bytes(spec, members, 3) == pytest.approx(written, rel=0.001)


def test_a_resume_needs_what_the_missing_shards_need(tiny_sweep, tmp_path, monkeypatch):
    plan, workdir = plan_of(TINY), tmp_path / "w"
    assert size.unfinished(plan, workdir) == plan.shards
    (workdir / "shards").mkdir(parents=True)
    shutil.copy(tiny_sweep / "sweep.json", workdir)
    for shard in plan.shards[1:]:
        (workdir / "shards" / shard.name).mkdir()
    assert size.unfinished(plan, workdir) == plan.shards[:1]
    need = size._size_of(plan, plan.shards[:1])
    assert need.disk == size.bytes_of(plan, plan.shards[0])
    monkeypatch.setattr(size, "free_disk", lambda path: need.disk + need.progress)
    assert "of disk" in size.needs(plan, workdir)
    with pytest.raises(UserError, match="training 24 trials needs about"):
        size.needs(plan, tmp_path / "new")
    assert size.needs(plan, tiny_sweep) == "all of them are stored"


@pytest.mark.parametrize(
    ("free", "says"),
    [
        ("free_disk", "training 24 trials needs about .* of disk and 1 kB is free: choose fewer"),
        ("free_memory", "training 10 trials at a time needs about .* of memory and 1 kB is free"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(free, says, tmp_path, monkeypatch):
    monkeypatch.setattr(size, free, lambda *arguments: 1e3)
    with pytest.raises(UserError, match=f"{says}.*record fewer of the 320 rows.*--beyond_limits"):
        size.needs(plan_of(TINY), tmp_path)
    assert "(1 kB free)" in size.needs(make_plan(parse(tiny(), beyond_limits=True)), tmp_path)


def test_where_nothing_is_known_of_the_machine_nothing_is_refused(tmp_path, monkeypatch):
    for free in ("free_disk", "free_memory"):
        monkeypatch.setattr(size, free, lambda *arguments: math.inf)
    assert "(an unknown amount free)" in size.needs(plan_of(TINY), tmp_path)


def test_absurd_networks_and_rows_are_counted_and_not_built(tmp_path):
    with pytest.raises(UserError, match="needs about .* TB of memory"):
        size.needs(plan_of(tiny(**{"model.hidden": (10**6, 10**6), "attacks": {}})), tmp_path)


def test_memory_grows_with_what_is_trained_at_a_time():
    plan = plan_of(tiny(attacks={}))
    small = size._size_of(plan, plan.shards[:1])
    spec = dataclasses.replace(plan.groups[0].spec, num_rows=3200)
    more = plan._replace(groups=[plan.groups[0]._replace(spec=spec), *plan.groups[1:]])
    assert size._size_of(more, plan.shards[:1]).memory > small.memory
    assert size._size_of(plan, []).disk == size._size_of(plan, []).progress == 0
