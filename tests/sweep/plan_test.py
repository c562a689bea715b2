"""An experiment made concrete: what data and experiment cannot be together is refused, in one line."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

from tests.refusals import refused
from tests.sweeps import TINY, plan_of, silent, tiny
from vfljax import machine, store
from vfljax.attacking import batching as attack_blocks
from vfljax.attacking.jobs import ViewGroup
from vfljax.datasets.core import Dataset, SourceColumn
from vfljax.datasets.splits import Split, label_groups
from vfljax.launching import work
from vfljax.models import ResNet
from vfljax.sweep import batch_layout, known, plan, sharding, train
from vfljax.sweep.canaries import NONE
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import Plan
from vfljax.sweep.programs import Effort

CANCER = {"data.name": "breast_cancer", "data.train": 300, "data.validation": 100, "data.test": 100}
GAFM, KDK = {"gafm": {"delta": 0.1}}, {"kdk": {"epsilon": 0.5, "k": 2}}
PROBABILITY = CANCER | {"model.top": "probability", "model.aggregation": "mean"}


def chain(defenses, **fields):
    """Changes to a grid of one method with these defenses."""
    return {"grid": {"x": defenses}, **fields}


# what only the data's classes, rows and columns, or the defenses themselves, can refuse
BAD = [
    (chain({"kdk": {"epsilon": 0.5, "k": 11}}), "k=11", "10 classes"),
    (chain({"kdk": {"epsilon": 0.5, "k": 2, "anchor": "b"}}), "anchor='b'", "teacher"),
    (chain(GAFM, **CANCER), "aggregation='concatenate'", "'mean'"),
    (chain(KDK | {"label_dp": {"epsilon": 1}}), "label_dp replaces", "list label_dp before kdk"),
    (chain(KDK, **{"parties.label_features": False}), "needs a teacher", "label_features=True"),
    (
        chain({"marvell": {"power": 0, "budget": "dynamic"}}, **CANCER),
        *("power=0", "grows by factors"),
    ),
    (chain({"noise": {"scale": 1, "law": np.array(["laplace", "x"])}}), "'x'", "laplace"),
    ({"model.top": "generator"}, "2 classes", "'head'"),
    (PROBABILITY, "(it is 4)", "config.model.cut=1"),
    (
        PROBABILITY | {"model.output": "sigmoid", "model.cut": 1, "model.top_hidden": (3,)},
        *("top_hidden=[3]", "must be ()"),
    ),
    ({"model.hidden": (0,)}, "config.model.hidden=(0,)", "from 1 to"),
    ({"teacher.options": {"dropout": -1.0}}, "config.teacher.options.dropout=-1.0", "[0, 1)"),
    ({"model.output": "sigmoidd"}, "sigmoidd", "did you mean 'sigmoid'"),
    (
        {"training.optimizer": "malicious_sgd", "attacks.active": {}},
        *("malicious_sgd", "no malicious"),
    ),
    (
        {"training.optimizer": "adam", "malicious.rule": "released", "attacks.active": {}},
        *("rule='released'", "choose 'intended', or the optimizer 'sgd'"),
    ),
    ({"training.evaluation": "released"}, "data has 10", "'final'"),
    ({"data.train": 5}, "[5, 160, 160]", "one row a class"),
    ({"training.class_weights": (0.3, 1.0)}, "[0.3, 1.0]", "one a class"),
    ({"training.batch_size": 319}, "batch of 1 row", "drop_last=True"),
    ({"training.batch_size": 321}, "batch_size=321", "at most 320"),
]


@pytest.mark.parametrize(("changes", "value", "remedy"), BAD)
def test_bad_input_is_one_line_with_the_value_and_the_remedy(changes, value, remedy):
    with refused(value, remedy):
        plan_of(tiny(**changes))


def test_shards_cover_every_setting_once_and_are_limited_in_work():
    planned = plan_of(tiny(**{"attacks": {}, "execution.shard_seconds": 0.005}))
    assert len(planned.shards) > len(planned.groups)
    seen = [(s.group, i) for s in planned.shards for i in s.trials]
    assert len(seen) == len(set(seen)) == sum(len(g.trials) for g in planned.groups)
    for group in range(len(planned.groups)):
        assert len({s.capacity for s in planned.shards if s.group == group}) == 1


def test_attacks_know_the_recorded_rows_and_as_many_test_rows():
    changes = {"attacks": {}, "training.record_rows": 100}
    whole = plan_of(tiny(**changes))
    part = plan.recorded(whole)
    for before, after in zip(whole.splits, part.splits, strict=True):
        np.testing.assert_array_equal(after.train, before.train[:100])
        np.testing.assert_array_equal(after.test, before.test[:100])
    np.testing.assert_array_equal(part.table.train, whole.table.train[:, :100])
    np.testing.assert_array_equal(part.table.test, whole.table.test[:, :100])


def test_known_rows_come_class_by_class():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    splits = [Split(rng.permutation(90)[:60], np.arange(5), np.arange(5, 9)) for _ in range(2)]
    arrays = known.split_arrays(labels, splits)
    for seed, split in enumerate(splits):
        order = arrays["known_order"][seed]
        assert sorted(order) == list(range(60))
        first = labels[split.train][order[:30]]
        assert np.bincount(first).tolist() == [10, 10, 10]  # the first n are balanced
    assert (arrays["known_order"][0] != arrays["known_order"][1]).any()


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The plan of a table in which each of sixty rows comes ten times."""
    folder = tmp_path_factory.mktemp("table")
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.normal(size=(60, 3)), columns=list("abc")).assign(y=[0, 1] * 30)
    pd.concat([rows] * 10).to_csv(folder / "t.csv", index=False)
    data = {"name": "table", "dir": str(folder / "t.csv"), "options": {"label": "y"}}
    shares = {"train": 0.6, "validation": 0.2, "test": 0.2}
    changes = {"data": data | shares, "canaries": 20, "grid": {"undefended": {}}, "attacks": {}}
    return plan_of(tiny(**changes))


