"""Shards go out in parts, and come back whatever becomes of the jobs: tables are those of one process."""

import contextlib
import pathlib
import shutil
import stat
import threading
from typing import Any

import pytest

from tests.sweeps import by_label, comparable, tiny
from vfljax import launching, store
from vfljax.attacking.run import attack_sweep
from vfljax.config import changed
from vfljax.errors import UserError
from vfljax.launching import backends, scheduler, worker
from vfljax.launching.running import finish
from vfljax.sweep import train
from vfljax.sweep.grid import parse

pytestmark = pytest.mark.usefixtures("real_learners")

CONFIG = tiny(
    data={"name": "breast_cancer", "train": 256, "validation": 64, "test": 64},
    grid={"noise": {"noise": {"scale": (0.0, 0.1)}}},
    attacks={"norm": {}, "direct": {}},
    **{"execution.shard_seconds": 1e-3, "training.epochs": 2, "training.batch_size": 16},
)


def here(perform: Any = None, jobs: int = 2) -> backends.Engine:
    """An engine that does every job in this process when it is submitted, by ``perform``."""

    def handle(job: worker.ShardJob) -> backends.Handle:
        ended: Any = (perform or worker.perform)(job)
        return backends.Handle(lambda: True, lambda: ended, lambda: None)

    return backends.Engine(jobs, lambda jobs, folder: [handle(job) for job in jobs])


def recording(jobs: int = 2) -> tuple[backends.Engine, list[worker.ShardJob]]:
    """Such an engine, and the jobs that it will have done."""
    sent: list[worker.ShardJob] = []
    return here(lambda job: sent.append(job) or worker.perform(job), jobs), sent


def tables(workdir: pathlib.Path) -> list[list[dict[str, Any]]]:
    """Results and attacks, in one order and without times."""
    sweep = store.load(workdir)
    order = ("attack", "federation", "view", "trial", "what", "attack_configuration", "seed")
    found = map(comparable, (sweep.results, sweep.attacks))
    return [sorted(rows, key=lambda row: str([row.get(k) for k in order])) for rows in found]


def run(workdir: pathlib.Path, way: launching.Way) -> None:
    finish(parse(CONFIG), workdir, "test", lambda line: None, way)


