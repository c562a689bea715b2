"""Finds a user's files, and reads folders and archives. Nothing is written beside them."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import itertools
import math
import mmap
import os
import pathlib
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vfljax.datasets import formats
from vfljax.datasets.formats import HIDDEN
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import Field, UserError, short_path

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".zip")
DAMAGED = "the archive is damaged or cut off; fetch it again"
MAX_BYTES = 8 << 30  # of one data set in memory
FOLDER, FILE = Field("data.dir"), Field("data.options.file")


def folder_of(folder: str, layouts: str) -> pathlib.Path:
    """Returns ``config.data.dir`` as an existing folder, or raises UserError.

    Args:
      folder: its path.
      layouts: what it should hold, for messages.
    """
    path = pathlib.Path(folder)
    if not folder or not path.is_dir():
        kind = "is a file" if path.is_file() else "is not a folder"
        raise _not_there(folder, kind, f"give the folder that holds {layouts}")
    return path


def _not_there(folder: str, what: str, remedy: str) -> UserError:
    if not folder:
        return UserError("is empty", field=FOLDER, remedy=remedy)
    return UserError(what, field=FOLDER, value=short_path(folder), remedy=remedy)


def find(folder: str, what: str, *patterns: Sequence[str], file: str = "") -> pathlib.Path:
    """Finds the one file of a data set.

    Args:
      folder: the file itself, or the folder that holds it.
      what: what is looked for, for messages.
      *patterns: names and globs; each sequence is used only if no file matches an earlier one.
      file: the file's name in the folder; patterns are not used then.

    Raises:
      UserError: if there is no such file, or several.
    """
    path = pathlib.Path(folder)
    if not folder or not path.exists():
        raise _not_there(folder, "is missing", f"give {what}")
    if path.is_file():
        if file:
            raise UserError(f"{path} is a file", remedy=("leave ", FILE, f"={file!r} out"))
        return path
    if file and (path / file).is_file():
        return path / file
    for kind in () if file else patterns:
        if found := only(path, kind):
            return found
    names = file or ", ".join(itertools.chain(*patterns))
    raise fault(path, f"holds no file {names}", f"give {what}")


def only(folder: pathlib.Path, patterns: Sequence[str]) -> pathlib.Path | None:
    """Returns the only file of a folder whose name matches a pattern in any case; None if there is none.

    Args:
      folder: its subfolders are not searched.
      patterns: names and globs in lower case.

    Raises:
      UserError: if there are several.
    """
    files = [p for p in inside(folder) if any(fnmatch.fnmatch(p.name.lower(), q) for q in patterns)]
    files = [p for p in files if p.is_file()]
    if len(files) > 1:
        names = ", ".join(p.name for p in files[:5])
        raise fault(folder, f"holds {names}", ("leave one, or give the path of one as ", FOLDER))
    return files[0] if files else None


def inside(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the paths in a folder, sorted by name, without hidden ones."""
    with reading(folder, "check the folder and its permissions"):
        return sorted(p for p in folder.iterdir() if not p.name.startswith("."))


def files_below(folder: str | os.PathLike[str]) -> list[str]:
    """Returns the sorted paths, relative to a folder, of all files below it, without hidden ones.

    Links to folders are followed, and each folder is entered once, so that links may lead in a circle.
    """
    found, entered = [], set()

    def refuse(error: OSError) -> None:
        raise error

    for top, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        if (real := os.path.realpath(top)) in entered:
            folders.clear()
            continue
        entered.add(real)
        parent = os.path.relpath(top, folder)
        parent = "" if parent == "." else f"{parent}{os.sep}"
        found += [parent + name for name in names if not name.startswith(HIDDEN)]
    return sorted(found)


def content(path: pathlib.Path) -> bytes:
    """Returns a file's bytes, or raises UserError."""
    with reading(path, "check the file and its permissions"):
        return path.read_bytes()


def fits(what: object, shape: Sequence[int], itemsize: int, most: int, remedy: str) -> None:
    """Raises UserError for an array that would not fit, before it is made.

    Args:
      what: the array's name, for messages.
      shape: the array's shape, as its header claims.
      itemsize: bytes of a value.
      most: the most bytes that the array may have.
      remedy: what to do.
    """
    if (size := math.prod(map(int, shape)) * itemsize) > most:
        values = f"{what}: {'x'.join(map(str, shape))} values"
        raise fault(values, f"take {size:,} bytes, more than {most:,}", remedy)


class ArchiveMember(NamedTuple):
    """A plain file of an archive. Members can be read in any order, and by several threads."""

    name: str
    read: Callable[[], bytes]


def archive_members(path: pathlib.Path) -> list[ArchiveMember]:
    """Returns the plain files of an archive, whose form its content says; raises UserError if the archive is
    damaged or cut off."""
    with reading(path, DAMAGED):
        return (_zip if formats.named(formats.start_of(path)) == formats.ZIP else _tar)(path)


def _zip(path: pathlib.Path) -> list[ArchiveMember]:
    archive = zipfile.ZipFile(path)  # stays open: members are read from it later
    files = [info for info in archive.infolist() if not info.is_dir()]
    return [ArchiveMember(info.filename, functools.partial(archive.read, info)) for info in files]


def _tar(path: pathlib.Path) -> list[ArchiveMember]:
    with open(path, "rb") as file, tempfile.TemporaryFile() as unpacked:
        plain: Any = file
        start = file.read(formats.BYTES)
        file.seek(0)
        if packing := formats.compression(start):  # only an unpacked file can be read in any order
            with formats.decompressed(packing, lambda: contextlib.nullcontext(file)) as stream:
                shutil.copyfileobj(stream, unpacked, 1 << 20)
            unpacked.flush()
            plain = unpacked
        # a mapping stays when its file is closed
        data = mmap.mmap(plain.fileno(), 0, access=mmap.ACCESS_READ)

    def read(start: int, size: int) -> bytes:
        return data[start : start + size]

    archive = tarfile.open(fileobj=data, mode="r:")  # noqa: SIM115 - it does not own the mapping
    files = [info for info in archive if info.isreg()]
    # tarfile takes a damaged header, or a file cut between two members, for the end
    if data[archive.offset : archive.offset + tarfile.BLOCKSIZE] != bytes(tarfile.BLOCKSIZE):
        raise fault(path, "ends without a tar file's end mark", DAMAGED)
    return [ArchiveMember(f.name, functools.partial(read, f.offset_data, f.size)) for f in files]