def test_groups_of_copies_are_numbered_by_seed_and_canaries_have_their_own(copied):
    labels, groups = copied.dataset.labels, label_groups(copied.dataset)
    arrays = known.split_arrays(labels, copied.splits, 1, copied.candidates, groups)
    for of_seed, split in zip(arrays["groups"], copied.splits, strict=True):
        assert of_seed.max() < len(of_seed)
        names = groups[split.train]
        np.testing.assert_array_equal(of_seed[:, None] == of_seed, names[:, None] == names)
        is_canary = split.train >= 600
        assert len({*of_seed[is_canary]}) == is_canary.sum() == 20
        assert not {*of_seed[is_canary]} & {*of_seed[~is_canary]}
    # of each class the training part has some 18 different rows, and 20 labels of each are more
    assert known.known_error("mean", 30, copied) is None
    error = known.known_error("mean", 40, copied)
    assert error is not None
    assert "different groups" in str(error)


def test_a_header_counts_the_rows_of_different_groups_and_has_the_owner_of_each_column(copied):
    groups = label_groups(copied.dataset)
    sources = tuple(SourceColumn(name, "number") for name in ("a", "b", "c", "y"))
    filled = copied._replace(dataset=copied.dataset._replace(sources=sources))
    data = train.header(filled, "")["data"]
    assert data["distinct"] == min(len({*groups[split.train]}) for split in copied.splits)
    assert data["distinct"] < data["recorded"] == len(copied.splits[0].train)
    assert [source["owner"] for source in data["sources"]] == [0, 0, 1, None]


def test_large_networks_are_mapped_one_at_a_time_on_a_cpu_unless_a_width_is_named():
    planned = plan_of(tiny(attacks={}, grid={"undefended": {}}))
    light = planned.groups[0].spec
    heavy = dataclasses.replace(light, bottoms=(ResNet(out=4, width=2, blocks=(1,)),) * 2)
    assert sharding.width_of(planned.experiment, light) is None
    assert sharding.width_of(planned.experiment, heavy) == 1
    wide = parse(tiny(**{"attacks": {}, "execution.width": 3}))
    assert sharding.width_of(wide, light) == sharding.width_of(wide, heavy) == 3


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
    common: Any = type("Common", (), {"features": (np.zeros((1, 32)),)})

    def calls(spec, **fields):
        monkeypatch.setattr(machine, "offered", lambda: machine.Offered(**fields))
        group = ViewGroup("no_split", (0,), spec, 0)
        return attack_blocks._capacity(forty, group, common, 1)

    devices = jax.device_count()
    assert (calls(light, cpu=True), calls(heavy, cpu=True)) == (32, 2 * devices)
    for spec in (light, heavy):
        assert calls(spec, cpu=False) == calls(spec, cpu=False, memory=1e12) == 128  # 40 and seeds
    memory = 10 * 4 * (exchange + columns) / attack_blocks.SHARE
    assert calls(light, cpu=False, memory=memory) == 10 * devices
    assert calls(light, cpu=False, memory=1.0) == devices


