"""Images of a folder, or of .tar, .tar.gz and .zip archives lying in it: found, and not read yet.

What enters: a folder. What leaves: ``Image`` entries in order of their names, and the bytes of those
one chooses: PNG and JPEG files (by suffix, of any case). Archives count only where the folder holds
no image file itself. Hidden files are left out; links to folders are followed, not in circles.
"""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vfljax.datasets import archives
from vfljax.datasets.given import content, fault, inside

SUFFIXES = (".png", ".jpg", ".jpeg")
DEPTH = 5  # folders in folders; deeper ones are no data set's


class Image(NamedTuple):
    """One image file, not read yet."""

    parts: tuple[str, ...]  # its folders and its name, below the folder or within the archive
    source: pathlib.Path  # the file, or the archive it lies in
    member: str = ""  # its name within the archive

    @property
    def where(self) -> str:
        return f"{self.source}: {self.member}" if self.member else str(self.source)


def find(folder: pathlib.Path) -> list[Image]:
    """Every image below a folder, else of every archive in it, sorted by folders and name."""
    return listing(folder)[0]


def listing(folder: pathlib.Path) -> tuple[list[Image], list[tuple[str, ...]]]:
    """(What ``find`` finds, the parts of all other files there and of folders too deep to enter)."""
    images, others = [], []
    for path, parts in _loose(folder, ()):
        if _counts(parts) and path.is_file():
            images.append(Image(parts, path))
        else:
            others.append(parts)
    if not images:
        for archive in _archives(folder):
            for name in archives.members(archive):
                parts = tuple(part for part in name.split("/") if part not in ("", "."))
                if parts and _counts(parts):
                    images.append(Image(parts, archive, name))
                elif parts and not _hidden(parts):
                    others.append(parts)
    images.sort()
    for one, other in itertools.pairwise(images):
        if one.parts == other.parts:
            raise fault(f"{one.where} and {other.where} are the same image: remove one archive.")
    return images, others


def ignored(folder: pathlib.Path, images: Sequence[Image]) -> tuple[str, ...]:
    """A note where archives were not read because ``images`` lie beside them; else ()."""
    unread = [path.name for path in _archives(folder)]
    if not unread or not images or images[0].member:
        return ()
    more = ", ..." if len(unread) > 3 else ""
    return (
        f"archives not read, since images lie beside them ({images[0].where}): "
        f"{', '.join(unread[:3])}{more}",
    )


def _archives(folder: pathlib.Path) -> list[pathlib.Path]:
    return list(filter(archives.is_archive, inside(folder)))


def _hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in parts)


def _counts(parts: Sequence[str]) -> bool:
    return parts[-1].lower().endswith(SUFFIXES) and not _hidden(parts)


def _loose(
    folder: pathlib.Path, above: tuple[str, ...], over: tuple[pathlib.Path, ...] = ()
) -> Iterator[tuple[pathlib.Path, tuple[str, ...]]]:
    """Every file that is not hidden, and every folder that is too deep to enter. Raises UserError for
    a link to one of the folders ``over`` it: every image would count again at each turn."""
    over = (*over, _real(folder))
    for path in inside(folder):
        parts = (*above, path.name)
        if path.is_dir() and len(parts) <= DEPTH:
            real = _real(path)
            if any(one.is_relative_to(real) for one in over):
                raise fault(f"{path} leads back to {real}, a folder above it: remove that link.")
            yield from _loose(path, parts, over)
        else:
            yield path, parts


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
        for name, found in archives.contents(archive, places):
            yield places[name], found
