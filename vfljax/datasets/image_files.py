"""Images of a folder, or of .tar, .tar.gz and .zip archives lying in it: found, and not read yet.

What enters: a folder. What leaves: ``Image`` entries in order of their names, and the bytes of those
one chooses: PNG and JPEG files (by suffix, of any case). Archives count only where the folder holds
no image file itself. Hidden files are left out; links to folders are followed, not in circles.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from vfljax.datasets import archives
from vfljax.datasets.given import content, fault, inside

SUFFIXES = (".png", ".jpg", ".jpeg")
HIDDEN = (".", "__MACOSX")
DEPTH = 5  # folders in folders; deeper ones are no data set's


class Image(NamedTuple):
    """One image file, not read yet."""

    parts: tuple[str, ...]  # its folders and its name, below the folder or within the archive
    source: pathlib.Path  # the file, or the archive it lies in
    member: str = ""  # its name within the archive

    @property
    def where(self) -> str:
        return f"{self.source}: {self.member}" if self.member else str(self.source)


class Found(NamedTuple):
    """What a folder holds."""

    images: list[Image]  # sorted by folders and name
    others: list[Image]  # all other files, and folders too deep to enter
    notes: tuple[str, ...]  # on what was left out


def find(folder: pathlib.Path, key: Callable[[Image], Any] = lambda image: image.parts) -> Found:
    """Every image below a folder, else of every archive in it; of those with one ``key`` the first.

    Images of one key must be copies of one file, byte for byte: only they are read. Raises UserError
    for two that are not, for a link to a folder above it, and for a damaged archive.
    """
    packed = [path for path in inside(folder) if archives.is_archive(path)]
    every, notes = list(_loose(folder, (), (_real(folder),))), []
    if not any(map(_is_image, every)):
        every += [
            Image(tuple(part for part in name.split("/") if part not in ("", ".")), path, name)
            for path in packed
            for name in archives.members(path)
        ]
    elif packed:
        names = ", ".join(path.name for path in packed[:3]) + (", ..." if len(packed) > 3 else "")
        first = next(filter(_is_image, every)).where
        notes.append(f"archives not read, since images lie beside them ({first}): {names}")
    every = [i for i in every if i.parts and not any(p.startswith(HIDDEN) for p in i.parts)]
    images = sorted(filter(_is_image, every))
    firsts = _firsts(images, key)
    if len(firsts) < len(images):
        notes.append(f"{len(images) - len(firsts):,} second copies of an image left out")
    return Found(firsts, [i for i in every if not _is_image(i)], tuple(notes))


def _is_image(image: Image) -> bool:
    named = image.parts[-1:] and image.parts[-1].lower().endswith(SUFFIXES)
    return bool(named) and bool(image.member or image.source.is_file())


def _firsts(images: Sequence[Image], key: Callable[[Image], Any]) -> list[Image]:
    first: dict[Any, Image] = {}
    pairs = [(first.setdefault(key(image), image), image) for image in images]
    copies = [(one, other) for one, other in pairs if one is not other]
    read = list(dict.fromkeys(image for pair in copies for image in pair))
    digests = {read[at]: hashlib.sha256(data).digest() for at, data in stored(read)}
    for one, other in copies:
        if digests[one] != digests[other]:
            raise fault(
                f"{one.where} and {other.where} have one name and are not the same file: remove the "
                "wrong one."
            )
    return list(first.values())


def _loose(
    folder: pathlib.Path, above: tuple[str, ...], over: tuple[pathlib.Path, ...]
) -> Iterator[Image]:
    """Every file that is not hidden, and every folder that is too deep to enter. Raises UserError for
    a link to one of the folders ``over`` it: every image would count again at each turn."""
    for path in inside(folder):
        parts = (*above, path.name)
        if path.is_dir() and len(parts) <= DEPTH:
            real = _real(path)
            if any(one.is_relative_to(real) for one in over):
                raise fault(f"{path} leads back to {real}, a folder above it: remove that link.")
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
        for name, data in archives.chosen(archive, places.__contains__):
            yield places[name], data
