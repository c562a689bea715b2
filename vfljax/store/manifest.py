"""What makes the files of a sweep whole: every one that is read stands in a sealed record.

A *record* is a small JSON file that carries the SHA-256 of the rest of its own content. A folder's
record is its ``manifest.json``: which folder it is, of which sweep, and the size and SHA-256 of each of
its files. It is written last, so that files which no manifest names were never finished. A folder that
was renamed, or that belongs to another sweep, does not match its record.

``open_folder`` is how files are read. It checks the record at once, and a file the first time that a
process asks for it.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax.errors import UserError
from vfljax.store.atomic import write_text
from vfljax.types import PyTree

MANIFEST = "manifest.json"
ROOT = "."  # the unit of the files beside sweep.json
SEAL = "sha256"  # the key of a record's own sum


class Damaged(UserError):
    """A file or folder of a sweep that is not what was written; ``unit`` is what must be made again."""

    def __init__(self, workdir: pathlib.Path, unit: str, why: str) -> None:
        self.unit, self.why = unit, why
        super().__init__(
            f"{workdir / unit} is damaged ({why}): {remedy(workdir)} sets it aside and makes it "
            "again; all else is kept."
        )


def remedy(workdir: pathlib.Path) -> str:
    """The command that mends a damaged sweep."""
    return f"`vfljax sweep --workdir={workdir} --mend`"


def digest(path: pathlib.Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_arrays(tree: PyTree) -> str:
    """SHA-256 of a tree of arrays: their paths in the tree, types, shapes and values."""
    total = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.ascontiguousarray(leaf)
        head = f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape};"
        total.update(head.encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """A record: the content and its own sum."""
    # as JSON reads it back: names are strings, tuples lists
    rest = json.loads(json.dumps({key: value for key, value in content.items() if key != SEAL}))
    text = json.dumps(rest, sort_keys=True)
    return {**rest, SEAL: hashlib.sha256(text.encode()).hexdigest()}


def read_record(path: pathlib.Path) -> dict[str, Any]:
    """A JSON object from a file. Raises ValueError or OSError that says what is wrong with it: it cannot
    be read, or it has a sum and that is not its own. One without a sum is returned as it is."""
    record = json.loads(path.read_bytes())
    if not isinstance(record, dict):
        raise ValueError("it holds no JSON object")
    if SEAL in record and seal(record)[SEAL] != record[SEAL]:
        raise ValueError("its checksum is another")
    return record


class Folder(NamedTuple):
    """A folder whose record is sound."""

    workdir: pathlib.Path
    unit: str  # its path below the workdir
    files: Mapping[str, Mapping[str, Any]]  # name -> bytes, sha256
    record: Mapping[str, Any]

    @property
    def path(self) -> pathlib.Path:
        return self.workdir / self.unit

    def file(self, name: str) -> pathlib.Path:
        """The path of one of its files, whose SHA-256 is checked once a process. Raises Damaged."""
        path = self.path / name
        if name not in self.files:
            raise Damaged(self.workdir, _blamed(self.unit, name), f"no {MANIFEST} names it")
        try:
            status = path.stat()
            place = (str(path), status.st_ino, status.st_size, status.st_mtime_ns)
            expected = self.files[name][SEAL]
            if _CHECKED.get(place) != expected:
                if digest(path) != expected:
                    why = f"{name} does not match its checksum"
                    raise Damaged(self.workdir, _blamed(self.unit, name), why)
                _CHECKED[place] = expected
        except OSError as error:
            unit = _blamed(self.unit, name)
            raise Damaged(self.workdir, unit, f"{name}: {reason(error)}") from error
        return path

    def check_all(self) -> None:
        """Check every file's SHA-256."""
        for name in self.files:
            self.file(name)


_CHECKED: dict[tuple[Any, ...], str] = {}  # what this process has checked


def reason(error: Exception) -> str:
    """A short reason of an exception that some reader raised."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = str(error).splitlines()[0][:100] if str(error) else ""
    return text or type(error).__name__


def open_folder(
    workdir: pathlib.Path, unit: str, sweep: str, only: Iterable[str] | None = None
) -> Folder:
    """Returns a folder of a sweep, checked by its manifest.

    Sizes of all its files are compared now, SHA-256 of a file when it is asked for.

    Args:
      workdir: the folder of the sweep.
      unit: the path of the folder within it.
      sweep: the identity of the sweep.
      only: the files that must be whole; None for all.

    Raises:
      Damaged: where the manifest is missing, is not whole, or is that of another folder or sweep, and where
        files are missing or have other sizes.
    """
    path = workdir / unit
    blamed = MANIFEST
    try:
        record = read_record(path / MANIFEST)
        if SEAL not in record:
            raise ValueError(f"its {MANIFEST} has no checksum")
        if (record["of"], record["sweep"]) != (unit, sweep):
            raise ValueError(f"it is {record['of']} of the sweep {record['sweep'][:8]}")
        files = record["files"]
        names = files if only is None else [name for name in only if name in files]
        for name in names:
            expected, blamed = files[name], name
            if (path / name).stat().st_size != expected["bytes"]:
                raise ValueError(
                    f"{name} has not the {expected['bytes']} bytes it was written with"
                )
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        why = f"{blamed}: {reason(error)}" if isinstance(error, OSError) else reason(error)
        raise Damaged(workdir, _blamed(unit, blamed), why) from error
    return Folder(workdir, unit, files, record)


def _blamed(unit: str, name: str) -> str:
    """What must be made again where a file is damaged: its folder, or of those beside ``sweep.json`` the
    file alone."""
    return name if unit == ROOT else unit


def manifest(
    folder: pathlib.Path, unit: str, sweep: str, names: Iterable[str], **more: Any
) -> dict[str, Any]:
    """Returns the record of a folder's files as they are now.

    Args:
      folder: of the files.
      unit: the path of the folder within the sweep.
      sweep: the identity of the sweep.
      names: of the files.
      **more: other fields of the record.
    """
    files = {
        name: {"bytes": (folder / name).stat().st_size, SEAL: digest(folder / name)}
        for name in names
    }
    return seal({"of": unit, "sweep": sweep, "files": files, **more})


def write_record(path: pathlib.Path, record: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(record, indent=1))


def add_files(
    workdir: pathlib.Path, unit: str, sweep: str, names: Iterable[str], keep: bool = True
) -> None:
    """Writes a folder's manifest anew with these files, as they are now.

    A folder without a manifest gets one.

    Args:
      workdir: the folder of the sweep.
      unit: the path of the folder within it.
      sweep: the identity of the sweep.
      names: of the files.
      keep: whether the files that it has already stay in it.
    """
    path = workdir / unit
    files: dict[str, Any] = {}
    if keep and (path / MANIFEST).exists():
        files = dict(open_folder(workdir, unit, sweep, only=()).files)
    record = manifest(path, unit, sweep, names)
    write_record(path / MANIFEST, seal({**record, "files": {**files, **record["files"]}}))


def files_below(folder: pathlib.Path) -> list[str]:
    """Every file below a folder, by its path there, but the manifest and temporary ones."""
    names = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file()]
    return [n for n in names if n != MANIFEST and not pathlib.Path(n).name.startswith(".")]
