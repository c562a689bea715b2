"""Files of rows of text, plain or gzip: found, opened, and each of their faults told in one line.

What enters: a folder or file. What leaves: its path, or rows of a CSV one at a time, so that a file
larger than memory can be cut. Click-through rows are ``ctr``'s business.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import pathlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from vfljax.datasets.faults import one_line, unpermitted
from vfljax.errors import UserError

LONGEST = 1 << 20  # bytes of a line or a text; longer ones are none of these sets
AGAIN = "fetch the file again"


def fault(
    file: Any, reason: str, remedy: str = AGAIN, *, line: int = 0, column: str = ""
) -> UserError:
    """The error of a file, or of a place in it: what is wrong there, and what to do."""
    place = one_line(file) + (f" line {line}" if line else "") + (f", {column}" if column else "")
    return UserError(f"{place}: {one_line(reason)[:300]}; {remedy}.")


@contextlib.contextmanager
def reading(path: Any, remedy: str = AGAIN) -> Iterator[None]:
    """What opening, decompressing and decoding a file may raise becomes a ``fault`` of it."""
    try:
        yield
    except UserError:
        raise
    except PermissionError as error:
        raise unpermitted(path) from error
    except (OSError, EOFError, zlib.error, ValueError, csv.Error, RecursionError) as error:
        why = str(error) or type(error).__name__
        raise fault(path, f"cannot be read ({why}): cut off or damaged", remedy) from error


def find(folder: str, file: str, patterns: Sequence[str], what: str) -> pathlib.Path:
    """The one file that is meant: ``folder`` itself where it is a file, else ``file`` in it, else the
    only one there of ``patterns``. ``what`` says in words what is looked for."""
    path = pathlib.Path(folder)
    if not folder or not path.exists():
        where = f"data.dir={folder!r} is missing" if folder else "data.dir is empty"
        raise UserError(f"{where}: give {what}.")
    if path.is_file() and file:
        raise UserError(f"{path} is a file: leave config.data.options.file={file!r} out.")
    if path.is_file():
        return path
    candidates = {path / file} if file else {p for pattern in patterns for p in path.glob(pattern)}
    files = sorted(p for p in candidates if p.is_file())
    if len(files) > 1:
        names = ", ".join(p.name for p in files[:5])
        raise UserError(f"{path} holds {names}: give the path of one as data.dir.")
    if not files:
        raise UserError(f"{path} holds no file {file or ', '.join(patterns)}: give {what}.")
    return files[0]


def decoded(raw: bytes, where: Any, line: int = 0) -> str:
    """UTF-8 bytes as text, if they are such and not too many."""
    if len(raw) >= LONGEST:
        raise fault(
            where, f"over {LONGEST:,} bytes long", "it is no text of the data set", line=line
        )
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        why = f"not UTF-8 text (byte {error.start + 1}: {error.reason})"
        raise fault(where, why, line=line) from error


def csv_rows(path: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    """(number of the line a row begins on, its fields), blank lines left out. Fields may be quoted,
    hold doubled quotes and newlines; a byte order mark is dropped."""
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
            raise fault(
                path, f"the row that begins there is no CSV ({error})", line=line
            ) from error


def _lines(path: pathlib.Path, file: Any) -> Iterator[str]:
    for number, raw in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
        if b"\0" in raw:
            raise fault(path, f"a NUL byte (byte {raw.index(0) + 1}): damaged", line=number)
        text = decoded(raw, path, number)
        yield text.removeprefix("\ufeff") if number == 1 else text