@pytest.fixture(autouse=True)
def _this_process(monkeypatch):
    monkeypatch.setattr(worker, "_set_up", lambda workdir: None)  # JAX has started
    monkeypatch.setattr(scheduler, "POLL", 0.01)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The tables of one process; and its folder."""
    workdir = tmp_path_factory.mktemp("alone") / "w"
    run(workdir, launching.INLINE)
    assert len(store.read_header(workdir)["shards"]) == 4
    return tables(workdir), workdir


def test_jobs_give_the_tables_of_one_process(alone, tmp_path):
    engine, sent = recording()
    way = launching.way(engine)
    run(tmp_path / "w", way)
    assert tables(tmp_path / "w") == alone[0]
    assert way.given_up == []
    names = [shard["name"] for shard in store.read_header(tmp_path / "w")["shards"]]
    for path in (tmp_path / "w" / "launcher", *(tmp_path / "w" / "launcher").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    training, attacking = sent[:2], sent[2:]
    for jobs in (training, attacking):  # each shard once, in the plan's order
        assert [name for job in jobs for name in job.shards] == names
        assert len(jobs) == 2
    assert {job.do for job in training} == {worker.train_shards}
    assert {job.do for job in attacking} == {worker.attack_shards}
    run(tmp_path / "w", way)  # all is done
    assert len(sent) == 4
    assert by_label(tmp_path / "w")["norm"]["seconds"] > 0


def test_what_a_dead_job_had_not_begun_is_done_by_others(alone, tmp_path):
    calls = []

    def perform(job):
        calls.append(job)
        if len(calls) == 1:  # it dies at its second shard
            worker.perform(job._replace(shards=job.shards[:1]))
            begun = pathlib.Path(job.begun)
            begun.mkdir(parents=True, exist_ok=True)
            (begun / job.shards[1]).touch()
            return backends.Lost("killed")
        return worker.perform(job)

    way = launching.way(here(perform, jobs=1))
    run(tmp_path / "w", way)
    assert tables(tmp_path / "w") == alone[0]
    assert way.given_up == []
    assert calls[1].shards == calls[0].shards[1:]  # the first was finished


def test_a_shard_that_fails_three_times_is_given_up_and_named(tmp_path, monkeypatch, capsys):
    train_shard, tries = train.train_shard, []

    def fails(trainer, shard, *rest):
        if shard.name.startswith("00001"):
            tries.append(shard.name)
            raise RuntimeError("it cannot be\nmore lines")
        return train_shard(trainer, shard, *rest)

    monkeypatch.setattr(train, "train_shard", fails)
    way = launching.way(here())
    run(tmp_path / "w", way)
    (one,) = way.given_up
    assert len(tries) == scheduler.TRIES
    assert str(one) == (
        f"the shard {tries[0]} was not trained, after 3 tries: RuntimeError: it cannot be"
    )
    assert (
        capsys.readouterr().err.count("failed and is tried again: RuntimeError: it cannot be") == 2
    )
    sweep = store.load(tmp_path / "w")
    assert len(sweep.unfinished) > 0  # the table says what is missing
    others = {shard["name"] for shard in sweep.header["shards"]} - {tries[0]}
    assert set(sweep.results["shard"].to_pylist()) == others
    assert set(sweep.attacks["label"].to_pylist()) >= {"norm", "direct"}
    monkeypatch.setattr(train, "train_shard", train_shard)
    run(tmp_path / "w", launching.INLINE)  # the same command goes on
    assert not store.load(tmp_path / "w").unfinished


def test_where_no_shard_can_be_trained_the_reason_is_the_error(tmp_path, monkeypatch):
    def fails(*arguments):
        raise RuntimeError("no")

    monkeypatch.setattr(train, "train_shard", fails)
    with pytest.raises(UserError, match="^no shard could be trained: .* 3 tries: RuntimeError: no"):
        run(tmp_path / "w", launching.way(here()))
    assert not (tmp_path / "w" / "attacks.json").exists()


def test_an_attack_that_fails_leaves_the_others(tmp_path, monkeypatch):
    run_variant = worker.run.run_variant

    def fails(variant_plan, stored):
        if variant_plan.variant.label == "norm":
            raise RuntimeError("no")
        return run_variant(variant_plan, stored)

    monkeypatch.setattr(worker.run, "run_variant", fails)
    way = launching.way(here())
    run(tmp_path / "w", way)
    assert {one.what for one in way.given_up} == {"attacked"}
    assert {one.why for one in way.given_up} == {"norm: RuntimeError: no"}
    sweep = store.load(tmp_path / "w")
    assert "direct" in sweep.attacks["label"].to_pylist()
    assert any(line.startswith("the attack norm has 0 of") for line in sweep.unfinished)


@pytest.mark.slow
def test_what_was_asked_for_beside_the_config_goes_along(alone, tmp_path):
    shutil.copytree(alone[1], tmp_path / "w")
    engine, sent = recording()
    way = launching.way(engine, names=["mean"])
    plan, _ = train.planned(parse(CONFIG), tmp_path / "w")
    attack_sweep(plan, tmp_path / "w", ["mean"], lambda line: None, run=way.attack)
    assert {job.names for job in sent} == {("mean",)}
    assert {job.attacks for job in sent} == {("mean",)}
    assert "mean" in store.load(tmp_path / "w").attacks["label"].to_pylist()


def test_plugins_go_along_by_their_paths(alone, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    (tmp_path / "package").mkdir()  # a module by its name, though a folder is called so
    used = []
    monkeypatch.setattr(worker.plugins, "use", used.append)
    sources = (str(tmp_path / "mine.py"), "a.module", "package")
    engine, sent = recording()
    run(tmp_path / "w", launching.way(engine, ["mine.py", "a.module", "package"]))
    assert {job.plugins for job in sent} == {sources}
    assert tuple(used) == sources  # once: the plan is made once


@pytest.mark.slow
def test_jobs_plan_from_the_config_of_the_command(tmp_path):
    """A sweep may go on with another width or data folder than it was stored with."""
    engine, sent = recording(jobs=1)
    way = launching.way(engine)
    experiment = changed(parse(CONFIG), {"execution.width": 1})
    finish(experiment, tmp_path / "w", "test", lambda line: None, way)
    assert all(worker._plan(job).experiment.execution.width == 1 for job in sent)
    finish(parse(CONFIG), tmp_path / "w", "test", lambda line: None, way)


def test_a_job_of_an_earlier_command_does_nothing(alone):
    workdir = alone[1]
    job = scheduler._job(worker.train_shards, workdir, parse(CONFIG), (), None)._replace(
        leader="another", shards=("no",)
    )
    with pytest.raises(UserError, match="another command leads"):
        worker.perform(job)


def test_a_folder_that_workers_cannot_see_is_named(tmp_path):
    job = worker.ShardJob(
        *(worker.train_shards, str(tmp_path / "none"), "id", "leader", "config.json"),
        *((), (), None, (), ""),
    )
    with pytest.raises(
        UserError, match="cannot be seen from .*: choose a --workdir on a file system"
    ):
        worker.perform(job)


def test_an_interrupt_cancels_the_jobs():
    canceled, ended = [], threading.Event()

    def cancel():
        canceled.append(1)
        ended.set()

    def interrupt():
        raise KeyboardInterrupt

    handles = [backends.Handle(ended.is_set, lambda: worker.Outcome({}, {}), cancel)] * 2
    with contextlib.suppress(KeyboardInterrupt):
        scheduler._wait(handles, interrupt)
    assert canceled == [1, 1]


@pytest.mark.parametrize(
    ("weights", "count", "expected"),
    [
        ([1, 1, 1, 1], 2, [2, 2]),
        ([1, 1, 1, 1], 9, [1, 1, 1, 1]),
        ([5, 1, 1, 1, 1, 1], 2, [1, 5]),
        ([0, 0], 1, [2]),
        ([3], 4, [1]),
    ],
)
def test_parts_are_of_about_equal_weight(weights, count, expected):
    names = {f"s{i}": weight for i, weight in enumerate(weights)}
    parts = scheduler._parts(names, count)
    assert [len(part) for part in parts] == expected
    assert [name for part in parts for name in part] == list(names)
