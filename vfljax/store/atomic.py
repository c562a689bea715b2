"""Atomic writes of files and folders, with a one-line error if the disk is full.

New content is written under a name that starts with a dot and ends in ``.<host>.<process>.tmp``. It is moved
into place when it is complete, and removed if writing fails.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import platform
import re
import shutil
import stat
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from vfljax.errors import UserError
from vfljax.machine import bytes_text, free_disk

FULL = (errno.ENOSPC, errno.EDQUOT)
# orbax and tensorstore raise errors without a number, which are recognized by their text
FULL_TEXTS = ("No space left on device", "Disk quota exceeded")
HOST = re.sub(r"\W", "-", platform.node())
TEMPORARY = re.compile(rf"\..+\.{re.escape(HOST)}\.(\d+)\.tmp")  # of a process of this machine


@contextlib.contextmanager
def replacing(path: pathlib.Path, need: int = 0, keep: bool = False) -> Iterator[pathlib.Path]:
    """Replaces a file or makes a folder atomically.

    Args:
      path: path of the file or folder.
      need: its size in bytes; 0 if it is unknown.
      keep: whether a folder that is there at the end stays, and the new one is dropped.

    Yields:
      A temporary path, which is moved to ``path`` at the end of the block.

    Raises:
      UserError: if the disk is full.
    """
    temporary = _temporary(path)
    if need > free_disk(path):  # before a library raises an error of its own
        raise full(path, need)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove(temporary)
        yield temporary
        if keep and path.is_dir():
            remove(temporary)
        else:
            _move(temporary, path, keep)
    except BaseException as error:  # interrupts too: half a file must not stay on a full disk
        remove(temporary)
        if _is_full(error):
            raise full(path, need) from error
        raise


def _temporary(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(f".{path.name}.{HOST}.{os.getpid()}.tmp")


def _move(temporary: pathlib.Path, path: pathlib.Path, keep: bool) -> None:
    try:
        os.replace(temporary, path)
    except OSError as error:
        if not keep or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        remove(temporary)  # another process was faster


def _is_full(error: BaseException | None) -> bool:
    """Returns whether an error, or any error in its chain of causes, means that the disk is full."""
    while error is not None:
        numbered = isinstance(error, OSError) and error.errno in FULL
        if numbered or any(text in str(error) for text in FULL_TEXTS):
            return True
        error = error.__cause__ or error.__context__
    return False


def full(path: pathlib.Path, need: int) -> UserError:
    """Returns the error of a full disk.

    Args:
      path: the file or folder that does not fit.
      need: its size in bytes; 0 if it is unknown.
    """
    free = bytes_text(free_disk(path))
    needs = f"about {bytes_text(need)} are needed and " if need else ""
    return UserError(
        f"{path} cannot be written: {needs}{free} are free on this disk. Free some space and run the "
        "same command again; nothing finished is lost."
    )


def remove(path: pathlib.Path) -> None:
    """Removes a file or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_at_once(folder: pathlib.Path) -> None:
    """Removes a folder that other processes may be reading: they find all of it, or nothing."""
    temporary = _temporary(folder)
    with contextlib.suppress(OSError):  # another process was faster
        os.replace(folder, temporary)
    remove(temporary)


def give_usual_mode(path: pathlib.Path) -> None:
    """Gives a file the mode that a new one has in its folder, by the umask and the folder's own rules."""
    new = _temporary(path)
    try:
        new.touch()
        path.chmod(stat.S_IMODE(new.stat().st_mode))
    finally:
        new.unlink(missing_ok=True)


def write_bytes(path: pathlib.Path, content: bytes) -> None:
    """Replaces a file atomically.

    Args:
      path: path of the file.
      content: its new content.
    """
    with replacing(path, len(content)) as temporary:
        temporary.write_bytes(content)


def write_text(path: pathlib.Path, text: str) -> None:
    """Replaces a text file (UTF-8) atomically.

    Args:
      path: path of the file.
      text: its new content.
    """
    write_bytes(path, text.encode())


def write_table(path: pathlib.Path, table: pa.Table) -> None:
    """Replaces the file of a table atomically.

    Args:
      path: path of the file. A path that ends in .csv gives text, any other gives Parquet.
      table: the rows.
    """
    # pyarrow is given an open file: it would take a relative path with a colon for a URI
    with replacing(path, table.nbytes) as temporary, temporary.open("wb") as file:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, file)
        else:
            pq.write_table(table, file)


def remove_leftovers(folder: pathlib.Path) -> None:
    """Removes the half-written files and folders below a folder that dead processes of this machine left."""
    # unlike ``rglob``, ``walk`` passes over folders that other processes remove meanwhile
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            match = TEMPORARY.fullmatch(name)
            if match is not None and not _lives(int(match[1])):
                remove(pathlib.Path(parent, name))
        folders[:] = [name for name in folders if not TEMPORARY.fullmatch(name)]


def _lives(process: int) -> bool:
    """Returns whether another process with this id runs on this machine."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)  # it is another user's
    return True
