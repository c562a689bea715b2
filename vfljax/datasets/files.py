"""Finds a user's files and reads them in place and in bounded memory. Nothing is written.

Members of an archive are read in its own order, so that a compressed tar takes only one pass.
"""

from __future__ import annotations

import csv
import fnmatch
import functools
import gzip
import itertools
import math
import pathlib
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vfljax.datasets.table_errors import all_different, fault, reading
from vfljax.errors import Field, Text, UserError, shown

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
DAMAGED = "the archive is damaged or cut off; fetch it again"
MAX_BYTES = 8 << 30  # of one data set in memory
LARGEST = 1 << 30  # bytes of one file, or of an archive's member
LONGEST = 1 << 20  # bytes of a line or a text; no data set here has so long ones
FOLDER, FILE = Field("data.dir"), Field("data.options.file")
Member = tuple[str, int, Callable[[], Any]]  # its name, its bytes, a function that opens it


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
    return UserError(what, field=FOLDER, value=shown(folder), remedy=remedy)


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
        if found := only(path, kind, ("give the path of one as ", FOLDER)):
            return found
    names = file or ", ".join(itertools.chain(*patterns))
    raise fault(path, f"holds no file {names}", f"give {what}")


def only(
    folder: pathlib.Path, patterns: Sequence[str], remedy: Text = "leave one"
) -> pathlib.Path | None:
    """Returns the only file of a folder whose name matches a pattern in any case; None if there is none.

    Args:
      folder: its subfolders are not searched.
      patterns: names and globs in lower case.
      remedy: what to do about several files, which raise UserError.
    """
    files = [p for p in inside(folder) if any(fnmatch.fnmatch(p.name.lower(), q) for q in patterns)]
    files = [p for p in files if p.is_file()]
    if len(files) > 1:
        raise fault(folder, f"holds {', '.join(p.name for p in files[:5])}", remedy)
    return files[0] if files else None


def without(root: pathlib.Path, layouts: str, notes: Sequence[str] = ()) -> UserError:
    """Returns the error for a folder that holds nothing of a data set.

    Args:
      root: the folder.
      layouts: what it should hold.
      notes: possible reasons.
    """
    reasons = "".join(f" ({note})" for note in notes)
    return fault(root, f"does not hold {layouts}{reasons}", ("correct ", FOLDER))


