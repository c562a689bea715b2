"""Image files as one array of pixels: PNG and JPEG, decoded by Pillow to 8-bit RGB or gray.

What enters: ``Image`` entries of ``vfljax.datasets.image_files``, or files' bytes. What leaves: pixels.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import io
import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vfljax.datasets.given import MAX_BYTES, explained, fault, fits
from vfljax.datasets.image_files import Image, stored

LARGEST = 100_000_000  # pixels of one image: more is an attack or a mistake
AT_ONCE = 256  # images decoded together, or fewer:
BYTES_AT_ONCE = 64 << 20  # of their files
MOST_SIZE = 4096  # pixels a side that images may be brought to
THREADS = 2
REMEDY = "it is damaged, or no PNG or JPEG image; fetch it again"


def pixels(images: Sequence[Image], **options: Any) -> np.ndarray:
    """``decoded`` pixels of image files, in the order of ``images``."""
    return decoded(stored(images), [image.where for image in images], **options)


def decoded(
    files: Iterator[tuple[int, bytes]],
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
    groups = _groups(files)
    first = next(groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metadata that nobody reads here
        shape = (size, size) if size else shape or _shape(first[0][1], names[first[0][0]])
        whole = (len(names), *shape, *(() if gray else (3,)))
        fits("images", whole, 1, max_bytes, "set rows to read fewer, or raise max_bytes")
        with explained("images", "set rows to read fewer"):
            out = np.empty(whole, np.uint8)

        def work(at: int, data: bytes) -> None:
            out[at] = _image(data, names[at], gray, size, shape)

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for group in itertools.chain([first], groups):
                made = [pool.submit(work, at, data) for at, data in group]
                try:
                    for one in made:
                        one.result()
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
    return out


def _groups(files: Iterator[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """What is in memory at a time: some files, bounded by their number and bytes."""
    group, total = [], 0
    for at, data in files:
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

    with (
        explained(name, REMEDY),
        PIL.Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image,
    ):
        width, height = image.size
        if width * height > LARGEST:
            raise fault(f"{name} has {width}x{height} pixels: no data set's image is so large.")
        yield image


def _shape(data: bytes, name: str) -> tuple[int, int]:
    with _opened(data, name) as image:
        return image.height, image.width


def _image(data: bytes, name: str, gray: bool, size: int, shape: tuple[int, int]) -> np.ndarray:
    """One file's pixels, [H, W, 3] or [H, W] uint8."""
    with _opened(data, name) as image:
        if not size and (image.height, image.width) != tuple(shape):
            raise fault(
                f"{name} is {image.width}x{image.height} pixels and not {shape[1]}x{shape[0]}: all "
                "images need one size."
            )
        # Pillow cuts 16-bit colors to 8 bits silently; only the stored layout tells
        if image.mode.startswith(("I", "F")) or any(";16" in str(t[3]) for t in image.tile):
            raise fault(f"{name} has more than 8 bits a pixel: save it as an 8-bit PNG.")
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


def changed(x: np.ndarray, *, gray: bool = False, size: int = 0) -> np.ndarray:
    """Pixels [R, H, W, 3] uint8 made gray and resized as ``pixels`` does."""
    if not gray and (not size or x.shape[1:3] == (size, size)):
        return x
    import PIL.Image

    side = (size, size) if size else x.shape[1:3]
    out = np.empty((len(x), *side, *(() if gray else (3,))), np.uint8)
    for row, image in enumerate(x):
        out[row] = np.asarray(_changed(PIL.Image.fromarray(image), gray, size))
    return out


def shapes(images: Sequence[Image]) -> np.ndarray:
    """(height, width) of each image by its file's header, [R, 2]."""
    out = np.empty((len(images), 2), np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at, data in stored(images):
            out[at] = _shape(data, images[at].where)
    return out
