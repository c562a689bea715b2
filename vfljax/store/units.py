"""The units of a sweep: what is made, stored and claimed in one piece.

    shards/<name>            some trials of one program, trained
    local_only/<number>      the local-only baseline of some attackers, known labels and seeds
    attacks/<variant>/<n>    one attack variant on the n-th block of shards

A unit is a folder that is renamed into place when it is complete, with a manifest of its files. ``units_of``
lists the units of a header. ``partial/<unit>/<count>`` holds the progress of an unfinished one: the epochs of
its trials, or its rows so far. ``shared/<name>`` holds arrays that several units read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.store import checkpoint, exchange
from vfljax.store.atomic import remove_at_once, write_table
from vfljax.store.manifest import MANIFEST, digest_of_arrays, new_folder, open_folder
from vfljax.store.sealed import Damaged, unsound
from vfljax.types import PyTree

SHARD, LOCAL_ONLY, ATTACK = "shards", "local_only", "attacks"
"""The kinds of units, which are also their folders."""
RESULTS, ROWS = "results.parquet", "rows.parquet"
SHARED, ARRAYS = "shared", "arrays.npz"


class Unit(NamedTuple):
    """A part of a sweep."""

    name: str  # its folder, relative to the folder of the sweep
    kind: str
    of: Any  # the name of the shard, the entry of the baseline, or the key of the attack variant
    program: (
        str  # units of one program share compiled code; of an attack, all variants of an attack
    )
    shards: tuple[str, ...] = ()  # names of the shards that an attack reads
    needs: tuple[str, ...] = ()  # the units that must be finished before
    after: tuple[str, ...] = ()  # the units that must be finished, or given up, before
    stage: int = 0  # of the sweep; units of earlier stages are made first


def shard_unit(name: str) -> str:
    """Returns the folder of a shard, relative to the folder of the sweep."""
    return f"{SHARD}/{name}"


def attack_unit(variant: str, block: int) -> str:
    """Returns the folder of a variant's rows of a block of shards, relative to the folder of the sweep."""
    return f"{ATTACK}/{variant}/{block:03d}"


def rule_of_learners(entry: Mapping[str, Any]) -> int:
    """Returns the rule of the learners of an entry of the local-only baseline. The first headers of schema 8
    have none, which is the first rule."""
    return entry.get("rule", 1)


def units_of(header: Mapping[str, Any], outdated: bool = False) -> list[Unit]:
    """Returns the units of a sweep, in the order in which one process makes them.

    Units of earlier stages come first. If an attack may be settled by cheaper ones, its units come after those
    of all cheaper attacks on the same block.

    Args:
      outdated: whether units are listed too that an earlier rule of an attack, or of the learners of the
        local-only baseline, made or left unmade.
    """
    stage_of = {shard["name"]: shard["stage"] for shard in header["shards"]}
    units = [
        Unit(shard_unit(name), SHARD, name, shard["group"], stage=stage_of[name])
        for shard in header["shards"]
        for name in [shard["name"]]
    ]
    units += [
        Unit(f"{LOCAL_ONLY}/{number:03d}", LOCAL_ONLY, entry, LOCAL_ONLY)
        for number, entry in enumerate(header["local_only"])
        if outdated or not entry.get("outdated")
    ]
    run = {
        key: about
        for key, about in header["attacks"].items()
        if about["status"] != "skipped"
        if outdated or not about.get("outdated")
    }
    blocks = header["blocks"]
    for key in sorted(run, key=lambda key: run[key]["cost"]):
        about = run[key]
        settling = about["skip_settled"]
        cheaper = [k for k, other in run.items() if settling and other["cost"] < about["cost"]]
        units += [
            Unit(
                name=attack_unit(key, number),
                kind=ATTACK,
                of=key,
                program=about["attack"],
                shards=tuple(shards),
                needs=tuple(map(shard_unit, shards)),
                after=tuple(attack_unit(other, number) for other in cheaper),
                stage=max(stage_of[name] for name in shards),
            )
            for number, shards in enumerate(blocks)
        ]
    return sorted(units, key=lambda unit: unit.stage)


def finished(workdir: pathlib.Path, unit: str) -> bool:
    """Returns whether a unit is complete.

    A damaged unit raises an error and is not made again, so that no result is overwritten.

    Raises:
      Damaged: if its manifest is damaged, or a file is missing or has another size.
    """
    return (workdir / unit).is_dir() and bool(open_folder(workdir, unit))


