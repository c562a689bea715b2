"""Rows of a CSV of texts, plain or gzip: every fault of the file is one line that names it.

What enters: a path. What leaves: one row at a time, so that a file larger than memory can be cut.
"""

from __future__ import annotations

import csv
import gzip
import pathlib
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from vfljax.datasets.faults import unpermitted
from vfljax.errors import UserError

LONGEST = 1 << 20  # bytes of a line or a review; longer ones are no text of these sets
BROKEN = (OSError, EOFError, zlib.error)  # what reading a broken or truncated gzip file raises


def decoded(raw: bytes, where: str) -> str:
    """UTF-8 bytes as text; raises UserError, naming ``where``, for anything else."""
    if len(raw) >= LONGEST:
        raise UserError(f"{where} is over {LONGEST:,} bytes long: this is no text of the data set.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{where} is not UTF-8 text (byte {error.start + 1}: {error.reason}): fetch the file "
            "again, or convert it."
        ) from error


def csv_rows(path: pathlib.Path) -> Iterator[tuple[int, list[str]]]:
    """(number of the line a row begins on, its fields), blank lines left out.

    Fields may be quoted, hold doubled quotes and newlines; a byte order mark is dropped.
    """
    line = 1
    opener = gzip.open if path.name.endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            rows = csv.reader(_lines(path, cast(BinaryIO, file)), strict=True)
            for row in rows:
                if row:
                    yield line, row
                line = rows.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}: the row from line {line} is no CSV ({error}): the file is cut off or damaged; "
            "fetch it again."
        ) from error
    except BROKEN as error:
        raise broken(path, error) from error


def _lines(path: pathlib.Path, file: BinaryIO) -> Iterator[str]:
    number = 0
    while raw := file.readline(LONGEST):
        number += 1
        text = decoded(raw, f"{path} line {number}")
        if "\0" in text:
            raise UserError(
                f"{path} line {number} holds a NUL byte (byte {raw.index(0) + 1}): it is damaged; fetch "
                "the file again."
            )
        yield text.removeprefix("\ufeff") if number == 1 else text


def broken(path: pathlib.Path, error: BaseException) -> UserError:
    """The error for a file that cannot be read to its end."""
    if isinstance(error, PermissionError):
        return unpermitted(path)
    why = one_line(error)
    return UserError(f"{path} cannot be read ({why}): it is cut off or damaged; fetch it again.")


def one_line(error: BaseException) -> str:
    """What an error says, short and without newlines."""
    return " ".join((str(error) or type(error).__name__).split())[:200]
