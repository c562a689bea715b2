"""Files inside .tar, .tar.gz and .zip archives, read in memory; nothing is ever written.

What enters: an archive's path. What leaves: the names of its plain files, and their bytes in the
archive's own order (a compressed tar can be read in no other without starting anew).
"""

from __future__ import annotations

import functools
import pathlib
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from vfljax.datasets.given import content, explained, fault, inside

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
REMEDY = "the archive is damaged or cut off; fetch it again"
LARGEST = 1 << 30  # bytes of one member
Member = tuple[str, int, Callable[[], Any]]  # its name and bytes, and what opens it


def is_archive(path: pathlib.Path) -> bool:
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def members(path: pathlib.Path) -> list[str]:
    """Names of the plain files inside; links and devices do not count. Raises as ``chosen``."""
    return [name for name, *_ in _walk(path, lambda name: True)]


def chosen(
    path: pathlib.Path, selected: Callable[[str], bool], largest: int = LARGEST
) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of each file whose name is ``selected``, in one reading; raises UserError for a
    damaged archive, a name that comes twice or a file of more than ``largest`` bytes."""
    for name, size, opened in _walk(path, selected):
        if size > largest:
            raise fault(f"{path}: {name} has {size:,} bytes: it is not the data set's file.")
        with explained(path, REMEDY), opened() as stream:
            data = stream.read(size + 1)
        if len(data) != size:
            raise fault(f"{path}: {name} has {len(data)} bytes and not {size}: {REMEDY}.")
        yield name, data


def named(place: pathlib.Path, selected: Callable[[str], bool]) -> dict[str, bytes]:
    """The files of a folder, or of any folder in an archive, whose name is ``selected``; {} where the
    place is neither. Raises as ``chosen``, also for one name in two folders."""
    if place.is_dir():
        return {path.name: content(path) for path in inside(place) if selected(path.name)}
    contents: dict[str, bytes] = {}
    if place.exists():
        for member, data in chosen(place, lambda member: selected(member.rpartition("/")[2])):
            name = member.rpartition("/")[2]
            if name in contents:
                raise fault(f"{place} holds {name} twice: fetch it again.")
            contents[name] = data
    return contents


def _walk(path: pathlib.Path, selected: Callable[[str], bool]) -> Iterator[Member]:
    """Each member that is selected, to be opened before the next is asked for."""
    seen = set()
    with explained(path, REMEDY):
        for member in (_zip if path.name.lower().endswith(".zip") else _tar)(path):
            if selected(member[0]):
                if member[0] in seen:
                    raise fault(f"{path} holds {member[0]!r} twice: pack it anew.")
                seen.add(member[0])
                yield member


def _zip(path: pathlib.Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield info.filename, info.file_size, functools.partial(archive.open, info)


def _tar(path: pathlib.Path) -> Iterator[Member]:
    with tarfile.open(path, "r:*") as archive:
        last = 0
        for info in archive:
            if archive.offset <= last:  # a negative size would lead back, forever
                raise fault(f"{path}: {info.name} has an impossible size: {REMEDY}.")
            last = archive.offset
            if info.isreg():
                yield info.name, info.size, functools.partial(archive.extractfile, info)
        # tarfile takes a damaged header, or a file cut between two members, for the end
        stream: Any = archive.fileobj
        stream.seek(archive.offset)
        if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise fault(f"{path} ends without a tar file's end mark: {REMEDY}.")
        while stream.read(1 << 20):  # to gzip's own end, where its checksum is
            pass
