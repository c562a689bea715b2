"""Says what a file is by its content, whatever its name says, and opens what is compressed or in an archive."""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import pathlib
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from vfljax.datasets.table_errors import fault

BYTES = 1024  # of a file's start that ``named`` looks at
# beginnings of names that macOS, Windows and tar add to archives and folders
HIDDEN = (".", "__MACOSX", "PaxHeader", "Thumbs.db", "desktop.ini")
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # characters that no text has
MOST_NESTED = 5  # archives and compressed files in each other
UNPACK = "unpack it, and give one file of it"
PARQUET, NPZ, ZIP, TAR = "a Parquet file", "an .npz file", "a zip archive", "a tar archive"
COMPRESSED = {  # first bytes -> compression, as pandas calls it
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"BZh%d1AY&SY" % level: "bz2" for level in range(1, 10)},
}
MAGIC = {  # first bytes -> what the file is
    b"PAR1": PARQUET,
    b"PK\x03\x04": ZIP,
    b"PK\x05\x06": ZIP,  # without members
    b"PK\x07\x08": ZIP,  # of several volumes
    b"\x93NUMPY": "an array of numpy.save (.npy)",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file",
    b"ARROW1": "an Arrow file",
    b"FEA1": "a Feather file",
    b"Obj\x01": "an Avro file",
    b"SQLite format 3\0": "an SQLite database",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a workbook of old Excel (.xls)",
    b"<stata_dta>": "a Stata file",
    b"$FL2@(#)": "an SPSS file",
    b"HEADER RECORD*******LIBRARY HEADER RECORD": "a SAS transport file",
    bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf": "a SAS file",
    b"MATLAB 5.0 MAT-file": "a MATLAB file",
    **dict.fromkeys((b"RDX2\n", b"RDX3\n"), "a file of R"),
    b"%PDF": "a PDF",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x04\x22\x4d\x18": "compressed by LZ4",
    b"\x1f\x9d": "compressed by compress (.Z)",
    b"\0\5\x16\7": "macOS' attributes of a file, and not the file itself",
    b"version https://git-lfs": "a pointer of Git LFS, in place of the file (git lfs pull)",
    **{b"\x80" + bytes([protocol]): "a pickle, which is never opened" for protocol in range(2, 6)},
}
NAMES = (b"PAR1", b"ARROW1", b"FEA1")  # magic that may also begin a line of names,
TEXT = tuple(bytes([c]) for c in (9, 10, 13, *range(32, 127)))  # followed by one of these
TEXTS = {  # pattern of the first characters -> what the text is
    rb"\s*<(!doctype html|html|head|body)\b": "a web page, perhaps in place of the download",
    rb"\s*<\?xml\b": "an XML file",
    rb'\s*[\[{]\s*[\[{]?\s*"[^"\n]*"\s*:': "a JSON file",
}


def start_of(path: pathlib.Path) -> bytes:
    """Returns the first bytes of a file, for ``named`` and ``compression``."""
    with path.open("rb") as file:
        return file.read(BYTES)


def compression(start: bytes) -> str:
    """Returns the compression of a file that begins with ``start``, as pandas calls it; "" is none."""
    return next((name for magic, name in COMPRESSED.items() if start.startswith(magic)), "")


def named(start: bytes) -> str:
    """Returns what a file is that begins with ``start`` (``BYTES`` of it): one of the names in ``MAGIC`` and
    ``TEXTS``, ``TAR``, "compressed by ..." or "a safetensors file". "" is anything else, such as text."""
    if found := compression(start):
        return f"compressed by {found}"
    if len(start) > 16 and not start.strip(b"\0"):
        return "full of zero bytes, as after an interrupted copy"
    for magic, what in MAGIC.items():
        if start.startswith(magic) and not (magic in NAMES and start[len(magic) :][:1] in TEXT):
            return what
    for pattern, what in TEXTS.items():
        if re.match(pattern, start.removeprefix(b"\xef\xbb\xbf"), re.IGNORECASE):
            return what
    # eight bytes are the length of the header, which is JSON
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 32:
        return "a safetensors file"
    return TAR if _tar_header(start) else ""


def is_text(start: bytes) -> bool:
    """Returns whether a file that begins with ``start`` is text: it has lines, and no control characters."""
    return re.search(rb"[\r\n]", start) is not None and not CONTROL.search(start)


def _tar_header(start: bytes) -> bool:
    """Returns whether the first block is the header of an archive's member, by its checksum: tar archives of
    the oldest form hold no other mark."""
    block = start[: tarfile.BLOCKSIZE]
    if not block.strip(b"\0"):
        return False
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def hidden(name: str) -> bool:
    """Returns whether a path in a folder or an archive is hidden, or lies in a hidden folder."""
    return any(p.startswith(HIDDEN) for p in re.split(r"[/\\]", name) if p != ".")