def inside(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the paths in a folder, sorted by name, without hidden ones."""
    with reading(folder, "check the folder and its permissions"):
        return sorted(p for p in folder.iterdir() if not p.name.startswith("."))


def content(path: pathlib.Path) -> bytes:
    """Returns a file's bytes. Raises UserError if it cannot be read or has more than ``LARGEST`` bytes."""
    _is_file(path)
    with reading(path, "check the file and its permissions"):
        if path.stat().st_size > LARGEST:
            raise fault(path, f"is larger than {LARGEST:,} bytes", "it is not the data set's file")
        return path.read_bytes()


def _is_file(path: pathlib.Path) -> None:
    if not path.is_file():
        raise fault(path, "is not a file", "put the data set's own file there")


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


def decoded(raw: bytes, where: Any, line: int = 0) -> str:
    """Returns UTF-8 bytes as text; raises UserError if they are not UTF-8, or ``LONGEST`` or more.

    Args:
      raw: the bytes.
      where: the name of their file.
      line: the number of their line, for messages; 0 names none.
    """
    if len(raw) >= LONGEST:
        what = f"is over {LONGEST:,} bytes long"
        raise fault(where, what, "it is no text of the data set", line=line)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 text (byte {error.start + 1}: {error.reason})"
        raise fault(where, what, line=line) from error


def csv_rows(path: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    """Yields (number of the line on which a row begins, its fields) for each row that is not blank. Fields
    may be quoted, and then hold doubled quotes and newlines. A byte order mark is dropped."""
    _is_file(path)
    line = 1
    opener: Any = gzip.open if path.name.endswith(".gz") else open
    with reading(path), opener(path, "rb") as file:
        rows = csv.reader(_lines(path, file), strict=True)
        try:
            for row in rows:
                if row:
                    yield line, row
                line = rows.line_num + 1
        except csv.Error as error:
            raise fault(path, f"begins a row that is no CSV ({error})", line=line) from error


def csv_table(path: pathlib.Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Returns the column names in the first row, and an iterator of (line, value by column) of the others."""
    rows = csv_rows(path)
    header = next(rows, (1, []))[1]
    all_different(header, path)

    def records() -> Iterator[tuple[int, dict[str, str]]]:
        for line, row in rows:
            if len(row) != len(header):
                what = f"has {len(row)} fields, not {len(header)}: it is cut off or damaged"
                raise fault(path, what, line=line)
            yield line, dict(zip(header, row, strict=True))

    return header, records()


def _lines(path: pathlib.Path, file: Any) -> Iterator[str]:
    for number, raw in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
        if b"\0" in raw:
            raise fault(path, f"holds a NUL byte (byte {raw.index(0) + 1})", line=number)
        text = decoded(raw, path, number)
        yield text.removeprefix("\ufeff") if number == 1 else text


def members(path: pathlib.Path) -> list[str]:
    """Returns the names of an archive's plain files, not of links and devices. Raises as ``chosen`` does."""
    return [name for name, *_ in _walk(path, lambda name: True)]


def chosen(
    path: pathlib.Path, selected: Callable[[str], Any], largest: int = LARGEST
) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the bytes of each selected file of an archive, in one reading.

    Args:
      path: the archive.
      selected: tells by a file's name whether it is selected.
      largest: the most bytes that a file may have.

    Raises:
      UserError: for a damaged archive, a name that comes twice or a file that is too large.
    """
    for name, size, opened in _walk(path, selected):
        where = f"{path}: {name}"
        if size > largest:
            raise fault(where, f"has {size:,} bytes", "it is not the data set's file")
        with reading(path, DAMAGED), opened() as stream:
            data = stream.read(size + 1)
        if len(data) != size:
            raise fault(where, f"has {len(data)} bytes and not {size}", DAMAGED)
        yield name, data


def named(place: pathlib.Path, selected: Callable[[str], Any]) -> dict[str, bytes]:
    """Returns the bytes of files by their names; {} if the place does not exist.

    Args:
      place: a folder, or an archive, whose folders are all searched.
      selected: tells by a file's name whether it is read.

    Raises:
      UserError: as ``chosen``, and for a name that is in two folders of an archive.
    """
    if place.is_dir():
        return {path.name: content(path) for path in inside(place) if selected(path.name)}
    contents: dict[str, bytes] = {}
    if place.exists():
        for member, data in chosen(place, lambda member: selected(member.rpartition("/")[2])):
            name = member.rpartition("/")[2]
            if name in contents:
                raise fault(place, f"holds {name} twice", "fetch it again")
            contents[name] = data
    return contents


def _walk(path: pathlib.Path, selected: Callable[[str], Any]) -> Iterator[Member]:
    """Yields each selected member. A member must be opened before the next one is requested."""
    seen = set()
    with reading(path, DAMAGED):
        for member in (_zip if path.name.lower().endswith(".zip") else _tar)(path):
            if selected(member[0]):
                if member[0] in seen:
                    raise fault(path, f"holds {member[0]!r} twice", "pack it anew")
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
            if archive.offset <= last:  # a negative size would lead back, without end
                raise fault(f"{path}: {info.name}", "has an impossible size", DAMAGED)
            last = archive.offset
            if info.isreg():
                yield info.name, info.size, functools.partial(archive.extractfile, info)
        # tarfile takes a damaged header, or a file cut between two members, for the end
        stream: Any = archive.fileobj
        stream.seek(archive.offset)
        if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise fault(path, "ends without a tar file's end mark", DAMAGED)
        while stream.read(1 << 20):  # to the end of the gzip data, where its checksum is
            pass
