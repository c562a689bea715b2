"""Reading a sweep.

``load(dir)`` reads the tables at once, and the arrays of a trial when they are asked for. A trial that
diverged is reported as diverged and does not affect others. Everything is checked when it is read.
"""

from __future__ import annotations

import collections
import math
import os
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jax.tree_util import DictKey

from vfljax.errors import UnknownError, UserError, unknown, user_path
from vfljax.store import checkpoint, exchange, units
from vfljax.store.atomic import remove, write_table
from vfljax.store.attack_rows import (
    LOCAL_ONLY_VARIANT,
    Summary,
    identity_columns,
    identity_of,
    learner_of,
    local_only_key,
)
from vfljax.store.header import read_header
from vfljax.store.manifest import digest_of_arrays, open_folder
from vfljax.store.sealed import Damaged, unsound
from vfljax.store.units import Unit, arrow_table, shard_unit
from vfljax.types import PyTree

NO_ROWS = pa.table({})
TIMES = ("seconds",)  # the columns that differ between two runs of the same sweep
BASELINES = ("untrained", "logistic", "all_labels")


class NamedParts(dict[str, Any]):
    """A dict of arrays or trees by name, in which a party's number finds the same entry as its text."""

    def __missing__(self, name: object) -> Any:
        if str(name) in self:
            return self[str(name)]
        raise unknown("part", name, self)


jax.tree_util.register_pytree_with_keys(
    NamedParts,
    lambda parts: ([(DictKey(k), parts[k]) for k in sorted(parts)], tuple(sorted(parts))),
    lambda names, trees: NamedParts(zip(names, trees)),
)


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
        """Returns the trial's final variables, {"bottoms": {"0": ...}, "active": ...}, and "defenses":
        {name: state} if there are defenses through which predictions are read (``vfljax.defenses.readers``).
        Only this trial is read. Raises UserError if the variables do not match their checksum."""
        trees = self._checked(
            "weights", lambda: checkpoint.load_member(self.shard / "checkpoint", self.member)
        )
        return NamedParts(trees | {"bottoms": NamedParts(trees["bottoms"])})

    def exchange(self) -> dict[str, np.ndarray]:
        """Returns the trial's exchange arrays by name, e.g. ``"party0_gradients"`` [E, N, D]. Raises UserError
        if they do not match their checksum."""

        def read() -> dict[str, np.ndarray]:
            arrays = exchange.read(self.shard / exchange.FILE)
            return {name: array[self.member] for name, array in arrays.items()}

        return NamedParts(self._checked("exchange", read))

    def _checked(self, part: str, read: Callable[[], PyTree]) -> PyTree:
        unit = shard_unit(self.row["shard"])
        try:
            arrays = read()
        except Exception as error:  # NumPy raises many kinds for a damaged header
            raise unsound(self.workdir, unit, error) from error
        digests = open_folder(self.workdir, unit).record["trials"][self.member]
        if digest_of_arrays(arrays) != digests[part]:
            why = f"the {part} of trial {self.row['trial']} do not match their checksum"
            raise Damaged(self.workdir, unit, why)
        return arrays


