"""The files of a sweep, and the functions that write and read shards, their progress and common arrays.

    sweep.json                     schema, config, command, versions, revision, data checksum, plan
    manifest.json                  sizes and SHA-256 of splits.npz, teacher.npz and codebooks.npz
    splits.npz                     labels; per seed: train, validation, test rows, known order, halves
    teacher.npz                    every teacher's scores, where a defense reads them
    codebooks.npz                  every codebook, where a defense trains one
    shards/<name>/results.parquet  one row per trial, row i = member i
                  checkpoint/      orbax, final weights, leading member axis, chunked by trial
                  exchange/        what crossed the wire (``store.exchange``): memory mapped
                  manifest.json    size and SHA-256 of every file, and of every trial's arrays
    partial/<name>/<epochs>/       progress of an unfinished shard: checkpoint/ and manifest.json
    attacks.json                   the attack variants: which are run, which were skipped, and why
    attacks/<variant>/*.parquet    one row per trial and attack, in chunks (``store.attacks``); "logistic", the
                                   local-only baseline, has one row per seed and number of known labels
                      manifest.json  sizes and SHA-256 of its chunks
    results.parquet, attacks.parquet, *.csv   the same tables in one piece, for people
    report.html, figures/*.png     the report
    damaged/                       what ``vfljax sweep --mend`` has set aside

sweep.json and attacks.json have copies beside them (sweep.copy.json), which are read if the original is
damaged. The column ``federation`` holds the name of the federation (``types.Federation``).

A shard's folder is built under another name and moved into place, so that it exists if and only
if it is complete. ``store.load`` reads a directory, and ``store.manifest`` checks its files. This is schema 6
(``store.header``): sweeps that were written with it stay readable.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.store import checkpoint, exchange
from vfljax.store.atomic import remove, replacing, write_table
from vfljax.store.manifest import (
    MANIFEST,
    ROOT,
    add_files,
    digest_of_arrays,
    new_folder,
    open_folder,
)
from vfljax.store.sealed import Damaged, reason
from vfljax.types import PyTree


def read_tables(paths: Iterable[pathlib.Path]) -> pa.Table:
    """Returns checked Parquet files as one table. Missing columns are null; without files it is empty."""
    tables = []
    for path in paths:
        try:
            with path.open("rb") as file:  # a path with a colon would be taken for a URI
                tables.append(pq.read_table(file))
        except (pa.ArrowException, OSError) as error:
            workdir = path.parents[2]
            raise Damaged(workdir, str(path.relative_to(workdir)), reason(error)) from error
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Returns rows as a table, with columns in order of first appearance."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


# --- shards ---


def shard_unit(name: str) -> str:
    """Returns the folder of a shard, relative to the folder of the sweep."""
    return f"shards/{name}"


def write_shard(
    workdir: pathlib.Path,
    name: str,
    rows: list[dict[str, Any]],
    weights: PyTree,
    arrays: Mapping[str, np.ndarray],
    width: int = 0,
) -> None:
    """Stores a finished shard atomically and removes its saved progress.

    Args:
      workdir: the folder of the sweep.
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
    with new_folder(workdir, shard_unit(name), every, trials=digests, width=width) as folder:
        exchange.write(folder / "exchange", arrays)
        write_table(folder / "results.parquet", table_of(rows))
        checkpoint.save(folder / "checkpoint", weights)
    remove(workdir / "partial" / name)


def finished(workdir: pathlib.Path, name: str) -> bool:
    """Returns whether a shard is complete.

    A damaged shard raises an error and is not trained again, so that no result is overwritten.

    Args:
      workdir: the folder of the sweep.
      name: name of the shard.

    Raises:
      Damaged: if its manifest is damaged, or a file is missing or has another size.
    """
    unit = shard_unit(name)
    return (workdir / unit).is_dir() and bool(open_folder(workdir, unit))


def verify(workdir: pathlib.Path, name: str) -> None:
    """Checks every byte of a finished shard.

    Args:
      workdir: the folder of the sweep.
      name: name of the shard.

    Raises:
      Damaged: if a file does not match its manifest.
    """
    open_folder(workdir, shard_unit(name)).check_all()


