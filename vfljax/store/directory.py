"""A sweep on disk: self-describing, written atomically, read lazily, every file by its checksum.

    sweep.json                     schema, config, command, versions, revision, data checksum, plan
    manifest.json                  sizes and SHA-256 of splits.npz, teacher.npz and codebooks.npz
    splits.npz                     per seed: train, validation, test rows, labels, known order, halves
    teacher.npz                    every teacher's scores, where a defense reads them
    codebooks.npz                  every codebook, where a defense trains one
    shards/<name>/results.parquet  one row a trial, row i = member i
                  checkpoint/      orbax, final weights, leading member axis, chunked by trial
                  exchange/        what crossed the wire (``store.exchange``): memory mapped
                  manifest.json    size and SHA-256 of every file, and of every trial's arrays
    partial/<name>/<epochs>/       progress of an unfinished shard: checkpoint/ and manifest.json
    attacks.json                   the attack variants: what is run and was run, what was skipped and why
    attacks/<variant>/*.parquet    one row a trial and attack, by chunk (``store.attacks``); of the variant
                                   "logistic", the local-only baseline, one a seed and number of known labels
                      manifest.json  sizes and SHA-256 of its chunks
    results.parquet, attacks.parquet, *.csv   the same tables in one piece, for people
    report.html, figures/*.png     the report
    select_delta/                  a sweep of its own: GAFM's choice of Delta
    damaged/                       what ``vfljax sweep --mend`` has set aside

sweep.json and attacks.json have copies beside them (sweep.copy.json), which are read where the first is
damaged. The column ``federation`` holds the name of the federation (``types.Federation``).

A shard's folder is built under another name and moved into place, so that it exists if and only
if it is complete. ``store.load`` reads a directory, ``store.manifest`` has the rule by which its files are
checked. This is schema 5 (``store.header``): what was written with it stays readable.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vfljax.config import differences, resolve
from vfljax.errors import UserError
from vfljax.store import checkpoint, exchange
from vfljax.store.atomic import remove, write_arrays, write_folder, write_table
from vfljax.store.header import ID, header_of, identity, write_root
from vfljax.store.manifest import (
    MANIFEST,
    ROOT,
    SEAL,
    Damaged,
    Folder,
    add_files,
    digest_of_arrays,
    files_below,
    manifest,
    open_folder,
    reason,
    seal,
    write_record,
)
from vfljax.store.readers import difference
from vfljax.types import PyTree

# no result depends on these; where data and weights lie may change, not what they are
MAY_CHANGE = (
    "execution.",
    "data.dir",
    "data.resident_gb",
    "model.pretrained",
    "teacher.pretrained",
    "reproduces",  # what it is compared with
    "goal",
    "parties.names",
)


def begin(workdir: pathlib.Path, header: dict[str, Any]) -> dict[str, Any]:
    """Start a sweep directory, or continue the one that is there if it is the same sweep.

    Returns the header in force: the stored one on resume, so that its plan is reused.
    """
    stored = header_of(workdir)
    if stored is None:
        strangers = [p for p in ("shards", "attacks", "partial") if (workdir / p).exists()]
        if strangers:
            raise UserError(
                f"workdir {workdir} has lost its sweep.json and the copy of it: restore one of them, or "
                "choose another --workdir. Nothing was changed."
            )
        write_root(workdir, "sweep", {**header, ID: seal(header)[SEAL]})
        stored = header_of(workdir)
        assert stored is not None
        return stored
    refuse_another(workdir, stored, header)
    write_root(workdir, "sweep", stored)  # both copies, should one have been damaged
    return stored


def refuse_another(
    workdir: pathlib.Path, stored: Mapping[str, Any], header: Mapping[str, Any]
) -> None:
    """Raise UserError where the sweep that is ``stored`` is not the one of ``header``."""
    may_change = MAY_CHANGE
    data = difference(stored, header)
    if not data and stored.get("identity"):  # other options of the loader may read the same data
        may_change = (*MAY_CHANGE, "data.options")
    changed = [
        str(changed_field)
        # a field that came after the sweep was made had its default then
        for changed_field in differences(resolve(stored["config"]), resolve(header["config"]))
        if not changed_field.field.startswith(may_change)
    ]
    if data:
        changed.append(data)
    if stored.get("pretrained", {}) != header["pretrained"]:
        changed.append("the file of pretrained weights has changed")
    if changed:
        raise UserError(
            f"workdir {workdir} holds another sweep ({'; '.join(changed[:3])}): choose another "
            "--workdir, or give the config it was made with. Nothing was changed."
        )


def read_header(workdir: pathlib.Path) -> dict[str, Any]:
    """What ``sweep.json`` says. Raises UserError where there is none, and where it is damaged."""
    header = header_of(workdir)
    if header is None:
        raise UserError(f"{workdir} holds no sweep (no sweep.json): run `vfljax sweep` first.")
    return header


def open_unit(workdir: pathlib.Path, unit: str) -> Folder:
    """A folder of the sweep, by its manifest."""
    return open_folder(workdir, unit, identity(workdir))


def read_tables(paths: Iterable[pathlib.Path]) -> pa.Table:
    """Parquet files, already checked, as one table, missing columns null; an empty table for none."""
    tables = []
    for path in paths:
        try:
            tables.append(pq.read_table(path))
        except (pa.ArrowException, OSError) as error:
            raise Damaged(
                path.parents[2], str(path.relative_to(path.parents[2])), reason(error)
            ) from error
    if not tables:
        return pa.table({})
    return pa.concat_tables(tables, promote_options="permissive")


# --- shards ---


def shard_unit(name: str) -> str:
    return f"shards/{name}"


def write_shard(
    workdir: pathlib.Path,
    name: str,
    rows: list[dict[str, Any]],
    weights: PyTree,
    arrays: Mapping[str, np.ndarray],
    width: int = 0,
) -> None:
    """Commit one finished shard, all of it or nothing; ``arrays`` are those of its exchange, ``width`` is how
    many trials were trained at once on each device."""
    unit = shard_unit(name)

    def write(folder: pathlib.Path) -> None:
        exchange.write(folder / "exchange", arrays)
        write_rows(folder / "results.parquet", rows)
        checkpoint.save(folder / "checkpoint", weights)
        digests = [_member_digests(weights, arrays, member) for member in range(len(rows))]
        names = files_below(folder)
        record = manifest(folder, unit, identity(workdir), names, trials=digests, width=width)
        write_record(folder / MANIFEST, record)

    need = bytes_on_disk([*jax.tree.leaves(weights), *arrays.values()])
    write_folder(workdir / unit, write, need)
    remove(partial_path(workdir, name))


def bytes_on_disk(arrays: Iterable[Any]) -> int:
    """What a folder of arrays takes, with what orbax writes beside them: a little more than it will."""
    sizes = [np.asarray(array).nbytes for array in arrays]
    return sum(sizes) + 4096 * len(sizes) + 65_536


def _member_digests(
    weights: PyTree, arrays: Mapping[str, np.ndarray], member: int
) -> dict[str, str]:
    """SHA-256 of one trial's weights and exchange, so that it can be checked by itself."""
    return {
        "weights": digest_of_arrays(jax.tree.map(lambda a: a[member], weights)),
        "exchange": digest_of_arrays({name: array[member] for name, array in arrays.items()}),
    }