class StoredSweep(NamedTuple):
    """A stored sweep, whose ``results`` and ``attacks`` are pyarrow tables."""

    workdir: pathlib.Path
    header: dict[str, Any]
    results: pa.Table
    attacks: pa.Table
    unfinished: tuple[str, ...] = ()  # one line for each part that is not trained or attacked yet
    local_only: pa.Table = NO_ROWS  # rows of the baseline, by seed, known labels and learner

    @property
    def config(self) -> dict[str, Any]:
        return self.header["config"]

    @property
    def plugins(self) -> dict[str, Any]:
        """Descriptions of the rows of plugins that the sweep and its attacks were made with, by name."""
        records = [self.header, *self.header["attacks"].values()]
        return {name: row for record in records for name, row in record.get("plugins", {}).items()}

    def trial(self, number: int) -> StoredTrial:
        """Returns the trial whose id is ``number``. Its weights and exchange are read lazily."""
        numbers = self.results["trial"].to_pylist() if self.results.num_rows else []
        if number not in numbers:
            raise UnknownError(f"trial {number!r} is not in {self.workdir}: see results['trial'].")
        (row,) = self.results.slice(numbers.index(number), 1).to_pylist()
        return StoredTrial(row, self.workdir, row["member"])

    def splits(self) -> dict[str, np.ndarray]:
        """Returns arrays by name: labels [R], and per seed [Q, ...] the rows of each part and known order."""
        return NamedParts(units.read_shared(self.workdir, splits_name(self.header)))

    def require_finished(self) -> None:
        """Raises UserError if a part of the sweep is not trained or attacked yet."""
        if self.unfinished:
            first, *others = self.unfinished
            more = f" (and {len(others)} further parts)" if others else ""
            raise UserError(
                f"{self.workdir} is not finished: {first}{more}. "
                f"`vfljax sweep --workdir={self.workdir}` goes on with it; --unfinished takes "
                "what there is."
            )


def splits_name(header: Mapping[str, Any]) -> str:
    """Returns the name of the shared arrays with the splits of all seeds of a sweep."""
    return f"splits-{header['config']['first_seed'] + header['config']['seeds']}"


def _attacks(
    tables: Mapping[str, pa.Table], trials: Collection[int], entries: Summary, local_only: pa.Table
) -> pa.Table:
    """Returns one row per trial and attack, with columns of its baselines: the same attack on an untrained
    bottom and local-only with the same labels (both of the same seed), and the same attack if it knows every
    label (of the same trial). ``tables`` has the rows of all variants but the local-only baseline."""
    reached = {
        local_only_key(row): row
        for row in local_only.to_pylist()
        if learner_of(row) == LOCAL_ONLY_VARIANT
    }
    stored = [NO_ROWS, *(tables[variant] for variant in sorted(tables))]
    rows = pa.concat_tables(stored, promote_options="permissive").to_pylist()
    by_place = {_place(row, row["what"]): row for row in rows}
    out = []
    for row in rows:
        if row["what"] != "attack" or row["trial"] not in trials:
            continue  # a row of a baseline, or of a lost shard that is not trained again yet
        kept = {key: value for key, value in row.items() if key != "what"}
        for what in BASELINES:
            baseline = by_place.get(_place(row, what), {})
            if what == LOCAL_ONLY_VARIANT and what in entries[row["variant"]]["baselines"]:
                baseline = reached.get(local_only_key(row), {})
            kept[f"{what}_success"] = baseline.get("success")
            kept[f"{what}_test_success"] = baseline.get("test_success")
            leak = baseline.get("leak")  # NaN if every label is known: no row is left to score
            kept[f"{what}_leak"] = None if leak is None or math.isnan(leak) else leak
        out.append(kept)
    out.sort(key=lambda row: (row["label"], row["trial"], row["attack_configuration"]))
    return arrow_table(out)


def _place(row: Mapping[str, Any], what: str) -> tuple[Any, ...]:
    """Returns the unique key of a row, or of the row of its baseline ``what``."""
    names = ("variant", "federation", "view", "attack_configuration")
    return *(row[name] for name in names), what, row["trial" if what == "all_labels" else "seed"]


def _with_untrained(local_only: pa.Table, tables: Sequence[pa.Table]) -> pa.Table:
    """Returns the rows of the local-only baseline and, as further learners of it, those of attacks on an
    untrained bottom with the same attackers and as many known labels, from the ``tables`` of variants."""
    scored = {local_only_key(row) for row in local_only.to_pylist()}
    learns = (pc.field("what") == "untrained") & (pc.field("known") > 0)
    learned = (table.filter(learns).to_pylist() for table in tables if table.num_rows)
    added = [row for rows in learned for row in rows if local_only_key(row) in scored]
    return pa.concat_tables([local_only, pa.Table.from_pylist(added)], promote_options="permissive")


