"""What makes the files of a sweep whole: every one that is read stands in a manifest.

A folder's ``manifest.json`` is a record of which folder it is, of which sweep, and of the size and SHA-256 of
each of its files. It is written last, so that files which no manifest names were never finished. A folder that
was renamed, or that belongs to another sweep, does not match its manifest.

``open_folder`` is how files are read. It checks the manifest at once, and a file the first time that a
process asks for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax.store.atomic import replacing
from vfljax.store.header import identity
from vfljax.store.sealed import KIND, SEAL, Damaged, read_record, reason, write_record
from vfljax.types import PyTree

MANIFEST = "manifest.json"
ROOT = "."  # the unit of the files beside sweep.json


def digest(path: pathlib.Path) -> str:
    """Returns the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_arrays(tree: PyTree) -> str:
    """Returns the SHA-256 of a tree of arrays: their paths in the tree, types, shapes and values."""
    total = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.ascontiguousarray(leaf)
        total.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape};".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


_CHECKED: dict[tuple[Any, ...], str] = {}  # what this process has checked


class Folder(NamedTuple):
    """A folder whose manifest is sound."""

    workdir: pathlib.Path
    unit: str  # its path below the workdir
    record: Mapping[str, Any]

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """The bytes and sha256 of its files, by name."""
        return self.record["files"]

    def file(self, name: str) -> pathlib.Path:
        """Returns the path of one of its files, whose SHA-256 is checked once a process. Raises Damaged."""
        path = self.workdir / self.unit / name
        try:
            if name not in self.files:
                raise ValueError(f"no {MANIFEST} names it")
            status = path.stat()
            _check_size(name, status.st_size, self.files[name])
            place = (str(path), status.st_ino, status.st_size, status.st_mtime_ns)
            expected = self.files[name][SEAL]
            if _CHECKED.get(place) != expected:
                if digest(path) != expected:
                    raise ValueError(f"{name} does not match its checksum")
                _CHECKED[place] = expected
        except (ValueError, OSError) as error:
            raise _damaged(self.workdir, self.unit, name, error) from error
        return path

    def check_all(self) -> None:
        """Checks every file's SHA-256."""
        for name in self.files:
            self.file(name)


def _check_size(name: str, size: int, expected: Mapping[str, Any]) -> None:
    if size != expected["bytes"]:
        raise ValueError(f"{name} has not the {expected['bytes']} bytes it was written with")


def _damaged(workdir: pathlib.Path, unit: str, name: str, error: Exception) -> Damaged:
    """What must be made again where a file is damaged: its folder, or of those beside ``sweep.json`` the
    file alone."""
    why = f"{name}: {reason(error)}" if isinstance(error, OSError) else reason(error)
    return Damaged(workdir, name if unit == ROOT else unit, why)


def open_folder(workdir: pathlib.Path, unit: str, sizes: bool = True) -> Folder:
    """Returns a folder of a sweep, checked by its manifest; a file is when it is asked for.

    Args:
      workdir: the folder of the sweep.
      unit: the path of the folder within it.
      sizes: whether the sizes of all its files are compared now.

    Raises:
      Damaged: where the manifest is missing, is not whole, or is that of another folder or sweep, and where
        files are missing or have other sizes.
    """
    sweep, blamed = identity(workdir), MANIFEST
    try:
        record = read_record(workdir / unit / MANIFEST)
        if SEAL not in record:
            raise ValueError(f"its {MANIFEST} has no checksum")
        if (record[KIND], record["sweep"]) != (unit, sweep):
            raise ValueError(f"it is {record[KIND]} of the sweep {record['sweep'][:8]}")
        files = record["files"]
        for name in files if sizes else ():
            expected, blamed = files[name], name
            _check_size(name, (workdir / unit / name).stat().st_size, expected)
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise _damaged(workdir, unit, blamed, error) from error
    return Folder(workdir, unit, record)


def _sums(folder: pathlib.Path, names: Iterable[str]) -> dict[str, Any]:
    return {
        name: {"bytes": (folder / name).stat().st_size, SEAL: digest(folder / name)}
        for name in names
    }


def add_files(workdir: pathlib.Path, unit: str, names: Iterable[str], keep: bool = True) -> None:
    """Writes a folder's manifest anew with these files, as they are now.

    A folder without a manifest gets one.

    Args:
      workdir: the folder of the sweep.
      unit: the path of the folder within it.
      names: of the files.
      keep: whether the files that it has already stay in it.
    """
    path = workdir / unit
    files: Mapping[str, Any] = {}
    if keep and (path / MANIFEST).exists():
        files = open_folder(workdir, unit, sizes=False).files
    files = {**files, **_sums(path, names)}
    write_record(path / MANIFEST, {KIND: unit, "sweep": identity(workdir), "files": files})


@contextlib.contextmanager
def new_folder(
    workdir: pathlib.Path, unit: str, arrays: Iterable[Any], **more: Any
) -> Iterator[pathlib.Path]:
    """Makes a folder with its manifest, all of it or nothing.

    Args:
      workdir: the folder of the sweep.
      unit: the path of the new folder within it.
      arrays: which it will hold, by which it is seen whether the disk has room.
      **more: other fields of the manifest.

    Yields:
      The path where the files are written.
    """
    sizes = [np.asarray(array).nbytes for array in arrays]
    # with what orbax writes beside the arrays: a little more than it will be
    need = sum(sizes) + 4096 * len(sizes) + 65_536
    with replacing(workdir / unit, need) as folder:
        folder.mkdir(parents=True)
        yield folder
        files = _sums(folder, files_below(folder))
        record = {KIND: unit, "sweep": identity(workdir), "files": files, **more}
        write_record(folder / MANIFEST, record)


def files_below(folder: pathlib.Path) -> list[str]:
    """Returns every file below a folder, by its path there, but the manifest and temporary ones."""
    names = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file()]
    return [n for n in names if n != MANIFEST and not pathlib.Path(n).name.startswith(".")]
