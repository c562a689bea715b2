"""How trials are divided, how many a call takes, and how hard programs are optimized."""

import dataclasses

import jax
import pytest

from tests.sweeps import plan_of, tiny
from vfljax import machine
from vfljax.attack_runs import batching as attack_blocks
from vfljax.attack_runs.jobs import ViewGroup
from vfljax.models import ResNet
from vfljax.sweep import batch_layout, sharding
from vfljax.sweep.grid import parse
from vfljax.sweep.programs import Effort


def test_shards_cover_every_setting_once_and_are_limited_in_work():
    planned = plan_of(tiny(**{"attacks": {}, "execution.shard_seconds": 0.005}))
    assert len(planned.shards) > len(planned.groups)
    seen = [(s.group, i) for s in planned.shards for i in s.trials]
    assert len(seen) == len(set(seen)) == sum(len(g.trials) for g in planned.groups)
    for group in range(len(planned.groups)):
        assert len({s.capacity for s in planned.shards if s.group == group}) == 1


def test_few_trials_are_mapped_one_at_a_time_on_a_cpu_unless_a_width_is_named(monkeypatch):
    usual, wide = parse(tiny(attacks={})), parse(tiny(**{"attacks": {}, "execution.width": 3}))
    assert sharding.mapped_at_once(usual, few=True) == 1
    assert sharding.mapped_at_once(usual, few=False) == batch_layout.default_width() > 1
    assert {sharding.mapped_at_once(wide, few) for few in (True, False)} == {3}
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(cpu=False))
    assert sharding.mapped_at_once(usual, few=True) == batch_layout.default_width() > 1000


@pytest.fixture(scope="module")
def forty():
    """The plan of forty trials of one program."""
    return plan_of(tiny(attacks={}, grid={"undefended": {}}, seeds=40))


def test_on_an_accelerator_a_shard_holds_what_its_memory_does(forty, monkeypatch):
    group, devices = forty.groups[0], jax.device_count()
    cuts = group.spec.recorded_rows * group.spec.bottoms[0].out

    def capacity(seconds=1e-3, epochs=2, **fields):
        monkeypatch.setattr(machine, "offered", lambda: machine.Offered(**fields))
        shards = [*sharding.shards_of([group], [40], seconds, epochs, ())]
        places = [place for shard in shards for place in shard.trials]
        assert places == list(range(40))
        return shards[0].capacity

    assert capacity(cpu=True) == devices  # each trial takes 900 us on a core
    assert capacity(cpu=False) == 40
    state = sharding.STATES * group.weights + 8 * 5 * cuts
    for held in (4, 8, 20):
        memory = held * state / sharding.STATE_SHARE
        assert capacity(cpu=False, memory=memory / devices) == held
        assert capacity(cpu=False, memory=0.99 * memory / devices) < held
    # what is recorded is never less than on CPU, and as much more as device and host allow
    recorded = 4 * (2 * 1000 + 3) * cuts
    monkeypatch.setattr(sharding, "MEMORY", 4 * recorded)
    assert capacity(1e3, 1000, cpu=True) == capacity(1e3, 1000, cpu=False) == 4
    assert capacity(1e3, 1000, cpu=False, memory=1e12) == 40
    assert capacity(1e3, 1000, cpu=False, memory=8 * recorded / sharding.RECORD_SHARE) == 8
    assert capacity(1e3, 1000, cpu=False, memory=1e12, host=8 * recorded / sharding.HOST_SHARE) == 8
    assert capacity(1e3, 1000, cpu=False, memory=1e12, host=1.0) == 4


def test_an_attack_takes_as_many_settings_a_call_as_an_accelerator_holds(forty, monkeypatch):
    light, epochs = forty.groups[0].spec, len(forty.experiment.training.recorded_epochs)
    network = ResNet(out=4, width=2, blocks=(1,))
    heavy = dataclasses.replace(light, bottoms=(network,) * 2)
    exchange, columns = 320 * (2 * epochs + 3) * 4, (320 + 160) * 32

    def calls(spec, **fields):
        monkeypatch.setattr(machine, "offered", lambda: machine.Offered(**fields))
        group = ViewGroup("no_split", (0,), spec, 0)
        return attack_blocks._capacity(forty, group, spec.bottoms[0].out, 1, 0)

    devices = jax.device_count()
    assert (calls(light, cpu=True), calls(heavy, cpu=True)) == (32, 2 * devices)
    for spec in (light, heavy):
        assert calls(spec, cpu=False) == calls(spec, cpu=False, memory=1e12) == 128  # 40 and seeds
    memory = 10 * 4 * (exchange + columns) / attack_blocks.SHARE
    assert calls(light, cpu=False, memory=memory) == 10 * devices
    assert calls(light, cpu=False, memory=1.0) == devices


def test_small_plans_compile_quickly_and_long_kinds_of_programs_do_not(monkeypatch):
    assert plan_of(tiny()).effort == Effort(sharding.QUICK, 0, 0, 0)
    long_attack = tiny(attacks={"passive": {"known": 20, "steps": 1_000_000}})
    assert plan_of(long_attack).effort == Effort(sharding.QUICK, None, 0, 0)
    long_training = tiny(**{"training.epochs": 1_000_000}, attacks={"norm": {}})
    assert plan_of(long_training).effort == Effort(None, 0, None, 0)
    monkeypatch.setattr(sharding, "FEW_ROWS", 0)
    monkeypatch.setattr(sharding, "FEW_SCORED", 0)
    assert plan_of(tiny()).effort == Effort(sharding.QUICK, sharding.PLAIN, 0, sharding.PLAIN)
