"""Files inside .tar, .tar.gz and .zip archives, read in memory; nothing is ever written.

What enters: an archive's path. What leaves: the names of its plain files, and their bytes in the
archive's own order (a compressed tar can be read in no other without starting anew).
"""

from __future__ import annotations

import collections
import pathlib
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from typing import IO

from vfljax.datasets.given import explained, fault

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
REMEDY = "the archive is damaged or cut off; fetch it again"
LARGEST = 1 << 30  # bytes of one member


def is_archive(path: pathlib.Path) -> bool:
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def members(path: pathlib.Path) -> list[str]:
    """Names of the plain files inside; links and devices do not count."""
    names = [name for name, _ in _walk(path, ())]
    seen = collections.Counter(names)
    if len(seen) < len(names):
        raise fault(f"{path} holds {seen.most_common(1)[0][0]!r} twice: pack it anew.")
    return names


def contents(path: pathlib.Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """(name, bytes) of each wanted file; raises UserError for a damaged archive."""
    for name, content in _walk(path, frozenset(wanted)):
        if content is not None:
            yield name, content


def _walk(path: pathlib.Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes | None]]:
    """Every plain file's name, with the bytes of those wanted."""
    zipped = path.name.lower().endswith(".zip")
    with explained(path, REMEDY):
        yield from (_zip(path, wanted) if zipped else _tar(path, wanted))


def _zip(path: pathlib.Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes | None]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                read = info.filename in wanted
                yield info.filename, _read(path, archive.open(info), info) if read else None


def _tar(path: pathlib.Path, wanted: Collection[str]) -> Iterator[tuple[str, bytes | None]]:
    with tarfile.open(path, "r:*") as archive:
        last = 0
        for info in archive:
            if archive.offset <= last:  # a negative size would lead back, forever
                raise fault(f"{path}: {info.name} has an impossible size: {REMEDY}.")
            last = archive.offset
            if info.isreg():
                stream = archive.extractfile(info) if info.name in wanted else None
                yield info.name, None if stream is None else _read(path, stream, info)
        # tarfile takes a damaged header, or a file cut between two members, for the end
        stream = archive.fileobj
        assert stream is not None
        stream.seek(archive.offset)
        if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise fault(f"{path} ends without a tar file's end mark: {REMEDY}.")
        while stream.read(1 << 20):  # to gzip's own end, where its checksum is
            pass


def _read(path: pathlib.Path, stream: IO[bytes], info: zipfile.ZipInfo | tarfile.TarInfo) -> bytes:
    size = info.file_size if isinstance(info, zipfile.ZipInfo) else info.size
    name = info.filename if isinstance(info, zipfile.ZipInfo) else info.name
    if size > LARGEST:
        raise fault(f"{path}: {name} has {size:,} bytes: it is not the data set's file.")
    with stream:
        content = stream.read(size + 1)
    if len(content) != size:
        raise fault(f"{path}: {name} has {len(content)} bytes and not {size}: {REMEDY}.")
    return content
