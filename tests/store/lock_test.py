"""One writer at a time: the second is refused, a dead one's lock and leftovers do not stay."""

import contextlib
import os
import pathlib
import platform
import signal
import subprocess
import sys
import threading
import time

import filelock
import pytest

from vfljax import store
from vfljax.errors import UserError
from vfljax.store import lock

ROOT = pathlib.Path(__file__).parents[2]
HOLD = """
import pathlib, sys
from vfljax import store
with store.writing(pathlib.Path(sys.argv[1])):
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another_writer(workdir):
    """A process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(workdir)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_second_writer_is_refused_and_takes_over_as_soon_as_the_first_is_killed(tmp_path):
    workdir = tmp_path / "w"
    with another_writer(workdir) as process:
        report = workdir / f".report.html.{process.pid}.tmp"  # of a reader that lives
        report.touch()
        with pytest.raises(UserError) as error, store.writing(workdir):
            pass
        line = str(error.value)
        holder = f"process {process.pid} on {platform.node()} since 20"
        assert line.startswith(f"{workdir} is being written by {holder}")
        assert line.endswith(": wait for it to end, or stop it.")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with store.writing(workdir):
            assert not report.exists()


def test_what_dead_writers_left_is_gone_at_the_next_start_and_all_else_stays(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    places = (".", "shards", "partial/a", "attacks/b", "figures")
    left = [tmp_path / place / f".x.{dead.pid}.tmp" for place in places]
    folder = tmp_path / "shards" / f".00000.{dead.pid}.tmp"
    alive = tmp_path / f".report.html.{os.getppid()}.tmp"
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder / "exchange").mkdir(parents=True)
    files = [tmp_path / "shards" / "x.tmp", tmp_path / "attacks" / "b" / "rows.parquet", alive]
    for path in files:
        path.touch()
    with store.writing(tmp_path):
        assert not any(path.exists() for path in [*left, folder])
        assert all(path.exists() for path in files)
        assert not (tmp_path / "partial" / "a").exists()  # it was empty


def test_one_process_may_take_it_again_and_gives_it_back_at_the_end(tmp_path):
    with store.writing(tmp_path):
        with store.writing(tmp_path):
            (tmp_path / ".x.1.tmp").touch()
        with store.writing(tmp_path):  # it never was free: nothing is removed
            assert (tmp_path / ".x.1.tmp").exists()
        other = filelock.FileLock(tmp_path / ".lock", is_singleton=False)
        with pytest.raises(filelock.Timeout):
            other.acquire(timeout=0)
    with other.acquire(timeout=0):
        pass


def test_without_locks_it_says_so_and_goes_on(tmp_path, monkeypatch, capsys):
    def unable(self, **options):
        raise NotImplementedError

    monkeypatch.setattr(filelock.FileLock, "acquire", unable)
    with store.writing(tmp_path):
        pass
    assert "is on a file system without locks: start one writer." in capsys.readouterr().err


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "w").touch()
    with pytest.raises(UserError, match="is not a folder"), store.writing(tmp_path / "w"):
        pass


def test_the_next_writer_waits_for_a_job_of_the_one_before(tmp_path, capsys):
    workdir, events = tmp_path / "w", []
    with store.writing(workdir):
        leader = store.writer(workdir)
    begun, end = threading.Event(), threading.Event()

    def job():
        with store.working(workdir, leader) as led:
            events.append(("begun", led))
            begun.set()
            end.wait()
            events.append("ended")

    worker = threading.Thread(target=job)
    worker.start()
    begun.wait()
    threading.Timer(0.2, end.set).start()
    with store.writing(workdir):
        events.append("the next")
        assert store.writer(workdir) != leader
    worker.join()
    assert events == [("begun", True), "ended", "the next"]
    assert "waiting for a job of an earlier command, " in capsys.readouterr().err
    with store.writing(workdir), store.working(workdir, leader) as led:
        assert not led  # it comes too late
    assert capsys.readouterr().err == ""


def test_jobs_hold_a_part_in_turn(tmp_path):
    inside, most = [], []

    def job():
        with lock.holding(tmp_path, "attacks/norm"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=job) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4
