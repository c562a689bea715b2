"""What a sweep would take: found without training it, and with the programs that it then runs."""

import math
import re
import shutil
from unittest import mock

import jax
import pytest

from tests.sweeps import plan_of, tiny, train
from vfljax.attacking import batching
from vfljax.attacking import cost_estimate as attacking_forecast
from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.sweep import batch_layout, forecast, programs
from vfljax.sweep.experiment import parse

SMALL = tiny(
    grid={"kdk": {"kdk": {"epsilon": (0.2, 0.45), "k": 1}}},
    attacks={"direct": {}, "norm": {}, "passive": {"known": 20, "steps": 20}},
    federations=("no_split",),
    seeds=2,
)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What is said of SMALL, and the programs that it needed."""
    workdir = tmp_path_factory.mktemp("forecast") / "w"
    before = set(programs._PROGRAMS)
    text = running.forecast(parse(SMALL), workdir)
    assert not workdir.exists()
    return text, set(programs._PROGRAMS) - before


def test_it_says_what_is_trained_attacked_skipped_and_how_long_that_takes(said):
    text, _ = said
    first, trained, attacked, total = text.split("\n\n")
    assert first.startswith(f"4 trials in 1 programs on {jax.device_count()} cpu devices, 1 shards")
    assert "of memory" in first
    assert re.search(r"no_split +4 +1 +4 +4 +[.\d]+ kB ", trained)
    assert re.search(r"\ndirect +no_split +4 +1 ", attacked)
    assert re.search(r"\npassive +no_split +4 +1 ", attacked)
    assert "\nskipped norm: defined for two classes, digits has 10" in attacked
    assert total.startswith("about 0:")
    assert "without 2 teachers," in total
    assert "Nothing else was written." in total


def test_the_sweep_that_follows_compiles_nothing_again(said, tmp_path):
    _, needed = said
    before = set(programs._PROGRAMS)
    train(tmp_path / "w", SMALL)
    assert needed <= before
    again = set(programs._PROGRAMS) - before
    assert not [key for key in again if key[0].__name__ in ("make_run", "make_attack_member")]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    text = running.forecast(parse(SMALL), tmp_path / "w")
    assert "0 shards to train: all of them are stored" in text
    assert f"4 of them are trained already, in {tmp_path / 'w'}" in text
    assert "skipped norm" in text
    assert "nothing is left to do" in text
    assert files == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    shutil.rmtree(next((tmp_path / "w" / "shards").iterdir()))
    text = running.forecast(parse(SMALL), tmp_path / "w")
    assert "0 of them are trained already" in text
    assert "1 shards to train" in text
    assert "\ndirect" not in text  # its rows are stored
    with pytest.raises(UserError, match="holds another sweep"):
        running.forecast(parse(tiny(**{"training.epochs": 2})), tmp_path / "w")


@pytest.mark.slow
def test_of_long_work_a_few_steps_are_measured(monkeypatch, tmp_path):
    plan = forecast.ready(plan_of(SMALL))
    whole, samples = forecast.training_costs(plan, plan.shards)
    monkeypatch.setattr(forecast, "LONG", 0.0)
    monkeypatch.setattr(forecast, "STEPS", 2)
    few, shorter = forecast.training_costs(plan, plan.shards)
    assert few[0]._replace(epoch=0, seconds=0) == whole[0]._replace(epoch=0, seconds=0)
    shapes = jax.tree.map(lambda a: (a.shape, a.dtype), samples)
    assert jax.tree.map(lambda a: (a.shape, a.dtype), shorter) == shapes
    monkeypatch.setattr(attacking_forecast, "_few", lambda steps, specs: min(steps, 5))
    attacked = attacking_forecast.attack_costs(plan, tmp_path, plan.shards, shorter)
    compiling = {one.label: one.compiling > 0 for one in attacked.costs}
    assert compiling == {"direct": False, "passive": True}


class Trained:
    """A trainer whose trials take 100 bytes each, and as much again for each that is mapped at once."""

    def __init__(self, plan, shard, pool, orders, width=4):
        self.plan, self.group, self.orders = plan, plan.groups[shard.group], orders
        self.layout, self.program = batch_layout.layout(8, width), self

    def start(self, shard):
        return self

    def member_bytes(self, start):
        return 100 + 100 * self.layout.width

    def too_large(self):
        limit, fewer = AN_ACCELERATOR["most"], self.layout.width - 1
        return batch_layout.TooLarge(0, fewer) if self.layout.width > limit else None


AN_ACCELERATOR = {"most": math.inf}  # trials at once that the compiled program says fit


def test_programs_that_do_not_fit_take_fewer_members_at_once_or_are_refused(monkeypatch):
    plan = plan_of(SMALL)
    monkeypatch.setattr(forecast, "Trainer", Trained)
    shard = plan.shards[0]
    widest = Trained(plan, shard, None, None)
    for free, width in ((8 * 500, 4), (8 * 500 - 1, 2), (8 * 200, 1)):
        monkeypatch.setattr(forecast, "device_memory", lambda free=free: free)
        assert forecast._fitting(widest, shard, None).layout.width == width
    monkeypatch.setattr(forecast, "device_memory", lambda: 8 * 200 - 1)
    with pytest.raises(
        UserError, match="needs about 2 kB of device memory and 2 kB is free: choose"
    ):
        forecast._fitting(widest, shard, None)
    # and as many at once as the compiled program says fit
    monkeypatch.setattr(forecast, "device_memory", lambda: math.inf)
    monkeypatch.setitem(AN_ACCELERATOR, "most", 2)
    assert forecast._fitting(widest, shard, None).layout.width == 2


def test_a_few_steps_record_no_more_rows_than_they_train():
    plan = plan_of(tiny(**{"training.record_rows": 256}))
    trainer = mock.Mock(group=plan.groups[0], table=plan.table)
    trainer.layout = batch_layout.layout(8, 4)
    trainer.members.side_effect = InterruptedError  # asked for with the spec of the few steps
    with pytest.raises(InterruptedError):
        forecast._few_steps(trainer, plan.shards[0])
    spec, _ = trainer.members.call_args.args
    assert spec.recorded_rows == spec.num_rows == forecast.STEPS * 64


def test_a_dry_run_calls_attacks_with_blocks_that_fit(monkeypatch):
    wide = batching.AttackBatch(batch_layout.layout_of(8, 4), *[None] * 6)
    sizes = []

    def run_attack_batch(batch, jobs, stored):
        sizes.append((batch.layout, len(jobs)))
        if batch.layout.width > 1:
            raise batch_layout.TooLarge(10, batch.layout.width // 2)

    monkeypatch.setattr(batching, "run_attack_batch", run_attack_batch)
    size, *_ = attacking_forecast._call_of(wide, range(8), None)
    expected = [(batch_layout.Layout(2 * width, width), 2 * width) for width in (4, 2, 1)]
    assert size == 2
    assert list(dict.fromkeys(sizes)) == expected


def test_a_dry_run_changes_nothing(launch, tmp_path):
    workdir = f"--workdir={tmp_path / 'w'}"
    done = launch("sweep", "--config=configs/quickstart.py", workdir, "--dry_run", "--mend")
    assert done.stderr.startswith("error: --dry_run changes nothing: leave --mend")
