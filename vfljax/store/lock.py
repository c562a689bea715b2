"""Locks that admit one writer at a time. Readers need no lock, because files are replaced atomically.

Other processes, also on other machines, may do jobs for the writer: they write parts of the sweep while it is
alive (``working``). If the writer dies, they finish what they have begun, and the next writer waits for them.
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
JOBS = ".jobs"  # this folder has a locked file for each process that does jobs
_LOCKS: dict[pathlib.Path, filelock.BaseFileLock] = {}  # one reentrant lock per folder and process


@contextlib.contextmanager
def writing(workdir: pathlib.Path) -> Iterator[None]:
    """Holds the lock of a sweep's directory, which is made if it is absent.

    The lock is released when the process ends, however it ends, and is reentrant within a process. Files that
    a dead writer left half written are removed first. On a file system without locks, a warning is printed
    and the block runs. Raises UserError if another process holds the lock, which the message names, and if
    the folder cannot be made or written.
    """
    if workdir.exists() and not workdir.is_dir():
        raise UserError(f"workdir {workdir} is not a folder: choose another --workdir.")
    folder = workdir.absolute()
    for odd in (sign for sign in "[\\" if sign in str(folder)):  # orbax takes its paths for globs
        what = f"workdir {workdir} has {odd!r} in its path, where no checkpoint can be written"
        raise UserError(what, remedy="choose another --workdir")
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
            # ``working`` does these two steps in reverse, so that no job of an earlier writer is missed
            write_text(folder / WRITER, json.dumps({**holder, "id": uuid.uuid4().hex}))
            _wait_for_jobs(folder)
            remove_leftovers(folder)
        yield
    finally:
        lock.release()


def _written(workdir: pathlib.Path) -> dict[str, Any]:
    """Returns what the present or last writer recorded of itself, or {} if that cannot be read."""
    try:
        return dict(json.loads((workdir / WRITER).read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def writer(workdir: pathlib.Path) -> str:
    """Returns the unique id of the present or last writer, or '' if there was none."""
    return str(_written(workdir).get("id", ""))


@contextlib.contextmanager
def working(workdir: pathlib.Path, leader: str) -> Iterator[bool]:
    """Lets a job write parts of a sweep on behalf of a writer.

    The next writer waits until the block, or the process, has ended.

    Args:
      workdir: the folder of the sweep.
      leader: the id of the writer (see ``writer``).

    Yields:
      Whether ``leader`` is still the id of the present writer.
    """
    with _held(workdir / JOBS / f"{platform.node()}-{os.getpid()}"):
        yield writer(workdir) == leader


def holding(workdir: pathlib.Path, part: str) -> contextlib.AbstractContextManager[None]:
    """Holds the lock of a part of a sweep that several jobs write, after waiting until it is free.

    Args:
      workdir: the folder of the sweep.
      part: name of the part.
    """
    return _held(workdir / PARTS / part.replace("/", "_"))


@contextlib.contextmanager
def _held(path: pathlib.Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        # raised on a file system without locks; ``writing`` prints the warning
        with contextlib.suppress(NotImplementedError):
            held.enter_context(filelock.FileLock(path))
        yield


def _wait_for_jobs(folder: pathlib.Path) -> None:
    """Waits for the jobs that still run for an earlier writer, which is dead."""
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
    """Returns a text on the process that holds the lock. It tries for a second, because a process that just
    took the lock needs a moment to write its record."""
    for _ in range(20):
        holder = _written(workdir)
        if {"process", "host", "since"} <= holder.keys():
            return f"process {holder['process']} on {holder['host']} since {holder['since']}"
        time.sleep(0.05)
    return "another process"