def verify_unit(workdir: pathlib.Path, unit: str) -> None:
    """Checks every byte of a finished unit. Raises Damaged if a file does not match its manifest."""
    open_folder(workdir, unit).check_all()


# --- tables ---


def arrow_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Returns rows as a table, with columns in order of first appearance."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def read_tables(paths: Iterable[pathlib.Path], workdir: pathlib.Path) -> pa.Table:
    """Returns checked Parquet files as one table. Missing columns are null; without files it is empty."""
    tables = []
    for path in paths:
        try:
            with path.open("rb") as file:  # a path with a colon would be taken for a URI
                tables.append(pq.read_table(file))
        except (pa.ArrowException, OSError) as error:
            raise unsound(workdir, str(path.parent.relative_to(workdir)), error) from error
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def read_results(workdir: pathlib.Path, shards: Iterable[str]) -> pa.Table:
    """Returns the rows of results of finished shards, one for each trial.

    Args:
      shards: names of the shards.
    """
    folders = (open_folder(workdir, shard_unit(name)) for name in shards)
    return read_tables([folder.file(RESULTS) for folder in folders], workdir)


def read_rows(workdir: pathlib.Path, units: Iterable[str]) -> pa.Table:
    """Returns the rows of finished units of attacks or of the local-only baseline.

    Args:
      units: names of the units.
    """
    return read_tables([open_folder(workdir, unit).file(ROWS) for unit in units], workdir)


# --- finished units ---


def write_shard(
    workdir: pathlib.Path,
    name: str,
    rows: list[dict[str, Any]],
    weights: PyTree,
    arrays: Mapping[str, np.ndarray],
    width: int = 0,
) -> None:
    """Stores a finished shard, and removes its saved progress.

    Args:
      name: name of the shard.
      rows: rows of results, one per trial.
      weights: final weights, with a leading member axis.
      arrays: arrays of the exchange by name, with a leading member axis.
      width: how many trials were trained at once on each device.
    """
    # digests of each trial's weights and exchange, so that a trial can be checked alone
    digests = [
        {
            "weights": digest_of_arrays(jax.tree.map(lambda a, i=member: a[i], weights)),
            "exchange": digest_of_arrays({key: array[member] for key, array in arrays.items()}),
        }
        for member in range(len(rows))
    ]
    every = [*jax.tree.leaves(weights), *arrays.values()]
    unit = shard_unit(name)
    with new_folder(workdir, unit, every, trials=digests, width=width) as folder:
        exchange.write(folder / exchange.FILE, arrays)
        write_table(folder / RESULTS, arrow_table(rows))
        checkpoint.save(folder / "checkpoint", weights)
    _remove_saves(workdir, unit)


def write_rows(workdir: pathlib.Path, unit: str, rows: list[dict[str, Any]], **about: Any) -> None:
    """Stores a finished unit of rows, and removes its saved progress.

    Args:
      unit: name of the unit.
      rows: all its rows, perhaps none.
      **about: other fields of the manifest, such as its cost.
    """
    with new_folder(workdir, unit, [], **about) as folder:
        write_table(folder / ROWS, arrow_table(rows))
    _remove_saves(workdir, unit)


# --- progress of unfinished units ---


def write_partial(
    workdir: pathlib.Path, name: str, done: int, tree: PyTree, width: int = 0
) -> None:
    """Saves an unfinished shard, and removes its earlier saves once this one is complete.

    Args:
      name: name of the shard.
      done: number of epochs trained.
      tree: tree of arrays to save.
      width: as in ``write_shard``.
    """
    unit = f"partial/{shard_unit(name)}/{done}"
    if not (workdir / unit).exists():  # the same epochs of a shard give the same arrays
        with new_folder(workdir, unit, jax.tree.leaves(tree), width=width) as folder:
            checkpoint.save(folder / "checkpoint", tree)
    _remove_saves(workdir, shard_unit(name), done)


def write_partial_rows(workdir: pathlib.Path, unit: str, rows: list[dict[str, Any]]) -> None:
    """Saves the rows so far of an unfinished unit, and removes its earlier saves once this one is complete.

    Args:
      unit: name of the unit.
      rows: its rows so far.
    """
    partial = f"partial/{unit}/{len(rows)}"
    if not (workdir / partial).exists():
        with new_folder(workdir, partial, []) as folder:
            write_table(folder / ROWS, arrow_table(rows))
    _remove_saves(workdir, unit, len(rows))


