"""Workers make the units of a sweep, whatever becomes of them: tables are those of one process."""

import contextlib
import json
import stat
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.launching.work_test import CONFIG, run, tables
from tests.sweeps import silent
from vfljax import store
from vfljax.config import changed
from vfljax.errors import UserError
from vfljax.launching import backends, pulling, running, work, worker
from vfljax.store.claims import TRIES
from vfljax.sweep import train
from vfljax.sweep.grid import parse

Perform = Callable[[worker.Worker], str]


def here(perform: Perform = worker.perform, jobs: int = 1) -> tuple[backends.Engine, list[Any]]:
    """An engine whose workers do all in this process when they are started; and these, with their folders."""
    started: list[Any] = []

    def start(one, count, folder):
        handles = []
        for _ in range(count):
            started.append((one, folder))
            why = perform(one)
            handles.append(backends.Handle(lambda: True, lambda why=why: why, lambda: None))
        return handles

    return backends.Engine(jobs, start), started


@pytest.fixture(autouse=True)
def _this_process(monkeypatch):
    monkeypatch.setattr(worker, "_set_up", lambda workdir: None)  # JAX has started
    monkeypatch.setattr(pulling, "POLL", 0.001)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The tables of one process."""
    workdir = tmp_path_factory.mktemp("alone") / "w"
    run(workdir).check()
    return tables(workdir)


def test_workers_give_the_tables_of_one_process_and_the_next_command_starts_none(alone, tmp_path):
    engine, started = here(jobs=2)
    run(tmp_path / "w", make=pulling.pulled(engine)).check()
    assert tables(tmp_path / "w") == alone
    assert len(started) == 2
    for path in (tmp_path / "w" / "launcher", *(tmp_path / "w" / "launcher").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    run(tmp_path / "w", make=pulling.pulled(engine)).check()
    assert len(started) == 2


class Killed(BaseException):
    """Stands for the death of a worker's process."""


def test_what_a_dead_worker_left_is_made_by_another(alone, tmp_path, monkeypatch, capsys):
    make, made = work._Maker.make, []

    def dies(self, unit):
        made.append(unit.name)
        if len(made) == 3:
            raise Killed
        make(self, unit)

    def perform(one):
        with contextlib.suppress(Killed):
            return worker.perform(one)
        return "killed"

    monkeypatch.setattr(work._Maker, "make", dies)
    engine, started = here(perform)
    run(tmp_path / "w", make=pulling.pulled(engine)).check()
    assert tables(tmp_path / "w") == alone
    assert len(started) == 2
    assert len(made) == 1 + len({*made})  # only what was killed is made again
    assert "a worker ended: killed" in capsys.readouterr().err


def test_what_workers_give_up_is_named(tmp_path, monkeypatch):
    def fails(trainer, shard, *rest):
        tries.append(f"shards/{shard.name}")
        raise RuntimeError("no")

    tries: list[str] = []
    monkeypatch.setattr(train, "train_shard", fails)
    begun = work.begin(parse(CONFIG), tmp_path / "w", "test", silent)
    unit = store.units_of(begun.header)[0]
    engine, _ = here()
    monkeypatch.setattr(worker, "work", lambda begun, may: work.work(begun, silent, may))

    def may(other):
        return other == unit

    outcome = pulling.pulled(engine)(begun, silent, may)
    assert tries == [unit.name] * TRIES
    assert outcome.given_up == {unit.name: "RuntimeError: no"}


def test_where_all_workers_end_without_a_unit_the_last_reason_is_the_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("# a plugin\n")
    (tmp_path / "package").mkdir()  # a module by its name, though a folder is called so
    engine, started = here(lambda one: "out of memory", jobs=2)
    experiment = changed(parse(CONFIG), {"execution.width": 1})
    make = pulling.pulled(engine, ["mine.py", "a.module", "package"])
    with pytest.raises(UserError, match=r"no worker makes shards/.* \(out of memory\): their logs"):
        running.finish(experiment, tmp_path / "w", "test", silent, make)
    assert len(started) == 2 * (pulling.FRUITLESS + 1)
    # a worker plans from the config of the command, and has a copy of its plugins
    one, folder = started[0]
    assert (
        json.loads((folder.parent / "assignment.json").read_text())["config"]["execution"]["width"]
        == 1
    )
    assert one.plugins == (str(folder.parent / "mine.py"), "a.module", "package")
    assert (folder.parent / "mine.py").read_text() == "# a plugin\n"
    used: list[Any] = []
    monkeypatch.setattr(worker.plugins, "use", used.append)
    monkeypatch.setattr(worker, "work", lambda begun, may: used.append(begun.plan.experiment))
    assert worker.perform(one) == ""
    assert tuple(used[:3]) == one.plugins
    assert used[3].execution.width == 1


def test_a_folder_that_a_worker_cannot_see_is_named(tmp_path):
    for folder in (tmp_path / "none", tmp_path):  # missing, or of another sweep
        one = worker.Worker(str(folder), "id", str(tmp_path / "assignment.json"), ())
        line = worker.perform(one)
        assert f"{folder} cannot be seen from " in line
        assert "choose a --workdir on a file system" in line


def test_an_interrupt_cancels_the_workers_and_waits_for_them():
    canceled, ended = [], threading.Event()

    def cancel():
        canceled.append(1)
        ended.set()

    handles = [backends.Handle(ended.is_set, lambda: "", cancel)] * 2
    with pytest.raises(KeyboardInterrupt), pulling._ended(lambda: handles):
        raise KeyboardInterrupt
    assert canceled == [1, 1]
    assert ended.is_set()
