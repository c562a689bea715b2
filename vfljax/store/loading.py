"""Reading a sweep: all that a notebook needs.

``load(dir)`` gives the tables now and the arrays of one setting when they are asked for. A setting
that diverged is reported as diverged and changes no other. What is read is compared with its checksum.
"""

from __future__ import annotations

import importlib
import math
import os
import pathlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vfljax.errors import UserError
from vfljax.store import checkpoint, exchange
from vfljax.store.atomic import write_csv, write_table
from vfljax.store.attacks import (
    LOCAL_ONLY,
    Summary,
    attack_summary,
    identity_columns,
    identity_of,
    learner_of,
    local_only_key,
    read_variants,
    unfinished_variants,
    with_untrained,
)
from vfljax.store.directory import (
    open_shard,
    open_unit,
    read_header,
    read_root_arrays,
    read_tables,
    shard_unit,
    strangers,
)
from vfljax.store.manifest import Damaged, digest_of_arrays, reason
from vfljax.types import PyTree

NO_ROWS = pa.table({})
TIMES = ("seconds",)  # the columns that differ between two runs of the same sweep


AXES = ("configuration", "federation", "seed")  # of ``Sweep.to_xarray``


def _needing(package: str, use: Callable[[], Any]) -> Any:
    try:
        return use()
    except ImportError as error:
        raise UserError(f"this needs {package}: pip install 'vfljax[analysis]'.") from error


class StoredTrial(NamedTuple):
    """One trial of a stored sweep. Nothing is read before it is asked for."""

    row: dict[str, Any]
    workdir: pathlib.Path
    member: int

    @property
    def shard(self) -> pathlib.Path:
        """The folder of the shard it was trained in."""
        return self.workdir / shard_unit(self.row["shard"])

    def weights(self) -> PyTree:
        """Final variables: {"bottoms": {"0": ...}, "active": ...}, and "defenses": {name: state} of those
        that predictions are read through (``vfljax.defenses.readers``), if any; reads this member only.
        Raises UserError where they do not match their checksum."""
        try:
            weights = checkpoint.load_member(self.shard / "checkpoint", self.member)
        except ValueError as error:
            raise Damaged(self.workdir, shard_unit(self.row["shard"]), reason(error)) from error
        self._check("weights", weights)
        return weights

    def exchange(self) -> dict[str, np.ndarray]:
        """This member of every exchange array, e.g. ``"party0_gradients"`` [E, N, D]. Raises UserError
        where they do not match their checksum."""
        try:
            arrays = exchange.read(self.shard / "exchange")
            member = {name: array[self.member] for name, array in arrays.items()}
        except Exception as error:  # NumPy raises many kinds for a damaged header
            raise Damaged(self.workdir, shard_unit(self.row["shard"]), reason(error)) from error
        self._check("exchange", member)
        return member

    def _check(self, part: str, arrays: PyTree) -> None:
        folder = open_unit(self.workdir, shard_unit(self.row["shard"]))
        if digest_of_arrays(arrays) != folder.record["trials"][self.member][part]:
            why = f"the {part} of trial {self.row['trial']} do not match their checksum"
            raise Damaged(self.workdir, folder.unit, why)