def _saves(workdir: pathlib.Path, unit: str) -> list[int]:
    """Returns how much each save of an unfinished unit holds, the last save first."""
    folder = workdir / "partial" / unit
    names = os.listdir(folder) if folder.is_dir() else []
    saves = [name for name in names if not name.startswith(".")]
    if not all(name.isdecimal() for name in saves):
        raise Damaged(workdir, f"partial/{unit}", "it holds what no sweep writes")
    return sorted(map(int, saves), reverse=True)


def _remove_saves(workdir: pathlib.Path, unit: str, before: int | None = None) -> None:
    """Removes the saves of a unit that hold less than ``before``; None: all, because the unit is finished.

    What other processes are writing there stays: without locks, two of them may make the same unit.
    """
    folder = workdir / "partial" / unit
    for save in _saves(workdir, unit):
        if before is None or save < before:
            remove_at_once(folder / str(save))
    if before is None:
        with contextlib.suppress(OSError):  # it is not there, or not empty
            folder.rmdir()


T = TypeVar("T")


def _last_save(workdir: pathlib.Path, unit: str, read: Callable[[int, str], T]) -> T | None:
    """Returns ``read(what it holds, its folder)`` of the last save of an unfinished unit, None without one."""
    while saves := _saves(workdir, unit):
        partial = f"partial/{unit}/{saves[0]}"
        try:
            return read(saves[0], partial)
        except Damaged:
            if (workdir / partial).is_dir():
                raise
            # another process has replaced it meanwhile
    return None


def read_partial(workdir: pathlib.Path, name: str) -> tuple[int, PyTree] | None:
    """Returns (epochs done, tree of arrays) of the last save of an unfinished shard, or None without a save.

    Args:
      name: name of the shard.

    Raises:
      Damaged: if the save is damaged.
    """

    def read(done: int, partial: str) -> tuple[int, PyTree]:
        open_folder(workdir, partial).check_all()
        try:
            return done, checkpoint.load(workdir / partial / "checkpoint")
        except (ValueError, OSError) as error:
            raise unsound(workdir, partial, error) from error

    return _last_save(workdir, shard_unit(name), read)


def read_partial_rows(workdir: pathlib.Path, unit: str) -> list[dict[str, Any]]:
    """Returns the rows so far of an unfinished unit. Raises Damaged if the save is damaged."""
    rows = _last_save(workdir, unit, lambda _, partial: read_rows(workdir, [partial]).to_pylist())
    return rows or []


def width_of_shard(workdir: pathlib.Path, name: str) -> int:
    """Returns how many trials of a shard were trained at once on each device when it was last saved or
    finished; 0 if that is unknown.

    Args:
      name: name of the shard.

    Raises:
      Damaged: if its manifest is damaged.
    """
    unit = shard_unit(name)
    for place in (unit, *(f"partial/{unit}/{save}" for save in _saves(workdir, unit))):
        try:
            # without looking at the files: another process may be removing a save that it replaced
            return open_folder(workdir, place, sizes=False).record.get("width", 0)
        except Damaged:
            if (workdir / place / MANIFEST).exists():
                raise
    return 0


# --- arrays that units share ---


def write_shared(workdir: pathlib.Path, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Stores arrays that several units read, unless they are stored already.

    Args:
      name: name of the folder of these arrays.
      arrays: arrays by name.
    """
    unit = f"{SHARED}/{name}"
    if (workdir / unit).is_dir():
        return
    with new_folder(workdir, unit, arrays.values()) as folder, (folder / ARRAYS).open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_shared(workdir: pathlib.Path, name: str) -> dict[str, np.ndarray]:
    """Returns the arrays of a folder of shared ones. Raises Damaged if they are missing or damaged."""
    unit = f"{SHARED}/{name}"
    path = open_folder(workdir, unit).file(ARRAYS)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # faults of the archive and of its arrays alike
        raise unsound(workdir, unit, error) from error


def write_keyed(workdir: pathlib.Path, kind: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Stores arrays of a kind beside those that are stored already; their names say what they depend on."""
    if arrays:
        digest = hashlib.sha256("\n".join(sorted(arrays)).encode()).hexdigest()
        write_shared(workdir, f"{kind}-{digest[:12]}", arrays)


def read_keyed(workdir: pathlib.Path, kind: str) -> dict[str, np.ndarray]:
    """Returns all stored arrays of a kind by their names. Raises Damaged."""
    names = [name for name in shared_names(workdir) if name.startswith(f"{kind}-")]
    return {key: array for name in names for key, array in read_shared(workdir, name).items()}


def shared_names(workdir: pathlib.Path) -> list[str]:
    """Returns the names of the folders of shared arrays."""
    return sorted(path.name for path in (workdir / SHARED).glob("[!.]*"))
