"""What a plan needs: disk as a stored sweep has it, and a refusal before anything is written."""

import math
import shutil

import pytest

from tests.sweeps import TINY, plan_of, tiny
from vfljax.errors import UserError
from vfljax.store import exchange
from vfljax.sweep import size
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan


def bytes_in(folder) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_estimate_of_disk_is_that_of_a_stored_sweep_within_a_fifth(tiny_sweep):
    plan = plan_of(TINY)
    needs = size._size_of(plan, plan.shards)
    assert needs.disk == pytest.approx(bytes_in(tiny_sweep / "shards"), rel=0.2)
    assert needs.trials == 24
    for shard in plan.shards:
        folder = tiny_sweep / "shards" / shard.name
        assert size.bytes_of(plan, shard) == pytest.approx(bytes_in(folder), rel=0.3)
        written = (folder / exchange.FILE).stat().st_size
        estimated = size.exchange_bytes(plan.groups[shard.group].spec, len(shard.trials), 2)
        assert estimated == pytest.approx(written, rel=0.01)


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
        ("free_memory", "training 12 trials at a time needs about .* of memory and 1 kB is free"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(free, says, tmp_path, monkeypatch):
    monkeypatch.setattr(size, free, lambda *arguments: 1e3)
    with pytest.raises(UserError, match=f"{says}.*record fewer of the 320 rows.*--beyond_limits"):
        size.needs(plan_of(TINY), tmp_path)
    unlimited = make_plan(parse(tiny(), beyond_limits=True))
    assert "(1 kB free)" in size.needs(unlimited, tmp_path)
    monkeypatch.setattr(size, free, lambda *arguments: math.inf)  # which is not known
    assert "(an unknown amount free)" in size.needs(unlimited, tmp_path)


def test_absurd_networks_and_rows_are_counted_and_not_built(tmp_path):
    with pytest.raises(UserError, match="needs about .* TB of memory"):
        size.needs(plan_of(tiny(**{"model.hidden": (10**6, 10**6), "attacks": {}})), tmp_path)
