"""Who does what in a sweep's folder: the lock of its plan, claims of units, and units that failed.

Any number of processes, also on other machines, may work in one folder. A process that changes what they
share, such as the plan or the tables, holds the lock of the folder (``leading``). A process that makes a unit
claims it (``claim``). **A claim only saves work**: a unit that two processes make is stored once, because its
folder is renamed into place and whoever finds it there drops his own. On a file system without locks the result
is therefore right too, and a warning is printed.

``attempt`` leaves a file for each failure of a unit. If a process dies, its locks are released and its attempt
counts as failed. Without locks it is not known whether a process has died or is still at work, and only errors
count.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import pathlib
import platform
import re
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import filelock

from vfljax.errors import UserError
from vfljax.store.atomic import remove_leftovers, write_text

LOCK, LEADER = ".lock", ".leader.json"
CLAIMS, FAILURES = ".claims", "failures"
EARLIER = ".earlier"  # of a unit's failures before ``clear_failures``
FAILURE = re.compile(rf"(.+)(?:\.[0-9a-f]{{32}}\.json|{re.escape(EARLIER)})")
TRIES = 3  # failures after which a unit is given up
LOOK = 1.0  # seconds to wait for the lock before a line says so
DIED = "its process ended"
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
_LOCKS: dict[pathlib.Path, filelock.BaseFileLock] = {}  # one reentrant lock per folder and process
_WARNED: set[pathlib.Path] = set()  # folders without locks


def file_name_of(unit: str) -> str:
    """Returns the name of a unit as a file's name."""
    return unit.replace("/", "__")


@contextlib.contextmanager
def leading(workdir: pathlib.Path) -> Iterator[None]:
    """Holds the lock of a sweep's folder, which is made if it is absent; waits for another holder.

    The lock is released when the process ends, however it ends, and is reentrant within a process. Files that
    a dead process left half written beside ``sweep.json`` are removed first.

    Raises:
      UserError: if the folder cannot be made or written.
    """
    if workdir.exists() and not workdir.is_dir():
        raise UserError(f"workdir {workdir} is not a folder: choose another --workdir.")
    folder = workdir.absolute()
    for odd in (sign for sign in "[\\" if sign in str(folder)):  # orbax takes its paths for globs
        what = f"workdir {workdir} has {odd!r} in its path, where no checkpoint can be written"
        raise UserError(what, remedy="choose another --workdir")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _LOCKS.setdefault(folder, _lock_of(folder / LOCK))
        first = not lock.is_locked
        try:
            lock.acquire(timeout=LOOK)
        except filelock.Timeout:
            print(f"{workdir} is being written by {_leader(folder)}: waiting", file=sys.stderr)
            lock.acquire()
    except OSError as error:
        if error.errno in NO_LOCKS:
            _warn(folder)
            remove_leftovers(folder)
            yield
            return
        what = f"workdir {workdir} cannot be written ({error})"
        raise UserError(what, remedy="choose another") from error
    try:
        if first:
            write_text(folder / LEADER, json.dumps(_this_process()))
            remove_leftovers(folder)
        yield
    finally:
        lock.release()


def _lock_of(path: pathlib.Path) -> filelock.BaseFileLock:
    # filelock's substitute for locks outlives a process that dies
    return filelock.FileLock(path, fallback_to_soft=False)


def _this_process() -> dict[str, Any]:
    since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    return {"host": platform.node(), "process": os.getpid(), "since": since}


def _leader(folder: pathlib.Path) -> str:
    try:
        leader = json.loads((folder / LEADER).read_text())
        return f"process {leader['process']} on {leader['host']} since {leader['since']}"
    except (OSError, ValueError, TypeError, KeyError):
        return "another process"


def _warn(folder: pathlib.Path) -> None:
    if folder not in _WARNED:
        _WARNED.add(folder)
        print(
            f"{folder} is on a file system without locks: several processes may do the same work there, and "
            "what they store is right all the same.",
            file=sys.stderr,
        )


@contextlib.contextmanager
def claim(workdir: pathlib.Path, unit: str) -> Iterator[bool]:
    """Claims a unit for the block, without waiting. Yields whether no other process has it.

    Args:
      unit: name of the unit.
    """
    path = workdir / CLAIMS / f"{file_name_of(unit)}.lock"
    path.parent.mkdir(exist_ok=True)
    lock = _lock_of(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        yield False
        return
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        _warn(workdir.absolute())  # the file alone lets others begin elsewhere, by ``claimed``
    try:
        yield True
    finally:
        # removed while it is held: who locks another file of this name finds the unit done, or undone
        path.unlink(missing_ok=True)
        lock.release()


def claimed(workdir: pathlib.Path) -> set[str]:
    """Returns the slugs of units that have been claimed. A process that died leaves its claim's file."""
    return {path.stem for path in (workdir / CLAIMS).glob("*.lock")}


@contextlib.contextmanager
def attempt(workdir: pathlib.Path, unit: str) -> Iterator[None]:
    """Counts the block as a failure of the unit if it raises an error or if the process dies in it.

    An interrupt is no failure. Success clears the unit's failures. The caller has claimed the unit.

    Args:
      unit: name of the unit.
    """
    name = f"{file_name_of(unit)}.{time.time_ns():016x}{uuid.uuid4().hex[:16]}.json"  # in order of time
    path = workdir / FAILURES / name
    write_text(path, json.dumps({**_this_process(), "unit": unit, "why": DIED}))
    try:
        yield
    except UserError:  # the process ends: it is no fault of the unit
        path.unlink(missing_ok=True)
        raise
    except Exception as error:
        write_text(path, json.dumps({**_this_process(), "unit": unit, "why": _line(error)}))
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    path.unlink(missing_ok=True)
    for _, failure in _failures(workdir, file_name_of(unit)):
        failure.unlink(missing_ok=True)


def _line(error: Exception) -> str:
    """Returns an error as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{lines[0] if lines else ''}".removesuffix(": ")[:300]


def _failures(workdir: pathlib.Path, unit: str = "") -> list[tuple[str, pathlib.Path]]:
    """Returns the files of failures of a unit, or of all units, each after the slug of its unit."""
    folder = workdir / FAILURES
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    matches = (match for match in map(FAILURE.fullmatch, names) if match)
    return [(match[1], folder / match[0]) for match in matches if unit in ("", match[1])]


def failures(workdir: pathlib.Path, unit: str) -> list[str]:
    """Returns why the unit failed, once for each failure, the last one last. The caller has claimed it, so
    no process is making it."""
    found = []
    for _, path in _failures(workdir, file_name_of(unit)):
        if path.suffix == EARLIER:
            continue
        try:
            found.append(str(json.loads(path.read_text())["why"]))
        except (OSError, ValueError, TypeError, KeyError):
            found.append(DIED)  # the process died while it wrote the file
    locks = workdir.absolute() not in _WARNED
    return found if locks else [why for why in found if why != DIED]


def failed(workdir: pathlib.Path) -> set[str]:
    """Returns the slugs of units that have failed, also before ``clear_failures``."""
    return {of for of, _ in _failures(workdir)}


def clear_failures(workdir: pathlib.Path) -> None:
    """Lets units which were given up be tried again. ``failed`` still names them."""
    for of, path in _failures(workdir):
        with contextlib.suppress(OSError):  # another process was faster
            path.replace(path.with_name(of + EARLIER))
