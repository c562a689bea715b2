"""Records: small JSON files that contain the SHA-256 of the rest of their own content.

``sweep.json`` has a copy (``sweep.copy.json``), which is written first and read if the record is damaged, so
that no single damaged file loses it. Every folder's manifest is a record too.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import uuid
from collections.abc import Mapping
from typing import Any

from vfljax.errors import UserError
from vfljax.store.atomic import write_text

SEAL, KIND = "sha256", "of"  # the keys of a record's checksum, and of the name of what it describes


class Damaged(UserError):
    """A file or folder of a sweep is not what was written. ``unit`` is the part to delete and make again."""

    def __init__(self, workdir: pathlib.Path, unit: str, why: str) -> None:
        self.unit, self.why = unit, why
        super().__init__(
            f"{workdir / unit} is damaged ({why}): delete it, and `vfljax sweep --workdir={workdir}` "
            "makes it again; all else is kept."
        )


class Unreadable(UserError):
    """A file or folder of a sweep may not be read, which says nothing against it."""

    def __init__(self, workdir: pathlib.Path, unit: str, why: str) -> None:
        self.unit, self.why = unit, why
        remedy = f"ask its owner for it, who may `chmod -R g+rwX {workdir}`"
        super().__init__(f"{workdir / unit} may not be read ({why})", remedy=remedy)


def unsound(workdir: pathlib.Path, unit: str, error: Exception, name: str = "") -> UserError:
    """Returns the error of a part of a sweep that could not be read: ``Unreadable`` if a permission is missing,
    else ``Damaged``.

    Args:
      unit: the part.
      error: what its reader raised.
      name: the file of the part that is to be named.
    """
    why = f"{name}: {reason(error)}" if name and isinstance(error, OSError) else reason(error)
    return (Unreadable if _forbidden(error) else Damaged)(workdir, unit, why)


def _forbidden(error: BaseException | None) -> bool:
    """Returns whether an error, or any error in its chain of causes, is a missing permission. Readers of arrays
    raise errors without a number."""
    while error is not None:
        if isinstance(error, PermissionError) or "permission denied" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False


def reason(error: Exception) -> str:
    """Returns the short reason of an exception that a reader of files raised."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = str(error).splitlines()[0][:100] if str(error) else ""
    return text or type(error).__name__


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record: the content and its checksum."""
    # the checksum is of the content as JSON reads it back: names are strings, and tuples are lists
    rest = json.loads(json.dumps({key: value for key, value in content.items() if key != SEAL}))
    text = json.dumps(rest, sort_keys=True)
    return {**rest, SEAL: hashlib.sha256(text.encode()).hexdigest()}


def write_record(path: pathlib.Path, content: Mapping[str, Any]) -> None:
    """Replaces a record.

    Args:
      path: path of its file.
      content: its content without the checksum.
    """
    write_text(path, json.dumps(seal(content), indent=1))


def read_record(path: pathlib.Path) -> dict[str, Any]:
    """Returns the JSON object of a file. An object without a checksum is returned unchecked.

    Raises:
      ValueError, OSError: if it cannot be read, or does not match its checksum.
    """
    record = json.loads(path.read_bytes())
    if not isinstance(record, dict):
        raise ValueError("it holds no JSON object")
    if SEAL in record and seal(record)[SEAL] != record[SEAL]:
        raise ValueError("its checksum is another")
    return record


def _places(workdir: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Returns the paths of a sweep's record and of its copy."""
    return workdir / "sweep.json", workdir / "sweep.copy.json"


def begin_root(workdir: pathlib.Path, content: Mapping[str, Any]) -> None:
    """Writes the record of a new sweep. If another process has written one meanwhile, that one stays.

    Args:
      content: content of the record.
    """
    main, _ = _places(workdir)
    mine = main.with_name(f".{main.name}.{uuid.uuid4().hex}")
    write_record(mine, {**content, KIND: "sweep"})
    try:
        os.link(mine, main)  # which, unlike a move, replaces nothing
    except FileExistsError:
        pass
    except OSError:  # of a file system without links
        mine.replace(main)
    mine.unlink(missing_ok=True)


def write_root(workdir: pathlib.Path, content: Mapping[str, Any]) -> None:
    """Writes a sweep's record and its copy, except files that hold the same record already.

    Args:
      content: content of the record.
    """
    record = seal({**content, KIND: "sweep"})
    for path in reversed(_places(workdir)):
        if _read(path) != record:
            write_record(path, record)


def read_root(workdir: pathlib.Path) -> dict[str, Any] | None:
    """Returns a sweep's record or else its copy, None if neither exists. Raises Damaged if neither is sound,
    and Unreadable if they may not be read."""
    main, copy = _places(workdir)
    for path in (main, copy):
        record = _read(path)
        if record is not None:
            return record
    if not main.exists() and not copy.exists():
        return None
    try:
        record = read_record(main)
    except (ValueError, OSError) as error:
        raise unsound(workdir, main.name, error) from error
    if SEAL in record:
        raise Damaged(workdir, main.name, f"it is {record.get(KIND)}.json")
    return record


def _read(path: pathlib.Path) -> dict[str, Any] | None:
    """Returns the record of a file if it is sound and of a sweep, else None."""
    try:
        record = read_record(path)
    except (ValueError, OSError):
        return None
    return record if SEAL in record and record.get(KIND) == "sweep" else None


def damaged_roots(workdir: pathlib.Path) -> list[str]:
    """Returns the name of the sweep's record, or of its copy, if only that one is missing or damaged."""
    damaged = [path.name for path in _places(workdir) if _read(path) is None]
    return damaged if len(damaged) == 1 else []
