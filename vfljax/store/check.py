"""Finds the damaged parts of a sweep and sets them aside.

``inspect`` checks every file that the commands of a sweep read. ``mend`` moves damaged parts to the folder
``damaged``, from which nothing is read. The command of the sweep then finds these parts missing and makes
them again.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

from vfljax.store.header import read_header, write
from vfljax.store.sealed import Damaged, damaged_roots
from vfljax.store.units import SHARED, shared_names, units_of, verify

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
    for name in shared_names(workdir):
        yield _checked(workdir, f"{SHARED}/{name}")
    units = [unit.name for unit in units_of(header, outdated=True)]
    planned = {unit.name for unit in units_of(header)}
    for unit in units:
        if (workdir / unit).is_dir():
            yield _checked(workdir, unit)
            continue
        if unit in planned:
            yield Finding(unit, MISSING)
        for save in sorted((workdir / "partial" / unit).glob("[!.]*")):
            finding = _checked(workdir, str(save.relative_to(workdir)))
            if finding.state == SOUND or save.exists():  # else it was replaced meanwhile
                yield finding
    folders = [*workdir.glob("shards/[!.]*"), *workdir.glob("local_only/[!.]*")]
    for folder in sorted([*folders, *workdir.glob("attacks/*/[!.]*")]):
        unit = str(folder.relative_to(workdir))
        if unit not in units:
            yield Finding(unit, DAMAGED, "the plan names no such unit")


def _checked(workdir: pathlib.Path, unit: str) -> Finding:
    try:
        verify(workdir, unit)
    except Damaged as error:
        return Finding(error.unit, DAMAGED, error.why)
    return Finding(unit, SOUND)


def mend(workdir: pathlib.Path) -> list[Finding]:
    """Sets aside damaged parts and returns the findings. The caller holds the lock, and makes them again."""
    damaged: list[Finding] = []
    # a part that was set aside may have hidden damage of another
    while new := [f for f in inspect(workdir) if f.state == DAMAGED and f not in damaged]:
        for finding in new:
            if finding.unit in damaged_roots(workdir):
                write(workdir, read_header(workdir))  # from the other copy
            else:
                _move(workdir, finding.unit)
        damaged += new
    return damaged


def _move(workdir: pathlib.Path, unit: str) -> None:
    """Moves a folder, if it exists, to ``damaged``. Earlier versions that are there are kept."""
    if not (workdir / unit).exists():
        return
    folder = workdir / "damaged"
    folder.mkdir(exist_ok=True)
    name, number = unit.replace("/", "_"), 0
    while (folder / f"{name}.{number}").exists():
        number += 1
    os.replace(workdir / unit, folder / f"{name}.{number}")