class Sweep(NamedTuple):
    """A stored sweep. ``results`` and ``attacks`` are pyarrow tables; ``frame`` and ``to_xarray`` give them
    in the forms that analyses use."""

    workdir: pathlib.Path
    header: dict[str, Any]
    results: pa.Table
    attacks: pa.Table
    unfinished: tuple[str, ...] = ()  # what is not trained or attacked yet, a line each
    local_only: pa.Table = NO_ROWS  # the baseline: a row for each seed and number of known labels

    @property
    def config(self) -> dict[str, Any]:
        return self.header["config"]

    @property
    def plugins(self) -> dict[str, Any]:
        """Descriptions of the rows of plugins that the sweep and its attacks were made with, by name."""
        made = [self.header, *attack_summary(self.workdir).values()]
        return {name: row for record in made for name, row in record.get("plugins", {}).items()}

    def trial(self, number: int) -> StoredTrial:
        """Trial ``number`` (its id): row, weights and exchange, read lazily."""
        rows = self.results.filter(pc.field("trial") == number).to_pylist()
        if not rows:
            raise UserError(f"trial {number} is not in {self.workdir}: see results['trial'].")
        return StoredTrial(rows[0], self.workdir, rows[0]["member"])

    setting = trial  # the name until 0.1, kept for one version

    def splits(self) -> dict[str, np.ndarray]:
        """Per seed: train, validation, test rows [Q, ...], known order; labels [R]."""
        arrays = read_root_arrays(self.workdir, "splits.npz")
        if arrays is None:
            raise Damaged(self.workdir, "splits.npz", "it is missing")
        return arrays

    def frame(self) -> Any:
        """``results`` and ``attacks`` as one tidy pandas frame: a row a trial and attack, every knob and
        figure of both; trials that nothing attacked have one row."""
        results = _named(self.results).to_pandas()
        results = results.rename(columns={"seconds": "training_seconds"})
        results["arm"] = results["method"]  # the name until 0.1, kept for one version
        if not self.attacks.num_rows:
            return results
        attacks = _named(self.attacks).to_pandas()
        fresh = [c for c in attacks.columns if c == "trial" or c not in results.columns]
        return results.merge(attacks[fresh], on="trial", how="left")

    def to_xarray(self) -> Any:
        """Every numeric column of ``results`` as a labeled array [configuration, federation, seed], NaN where
        nothing was trained, with each one's method, defenses and knobs as coordinates. Needs xarray."""
        xarray = _needing("xarray", lambda: importlib.import_module("xarray"))
        rows = self.results.to_pylist()
        axes = {axis: list(dict.fromkeys(row[axis] for row in rows)) for axis in AXES}
        axes["seed"].sort()
        shape = tuple(len(values) for values in axes.values())
        place = {axis: {v: k for k, v in enumerate(values)} for axis, values in axes.items()}
        numbers = [
            field.name
            for field in self.results.schema
            if pa.types.is_floating(field.type) and field.name not in TIMES
        ]
        knobs = [name for name in numbers if "." in name]
        arrays = {name: np.full(shape, np.nan) for name in numbers if name not in knobs}
        points: dict[str, list[Any]] = {
            name: [None] * shape[0] for name in ("method", "defenses", *knobs)
        }
        for row in rows:
            where = tuple(place[axis][row[axis]] for axis in AXES)
            for name, array in arrays.items():
                array[where] = math.nan if row[name] is None else row[name]
            for name, values in points.items():
                values[where[0]] = row[name]
        coordinates: dict[str, Any] = {
            name: ("configuration", np.array(values, float if name in knobs else str))
            for name, values in points.items()
        }
        return xarray.Dataset(
            {name: (AXES, array) for name, array in arrays.items()}, coords={**axes, **coordinates}
        )

    def require_finished(self) -> None:
        """Raise UserError where something is not trained or attacked yet."""
        lines = list(self.unfinished)
        if lines:
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            raise UserError(
                f"{self.workdir} is not finished: {lines[0]}{more}. "
                f"`vfljax sweep --workdir={self.workdir}` goes on with it; --unfinished takes "
                "what there is."
            )


def results(workdir: pathlib.Path, header: Mapping[str, Any]) -> tuple[pa.Table, list[str]]:
    """Returns the rows of every finished shard, in trial order, and the names of the other shards.

    Args:
      workdir: the folder of the sweep.
      header: of the sweep.
    """
    names = [shard["name"] for shard in header["shards"]]
    for unit in strangers(workdir, header):
        raise Damaged(workdir, unit, "the plan names no such shard")
    shards = {name: open_shard(workdir, name) for name in names}
    table = read_tables(shard.file("results.parquet") for shard in shards.values() if shard)
    missing = [name for name, shard in shards.items() if shard is None]
    return table.sort_by("trial") if table.num_rows else table, missing


BASELINES = ("untrained", "logistic", "all_labels")


