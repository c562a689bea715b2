"""Manifests: the list of a folder's files, by which every file is checked when it is read.

A folder's ``manifest.json`` records the folder's path, the sweep's id, and the size and SHA-256 of each of
its files. It is written last, so that files which no manifest names were never finished. A folder that was
renamed, or that belongs to another sweep, does not match its manifest.

``open_folder`` opens a folder for reading. It checks the manifest at once, and each file when a process first
asks for it.
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
from vfljax.store.header import sweep_id
from vfljax.store.sealed import KIND, SEAL, read_record, unsound, write_record
from vfljax.types import PyTree

MANIFEST = "manifest.json"


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


_CHECKED: dict[tuple[Any, ...], str] = {}  # SHA-256 of the files that this process has checked


class Folder(NamedTuple):
    """A folder whose manifest is sound."""

    workdir: pathlib.Path
    unit: str  # its path below the workdir
    record: Mapping[str, Any]

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """The size ("bytes") and SHA-256 ("sha256") of each of its files, by name."""
        return self.record["files"]

    def file(self, name: str) -> pathlib.Path:
        """Returns the path of a file, whose SHA-256 is checked once a process. Raises Damaged or Unreadable."""
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
            raise unsound(self.workdir, self.unit, error, name) from error
        return path

    def check_all(self) -> None:
        """Checks every file's SHA-256."""
        for name in self.files:
            self.file(name)


def _check_size(name: str, size: int, expected: Mapping[str, Any]) -> None:
    if size != expected["bytes"]:
        raise ValueError(f"{name} has not the {expected['bytes']} bytes it was written with")


def open_folder(workdir: pathlib.Path, unit: str, sizes: bool = True) -> Folder:
    """Returns a folder of a sweep after checking its manifest. Files are checked when they are asked for.

    Args:
      unit: the path of the folder within it.
      sizes: whether the sizes of all its files are compared now.

    Raises:
      Damaged: if the manifest is missing, is damaged, or belongs to another folder or sweep, or if files are
        missing or have other sizes.
      Unreadable: if a permission is missing.
    """
    sweep, blamed = sweep_id(workdir), MANIFEST
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
        raise unsound(workdir, unit, error, blamed) from error
    return Folder(workdir, unit, record)


def _sums(folder: pathlib.Path, names: Iterable[str]) -> dict[str, Any]:
    return {
        name: {"bytes": (folder / name).stat().st_size, SEAL: digest(folder / name)}
        for name in names
    }


@contextlib.contextmanager
def new_folder(
    workdir: pathlib.Path, unit: str, arrays: Iterable[Any], **more: Any
) -> Iterator[pathlib.Path]:
    """Makes a folder with its manifest atomically. If another process has made it meanwhile, that one stays.

    Args:
      unit: the path of the new folder within it.
      arrays: the arrays that it will hold; their sizes are checked against the room on the disk.
      **more: other fields of the manifest.

    Yields:
      The path where the files are written.
    """
    sizes = [np.asarray(array).nbytes for array in arrays]
    # an upper estimate, which includes what orbax writes beside the arrays
    need = sum(sizes) + 4096 * len(sizes) + 65_536
    with replacing(workdir / unit, need, keep=True) as folder:
        folder.mkdir(parents=True)
        yield folder
        files = _sums(folder, files_below(folder))
        record = {KIND: unit, "sweep": sweep_id(workdir), "files": files, **more}
        write_record(folder / MANIFEST, record)


def files_below(folder: pathlib.Path) -> list[str]:
    """Returns the relative paths of all files below a folder, except its manifest and temporary files."""
    names = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file()]
    return [n for n in names if n != MANIFEST and not pathlib.Path(n).name.startswith(".")]
