"""Images of a folder, or of .tar, .tar.gz and .zip archives lying in it: found, then decoded by Pillow.

What enters: a folder. What leaves: its PNG and JPEG files (by suffix, of any case) in order of their
names, and pixels of those one chooses, 8-bit RGB or gray. Archives count only where the folder holds
no image file itself. Hidden files are left out; links to folders are followed, not in circles.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import io
import itertools
import os
import pathlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import files
from vfljax.datasets.files import MAX_BYTES, content, fits, inside
from vfljax.datasets.table_errors import fault, reading

SUFFIXES = (".png", ".jpg", ".jpeg")
HIDDEN = (".", "__MACOSX")
DEPTH = 5  # folders in folders; deeper ones are no data set's
LARGEST = 100_000_000  # pixels of one image: more is an attack or a mistake
AT_ONCE = 256  # images decoded together, or fewer:
BYTES_AT_ONCE = 64 << 20  # of their files
MOST_SIZE = 4096  # pixels a side that images may be brought to
THREADS = 2
REMEDY = "it is damaged, or no PNG or JPEG image; fetch it again"
FEWER = "set rows to read fewer, or raise max_bytes"


class Image(NamedTuple):
    """One image file, not read yet."""

    parts: tuple[str, ...]  # its folders and its name, below the folder or within the archive
    source: pathlib.Path  # the file, or the archive it lies in
    member: str = ""  # its name within the archive

    @property
    def where(self) -> str:
        return f"{self.source}: {self.member}" if self.member else str(self.source)


class FoundImages(NamedTuple):
    """What a folder holds."""

    images: list[Image]  # sorted by folders and name
    others: list[Image]  # all other files, and folders too deep to enter
    notes: tuple[str, ...]  # on what was left out


def find(
    folder: pathlib.Path, key: Callable[[Image], Any] = lambda image: image.parts
) -> FoundImages:
    """Every image below a folder, else of every archive in it; of those with one ``key`` the first.

    Images of one key must be copies of one file, byte for byte: only they are read. Raises UserError
    for two that are not, for a link to a folder above it, and for a damaged archive.
    """
    packed, notes = [p for p in inside(folder) if files.is_archive(p)], []
    images, others = _apart(_loose(folder, (), (_real(folder),)))
    if not images:
        images, more = _apart(
            _packed(path, name) for path in packed for name in files.members(path)
        )
        others += more
    elif packed:
        names = ", ".join(path.name for path in packed[:3]) + (", ..." if len(packed) > 3 else "")
        where = f"archives not read, since images lie beside them ({images[0].where})"
        notes.append(f"{where}: {names}")
    first: dict[Any, Image] = {}
    pairs = [(first.setdefault(key(image), image), image) for image in images]
    copies = [(kept, copy) for kept, copy in pairs if kept is not copy]
    read = list(dict.fromkeys(image for pair in copies for image in pair))
    digests = {read[at]: hashlib.sha256(data).digest() for at, data in stored(read)}
    for kept, copy in copies:
        if digests[kept] != digests[copy]:
            what = f"and {copy.where} have one name and are not the same file"
            raise fault(kept.where, what, "remove the wrong one")
    if copies:
        notes.append(f"{len(copies):,} second copies of an image left out")
    return FoundImages(list(first.values()), others, tuple(notes))


def _apart(every: Iterable[Image]) -> tuple[list[Image], list[Image]]:
    """Images in order of their names, and all other files; hidden ones are neither."""
    images, others = [], []
    for image in every:
        if image.parts and not any(part.startswith(HIDDEN) for part in image.parts):
            named = image.parts[-1].lower().endswith(SUFFIXES)
            is_image = named and (image.member or image.source.is_file())
            (images if is_image else others).append(image)
    return sorted(images), others


def _packed(path: pathlib.Path, name: str) -> Image:
    return Image(tuple(part for part in name.split("/") if part not in ("", ".")), path, name)


def _loose(
    folder: pathlib.Path, above: tuple[str, ...], over: tuple[pathlib.Path, ...]
) -> Iterator[Image]:
    """Every file that is not hidden, and every folder that is too deep to enter. Raises UserError for
    a link to one of the folders ``over`` it: every image would count again at each turn."""
    for path in inside(folder):
        parts = (*above, path.name)
        if path.is_dir() and len(parts) <= DEPTH:
            real = _real(path)
            if any(parent.is_relative_to(real) for parent in over):
                raise fault(path, f"leads back to {real}, a folder above it", "remove that link")
            yield from _loose(path, parts, (*over, real))
        else:
            yield Image(parts, path)


def _real(folder: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(os.path.realpath(folder))


def stored(images: Sequence[Image]) -> Iterator[tuple[int, bytes]]:
    """(place among ``images``, the file's bytes), archives in their own order."""
    inner: dict[pathlib.Path, dict[str, int]] = {}
    for place, image in enumerate(images):
        if image.member:
            inner.setdefault(image.source, {})[image.member] = place
        else:
            yield place, content(image.source)
    for archive, places in inner.items():
        for name, data in files.chosen(archive, places.__contains__):
            yield places[name], data


def pixels(images: Sequence[Image], **options: Any) -> np.ndarray:
    """``decoded`` pixels of image files, in the order of ``images``."""
    return decoded(stored(images), [image.where for image in images], **options)


def decoded(
    contents: Iterator[tuple[int, bytes]],
    names: Sequence[str],
    *,
    gray: bool = False,
    size: int = 0,
    shape: tuple[int, int] | None = None,
    max_bytes: int = MAX_BYTES,
) -> np.ndarray:
    """Pixels [R, H, W, 3], or [R, H, W] if ``gray``, uint8, of (place among ``names``, file's bytes).

    ``size`` > 0 brings every image to size x size whatever its shape was: by the mean of the pixels
    covered (box) where it shrinks, bilinear where it grows. Otherwise all images must have
    ``shape``, or that of the first. Raises UserError that names the file, or the size of an array
    above ``max_bytes``.
    """
    groups = _groups(contents)
    first = next(groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metadata, which is not read
        shape = (size, size) if size else shape or _shape(first[0][1], names[first[0][0]])
        out = _room((len(names), *shape), gray, max_bytes)

        def work(at: int, data: bytes) -> None:
            out[at] = _image(data, names[at], gray, size, shape)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for group in itertools.chain([first], groups):
                jobs = [pool.submit(work, at, data) for at, data in group]
                try:
                    for job in jobs:
                        job.result()
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
    return out


def _groups(contents: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """What is in memory at a time: some files, bounded by their number and bytes."""
    group, total = [], 0
    for at, data in contents:
        if group and (len(group) == AT_ONCE or total + len(data) > BYTES_AT_ONCE):
            yield group
            group, total = [], 0
        group.append((at, data))
        total += len(data)
    if group:
        yield group


@contextlib.contextmanager
def _opened(data: bytes, name: str) -> Iterator[Any]:
    """A file whose header was read, and its pixels not yet."""
    import PIL.Image

    with reading(name, REMEDY), PIL.Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
        width, height = image.size
        if width * height > LARGEST:
            raise fault(name, f"has {width}x{height} pixels", "no data set's image is so large")
        yield image


def _shape(data: bytes, name: str) -> tuple[int, int]:
    with _opened(data, name) as image:
        return image.height, image.width


def _image(data: bytes, name: str, gray: bool, size: int, shape: tuple[int, int]) -> np.ndarray:
    """One file's pixels, [H, W, 3] or [H, W] uint8."""
    with _opened(data, name) as image:
        if not size and (image.height, image.width) != tuple(shape):
            what = f"is {image.width}x{image.height} pixels and not {shape[1]}x{shape[0]}"
            raise fault(name, what, "all images need one size")
        # Pillow cuts 16-bit colors to 8 bits silently; only the stored layout tells
        if image.mode.startswith(("I", "F")) or any(";16" in str(t[3]) for t in image.tile):
            raise fault(name, "has more than 8 bits a pixel", "save it as an 8-bit PNG")
        if size and image.format == "JPEG":
            image.draft("", (8 * size, 8 * size))  # decodes a far larger image at a reduced scale
        return np.asarray(_changed(image, gray, size))


def _changed(image: Any, gray: bool, size: int) -> Any:
    import PIL.Image

    picture = image.convert("L" if gray else "RGB")
    if not size or picture.size == (size, size):
        return picture
    shrinks = picture.width >= size and picture.height >= size
    way = PIL.Image.Resampling.BOX if shrinks else PIL.Image.Resampling.BILINEAR
    return picture.resize((size, size), way)


def changed(
    x: np.ndarray, *, gray: bool = False, size: int = 0, max_bytes: int = MAX_BYTES
) -> np.ndarray:
    """Pixels [R, H, W, 3] uint8 made gray and resized as ``pixels`` does."""
    if not gray and (not size or x.shape[1:3] == (size, size)):
        return x
    import PIL.Image

    side = (size, size) if size else x.shape[1:3]
    out = _room((len(x), *side), gray, max_bytes)
    for row, image in enumerate(x):
        out[row] = np.asarray(_changed(PIL.Image.fromarray(image), gray, size))
    return out


def _room(shape: tuple[int, ...], gray: bool, max_bytes: int) -> np.ndarray:
    shape = shape if gray else (*shape, 3)
    fits("images", shape, 1, max_bytes, FEWER)
    with reading("images", FEWER):
        return np.empty(shape, np.uint8)


def shapes(images: Sequence[Image]) -> np.ndarray:
    """(height, width) of each image by its file's header, [R, 2]."""
    out = np.empty((len(images), 2), np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at, data in stored(images):
            out[at] = _shape(data, images[at].where)
    return out