def open_shard(workdir: pathlib.Path, name: str) -> Folder | None:
    """A finished shard, None of one that is not. One that disagrees with its manifest is refused, not
    trained again: nothing already computed is overwritten. Raises Damaged."""
    unit = shard_unit(name)
    return open_unit(workdir, unit) if (workdir / unit).is_dir() else None


def finished(workdir: pathlib.Path, name: str) -> bool:
    """Whether a shard is complete. Raises Damaged."""
    return open_shard(workdir, name) is not None


def verify(folder: pathlib.Path, deep: bool) -> None:
    """Check a shard's folder against its manifest: sizes, and with ``deep`` also SHA-256. Raises
    Damaged."""
    opened = open_unit(folder.parents[1], shard_unit(folder.name))
    if deep:
        opened.check_all()


def strangers(workdir: pathlib.Path, header: Mapping[str, Any]) -> list[str]:
    """Folders among the shards that the plan does not name: renamed ones, for example."""
    names = {shard["name"] for shard in header["shards"]}
    folders = sorted(p.name for p in workdir.glob("shards/*") if not p.name.startswith("."))
    return [shard_unit(name) for name in folders if name not in names]


# --- progress of unfinished shards ---


def partial_path(workdir: pathlib.Path, name: str) -> pathlib.Path:
    """Where an unfinished shard's progress is saved between epochs."""
    return workdir / "partial" / name


