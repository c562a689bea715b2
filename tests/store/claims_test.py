"""Who may do what: one leader, one maker of a unit, and a record of failures that outlives processes."""

import contextlib
import errno
import fcntl
import json
import os
import platform
import signal
import threading
import time
import uuid
import warnings

import filelock
import pytest

from vfljax import store
from vfljax.errors import UserError
from vfljax.store import atomic, claims

UNIT = "shards/00000-noise"


@contextlib.contextmanager
def another_process(workdir):
    """A fork that leads and makes a unit, until it is killed. It starts no thread and does not use JAX."""
    holds, says = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of forks
        process = os.fork()
    if not process:
        try:
            with (
                store.leading(workdir),
                store.claim(workdir, UNIT) as mine,
                store.attempt(workdir, UNIT),
            ):
                os.write(says, b"1" if mine else b"0")
                time.sleep(600)
        finally:
            os._exit(1)
    os.close(says)
    try:
        assert os.read(holds, 1) == b"1"
        yield process
    finally:
        os.close(holds)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def test_what_a_process_holds_is_free_as_soon_as_it_is_killed_and_its_attempt_failed(
    tmp_path, capsys, monkeypatch
):
    workdir, led = tmp_path / "w", threading.Event()
    monkeypatch.setattr(claims, "LOOK", 0.05)
    with another_process(workdir) as process:
        half = workdir / f".report.html.{atomic.HOST}.{process}.tmp"
        half.touch()
        with store.claim(workdir, UNIT) as mine:
            assert not mine
        with store.claim(workdir, "shards/another") as mine:
            assert mine
            assert store.claimed(workdir) == {"shards__00000-noise", "shards__another"}
        assert store.claimed(workdir) == {"shards__00000-noise"}

        def lead():
            with store.leading(workdir):
                led.set()

        waiting = threading.Thread(target=lead)
        waiting.start()
        assert not led.wait(0.3)
        assert half.exists()
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        waiting.join()
    assert led.is_set()
    with store.leading(workdir):  # the thread may have led before the process was reaped
        assert not half.exists()
    holder = f"process {process} on {platform.node()} since 20"
    assert f"{workdir} is being written by {holder}" in capsys.readouterr().err
    with store.claim(workdir, UNIT) as mine:
        assert mine
        assert store.failures(workdir, UNIT) == [claims.DIED]


def test_a_claim_is_one_process_s_and_given_back(tmp_path):
    for _ in range(2):
        with store.claim(tmp_path, UNIT) as mine, store.claim(tmp_path, UNIT) as again:
            assert (mine, again) == (True, False)
    with pytest.raises(KeyError), store.claim(tmp_path, UNIT):
        raise KeyError
    assert store.claimed(tmp_path) == set()


def fail(workdir, error, unit=UNIT):
    with contextlib.suppress(type(error)), store.attempt(workdir, unit):
        raise error


def test_errors_are_counted_interrupts_are_not_and_success_clears_them(tmp_path):
    fail(tmp_path, RuntimeError("it cannot be\nmore lines"))
    fail(tmp_path, UserError("no room"))  # which ends the process
    fail(tmp_path, KeyboardInterrupt())
    fail(tmp_path, SystemExit())
    fail(tmp_path, ValueError(), "attacks/norm.rule1/000")
    assert store.failures(tmp_path, UNIT) == ["RuntimeError: it cannot be"]
    with store.attempt(tmp_path, UNIT):
        pass
    assert store.failures(tmp_path, UNIT) == []
    assert store.failures(tmp_path, "attacks/norm.rule1/000") == ["ValueError"]
    for _ in range(2):
        store.clear_failures(tmp_path)
        assert store.failures(tmp_path, "attacks/norm.rule1/000") == []
        assert store.failed(tmp_path) == {"attacks__norm.rule1__000"}  # tried last


def test_a_failure_that_was_half_written_counts(tmp_path):
    fail(tmp_path, RuntimeError("no"))
    (path,) = (tmp_path / claims.FAILURES).rglob("*.json")
    path.write_text("")
    assert store.failures(tmp_path, UNIT) == [claims.DIED]


def test_what_dead_processes_left_is_gone_at_the_next_start_and_all_else_stays(tmp_path):
    dead = 1 << 22  # above the numbers that Linux gives
    places = (".", "shards", "partial/a", "attacks/b", "figures")
    left = [tmp_path / place / f".x.{atomic.HOST}.{dead}.tmp" for place in places]
    folder = tmp_path / "shards" / f".00000.{atomic.HOST}.{dead}.tmp"
    alive = tmp_path / f".report.html.{atomic.HOST}.{os.getppid()}.tmp"
    elsewhere = tmp_path / f".report.html.another-host.{dead}.tmp"
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder / "checkpoint").mkdir(parents=True)
    others = [tmp_path / "shards" / "x.tmp", tmp_path / "attacks" / "b" / "rows.parquet"]
    for path in (*others, alive, elsewhere):
        path.touch()
    with store.leading(tmp_path):
        assert not any(path.exists() for path in [*left, folder])
        assert all(path.exists() for path in (*others, alive, elsewhere))


def test_one_process_may_lead_again_and_stops_at_the_end(tmp_path):
    with store.leading(tmp_path):
        half = tmp_path / f".x.{atomic.HOST}.{os.getpid()}.tmp"
        half.touch()
        with store.leading(tmp_path):  # it never was free: nothing is removed
            assert half.exists()
        other = filelock.FileLock(tmp_path / ".lock", is_singleton=False)
        with pytest.raises(filelock.Timeout):
            other.acquire(timeout=0)
    with other.acquire(timeout=0):
        pass


def test_without_locks_all_is_allowed_and_said_once(tmp_path, monkeypatch, capsys):
    def unable(*arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as on NFS

    monkeypatch.setattr(fcntl, "flock", unable)
    for _ in range(claims.TRIES):  # processes that may be at work still
        path = tmp_path / claims.FAILURES / f"{claims.file_name_of(UNIT)}.{uuid.uuid4().hex}.json"
        store.write_text(path, json.dumps({"why": claims.DIED}))
    with store.leading(tmp_path), store.claim(tmp_path, UNIT) as mine:
        assert mine
        assert store.claimed(tmp_path) == {claims.file_name_of(UNIT)}
        assert store.failures(tmp_path, UNIT) == []
    assert store.claimed(tmp_path) == set()
    assert capsys.readouterr().err.count("is on a file system without locks") == 1


def test_a_folder_that_cannot_hold_a_sweep_is_refused(tmp_path):
    (tmp_path / "w").touch()
    with pytest.raises(UserError, match="is not a folder"), store.leading(tmp_path / "w"):
        pass
