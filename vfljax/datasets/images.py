"""Finds the images of a folder, or of the .tar, .tar.gz and .zip archives in it, and decodes them by Pillow.

Images are files with the suffix of PNG or JPEG, in upper or lower case. Archives are read only if the folder
itself holds no image. Hidden files are left out.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import io
import os
import pathlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import formats
from vfljax.datasets.core import Block
from vfljax.datasets.files import ARCHIVES, archive_members, content, files_below, inside
from vfljax.datasets.table_errors import fault, reading

SUFFIXES = (".png", ".jpg", ".jpeg")
REMEDY = "it is damaged, or no PNG or JPEG image; fetch it again"
ROWS = 1024  # rows of a block


class Image(NamedTuple):
    """One image file, not decoded yet."""

    parts: tuple[str, ...]  # its folders and its name, below the folder or within the archive
    where: str  # what messages call it
    read: Callable[[], bytes]


def find(
    folder: pathlib.Path, key: Callable[[Image], Any] = lambda image: image.parts
) -> tuple[list[Image], int]:
    """Finds every image below a folder or, if there is none, every image of the archives that lie in it.

    Args:
      folder: its subfolders are searched.
      key: of two images with an equal key only the first is kept.

    Returns:
      The images, sorted by folders and name, and the number of second copies that are left out.

    Raises:
      UserError: for two images of one key that differ, and a damaged archive.
    """
    images = [
        _loose(folder, name) for name in files_below(folder) if name.lower().endswith(SUFFIXES)
    ]
    if not images:
        archives = [p for p in inside(folder) if p.name.lower().endswith(ARCHIVES) and p.is_file()]
        images = [image for path in archives for image in _packed(path)]
    first: dict[Any, Image] = {}
    for image in sorted(images, key=lambda image: (image.parts, image.where)):
        kept = first.setdefault(key(image), image)
        if kept is not image and kept.read() != image.read():
            what = f"and {image.where} have one name and are not the same file"
            raise fault(kept.where, what, "remove the wrong one")
    return list(first.values()), len(images) - len(first)


def _loose(folder: pathlib.Path, name: str) -> Image:
    path = folder / name
    return Image(tuple(name.split(os.sep)), str(path), functools.partial(content, path))


def _packed(archive: pathlib.Path) -> Iterator[Image]:
    for name, read in archive_members(archive):
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if name.lower().endswith(SUFFIXES) and not formats.hidden(name):
            yield Image(parts, f"{archive}: {name}", read)


@contextlib.contextmanager
def _opened(source: Image | np.ndarray) -> Iterator[Any]:
    """Opens an image, of which only the header is read at first, or wraps pixels [H, W, 3] uint8."""
    import PIL.Image

    if isinstance(source, np.ndarray):
        yield PIL.Image.fromarray(source)
        return
    with reading(source.where, REMEDY):
        image = PIL.Image.open(io.BytesIO(source.read()), formats=("PNG", "JPEG"))
        with image:
            yield image


def _each(function: Callable[[Any], Any], images: Sequence[Any] | np.ndarray) -> list[Any]:
    # Pillow warns of metadata, which is not read
    ignored = warnings.catch_warnings(action="ignore")
    with ignored, concurrent.futures.ThreadPoolExecutor() as pool:
        return [*pool.map(function, images)]


def shapes(images: Sequence[Image]) -> np.ndarray:
    """Returns (height, width) of each image by its file's header, [R, 2]."""

    def shape(image: Image) -> tuple[int, int]:
        with _opened(image) as header:
            return header.height, header.width

    return np.array(_each(shape, images))


def pixels(
    images: Sequence[Image] | np.ndarray, side: int, *, resize: bool = False, gray: bool = False
) -> np.ndarray:
    """Returns pixels [R, side, side, 3], or [R, side, side] if ``gray``, uint8, in the order of the images.

    Args:
      images: files, or their pixels [R, H, W, 3] uint8.
      side: height and width.
      resize: whether every image is resized, whatever its shape: by the mean of the covered pixels (box) if
        no side grows, else bilinearly. If False, all images must have the size.
      gray: whether colors become one channel, ITU-R 601 luma.

    Raises:
      UserError: for a file that cannot be decoded or has another size, which it names.
    """
    if isinstance(images, np.ndarray) and images.shape[1:3] == (side, side) and not gray:
        return images
    decode = functools.partial(_pixels, side=side, resize=resize, gray=gray)
    return np.stack(_each(decode, images))


def _pixels(source: Image | np.ndarray, side: int, resize: bool, gray: bool) -> np.ndarray:
    """Returns one image's pixels, [side, side, 3] or [side, side] uint8."""
    import PIL.Image

    with _opened(source) as image:
        if resize and image.format == "JPEG":
            image.draft("", (8 * side, 8 * side))  # decodes a far larger image at a reduced scale
        picture = image.convert("L" if gray else "RGB")
        if picture.size != (side, side):
            if not resize and isinstance(source, Image):
                what = f"is {picture.width}x{picture.height} pixels and not {side}x{side}"
                raise fault(source.where, what, "all images need one size")
            shrinks = picture.width >= side and picture.height >= side
            by = PIL.Image.Resampling.BOX if shrinks else PIL.Image.Resampling.BILINEAR
            picture = picture.resize((side, side), by)
        return np.asarray(picture)


def blocks(
    decode: Callable[[Any], np.ndarray],
    images: Sequence[Any] | np.ndarray,
    labels: np.ndarray,
    *,
    test: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Iterator[Block]:
    """Yields rows with their features, decoded block by block.

    Args:
      decode: makes the features of some rows of ``images``.
      images: what each row is made of, [R].
      labels, test, groups: [R] each, as of ``Block``.
    """
    for start in range(0, len(labels), ROWS):
        rows = slice(start, start + ROWS)
        tests, of_groups = (None if x is None else x[rows] for x in (test, groups))
        yield Block(decode(images[rows]), labels[rows].astype(np.int32), tests, of_groups)
