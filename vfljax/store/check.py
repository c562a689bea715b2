"""What of a sweep is sound, and setting aside what is not.

``inspect`` checks every file that a sweep's own commands ever read. ``mend`` moves what is damaged to the
folder ``damaged``, from where nothing is read: the sweep's command then finds it missing and makes it
again.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from vfljax.store.attacks import (
    attack_summary,
    read_variant,
    unit_of,
    unknown_units,
    write_attack_summary,
)
from vfljax.store.directory import (
    partial_path,
    read_header,
    read_partial,
    read_root_arrays,
    shard_unit,
    strangers,
    verify,
)
from vfljax.store.header import damaged_roots, identity, places, read_root, write_root
from vfljax.store.manifest import ROOT, Damaged, add_files, open_folder

SOUND, DAMAGED, MISSING = "sound", "damaged", "not there yet"


class Finding(NamedTuple):
    """A part of a sweep and its state; ``why`` says what is wrong with it."""

    unit: str
    state: str
    why: str = ""


def inspect(workdir: pathlib.Path) -> Iterator[Finding]:
    """The state of every part of a sweep. Raises UserError where ``sweep.json`` and its copy are lost."""
    header = read_header(workdir)
    for name in damaged_roots(workdir):
        yield Finding(name, DAMAGED, "the other copy is sound")
    for name in ("splits.npz", "teacher.npz", "codebooks.npz"):
        with_name = (workdir / name).exists() or _listed(workdir, name)
        if with_name:
            yield _checked(name, lambda name=name: read_root_arrays(workdir, name))
    for unit in strangers(workdir, header):
        yield Finding(unit, DAMAGED, "the plan names no such shard")
    for shard in header["shards"]:
        name = shard["name"]
        unit, folder = shard_unit(name), workdir / shard_unit(name)
        if folder.is_dir():
            yield _checked(unit, lambda folder=folder: verify(folder, deep=True))
        else:
            yield Finding(unit, MISSING)
            if partial_path(workdir, name).exists():
                yield _checked(f"partial/{name}", lambda name=name: read_partial(workdir, name))
    yield from _attacks(workdir)


def _attacks(workdir: pathlib.Path) -> Iterator[Finding]:
    try:
        summary = attack_summary(workdir)
    except Damaged as error:
        yield Finding(error.unit, DAMAGED, error.why)
        return
    for variant, about in summary.items():
        if about["status"] != "skipped":
            yield _checked(unit_of(variant), lambda name=variant: read_variant(workdir, name))
    for unit in unknown_units(workdir, summary):
        yield Finding(unit, DAMAGED, "attacks.json does not name it")


def _listed(workdir: pathlib.Path, name: str) -> bool:
    try:
        return name in open_folder(workdir, ROOT, identity(workdir), only=()).files
    except Damaged:
        return False


def _checked(unit: str, check: Callable[[], object]) -> Finding:
    try:
        check()
    except Damaged as error:
        return Finding(error.unit, DAMAGED, error.why)
    return Finding(unit, SOUND)


def mend(workdir: pathlib.Path) -> list[Finding]:
    """Set aside what is damaged; returns it. The caller holds the lock, and makes it again."""
    damaged: list[Finding] = []
    # what is missing now may have hidden other damage
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
    path = workdir / unit
    _move(workdir, unit)
    if unit == "attacks.json":  # its copy is lost too
        _move(workdir, places(workdir, "attacks")[1].name)
        write_attack_summary(workdir, {})  # what no record describes is attacked again
    if unit.startswith("attacks/"):  # its form has no rows now
        path.mkdir(parents=True, exist_ok=True)
        add_files(workdir, unit, identity(workdir), [], keep=False)
    with contextlib.suppress(Damaged):
        beside = open_folder(workdir, ROOT, identity(workdir), only=()).files
        if unit in beside:
            rest = [name for name in beside if name != unit and (workdir / name).exists()]
            add_files(workdir, ROOT, identity(workdir), rest, keep=False)


def _move(workdir: pathlib.Path, unit: str) -> None:
    """Move a file or folder, if it is there, to ``damaged``, beside what was moved there before."""
    if not (workdir / unit).exists():
        return
    folder = workdir / "damaged"
    folder.mkdir(exist_ok=True)
    name, number = unit.replace("/", "_"), 0
    while (folder / f"{name}.{number}").exists():
        number += 1
    os.replace(workdir / unit, folder / f"{name}.{number}")