def write_partial(
    workdir: pathlib.Path, name: str, done: int, tree: PyTree, width: int = 0
) -> None:
    """Save an unfinished shard after ``done`` epochs; the last save goes when this one is whole. ``width``
    as in ``write_shard``."""
    unit = f"partial/{name}/{done}"

    def write(folder: pathlib.Path) -> None:
        checkpoint.save(folder / "checkpoint", tree)
        record = manifest(folder, unit, identity(workdir), files_below(folder), width=width)
        write_record(folder / MANIFEST, record)

    need = bytes_on_disk(jax.tree.leaves(tree))
    if not (workdir / unit).exists():  # the same epochs of the same shard are the same arrays
        write_folder(workdir / unit, write, need)
    for path in (workdir / unit).parent.iterdir():
        if path.name != str(done):
            remove(path)


def width_of_shard(workdir: pathlib.Path, name: str) -> int:
    """How many trials of a shard were trained at once on each device, when it was saved or finished; 0
    where that is not known. Raises Damaged."""
    saves = [f"partial/{name}/{path.name}" for path in partial_path(workdir, name).glob("[0-9]*")]
    units = [shard_unit(name), *sorted(saves, key=lambda unit: -int(unit.rsplit("/", 1)[1]))]
    for unit in units:
        record = workdir / unit / MANIFEST
        if not record.exists():
            continue
        try:
            # its record alone: another process may be removing the save that it has replaced
            folder = open_folder(workdir, unit, identity(workdir), only=())
        except Damaged:
            if record.exists():
                raise
            continue
        return folder.record.get("width", 0)
    return 0


def read_partial(workdir: pathlib.Path, name: str) -> tuple[int, PyTree] | None:
    """(epochs done, tree) of an unfinished shard; None when there is none. Raises Damaged."""
    saves = [p for p in partial_path(workdir, name).glob("*") if not p.name.startswith(".")]
    if not saves:
        return None
    if not all(path.name.isdecimal() for path in saves):
        raise Damaged(workdir, f"partial/{name}", "it holds what no sweep writes")
    last = max(saves, key=lambda path: int(path.name))
    unit = f"partial/{name}/{last.name}"
    open_unit(workdir, unit).check_all()
    try:
        return int(last.name), checkpoint.load(last / "checkpoint")
    except ValueError as error:
        raise Damaged(workdir, unit, reason(error)) from error


# --- the arrays beside sweep.json ---


def write_root_arrays(workdir: pathlib.Path, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """splits.npz, teacher.npz or codebooks.npz, and their place in the manifest."""
    write_arrays(workdir / name, arrays)
    add_files(workdir, ROOT, identity(workdir), [name])


def read_root_arrays(workdir: pathlib.Path, name: str) -> dict[str, np.ndarray] | None:
    """splits.npz, teacher.npz or codebooks.npz; None when there is none that was finished. Raises Damaged."""
    if not (workdir / MANIFEST).exists():
        if (workdir / name).exists() and (workdir / "shards").exists():
            raise Damaged(workdir, MANIFEST, "it is missing")
        return None
    folder = open_folder(workdir, ROOT, identity(workdir), only=[name])
    if name not in folder.files:
        return None
    path = folder.file(name)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except Exception as error:  # zip, header and missing-file faults alike
        raise Damaged(workdir, name, reason(error)) from error


def write_rows(path: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    """Rows as Parquet, atomically; columns in order of first appearance."""
    names = dict.fromkeys(name for row in rows for name in row)
    write_table(path, pa.table({name: [row.get(name) for row in rows] for name in names}))
