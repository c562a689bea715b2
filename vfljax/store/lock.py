"""One writer at a time. Readers need no lock: files are replaced whole.

The writer may have jobs that other processes do, on other machines too: they write what the writer asks for
while it lives (``working``). Where it dies, they end what they have begun, and the next writer waits for them.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import platform
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import filelock

from vfljax.errors import UserError
from vfljax.store.atomic import remove_leftovers, write_text

LOCK, WRITER, PARTS = ".lock", ".writer.json", ".parts"
JOBS = ".jobs"  # a locked file for each process that does jobs
_LOCKS: dict[pathlib.Path, filelock.BaseFileLock] = {}  # one a folder and process: it is reentrant


@contextlib.contextmanager
def writing(workdir: pathlib.Path) -> Iterator[None]:
    """Hold a sweep's directory for writing; it is made if it is absent.

    The lock belongs to the process and goes with it, however it dies. What a dead writer left half
    written is removed first. Within one process it may be taken again. Raises UserError that names
    the holder where another process has it, and where the folder cannot be made or written. On a file
    system without locks it says so and goes on.
    """
    if workdir.exists() and not workdir.is_dir():
        raise UserError(f"workdir {workdir} is not a folder: choose another --workdir.")
    folder = workdir.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _LOCKS.setdefault(folder, filelock.FileLock(folder / LOCK))
        first = not lock.is_locked
        lock.acquire(timeout=0)
    except filelock.Timeout:
        what = f"{workdir} is being written by {_holder(workdir)}"
        raise UserError(what, remedy="wait for it to end, or stop it") from None
    except NotImplementedError:
        print(f"{workdir} is on a file system without locks: start one writer.", file=sys.stderr)
        yield
        return
    except OSError as error:
        what = f"workdir {workdir} cannot be written ({error})"
        raise UserError(what, remedy="choose another") from error
    try:
        if first:
            since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
            holder = {"host": platform.node(), "process": os.getpid(), "since": since}
            # first the new writer, then a look at who works for an earlier one: ``working`` does the reverse
            write_text(folder / WRITER, json.dumps({**holder, "id": uuid.uuid4().hex}))
            _wait_for_jobs(folder)
            remove_leftovers(folder)
        yield
    finally:
        lock.release()


def _written(workdir: pathlib.Path) -> dict[str, Any]:
    """What the present writer, or the last one, wrote of itself; nothing where it cannot be read."""
    try:
        return dict(json.loads((workdir / WRITER).read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def writer(workdir: pathlib.Path) -> str:
    """Returns what tells the present writer, or the last one, from others; '' where there was none."""
    return str(_written(workdir).get("id", ""))


@contextlib.contextmanager
def working(workdir: pathlib.Path, leader: str) -> Iterator[bool]:
    """Lets a job write parts of a sweep for the writer that leads it.

    The next writer waits until the block, or the process, has ended.

    Args:
      workdir: the folder of the sweep.
      leader: the identity of the writer (see ``writer``).

    Yields:
      Whether it still is the writer.
    """
    with _held(workdir / JOBS / f"{platform.node()}-{os.getpid()}"):
        yield writer(workdir) == leader


@contextlib.contextmanager
def holding(workdir: pathlib.Path, part: str) -> Iterator[None]:
    """Holds a part of a sweep that several jobs write, and waits for the job that has it.

    Args:
      workdir: the folder of the sweep.
      part: its name.
    """
    with _held(workdir / PARTS / part.replace("/", "_")):
        yield


@contextlib.contextmanager
def _held(path: pathlib.Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        # a file system without locks, of which ``writing`` warns
        with contextlib.suppress(NotImplementedError):
            held.enter_context(filelock.FileLock(path))
        yield


def _wait_for_jobs(folder: pathlib.Path) -> None:
    """Waits for the jobs of an earlier writer, which died before them."""
    for path in sorted((folder / JOBS).glob("*")):
        lock = filelock.FileLock(path)
        with contextlib.suppress(NotImplementedError):
            try:
                lock.acquire(timeout=0)
            except filelock.Timeout:
                waiting = f"waiting for a job of an earlier command, {path.name} (host-process)"
                print(f"{folder}: {waiting}: it ends what it has begun", file=sys.stderr)
                lock.acquire()
            path.unlink(missing_ok=True)
            lock.release()


def _holder(workdir: pathlib.Path) -> str:
    """The process that holds the lock, as far as it is known; one that just took it needs a moment to write
    that down."""
    for _ in range(20):
        holder = _written(workdir)
        if {"process", "host", "since"} <= holder.keys():
            return f"process {holder['process']} on {holder['host']} since {holder['since']}"
        time.sleep(0.05)
    return "another process"
