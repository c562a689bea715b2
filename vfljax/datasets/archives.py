"""Files inside .tar, .tar.gz and .zip archives, read in memory; nothing is ever written.

What enters: an archive's path. What leaves: the names of its plain files, and their bytes in the
archive's own order (a compressed tar can be read in no other without starting anew).
"""

from __future__ import annotations

import collections
import pathlib
import tarfile
import zipfile
from collections.abc import Callable, Collection, Iterator
from typing import IO

from vfljax.datasets.given import explained, fault
from vfljax.errors import UserError

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
REMEDY = "the archive is damaged or cut off; fetch it again"
LARGEST = 1 << 30  # bytes of one member


def is_archive(path: pathlib.Path) -> bool:
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def members(path: pathlib.Path) -> list[str]:
    """Names of the plain files inside; links and devices do not count."""
    names = [name for name, _ in _walk(path, lambda name: False)]
    seen = collections.Counter(names)
    if len(seen) < len(names):
        raise _twice(path, seen.most_common(1)[0][0])
    return names


def contents(path: pathlib.Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of each wanted file; raises UserError for a damaged archive."""
    return chosen(path, frozenset(wanted).__contains__)


def chosen(
    path: pathlib.Path, wanted: Callable[[str], bool], largest: int = LARGEST
) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of each file whose name is ``wanted``, in one reading; raises UserError for a
    damaged archive, a name that comes twice or a file of more than ``largest`` bytes."""
    seen = set()
    for name, content in _walk(path, wanted, largest):
        if content is not None:
            if name in seen:
                raise _twice(path, name)
            seen.add(name)
            yield name, content


def _twice(path: pathlib.Path, name: str) -> UserError:
    return fault(f"{path} holds {name!r} twice: pack it anew.")


def _walk(
    path: pathlib.Path, wanted: Callable[[str], bool], largest: int = LARGEST
) -> Iterator[tuple[str, bytes | None]]:
    """Every plain file's name, with the bytes of those wanted."""
    zipped = path.name.lower().endswith(".zip")
    with explained(path, REMEDY):
        yield from (_zip(path, wanted, largest) if zipped else _tar(path, wanted, largest))


def _zip(
    path: pathlib.Path, wanted: Callable[[str], bool], largest: int
) -> Iterator[tuple[str, bytes | None]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                read = wanted(info.filename)
                yield (
                    info.filename,
                    _read(path, archive.open(info), info, largest) if read else None,
                )


def _tar(
    path: pathlib.Path, wanted: Callable[[str], bool], largest: int
) -> Iterator[tuple[str, bytes | None]]:
    with tarfile.open(path, "r:*") as archive:
        last = 0
        for info in archive:
            if archive.offset <= last:  # a negative size would lead back, forever
                raise fault(f"{path}: {info.name} has an impossible size: {REMEDY}.")
            last = archive.offset
            if info.isreg():
                stream = archive.extractfile(info) if wanted(info.name) else None
                yield info.name, None if stream is None else _read(path, stream, info, largest)
        # tarfile takes a damaged header, or a file cut between two members, for the end
        stream = archive.fileobj
        assert stream is not None
        stream.seek(archive.offset)
        if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise fault(f"{path} ends without a tar file's end mark: {REMEDY}.")
        while stream.read(1 << 20):  # to gzip's own end, where its checksum is
            pass


def _read(
    path: pathlib.Path, stream: IO[bytes], info: zipfile.ZipInfo | tarfile.TarInfo, largest: int
) -> bytes:
    size = info.file_size if isinstance(info, zipfile.ZipInfo) else info.size
    name = info.filename if isinstance(info, zipfile.ZipInfo) else info.name
    if size > largest:
        raise fault(f"{path}: {name} has {size:,} bytes: it is not the data set's file.")
    with stream:
        content = stream.read(size + 1)
    if len(content) != size:
        raise fault(f"{path}: {name} has {len(content)} bytes and not {size}: {REMEDY}.")
    return content
