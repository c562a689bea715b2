"""Large files of lines: found in a folder, read in blocks of whole lines, plain or gzip.

What enters: a folder or file. What leaves: blocks of lines that are UTF-8 without NUL bytes, each with
the number of its first line, so that whoever reads them can name a line.
"""

from __future__ import annotations

import gzip
import pathlib
import zlib
from collections.abc import Iterator

from vfljax.datasets.faults import unpermitted
from vfljax.errors import UserError

LONGEST = 1 << 16  # bytes of a line; more is no file of rows
PATTERNS = ("train.txt", "train.csv", "train.gz", "*.txt.gz", "*.csv.gz")


def find(folder: str, file: str, source: str) -> pathlib.Path:
    """The one file that is meant: ``folder`` itself where it is a file, else ``file`` in it, else
    the only one there of ``PATTERNS``. ``source`` says in words what is looked for."""
    if not folder:
        raise UserError(f"data.dir is empty: give the folder or file of {source}.")
    path = pathlib.Path(folder)
    if path.is_file() and not file:
        return path
    if not path.is_dir():
        what = "is missing" if not path.exists() else "is a file, and options.file names one in it"
        raise UserError(f"data.dir={folder!r} {what}: give the folder or file of {source}.")
    if file:
        if not (path / file).is_file():
            what = "is a folder, not a file" if (path / file).is_dir() else "is missing"
            raise UserError(f"{path / file} {what}: correct config.data.options.file.")
        return path / file
    found = sorted({p for pattern in PATTERNS for p in path.glob(pattern) if p.is_file()})
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(
            f"{path} holds {', '.join(p.name for p in found)}: name one by config.data.options.file."
        )
    raise UserError(
        f"{path} holds none of {', '.join(PATTERNS)}: put {source} there, or name the file "
        "by config.data.options.file."
    )


def chunks(path: pathlib.Path, size: int) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, whole lines) of about ``size`` bytes each; UTF-8 without NUL."""
    try:
        with open(path, "rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            with gzip.open(plain) if zipped else plain as file:
                line, held = 1, b""
                while data := file.read(size):
                    held += data
                    cut = held.rfind(b"\n") + 1
                    if len(held) - cut > LONGEST:
                        raise UserError(
                            f"{path} line {line + held.count(bytes([10]))} is longer than {LONGEST} "
                            "bytes: it is not a file of rows; fetch it again."
                        )
                    if cut:
                        yield line, _text(path, line, held[:cut])
                        line += held.count(b"\n", 0, cut)
                        held = held[cut:]
                if held:
                    yield line, _text(path, line, held)
    except PermissionError as error:
        raise unpermitted(path) from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read ({error}): fetch the file again.") from error


def _text(path: pathlib.Path, line: int, data: bytes) -> bytes:
    at, what = data.find(b"\0"), "a NUL byte"
    if at < 0 and not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            at, what = error.start, f"byte 0x{data[error.start]:02x}, which is not UTF-8"
    if at >= 0:
        line += data.count(b"\n", 0, at)
        raise UserError(f"{path} line {line} holds {what}: it is damaged; fetch it again.")
    return data
