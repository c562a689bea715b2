"""The two records that say what a sweep is: ``sweep.json`` and ``attacks.json``, each with a copy.

The copy (``sweep.copy.json``) is written first and read where the other is damaged, so that no single
damaged file loses them. What was written with schema 5 stays readable; earlier schemas are not read.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping
from typing import Any

from vfljax.errors import UserError
from vfljax.store.manifest import SEAL, Damaged, read_record, reason, seal, write_record

SCHEMA = 5
LAST_READER = "97df115"  # the last commit that reads earlier schemas
KIND, ID = "of", "id"
# what is read of sweep.json; fields that came later may be absent
FIELDS = (
    *("config", "command", "versions", "revision", "backend", "devices"),
    *("data", "checksum", "trials", "shards", ID),
)
DATA_FIELDS = (
    *("name", "rows", "classes", "balance", "party_shapes"),
    *("train", "validation", "test"),
)
SHARD_FIELDS = ("name", "group", "trials", "capacity")


def places(workdir: pathlib.Path, kind: str) -> tuple[pathlib.Path, pathlib.Path]:
    """The record and its copy."""
    return workdir / f"{kind}.json", workdir / f"{kind}.copy.json"


def write_root(workdir: pathlib.Path, kind: str, content: Mapping[str, Any]) -> None:
    """Writes a record and its copy; what is written already is left alone.

    Args:
      workdir: the folder of the sweep.
      kind: "sweep" or "attacks".
      content: of the record.
    """
    record = seal({**content, KIND: kind})
    for path in reversed(places(workdir, kind)):
        if _read(path, kind) != record:
            write_record(path, record)


def read_root(workdir: pathlib.Path, kind: str) -> dict[str, Any] | None:
    """Returns a record, from its copy where it is damaged; None where there is neither.

    Args:
      workdir: the folder of the sweep.
      kind: "sweep" or "attacks".
    """
    main, copy = places(workdir, kind)
    for path in (main, copy):
        record = _read(path, kind)
        if record is not None:
            return record
    if not main.exists() and not copy.exists():
        return None
    try:
        record = read_record(main)
    except (ValueError, OSError) as error:
        raise Damaged(workdir, main.name, reason(error)) from error
    if SEAL in record:
        raise Damaged(workdir, main.name, f"it is {record.get(KIND)}.json")
    return record


def _read(path: pathlib.Path, kind: str) -> dict[str, Any] | None:
    """A sound record of its kind, else None."""
    try:
        record = read_record(path)
    except (ValueError, OSError):
        return None
    return record if SEAL in record and record.get(KIND) == kind else None


def damaged_roots(workdir: pathlib.Path) -> list[str]:
    """Records, or copies, that are missing or damaged while the other is sound."""
    names = []
    for kind in ("sweep", "attacks"):
        pair = places(workdir, kind)
        sound = [path for path in pair if _read(path, kind) is not None]
        names += [path.name for path in pair if len(sound) == 1 and path not in sound]
    return names


def header_of(workdir: pathlib.Path) -> dict[str, Any] | None:
    """What ``sweep.json`` says, None where there is none. Raises UserError where it is damaged beyond
    its copy, or another version of vfljax wrote it."""
    remedy = "restore it, or start in a new workdir."
    try:
        header = read_root(workdir, "sweep")
    except Damaged as error:  # nothing else says what the sweep is: no command mends it
        raise UserError(f"{workdir / 'sweep.json'} is damaged ({error.why}): {remedy}") from error
    if header is None:
        return None
    schema = header.get("schema")
    if isinstance(schema, int) and schema != SCHEMA:
        newer = "the version that wrote it"
        remedy = f"commit {LAST_READER}, the last that reads it" if schema < SCHEMA else newer
        raise UserError(
            f"{workdir / 'sweep.json'} has schema {schema}, this version reads {SCHEMA}: use {remedy}."
        )
    missing = _missing(header)
    if schema is None or missing or SEAL not in header:
        why = f"it has no {missing!r}" if missing else "it has no checksum"
        raise UserError(f"{workdir / 'sweep.json'} is damaged ({why}): {remedy}")
    return header


def _missing(header: Mapping[str, Any]) -> str:
    """The first field that a header lacks, '' where none is missing."""
    for name in FIELDS:
        if name not in header:
            return name
    parts = [("versions", header["versions"], ("jax",)), ("data", header["data"], DATA_FIELDS)]
    parts += [(f"shards.{i}", shard, SHARD_FIELDS) for i, shard in enumerate(header["shards"])]
    return next(
        (f"{part}.{n}" for part, fields, names in parts for n in names if n not in fields), ""
    )


def identity(workdir: pathlib.Path) -> str:
    """What tells this sweep from others: drawn from its header when that was first written; '' where
    there is no header, of parts that tests write alone."""
    stats = [p.stat() if p.exists() else None for p in places(workdir, "sweep")]
    return _identity(workdir, tuple((s.st_mtime_ns, s.st_size) if s else None for s in stats))


@functools.lru_cache(maxsize=16)
def _identity(workdir: pathlib.Path, written: tuple[Any, ...]) -> str:
    del written  # when and what size: it is read anew when they change
    header = header_of(workdir)
    return header[ID] if header else ""
