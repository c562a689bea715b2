"""A sweep on disk: self-describing, written atomically, read lazily.

    sweep.json                     schema, config, command, versions, revision, data checksum, plan
    splits.npz                     per seed: train, validation, test rows, labels, known order, halves
    teacher.npz                    every teacher's scores, where a defense reads them
    shards/<name>/results.parquet  one row a setting, row i = lane i
                  checkpoint/      orbax, final weights, leading lane axis, chunked by setting
                  exchange/        what crossed the wire (``store.exchange``): memory mapped
                  manifest.json    size and SHA-256 of every file; its folder appears last, whole
    partial/<name>/<epochs>/       progress of an unfinished shard
    attacks/<form>/<federation>-<model>-<start>.parquet   one row a setting and attack, by block
    attacks/<form>/logistic.parquet                       the baseline without any federation
    attacks.json                   what was run, and what was skipped and why
    results.parquet, attacks.parquet, *.csv   the same tables in one piece, for people
    report.html, figures/*.png     the report
    select_delta/                  a sweep of its own: GAFM's choice of Delta

The column ``structure`` holds the name of a setting's federation (``types.Federation``).

A shard's folder is built under another name and moved into place, so that it exists if and only
if it is complete. ``store.load`` reads a directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.config import differences, resolve
from vfljax.errors import UserError
from vfljax.store import checkpoint, exchange
from vfljax.types import PyTree

SCHEMA = 3
# no result depends on these; where data and weights lie may change, not what they are
MAY_CHANGE = (
    "execution.",
    "data.dir",
    "data.resident_gb",
    "model.pretrained",
    "teacher.pretrained",
)


def write_text(path: pathlib.Path, text: str) -> None:
    """Write a file that is either the old one or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)