def strangers(workdir: pathlib.Path, header: Mapping[str, Any]) -> list[str]:
    """Returns the shard folders that the plan does not name, for example renamed ones.

    Args:
      workdir: the folder of the sweep.
      header: header of the sweep.
    """
    names = {shard["name"] for shard in header["shards"]}
    folders = sorted(path.name for path in workdir.glob("shards/[!.]*"))
    return [shard_unit(name) for name in folders if name not in names]


# --- progress of unfinished shards ---


def write_partial(
    workdir: pathlib.Path, name: str, done: int, tree: PyTree, width: int = 0
) -> None:
    """Saves an unfinished shard, and removes its earlier saves once this one is complete.

    Args:
      workdir: the folder of the sweep.
      name: name of the shard.
      done: number of epochs trained.
      tree: tree of arrays to save.
      width: as in ``write_shard``.
    """
    unit = f"partial/{name}/{done}"
    if not (workdir / unit).exists():  # the same epochs of a shard give the same arrays
        with new_folder(workdir, unit, jax.tree.leaves(tree), width=width) as folder:
            checkpoint.save(folder / "checkpoint", tree)
    for path in (workdir / "partial" / name).iterdir():
        if path.name != str(done):
            remove(path)


def width_of_shard(workdir: pathlib.Path, name: str) -> int:
    """Returns how many trials of a shard were trained at once on each device when it was last saved or
    finished; 0 if that is unknown.

    Args:
      workdir: the folder of the sweep.
      name: name of the shard.

    Raises:
      Damaged: if its manifest is damaged.
    """
    saves = sorted((workdir / "partial" / name).glob("[0-9]*"), key=lambda path: -int(path.name))
    for unit in (shard_unit(name), *(f"partial/{name}/{path.name}" for path in saves)):
        try:
            # without looking at the files: another process may be removing a save that it replaced
            return open_folder(workdir, unit, sizes=False).record.get("width", 0)
        except Damaged:
            if (workdir / unit / MANIFEST).exists():
                raise
    return 0


def read_partial(workdir: pathlib.Path, name: str) -> tuple[int, PyTree] | None:
    """Returns (epochs done, tree of arrays) of the last save of an unfinished shard, or None without a save.

    Args:
      workdir: the folder of the sweep.
      name: name of the shard.

    Raises:
      Damaged: if the save is damaged.
    """
    saves = list((workdir / "partial" / name).glob("[!.]*"))
    if not saves:
        return None
    if not all(path.name.isdecimal() for path in saves):
        raise Damaged(workdir, f"partial/{name}", "it holds what no sweep writes")
    done = max(int(path.name) for path in saves)
    unit = f"partial/{name}/{done}"
    open_folder(workdir, unit).check_all()
    try:
        return done, checkpoint.load(workdir / unit / "checkpoint")
    except ValueError as error:
        raise Damaged(workdir, unit, reason(error)) from error


# --- the arrays beside sweep.json ---


def write_root_arrays(workdir: pathlib.Path, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays to a file beside ``sweep.json`` and adds the file to the manifest there.

    Args:
      workdir: the folder of the sweep.
      name: "splits.npz", "teacher.npz" or "codebooks.npz".
      arrays: arrays by name.
    """
    with (
        replacing(workdir / name, sum(array.nbytes for array in arrays.values())) as temporary,
        temporary.open("wb") as file,
    ):
        np.savez(file, allow_pickle=False, **arrays)
    add_files(workdir, ROOT, [name])


def read_root_arrays(workdir: pathlib.Path, name: str) -> dict[str, np.ndarray] | None:
    """Returns the arrays of a file beside ``sweep.json``, or None if the file was never completed.

    Args:
      workdir: the folder of the sweep.
      name: as in ``write_root_arrays``.

    Raises:
      Damaged: if the file or the manifest is damaged.
    """
    if not (workdir / MANIFEST).exists():
        if (workdir / name).exists() and (workdir / "shards").exists():
            raise Damaged(workdir, MANIFEST, "it is missing")
        return None
    folder = open_folder(workdir, ROOT, sizes=False)
    if name not in folder.files:
        return None
    path = folder.file(name)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # zip, header and missing-file faults alike
        raise Damaged(workdir, name, reason(error)) from error