def test_widths_are_those_of_the_machine_that_planned_a_sweep():
    planned, header = plan_of(tiny(attacks={})), {"backend": jax.default_backend(), "devices": 8}
    assert plan.divided_as(planned, {**header, "shards": []}).devices == 8
    elsewhere = {**header, "backend": "gpu", "shards": []}
    assert plan.divided_as(planned, elsewhere).devices == jax.device_count()
    here, there = batch_layout.layout(24, 6), batch_layout.layout(24, 6, devices=8)
    assert (here.capacity, here.width) == (24, 6)
    assert (there.capacity, there.width) == (24, 3)  # 3 members a device there, in more calls here


# --- how hard programs are optimized: by the plan's estimate, stored, and the same on every resume ---


def test_small_plans_compile_quickly_and_long_kinds_of_programs_do_not(monkeypatch):
    assert plan_of(tiny()).effort == Effort(sharding.QUICK, 0, 0, 0)
    long_attack = tiny(attacks={"passive": {"known": 20, "steps": 1_000_000}})
    assert plan_of(long_attack).effort == Effort(sharding.QUICK, None, 0, 0)
    long_training = tiny(**{"training.epochs": 1_000_000}, attacks={"norm": {}})
    assert plan_of(long_training).effort == Effort(None, 0, None, 0)
    monkeypatch.setattr(sharding, "FEW_ROWS", 0)
    monkeypatch.setattr(sharding, "FEW_SCORED", 0)
    assert plan_of(tiny()).effort == Effort(sharding.QUICK, sharding.QUICK, 0, sharding.QUICK)


def test_a_stored_choice_stays_whatever_is_planned_now(tiny_sweep):
    planned, stored = plan_of(tiny()), store.load(tiny_sweep).header
    assert planned.effort._asdict() == stored["effort"]
    changed = {**stored, "effort": Effort(None, 1, 1, 0)._asdict()}
    assert plan.divided_as(planned, changed).effort == Effort(None, 1, 1, 0)
    before = {**stored, "effort": {"training": None, "attacks": 1}}  # of an older sweep
    assert plan.divided_as(planned, before).effort == Effort(None, 1, None, 1)
    older = {name: value for name, value in stored.items() if name != "effort"}
    assert plan.divided_as(planned, older).effort == Effort(None, None)
    newer = {**stored, "shards": [{**shard, "new": 1} for shard in stored["shards"]]}
    assert plan.divided_as(planned, newer).shards == plan.divided_as(planned, stored).shards


# --- attacks that a new sweep could never serve are refused; a stored one skips them ---


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"attacks": {"direct": {}}, "federations": ("split",)},
            ("config.federations=['split']", "'no_split'", "leave 'direct' out of config.attacks"),
        ),
        (
            {"attacks": {"mean": {"known": (40, 9)}}},
            ("config.attacks.mean", "known=9", "10 classes", "one a class or more"),
        ),
    ],
)
def test_what_no_setting_could_serve_is_one_line_before_anything_is_written(
    changes, words, tmp_path
):
    experiment = parse(tiny(grid={"undefended": {}}, **changes))
    with refused(*words):
        work.begin(experiment, tmp_path / "new", "test", silent)
    assert not (tmp_path / "new").exists()


def test_what_can_be_served_or_is_for_two_classes_passes():
    """The norm attack, which is for two classes, is skipped and not refused."""
    attacks = {"norm": {}, "mean": {"known": 10}, "probe": {}}
    known.check_attacks(plan_of(tiny(attacks=attacks, federations=("split",))))


def test_a_stored_sweep_is_never_asked(tiny_sweep, monkeypatch):
    monkeypatch.setattr(train, "check_attacks", None)
    train.planned(parse(TINY), tiny_sweep)


@pytest.mark.parametrize(
    ("labels", "options", "positive"),
    [([0, 0, 1], {}, 1), ([0, 1, 1], {}, 0), ([0, 1], {}, 1), ([0, 1, 1], {"positive": "b"}, 1)],
)
def test_the_rarer_class_is_positive_or_the_second(labels, options, positive):
    fields = {name: None for name in Plan._fields if name not in Plan._field_defaults}
    plan = Plan(**fields)._replace(
        dataset=Dataset("own", None, np.array(labels), 2),
        candidates=NONE,
        experiment=SimpleNamespace(data=SimpleNamespace(options=options)),
    )
    assert plan.positive == positive
