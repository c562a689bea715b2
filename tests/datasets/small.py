"""Small image files in the published formats."""

import io
import struct
import tarfile
import zipfile
import zlib

import numpy as np
from PIL import Image


def picture(seed, height=32, width=32):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def encoded(array, form="PNG"):
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, form)
    return stream.getvalue()


def png16(height, width, color=2):
    """A PNG of 16 bits a channel: color 0 gray, 2 RGB, 6 RGBA."""
    channels = {0: 1, 2: 3, 6: 4}[color]
    raw = b"".join(b"\0" + bytes(2 * channels * width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def write(folder, files):
    """Writes {path: bytes} below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return str(folder)


def tar(files, mode="w:gz"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def class_folders(splits, names, images=1, form="PNG"):
    """{split/class/number.png: bytes}; image k of class y of split s is picture(1000 s + 100 k + y)."""
    suffix = form.lower().replace("jpeg", "jpg")
    return {
        f"{split}/{name}/{k:04}.{suffix}": encoded(picture(1000 * s + 100 * k + y), form)
        for s, split in enumerate(splits)
        for y, name in enumerate(names)
        for k in range(images)
    }


def binary_rows(seed, rows, labels, classes):
    """Rows of the official binary version; returns (bytes, pixels [R, 32, 32, 3], labels [R, L])."""
    rng = np.random.default_rng(seed)
    y = np.stack([np.arange(rows) % c for c in classes[:labels]], 1).astype(np.uint8)
    x = rng.integers(0, 256, (rows, 3, 32, 32)).astype(np.uint8)
    content = b"".join(y[i].tobytes() + x[i].tobytes() for i in range(rows))
    return content, x.transpose(0, 2, 3, 1), y