def _of_one_rule(local_only: pa.Table) -> pa.Table:
    """Returns the rows of the local-only baseline that have one rule of the learners: a later one once it has
    as many seeds, attackers, known labels and draws as the earlier one. Until then the earlier one counts, so
    that neither a mean over seeds nor a maximum over learners mixes rules."""
    found = collections.defaultdict[int, set[tuple[Any, ...]]](set)
    for row in local_only.to_pylist():
        found[row["rule"]].add(local_only_key(row))
    counted = 0
    for rule in sorted(found):
        if len(found[rule]) >= len(found[counted]):
            counted = rule
    return local_only.filter(pc.field("rule") == counted) if local_only.num_rows else local_only


def _unfinished(header: Mapping[str, Any], missing: Sequence[Unit]) -> Iterator[str]:
    """Yields lines on shards that are not trained, and on attacks and baselines that were not run."""
    count = collections.Counter(unit.kind for unit in missing)
    if count[units.SHARD]:
        yield f"{count[units.SHARD]} of {len(header['shards'])} shards are not trained"
    if count[units.LOCAL_ONLY]:
        yield "the local-only baseline is not finished"
    left = collections.Counter(unit.of for unit in missing if unit.kind == units.ATTACK)
    for variant, number in left.items():
        label = header["attacks"][variant]["label"]
        yield f"the attack {label} was not run on {number} of {len(header['blocks'])} blocks of shards"


def load(workdir: str | os.PathLike[str]) -> StoredSweep:
    """Returns the sweep of a directory, finished or not; see ``vfljax.load``."""
    path = user_path(workdir, "workdir")
    header = read_header(path)
    every = units.units_of(header, outdated=True)
    there = [unit for unit in every if (path / unit.name).is_dir()]
    missing = [unit for unit in units.units_of(header) if not (path / unit.name).is_dir()]
    results = units.read_results(path, [unit.of for unit in there if unit.kind == units.SHARD])
    results = results.sort_by("trial") if results.num_rows else results
    tables: dict[str, pa.Table] = {}
    for key in header["attacks"]:
        of_key = [unit.name for unit in there if unit.kind == units.ATTACK and unit.of == key]
        saved = [
            row
            for unit in missing
            if unit.kind == units.ATTACK and unit.of == key
            for row in units.read_partial_rows(path, unit.name)
        ]
        tables[key] = pa.concat_tables(
            [units.read_rows(path, of_key), arrow_table(saved)], promote_options="permissive"
        )
        if header["attacks"][key].get("outdated"):
            # the labels of these rows name the rule that made them
            rows = tables[key].to_pylist()
            columns = [identity_columns(identity_of(row)._replace(outdated=True)) for row in rows]
            tables[key] = arrow_table([row | new for row, new in zip(rows, columns, strict=True)])
    baseline = [unit.name for unit in there if unit.kind == units.LOCAL_ONLY]
    current = [of for key, of in tables.items() if not header["attacks"][key].get("outdated")]
    local_only = _of_one_rule(units.read_rows(path, baseline))
    ids = set(results["trial"].to_pylist() if results.num_rows else ())
    return StoredSweep(
        workdir=path,
        header=header,
        results=results,
        attacks=_attacks(tables, ids, header["attacks"], local_only),
        unfinished=tuple(_unfinished(header, missing)),
        local_only=_with_untrained(local_only, current),
    )


def export(workdir: pathlib.Path) -> int:
    """Writes the whole tables as single Parquet and CSV files beside the shards. Returns how many trials are
    trained."""
    sweep = load(workdir)
    for name, table in (("results", sweep.results), ("attacks", sweep.attacks)):
        flat = [f.name for f in table.schema if not pa.types.is_list(f.type)]
        for path, rows in ((f"{name}.parquet", table), (f"{name}.csv", table.select(flat))):
            if rows.num_rows:
                write_table(workdir / path, rows)
            else:  # an earlier export may have rows of attacks that were dropped since
                remove(workdir / path)
    return sweep.results.num_rows
