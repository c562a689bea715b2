"""One writer at a time. Readers need no lock: files are replaced whole."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import platform
import sys
import time
from collections.abc import Iterator

import filelock

from vfljax.errors import UserError
from vfljax.store.files import remove_leftovers, write_text

LOCK, WRITER = ".lock", ".writer.json"
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
        raise UserError(
            f"{workdir} is being written by {_holder(workdir)}: wait for it to end, or stop it."
        ) from None
    except NotImplementedError:
        print(f"{workdir} is on a file system without locks: start one writer.", file=sys.stderr)
        yield
        return
    except OSError as error:
        raise UserError(
            f"workdir {workdir} cannot be written ({error}): choose another."
        ) from error
    try:
        if first:
            since = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
            holder = {"host": platform.node(), "process": os.getpid(), "since": since}
            remove_leftovers(folder)
            write_text(folder / WRITER, json.dumps(holder))
        yield
    finally:
        lock.release()


def _holder(workdir: pathlib.Path) -> str:
    """Who holds the lock, as far as it is known; a holder of this moment needs a little to say so."""
    for _ in range(20):
        try:
            holder = json.loads((workdir / WRITER).read_text())
            return f"process {holder['process']} on {holder['host']} since {holder['since']}"
        except (OSError, ValueError, KeyError, TypeError):
            time.sleep(0.05)
    return "another process"
