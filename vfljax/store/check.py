"""Finds the damaged parts of a sweep: ``inspect`` checks every file that the commands of a sweep read.

Once the user has deleted a damaged part, the command of the sweep finds it missing and makes it again.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import NamedTuple

from vfljax.store.header import read_header
from vfljax.store.sealed import Damaged, Unreadable, damaged_roots
from vfljax.store.units import SHARED, shared_names, units_of, verify_unit

SOUND, DAMAGED, MISSING = "sound", "damaged", "not there yet"
UNREADABLE = "may not be read"


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
        verify_unit(workdir, unit)
    except Damaged as error:
        return Finding(error.unit, DAMAGED, error.why)
    except Unreadable as error:
        return Finding(error.unit, UNREADABLE, error.why)
    return Finding(unit, SOUND)