def write_rows(path: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    """Rows as Parquet, atomically; columns in order of first appearance."""
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    write_table(path, table)


def write_table(path: pathlib.Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    pq.write_table(table, temporary)
    os.replace(temporary, path)


def read_table(paths: Iterable[pathlib.Path]) -> pa.Table:
    """Parquet files as one table, missing columns null; an empty table for no files."""
    tables = []
    for path in paths:
        try:
            tables.append(pq.read_table(path))
        except (pa.ArrowException, OSError) as error:
            raise UserError(
                f"{path} is corrupted ({str(error).splitlines()[0][:100]}): delete "
                f"{path.parent if path.name == 'results.parquet' else path} and run again."
            ) from error
    if not tables:
        return pa.table({})
    return pa.concat_tables(tables, promote_options="permissive")


def _digest(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_shard(
    workdir: pathlib.Path,
    name: str,
    rows: list[dict[str, Any]],
    weights: PyTree,
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Commit one finished shard, all of it or nothing; ``arrays`` are those of its exchange."""
    final = workdir / "shards" / name
    building = workdir / "shards" / f".{name}.{os.getpid()}.tmp"
    shutil.rmtree(building, ignore_errors=True)
    exchange.write(building / "exchange", arrays)
    write_rows(building / "results.parquet", rows)
    checkpoint.save(building / "checkpoint", weights)
    files = sorted(p for p in building.rglob("*") if p.is_file())
    manifest = {
        str(p.relative_to(building)): {"bytes": p.stat().st_size, "sha256": _digest(p)}
        for p in files
    }
    write_text(building / "manifest.json", json.dumps(manifest, indent=1))
    os.replace(building, final)
    shutil.rmtree(partial_path(workdir, name), ignore_errors=True)


def partial_path(workdir: pathlib.Path, name: str) -> pathlib.Path:
    """Where an unfinished shard's progress is saved between epochs."""
    return workdir / "partial" / name


def write_partial(workdir: pathlib.Path, name: str, done: int, tree: PyTree) -> None:
    """Save an unfinished shard after ``done`` epochs; replaces the last save atomically."""
    final = partial_path(workdir, name)
    building = final.with_name(f".{name}.{os.getpid()}.tmp")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    checkpoint.save(building / str(done), tree)
    shutil.rmtree(final, ignore_errors=True)
    os.replace(building, final)


def read_partial(workdir: pathlib.Path, name: str) -> tuple[int, PyTree] | None:
    """(epochs done, tree) of an unfinished shard, None when there is none to trust."""
    final = partial_path(workdir, name)
    if not final.is_dir():
        return None
    try:
        (folder,) = final.iterdir()
        return int(folder.name), checkpoint.load(folder)
    except (UserError, ValueError):  # half a save is worth nothing: the shard starts again
        shutil.rmtree(final, ignore_errors=True)
        return None


def finished(workdir: pathlib.Path, name: str) -> bool:
    """Whether a shard is complete. A shard whose files' sizes disagree with its manifest is
    refused, not recomputed: nothing already computed is overwritten."""
    folder = workdir / "shards" / name
    if not folder.is_dir():
        return False
    verify(folder, deep=False)
    return True


def verify(folder: pathlib.Path, deep: bool) -> None:
    """Check a shard against its manifest: sizes, and with ``deep`` also SHA-256."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        for name, expected in manifest.items():
            path = folder / name
            if not path.is_file():
                raise ValueError(f"{name} is missing")
            if path.stat().st_size != expected["bytes"]:
                raise ValueError(f"{name} has {path.stat().st_size} bytes, not {expected['bytes']}")
            if deep and _digest(path) != expected["sha256"]:
                raise ValueError(f"{name} does not match its checksum")
    except (ValueError, OSError, KeyError, TypeError) as error:
        raise UserError(
            f"the shard {folder} is corrupted ({error}): delete that folder and run launch.sweep "
            "again; the other shards are kept."
        ) from error


def begin(workdir: pathlib.Path, header: dict[str, Any]) -> dict[str, Any]:
    """Start a sweep directory, or continue the one that is there if it is the same sweep.

    Returns the header in force: the stored one on resume, so that its plan is reused.
    """
    path = workdir / "sweep.json"
    if path.exists():
        stored = read_header(workdir)
        changed = [
            line
            # a field that came after the sweep was made had its default then
            for line in differences(resolve(stored["config"]), header["config"])
            if not line.startswith(MAY_CHANGE)
        ]
        if stored["checksum"] != header["checksum"]:
            changed.append("data: the values of the data set have changed")
        elif stored.get("identity", header["identity"]) != header["identity"]:
            changed.append("data: its parts, groups or columns have changed")
        if stored.get("pretrained", {}) != header["pretrained"]:
            changed.append("the file of pretrained weights has changed")
        if changed:
            raise UserError(
                f"workdir {workdir} holds another sweep ({'; '.join(changed[:3])}): choose another "
                "--workdir, or give the config it was made with. Nothing was changed."
            )
        return stored
    if workdir.exists() and not workdir.is_dir():
        raise UserError(f"workdir {workdir} is not a folder: choose another --workdir.")
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(header, indent=1))
    except OSError as error:
        raise UserError(
            f"workdir {workdir} cannot be written ({error}): choose another."
        ) from error
    return header


def read_header(workdir: pathlib.Path) -> dict[str, Any]:
    path = workdir / "sweep.json"
    if not path.is_file():
        raise UserError(f"{workdir} holds no sweep (no sweep.json): run launch.sweep first.")
    try:
        header = json.loads(path.read_text())
        schema = header["schema"]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise UserError(
            f"{path} is corrupted ({error}): restore it or start a new workdir."
        ) from error
    if schema != SCHEMA:
        raise UserError(
            f"{path} has schema {schema}, this version reads {SCHEMA}: use that version."
        )
    return header


def attack_summary(workdir: pathlib.Path) -> dict[str, dict[str, Any]]:
    """What ``attacks.json`` says of each attack: options, steps, seconds, or why it was skipped."""
    path = workdir / "attacks.json"
    try:
        summary = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError as error:
        summary = error
    if not isinstance(summary, dict):
        raise UserError(f"{path} is corrupted: delete it and run launch.attack again.")
    return summary


def write_arrays(path: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp.npz")
    with temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    os.replace(temporary, path)


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # zip, header and missing-file faults alike
        raise UserError(
            f"{path} is missing or corrupted ({error}): run launch.sweep again."
        ) from error
