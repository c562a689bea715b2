"""Workers make the units of a sweep, whatever becomes of them: tables are those of one process."""

import contextlib
import json
import stat
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from tests import copies
from tests.launching.work_test import Maker, begun_in
from tests.sweeps import TINY, comparable, drop_units, silent
from vfljax import store
from vfljax.config import changed
from vfljax.errors import UserError
from vfljax.launching import backends, pulling, running, work, worker
from vfljax.store.claims import TRIES
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


def test_workers_give_the_tables_of_one_process_and_the_next_command_starts_none(
    tiny_sweep, workdir
):
    drop_units(workdir, "direct/most_negative")
    engine, started = here(jobs=2)
    make = pulling.pulled(engine)
    running.finish(parse(TINY), workdir, "test", silent, make).check()
    assert comparable(store.load(workdir).attacks) == comparable(store.load(tiny_sweep).attacks)
    assert len(started) == 2
    for path in (workdir / "launcher", *(workdir / "launcher").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    running.finish(parse(TINY), workdir, "test", silent, make).check()
    assert len(started) == 2


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A sweep of made-up units, of a config with a width."""
    monkeypatch.setattr(work, "_Maker", Maker)
    Maker.fails, Maker.made = {}, []
    plan: Any = types.SimpleNamespace(experiment=changed(parse(TINY), {"execution.width": 1}))
    return begun_in(tmp_path / "w")._replace(plan=plan)


class Killed(BaseException):
    """Stands for the death of a worker's process."""


def test_what_a_dead_worker_left_is_made_by_another(begun, monkeypatch, capsys):
    make = Maker.make

    def dies(self, units):
        if len(self.made) == 2:
            self.made.append(units[0].name)
            raise Killed
        make(self, units)

    def perform(one):
        with contextlib.suppress(Killed):
            work.work(begun, silent)
            return ""
        return "killed"

    monkeypatch.setattr(Maker, "make", dies)
    engine, started = here(perform)
    pulling.pulled(engine)(begun, silent, work.anything).check()
    assert copies.faults(begun.workdir, True) == []
    assert len(started) == 2
    assert len(Maker.made) == 1 + len({*Maker.made})  # only what was killed is made again
    assert "a worker ended: killed" in capsys.readouterr().err


def test_what_workers_give_up_is_named(begun):
    Maker.fails = {"shards/00000": RuntimeError("no")}

    def may(unit):
        return unit.name == "shards/00000"

    engine, _ = here(lambda one: str(work.work(begun, silent, may) and ""))
    outcome = pulling.pulled(engine)(begun, silent, may)
    assert Maker.made == ["shards/00000"] * TRIES
    assert outcome.given_up == {"shards/00000": "RuntimeError: no"}


def test_where_all_workers_end_without_a_unit_the_last_reason_is_the_error(
    begun, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("# a plugin\n")
    (tmp_path / "package").mkdir()  # a module by its name, though a folder is called so
    engine, started = here(lambda one: "out of memory", jobs=2)
    make = pulling.pulled(engine, ["mine.py", "a.module", "package"])
    with pytest.raises(UserError, match=r"no worker makes shards/.* \(out of memory\): their logs"):
        make(begun, silent, work.anything)
    assert len(started) == 2 * (pulling.FRUITLESS + 1)
    # a worker plans from the config of the command, and has a copy of its plugins
    one, folder = started[0]
    assignment = json.loads((folder.parent / "assignment.json").read_text())
    assert assignment["config"]["execution"]["width"] == 1
    assert one.plugins == (str(folder.parent / "mine.py"), "a.module", "package")
    assert (folder.parent / "mine.py").read_text() == "# a plugin\n"
    used: list[Any] = []
    monkeypatch.setattr(worker.plugins, "use", used.append)
    monkeypatch.setattr(worker.train, "planned", lambda *of: used.append(of[0]) or (None, ""))
    monkeypatch.setattr(worker.run, "check_attacks", lambda *of: None)
    monkeypatch.setattr(worker, "work", lambda begun, may: used.append(begun.header))
    assert worker.perform(one) == ""
    assert tuple(used[:3]) == one.plugins
    assert used[3].execution.width == 1
    assert used[4]["shards"] == begun.header["shards"]


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
