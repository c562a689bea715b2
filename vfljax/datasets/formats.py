"""Says what a file is by its content, whatever its name says."""

from __future__ import annotations

import pathlib
import re
import tarfile

BYTES = 1024  # of a file's start that ``named`` looks at
PARQUET, ZIP, TAR = "a Parquet file", "a zip archive", "a tar archive"
COMPRESSED = {  # first bytes -> compression, as pandas calls it
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{b"BZh%d1AY" % level: "bz2" for level in range(1, 10)},
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
    b"ORC": "an ORC file",
    b"Obj\x01": "an Avro file",
    b"SQLite format 3\0": "an SQLite database",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a workbook of old Excel (.xls)",
    b"<stata_dta>": "a Stata file",
    b"$FL2@(#)": "an SPSS file",
    b"HEADER RECORD*******LIBRARY HEADER RECORD": "a SAS transport file",
    bytes(12) + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf": "a SAS file",
    b"MATLAB 5.0 MAT-file": "a MATLAB file",
    b"RDX": "a file of R",
    b"%PDF": "a PDF",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!\x1a\x07": "a RAR archive",
    b"\x04\x22\x4d\x18": "compressed by LZ4",
    b"\0\5\x16\7": "macOS' attributes of a file, and not the file itself",
    b"version https://git-lfs": "a pointer of Git LFS, in place of the file (git lfs pull)",
    **{b"\x80" + bytes([protocol]): "a pickle, which is never opened" for protocol in range(2, 6)},
}
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
    for magic, what in MAGIC.items():
        if start.startswith(magic):
            return what
    for pattern, what in TEXTS.items():
        if re.match(pattern, start.removeprefix(b"\xef\xbb\xbf"), re.IGNORECASE):
            return what
    # eight bytes are the length of the header, which is JSON
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 32:
        return "a safetensors file"
    return TAR if _tar_header(start) else ""


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
