"""Reading a sweep: all that a notebook needs.

``load(dir)`` gives the tables now and the arrays of one setting when they are asked for. A setting
that diverged is reported as diverged and changes no other.
"""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from vfljax.errors import UserError
from vfljax.store import checkpoint, exchange
from vfljax.store.directory import finished, read_arrays, read_header, read_table, write_table
from vfljax.types import PyTree

TIMES = ("seconds",)  # the columns that differ between two runs of the same sweep


class StoredSetting(NamedTuple):
    """One setting of a stored sweep. Nothing is read before it is asked for."""

    row: dict[str, Any]
    shard: pathlib.Path
    lane: int

    def weights(self) -> PyTree:
        """Final variables: {"bottoms": {"0": ...}, "active": ...}; reads this lane only."""
        return checkpoint.load_lane(self.shard / "checkpoint", self.lane)

    def exchange(self) -> dict[str, np.ndarray]:
        """This lane of every exchange array, e.g. ``"party0_gradients"`` [E, N, D]."""
        arrays = exchange.read(self.shard / "exchange")
        return {name: array[self.lane] for name, array in arrays.items()}


class Sweep(NamedTuple):
    """A stored sweep. ``results`` and ``attacks`` are pyarrow tables (``.to_pandas()``)."""

    workdir: pathlib.Path
    header: dict[str, Any]
    results: pa.Table
    attacks: pa.Table

    @property
    def config(self) -> dict[str, Any]:
        return self.header["config"]

    def setting(self, number: int) -> StoredSetting:
        """Setting ``number`` (its id): row, weights and exchange, read lazily."""
        rows = self.results.filter(pyarrow.compute.field("setting") == number).to_pylist()
        if not rows:
            raise UserError(f"setting {number} is not in {self.workdir}: see results['setting'].")
        return StoredSetting(rows[0], self.workdir / "shards" / rows[0]["shard"], rows[0]["lane"])

    def splits(self) -> dict[str, np.ndarray]:
        """Per seed: train, validation, test rows [Q, ...], known order; labels [R]."""
        return read_arrays(self.workdir / "splits.npz")


def results(workdir: pathlib.Path, header: Mapping[str, Any]) -> pa.Table:
    """Rows of every finished shard, in setting order."""
    names = [shard["name"] for shard in header["shards"]]
    done = [name for name in names if finished(workdir, name)]
    table = read_table(workdir / "shards" / name / "results.parquet" for name in done)
    return table.sort_by("setting") if table.num_rows else table


BASELINES = ("untrained", "logistic", "all_labels")


def attacks(workdir: pathlib.Path) -> pa.Table:
    """One row a setting and attack, its baselines' top-1 beside it: the same attack on an untrained
    bottom, logistic regression on the same labels (both per seed), and the same attack knowing
    every label (per setting)."""
    rows = read_table(sorted(workdir.glob("attacks/*/*.parquet"))).to_pylist()
    by_place = {}
    for row in rows:
        run = row["setting"] if row["what"] == "all_labels" else row["seed"]
        by_place[row["attack"], row["structure"], row["view"], row["point"], row["what"], run] = row
    out = []
    for row in rows:
        if row["what"] != "attack":
            continue
        row = {key: value for key, value in row.items() if key != "what"}
        for what in BASELINES:
            run = row["setting"] if what == "all_labels" else row["seed"]
            place = (row["attack"], row["structure"], row["view"], row["point"], what, run)
            beside = by_place.get(place, {})
            row[f"{what}_success"] = beside.get("success")
            row[f"{what}_test_success"] = beside.get("test_success")
            leak = beside.get("leak")  # who knows every label leaves no row to score a leak on
            row[f"{what}_leak"] = None if leak is None or math.isnan(leak) else leak
        out.append(row)
    out.sort(key=lambda row: (row["attack"], row["setting"], row["point"]))
    names = dict.fromkeys(name for row in out for name in row)
    return pa.table({name: [row.get(name) for row in out] for name in names})


def load(workdir: str | os.PathLike[str]) -> Sweep:
    """A sweep, finished or not, from its directory: tables now, arrays when asked for."""
    path = pathlib.Path(workdir)
    header = read_header(path)
    return Sweep(path, header, results(path, header), attacks(path))


def export(workdir: pathlib.Path) -> None:
    """The whole tables as single Parquet and CSV files beside the shards."""
    sweep = load(workdir)
    for name, table in (("results", sweep.results), ("attacks", sweep.attacks)):
        if not table.num_rows:
            continue
        write_table(workdir / f"{name}.parquet", table)
        flat = table.select([f.name for f in table.schema if not pa.types.is_list(f.type)])
        temporary = workdir / f".{name}.{os.getpid()}.tmp.csv"
        pyarrow.csv.write_csv(flat, temporary)
        os.replace(temporary, workdir / f"{name}.csv")
