"""Finds the damaged parts of a sweep and sets them aside.

``inspect`` checks every file that the commands of a sweep read. ``mend`` moves damaged parts to the folder
``damaged``, from which nothing is read. The command of the sweep then finds these parts missing and makes
them again.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from vfljax.store.attacks import (
    attack_summary,
    read_variant,
    unit_of,
    unknown_units,
    with_rows,
    write_attack_summary,
)
from vfljax.store.directory import read_partial, read_root_arrays, shard_unit, strangers, verify
from vfljax.store.header import read_header
from vfljax.store.manifest import ROOT, add_files, open_folder
from vfljax.store.sealed import Damaged, damaged_roots, read_root, write_root

SOUND, DAMAGED, MISSING = "sound", "damaged", "not there yet"


class Finding(NamedTuple):
    """A part of a sweep and its state; ``why`` says what is wrong with it."""

    unit: str
    state: str
    why: str = ""


def inspect(workdir: pathlib.Path) -> Iterator[Finding]:
    """Yields the state of every part of a sweep.

    Raises:
      UserError: if ``sweep.json`` and its copy are both lost.
    """
    header = read_header(workdir)
    for name in damaged_roots(workdir):
        yield Finding(name, DAMAGED, "the other copy is sound")
    listed = _listed(workdir)
    for name in ("splits.npz", "teacher.npz", "codebooks.npz"):
        if (workdir / name).exists() or name in listed:
            yield _checked(name, read_root_arrays, workdir, name)
    for unit in strangers(workdir, header):
        yield Finding(unit, DAMAGED, "the plan names no such shard")
    for name in [shard["name"] for shard in header["shards"]]:
        unit = shard_unit(name)
        if (workdir / unit).is_dir():
            yield _checked(unit, verify, workdir, name)
        else:
            yield Finding(unit, MISSING)
            if (workdir / "partial" / name).exists():
                yield _checked(f"partial/{name}", read_partial, workdir, name)
    try:
        summary = attack_summary(workdir)
    except Damaged as error:
        yield Finding(error.unit, DAMAGED, error.why)
        return
    for variant in with_rows(summary):
        yield _checked(unit_of(variant), read_variant, workdir, variant)
    for unit in unknown_units(workdir, summary):
        yield Finding(unit, DAMAGED, "attacks.json does not name it")


def _listed(workdir: pathlib.Path) -> list[str]:
    """Returns the files beside ``sweep.json`` that the manifest there names; none if it is damaged."""
    try:
        return list(open_folder(workdir, ROOT, sizes=False).files)
    except Damaged:
        return []


def _checked(
    unit: str, read: Callable[[pathlib.Path, str], object], workdir: pathlib.Path, name: str
) -> Finding:
    try:
        read(workdir, name)
    except Damaged as error:
        return Finding(error.unit, DAMAGED, error.why)
    return Finding(unit, SOUND)


def mend(workdir: pathlib.Path) -> list[Finding]:
    """Sets aside damaged parts and returns the findings. The caller holds the lock, and makes them again."""
    damaged: list[Finding] = []
    # a part that was set aside may have hidden damage of another
    while new := [f for f in inspect(workdir) if f.state == DAMAGED and f not in damaged]:
        for finding in new:
            _set_aside(workdir, finding.unit)
        damaged += new
    return damaged


def _set_aside(workdir: pathlib.Path, unit: str) -> None:
    if unit in damaged_roots(workdir):
        kind = unit.split(".")[0]
        write_root(workdir, kind, read_root(workdir, kind) or {})
        return
    _move(workdir, unit)
    if unit == "attacks.json":  # its copy is lost too
        _move(workdir, "attacks.copy.json")
        write_attack_summary(workdir, {})  # without the record, every attack runs again
    if unit.startswith("attacks/"):  # the variant keeps a folder, without rows
        (workdir / unit).mkdir(parents=True, exist_ok=True)
        add_files(workdir, unit, [], keep=False)
    listed = _listed(workdir)
    if unit in listed:
        rest = [name for name in listed if name != unit and (workdir / name).exists()]
        add_files(workdir, ROOT, rest, keep=False)


def _move(workdir: pathlib.Path, unit: str) -> None:
    """Moves a file or folder, if it exists, to ``damaged``. Earlier versions that are there are kept."""
    if not (workdir / unit).exists():
        return
    folder = workdir / "damaged"
    folder.mkdir(exist_ok=True)
    name, number = unit.replace("/", "_"), 0
    while (folder / f"{name}.{number}").exists():
        number += 1
    os.replace(workdir / unit, folder / f"{name}.{number}")
