"""Finds the images of a folder, or of the .tar, .tar.gz and .zip archives in it, and decodes them by Pillow.

Images are files with the suffix of PNG or JPEG, in upper or lower case. Archives are read only if the folder
itself holds no image. Hidden files are left out. Links to folders are followed, and a circle is an error.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import io
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
DEPTH = 5  # nested folders; no data set has deeper ones
LARGEST = 100_000_000  # pixels of one image: more is an attack or a mistake
AT_ONCE = 256  # the most images that are decoded together,
BYTES_AT_ONCE = 64 << 20  # and the most bytes of their files
MOST_SIZE = 4096  # the largest height and width that images may be resized to
THREADS = 2
REMEDY = "it is damaged, or no PNG or JPEG image; fetch it again"
FEWER = "set rows to read fewer, or raise max_bytes"


class Image(NamedTuple):
    """One image file, not decoded yet."""

    parts: tuple[str, ...]  # its folders and its name, below the folder or within the archive
    source: Any  # the path of the file or its archive; with ``data``, the name in messages
    member: str = ""  # its name within the archive
    data: bytes | None = None  # its bytes, if they are not to be read from ``source``

    @property
    def where(self) -> str:
        return f"{self.source}: {self.member}" if self.member else str(self.source)


class FoundImages(NamedTuple):
    """The files that ``find`` found."""

    images: list[Image]  # sorted by folders and name
    others: list[Image]  # all other files, and folders too deep to enter
    notes: tuple[str, ...]  # on what was left out


class ImageRows(NamedTuple):
    """The rows of an image set before any of them is decoded."""

    labels: np.ndarray  # [R]
    groups: np.ndarray  # [R], such as patients
    images: Sequence[Image] | np.ndarray  # files, or pixels [R, H, W, 3] uint8
    notes: tuple[str, ...]

    def pixels(self, places: np.ndarray, **options: Any) -> np.ndarray:
        """Returns the pixels of some rows.

        Args:
          places: [N] the rows' places.
          **options: options of the function ``pixels``.
        """
        if isinstance(self.images, np.ndarray):
            return pixels(self.images[places], **options)
        return pixels([self.images[place] for place in places], **options)


def find(
    folder: pathlib.Path, key: Callable[[Image], Any] = lambda image: image.parts
) -> FoundImages:
    """Finds every image below a folder or, if there is none, every image of the archives that lie in it.

    Args:
      folder: it is searched up to ``DEPTH`` folders deep.
      key: images with an equal key must be equal byte for byte; only the first of them is kept.

    Raises:
      UserError: for two images of one key that differ, a link to a folder above it, and a damaged archive.
    """
    named = [path for path in inside(folder) if path.name.lower().endswith(files.ARCHIVES)]
    archives, notes = [path for path in named if path.is_file()], []
    images, others = _sorted_out(_loose(folder, (), (folder.resolve(),)))
    if not images:
        images, more = _sorted_out(
            Image(tuple(part for part in name.split("/") if part not in ("", ".")), path, name)
            for path in archives
            for name in files.members(path)
        )
        others += more
    elif archives:
        names = ", ".join([*(path.name for path in archives[:3]), *["..."] * (len(archives) > 3)])
        where = f"archives not read, since images lie beside them ({images[0].where})"
        notes.append(f"{where}: {names}")
    first: dict[Any, Image] = {}
    pairs = [(first.setdefault(key(image), image), image) for image in images]
    copies = [(kept, copy) for kept, copy in pairs if kept is not copy]
    compared = list(dict.fromkeys(image for pair in copies for image in pair))
    digests = {compared[at]: hashlib.sha256(data).digest() for at, data in _stored(compared)}
    for kept, copy in copies:
        if digests[kept] != digests[copy]:
            what = f"and {copy.where} have one name and are not the same file"
            raise fault(kept.where, what, "remove the wrong one")
    if copies:
        notes.append(f"{len(copies):,} second copies of an image left out")
    return FoundImages(list(first.values()), others, tuple(notes))


def _sorted_out(every: Iterable[Image]) -> tuple[list[Image], list[Image]]:
    """Returns the images, sorted by folders and name, and all other files; both without hidden files."""
    images, others = [], []
    for image in every:
        if image.parts and not any(part.startswith(HIDDEN) for part in image.parts):
            named = image.parts[-1].lower().endswith(SUFFIXES)
            is_image = named and (image.member or image.source.is_file())
            (images if is_image else others).append(image)
    return sorted(images), others


def _loose(
    folder: pathlib.Path, above: tuple[str, ...], over: tuple[pathlib.Path, ...]
) -> Iterator[Image]:
    """Yields every file that is not hidden, and every folder that is too deep to enter. Raises UserError for
    a link to one of the folders that contain it (``over``), which would be entered again and again."""
    for path in inside(folder):
        parts = (*above, path.name)
        if path.is_dir() and len(parts) <= DEPTH:
            real = path.resolve()
            if any(parent.is_relative_to(real) for parent in over):
                raise fault(path, f"leads back to {real}, a folder above it", "remove that link")
            yield from _loose(path, parts, (*over, real))
        else:
            yield Image(parts, path)


def _stored(images: Sequence[Image]) -> Iterator[tuple[int, bytes]]:
    """Yields (place among ``images``, the file's bytes); members of an archive come in its own order."""
    inner: dict[pathlib.Path, dict[str, int]] = {}
    for place, image in enumerate(images):
        if image.member:
            inner.setdefault(image.source, {})[image.member] = place
        else:
            yield place, content(image.source) if image.data is None else image.data
    for archive, places in inner.items():
        for name, data in files.chosen(archive, places.__contains__):
            yield places[name], data


def pixels(
    images: Sequence[Image] | np.ndarray,
    *,
    gray: bool = False,
    size: int = 0,
    shape: tuple[int, int] | None = None,
    max_bytes: int = MAX_BYTES,
) -> np.ndarray:
    """Returns pixels [R, H, W, 3], or [R, H, W] if ``gray``, uint8, in the order of the images.

    Args:
      images: files, or their pixels [R, H, W, 3] uint8.
      gray: whether colors become one channel.
      size: if > 0, every image is resized to size x size, whatever its shape: by the mean of the covered
        pixels (box) if no side grows, else bilinearly.
      shape: (height, width) that all images must have if ``size`` is 0; None is that of the first.
      max_bytes: the most bytes of the result.

    Raises:
      UserError: for a file that cannot be decoded, which it names, and a result of more than ``max_bytes``.
    """
    names = [image.where if isinstance(image, Image) else "an image" for image in images]
    contents: Iterable[tuple[int, Any]] = enumerate(images)
    if not isinstance(images, np.ndarray):
        contents = _stored(images)
    elif not gray and (not size or images.shape[1:3] == (size, size)):
        return images
    out = np.empty(0, np.uint8)

    def decode(content: tuple[int, Any]) -> None:
        at, data = content
        out[at] = _image(data, names[at], gray, size, shape)

    # Pillow warns of metadata, which is not read
    ignored = warnings.catch_warnings(action="ignore")
    with ignored, concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for group in _groups(contents):
            if not out.size:
                first, data = group[0]
                shape = (size, size) if size else shape or _shape(data, names[first])
                whole = (len(names), *shape) if gray else (len(names), *shape, 3)
                fits("images", whole, 1, max_bytes, FEWER)
                with reading("images", FEWER):
                    out = np.empty(whole, np.uint8)
            for _ in pool.map(decode, group):  # the first fault cancels the rest of the group
                pass
    return out


def _groups(contents: Iterable[tuple[int, Any]]) -> Iterator[list[tuple[int, Any]]]:
    """Yields groups of files that are in memory together, bounded by their number and their bytes."""
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
def _opened(data: Any, name: str) -> Iterator[Any]:
    """Opens an image file, of which only the header is read at first, or wraps pixels [H, W, 3]."""
    import PIL.Image

    if isinstance(data, np.ndarray):
        yield PIL.Image.fromarray(data)
        return
    with reading(name, REMEDY), PIL.Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
        width, height = image.size
        if width * height > LARGEST:
            raise fault(name, f"has {width}x{height} pixels", "no data set's image is so large")
        yield image


def _shape(data: Any, name: str) -> tuple[int, int]:
    with _opened(data, name) as image:
        return image.height, image.width


def _image(data: Any, name: str, gray: bool, size: int, shape: Any) -> np.ndarray:
    """One image's pixels, [H, W, 3] or [H, W] uint8."""
    import PIL.Image

    with _opened(data, name) as image:
        if not size and (image.height, image.width) != tuple(shape):
            what = f"is {image.width}x{image.height} pixels and not {shape[1]}x{shape[0]}"
            raise fault(name, what, "all images need one size")
        # Pillow cuts 16-bit colors to 8 bits silently; only the stored layout tells
        tiles = getattr(image, "tile", ())  # absent without a file
        if image.mode.startswith(("I", "F")) or any(";16" in str(t[3]) for t in tiles):
            raise fault(name, "has more than 8 bits a pixel", "save it as an 8-bit PNG")
        if size and image.format == "JPEG":
            image.draft("", (8 * size, 8 * size))  # decodes a far larger image at a reduced scale
        picture = image.convert("L" if gray else "RGB")
        if size and picture.size != (size, size):
            shrinks = picture.width >= size and picture.height >= size
            way = PIL.Image.Resampling.BOX if shrinks else PIL.Image.Resampling.BILINEAR
            picture = picture.resize((size, size), way)
        return np.asarray(picture)


def shapes(images: Sequence[Image]) -> np.ndarray:
    """Returns (height, width) of each image by its file's header, [R, 2]."""
    out = np.empty((len(images), 2), np.int64)
    with warnings.catch_warnings(action="ignore"):
        for at, data in _stored(images):
            out[at] = _shape(data, images[at].where)
    return out