Opener = Callable[[], contextlib.AbstractContextManager[Any]]


class Content(NamedTuple):
    """What a file holds once it is decompressed and taken out of its archive."""

    open: Opener  # of a stream of its bytes, from the start
    start: bytes  # the first ``BYTES``
    packed: bool = False  # whether it is not the file itself

    @property
    def what(self) -> str:
        """The name of its format, of ``named``."""
        return named(self.start)


def content(path: pathlib.Path) -> Content:
    """Returns what a file holds once it is decompressed and taken out of its archive, in any nesting of them.
    Archives of one program's own format, such as .xlsx and .npz, stay as they are.

    Nothing is written: the stream reads the file again.

    Args:
      path: the file.

    Raises:
      UserError: for an archive that holds no file, or several besides hidden ones.
    """
    found = Content(functools.partial(path.open, "rb"), start_of(path))
    for _ in range(MOST_NESTED):
        opener = _inside(path, found)
        if opener is None:
            return found
        with opener() as stream:
            found = Content(opener, stream.read(BYTES), packed=True)
    raise fault(path, f"is more than {MOST_NESTED} archives in each other", UNPACK)


def _inside(path: pathlib.Path, outer: Content) -> Opener | None:
    """Returns what opens the file in an archive or a compressed file; None for any other file."""
    if packing := compression(outer.start):
        return functools.partial(decompressed, packing, outer.open)
    if outer.what not in (TAR, ZIP):
        return None
    members = _tar_members if outer.what == TAR else zip_names
    with outer.open() as stream:
        names = members(stream)
    if outer.what == ZIP and of_program(names):
        return None
    plain = [name for name in names if not hidden(name)]
    if len(plain) != 1:
        few = f" ({', '.join(plain[:5])}{', ...' if len(plain) > 5 else ''})" if plain else ""
        raise fault(path, f"is {outer.what} of {len(plain)} files{few}", UNPACK)
    opened = _of_tar if outer.what == TAR else _of_zip
    return functools.partial(opened, outer.open, plain[0])


def of_program(names: list[str]) -> str:
    """Returns the format of a program that a zip archive of such members is; "" for an ordinary archive."""
    if "[Content_Types].xml" in names:
        return "a workbook of Excel (.xlsx)" if "xl/workbook.xml" in names else "an Office document"
    if {"mimetype", "content.xml"} <= {*names}:
        return "an OpenDocument file (.ods)"
    if any(name.endswith("/data.pkl") or name == "data.pkl" for name in names):
        return "a file of torch.save, which is a pickle and never opened"
    plain = [name for name in names if not hidden(name)]
    return NPZ if plain and all(name.endswith(".npy") for name in plain) else ""


def zip_names(stream: Any) -> list[str]:
    """Returns the names of the files in a zip archive."""
    with zipfile.ZipFile(_seekable(stream)) as archive:
        return [info.filename for info in archive.infolist() if not info.is_dir()]


def _seekable(stream: Any) -> Any:
    return stream if stream.seekable() else io.BytesIO(stream.read())


def _tar_members(stream: Any) -> list[str]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        return [member.name for member in archive if member.isreg()]


@contextlib.contextmanager
def _of_zip(outer: Opener, name: str) -> Iterator[Any]:
    with (
        outer() as stream,
        zipfile.ZipFile(_seekable(stream)) as archive,
        archive.open(name) as member,
    ):
        yield member


@contextlib.contextmanager
def _of_tar(outer: Opener, name: str) -> Iterator[Any]:
    with outer() as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isreg() and member.name == name:
                plain = archive.extractfile(member)
                assert plain is not None  # a regular file
                with plain:
                    yield plain
                return


@contextlib.contextmanager
def decompressed(packing: str, outer: Opener) -> Iterator[Any]:
    """Opens the stream of what a compressed file holds.

    Args:
      packing: of ``compression``.
      outer: opens the file.
    """
    openers: dict[str, Callable[[Any], Any]] = {
        "gzip": lambda stream: gzip.GzipFile(fileobj=stream, mode="rb"),
        "bz2": bz2.open,
        "xz": lzma.open,
        "zstd": lambda stream: io.BufferedReader(_Arrow(pa.CompressedInputStream(stream, "zstd"))),
    }
    with outer() as stream, openers[packing](stream) as plain:
        yield plain


class _Arrow(io.RawIOBase):
    """Arrow's stream as one of Python's."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self.stream.read(len(buffer))
        buffer[: len(read)] = read
        return len(read)