def attacks(
    tables: Mapping[str, pa.Table], trials: Collection[int], summary: Summary, local_only: pa.Table
) -> pa.Table:
    """Returns one row a trial and attack, with figures of its baselines.

    These are the same attack on an untrained bottom and the local-only baseline with the same labels (both by
    seed), and the same attack knowing every label (by trial).

    Args:
      tables: the rows of every variant but the local-only baseline.
      trials: those that are kept.
      summary: ``attacks.json``.
      local_only: the rows of that baseline.
    """
    reached = {
        local_only_key(row): row for row in local_only.to_pylist() if learner_of(row) == LOCAL_ONLY
    }
    stored = [tables[variant] for variant in sorted(tables) if tables[variant].num_rows]
    rows = pa.concat_tables(stored, promote_options="permissive").to_pylist() if stored else []
    by_place = {}
    for row in rows:
        run = row["trial"] if row["what"] == "all_labels" else row["seed"]
        by_place[*_place(row), row["what"], run] = row
    out = []
    for row in rows:
        if row["what"] != "attack" or row["trial"] not in trials:
            continue  # a baseline's, or of a shard that was lost and is not trained again yet
        row = {key: value for key, value in row.items() if key != "what"}
        for what in BASELINES:
            run = row["trial"] if what == "all_labels" else row["seed"]
            beside = by_place.get((*_place(row), what, run), {})
            if what == LOCAL_ONLY and what in summary[row["variant"]].get("baselines", ()):
                # sweeps of version 0.1 have rows of this baseline beside each attack too
                beside = beside or reached.get(local_only_key(row), {})
            row[f"{what}_success"] = beside.get("success")
            row[f"{what}_test_success"] = beside.get("test_success")
            leak = beside.get("leak")  # who knows every label leaves no row to score a leak on
            row[f"{what}_leak"] = None if leak is None or math.isnan(leak) else leak
        out.append(row)
    out.sort(key=lambda row: (row["label"], row["trial"], row["attack_configuration"]))
    names = dict.fromkeys(name for row in out for name in row)
    return pa.table({name: [row.get(name) for row in out] for name in names})


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("variant", "federation", "view", "attack_configuration"))


def _superseded(table: pa.Table) -> pa.Table:
    """Rows of a rule that a later one took the place of, under labels that show it."""
    rows = [
        {**row, **identity_columns(identity_of(row)._replace(outdated=True))}
        for row in table.to_pylist()
    ]
    return pa.Table.from_pylist(rows)


def load(workdir: str | os.PathLike[str]) -> Sweep:
    """A sweep, finished or not, from its directory: tables now, arrays when asked for.

    ``unfinished`` says what is missing of one that is not finished. Raises UserError, with the command
    that mends it, for anything that is read and is not what was written.
    """
    path = pathlib.Path(workdir)
    header = read_header(path)
    trained, missing = results(path, header)
    summary = attack_summary(path)
    tables = read_variants(path, summary)
    for variant in [name for name, about in summary.items() if about.get("superseded")]:
        tables[variant] = _superseded(tables[variant])
    shards = len(header["shards"])
    lines = [f"{len(missing)} of {shards} shards are not trained"] if missing else []
    names, attacked = header["config"]["attacks"], shards - len(missing)
    lines += unfinished_variants(names, summary, tables, attacked)
    local_only = tables.pop(LOCAL_ONLY, NO_ROWS)
    ids = set(trained["trial"].to_pylist() if trained.num_rows else ())
    return Sweep(
        workdir=path,
        header=header,
        results=aliased(trained),
        attacks=aliased(attacks(tables, ids, summary, local_only)),
        unfinished=tuple(lines),
        local_only=with_untrained(local_only, tables),
    )


ALIASES = {
    "trial": "setting",
    "configuration": "point",
    "attack_configuration": "point",
    "method": "arm",
    "member": "lane",
}  # column -> its name until 0.1, which tables in memory have too for one version


def aliased(table: pa.Table) -> pa.Table:
    """The table with the columns' earlier names too."""
    for column, earlier in ALIASES.items():
        if column in table.column_names and earlier not in table.column_names:
            table = table.append_column(earlier, table[column])
    return table


def _named(table: pa.Table) -> pa.Table:
    """The table without the columns' earlier names."""
    return table.drop_columns(sorted({*ALIASES.values()} & {*table.column_names}))


def export(workdir: pathlib.Path) -> None:
    """The whole tables as single Parquet and CSV files beside the shards."""
    sweep = load(workdir)
    for name, table in (("results", _named(sweep.results)), ("attacks", _named(sweep.attacks))):
        if not table.num_rows:
            continue
        write_table(workdir / f"{name}.parquet", table)
        flat = table.select([f.name for f in table.schema if not pa.types.is_list(f.type)])
        write_csv(workdir / f"{name}.csv", flat)
