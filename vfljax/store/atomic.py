"""Writing files and folders: the old one or the whole new one, and one clear line on a full disk.

What is being written has a name that starts with a dot and ends in ``.<process>.tmp``; it is moved into
place when it is whole, and removed when writing fails.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from vfljax.errors import UserError
from vfljax.machine import bytes_text, free_disk

FULL = (errno.ENOSPC, errno.EDQUOT)
TEMPORARY = re.compile(r"\..+\.(\d+)\.tmp")


def temporary_of(path: pathlib.Path) -> pathlib.Path:
    """Where this process builds ``path``."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def write_file(path: pathlib.Path, write: Callable[[pathlib.Path], object], need: int = 0) -> None:
    """Replaces a file by what a function writes, all of it or nothing.

    Args:
      path: of the file.
      write: is given the path of a temporary file.
      need: bytes, if known.

    Raises:
      UserError: where the disk is full.
    """
    temporary = temporary_of(path)
    with _building(path, temporary, need):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        os.replace(temporary, path)


def write_folder(
    path: pathlib.Path, write: Callable[[pathlib.Path], object], need: int = 0
) -> None:
    """Makes a new folder by what a function writes, all of it or nothing.

    Args:
      path: of the folder.
      write: is given the path of a temporary folder.
      need: bytes, if known.

    Raises:
      UserError: where the disk is full.
    """
    temporary = temporary_of(path)
    with _building(path, temporary, need):
        remove(temporary)
        temporary.mkdir(parents=True)
        write(temporary)
        os.replace(temporary, path)


@contextlib.contextmanager
def _building(path: pathlib.Path, temporary: pathlib.Path, need: int) -> Iterator[None]:
    if need > free_disk(path):  # before a library that would say it in its own way
        raise full(path, need)
    try:
        yield
    except BaseException as error:  # an interrupt too: half a file must not fill the disk further
        remove(temporary)
        if _says_full(error):
            raise full(path, need) from error
        raise


def _says_full(error: BaseException | None) -> bool:
    """Whether the disk is full: orbax and tensorstore say so in words alone."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if any(word in str(error) for word in ("No space left on device", "Disk quota exceeded")):
            return True
        error = error.__cause__ or error.__context__
    return False


def full(path: pathlib.Path, need: int) -> UserError:
    """What to say where ``need`` bytes do not fit."""
    free = bytes_text(free_disk(path))
    needs = f"about {bytes_text(need)} are needed and " if need else ""
    return UserError(
        f"{path} cannot be written: {needs}{free} are free on this disk. Free some space and run the "
        "same command again; nothing finished is lost."
    )


def remove(path: pathlib.Path) -> None:
    """Remove a file or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_bytes(path: pathlib.Path, content: bytes) -> None:
    """Replaces a file, all of it or nothing.

    Args:
      path: of the file.
      content: of the file.
    """
    write_file(path, lambda p: p.write_bytes(content), len(content))


def write_text(path: pathlib.Path, text: str) -> None:
    """Replaces a text file (UTF-8), all of it or nothing.

    Args:
      path: of the file.
      text: of the file.
    """
    write_bytes(path, text.encode())


def write_table(path: pathlib.Path, table: pa.Table) -> None:
    """Replaces a Parquet file, all of it or nothing.

    Args:
      path: of the file.
      table: its rows.
    """
    write_file(path, lambda p: pq.write_table(table, p), table.nbytes)


def write_csv(path: pathlib.Path, table: pa.Table) -> None:
    """Replaces a CSV file, all of it or nothing.

    Args:
      path: of the file.
      table: its rows.
    """
    write_file(path, lambda p: pyarrow.csv.write_csv(table, p), table.nbytes)


def write_arrays(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Replaces a .npz file, all of it or nothing.

    Args:
      path: of the file.
      arrays: by name.
    """

    def write(temporary: pathlib.Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_file(path, write, sum(array.nbytes for array in arrays.values()))


def remove_leftovers(workdir: pathlib.Path) -> None:
    """Remove what dead writers of a sweep left half written. Only the one writer may call it."""
    for place in ("shards", "partial", "partial/*", "attacks", "attacks/*"):
        for path in workdir.glob(f"{place}/.*.tmp"):
            remove(path)
    for place in (".", "figures"):  # a report that is being written elsewhere has its own there
        for path in workdir.glob(f"{place}/.*.tmp"):
            match = TEMPORARY.fullmatch(path.name)
            if match is None or not _lives(int(match[1])):
                remove(path)
    for path in workdir.glob("partial/*"):
        with contextlib.suppress(OSError):
            path.rmdir()  # if it is empty


def _lives(process: int) -> bool:
    """Whether another process of that number runs on this machine."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
