"""Recorded exchanges of entries: what crossed between the parties at the chosen strengths, as wires.

    FOLDER/<entry>/<federation>/<n>/seed<q>.npz   a wire (``vfljax.datasets.wire``) of each seed
    FOLDER/<entry>/<federation>/exchange.json     the strengths, and the SHA-256 of every wire

A federation is "split", "malicious" (with a top model, the passive party's optimizer being malicious) or
"no_split", and ``n`` numbers the strengths that were chosen there. Rows are in the order in which files of
scores have them. A wire has the true labels to score with, and 40 known rows, which are attackers' on boards
that allow them.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from analysis.leakbench.bench import TRAINED, Bench
from analysis.leakbench.boards import KNOWN
from analysis.leakbench.entry_files import Data, Entry, Knobs, sha256_of
from vfljax import store
from vfljax.datasets.wire_checks import checked_wire
from vfljax.datasets.wire_forms import GRID
from vfljax.datasets.wire_record import EXCHANGED
from vfljax.errors import UserError
from vfljax.report.frames import read_frames
from vfljax.report.points import points_of
from vfljax.scheduling import running
from vfljax.store import StoredSweep
from vfljax.store.exchange import MATES
from vfljax.sweep.known import split_arrays
from vfljax.sweep.plan import Plan, recorded
from vfljax.types import HostArray, federation_of

FOLDER = "exchange"
"""The folder below a bench's of the sweeps that are trained for their exchanges alone."""
INDEX = "exchange.json"


class Wires(msgspec.Struct, frozen=True):
    """The wires of one strength: one for each seed."""

    number: int
    knobs: Knobs
    gains: tuple[float, ...]  # the shares of the gain for which the strength was chosen
    sha256: dict[str, str]  # of each file, by its path below the index


class Recorded(msgspec.Struct, frozen=True):
    """The index of an entry's wires of a federation."""

    data: Data
    entry: str
    federation: str
    revision: str  # with which the federations were trained
    versions: dict[str, str]
    plugins: dict[str, str]  # row of the method -> SHA-256 of its plugin
    wires: tuple[Wires, ...]


def rebuild(place: Bench, entry: Entry, folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the recorded exchanges of an entry's chosen strengths, and returns their indices.

    A federation is read from the sweeps of the bench where they have the strengths, else it is trained.

    Args:
      place: the data set, and its sweeps if there are any.
      entry: with its results on the data set.
      folder: that the wires are written to.

    Raises:
      UserError: for an entry without a figure on the data set, and whatever training raises.
    """
    result, out = entry.results.get(place.data), []
    if result is None or not any(score.reading for score in result.scores):
        what = f"{entry.name} has no figure on {place.data}"
        raise UserError(what, remedy="run the entry first")
    for federation in TRAINED:
        if strengths := chosen(entry, place.data, federation):
            sweep = sweep_of(place, entry, federation, [knobs for knobs, _ in strengths])
            out += _write(sweep, entry, place.data, strengths, folder / entry.name)
    return out


def chosen(entry: Entry, data: Data, federation: str) -> list[tuple[Knobs, tuple[float, ...]]]:
    """Returns the strengths of an entry that were chosen in a federation, each with its shares of the gain."""
    found: list[tuple[Knobs, set[float]]] = []
    for score in entry.results[data].scores:
        if score.board.federation != federation or score.reading is None:
            continue
        if gains := next((gains for knobs, gains in found if knobs == score.knobs), None):
            gains.add(score.gain)
        else:
            found.append((score.knobs, {score.gain}))
    return [(knobs, tuple(sorted(gains))) for knobs, gains in found]


def sweep_of(place: Bench, entry: Entry, federation: str, strengths: list[Knobs]) -> StoredSweep:
    """Returns a sweep that has the strengths of an entry, which is trained if the bench has none."""
    if (place.workdir / federation / "sweep.json").exists():
        sweep = store.load(place.workdir / federation)
        same = {n: about["sha256"] for n, about in sweep.plugins.items() if n in entry.method}
        if same == entry.results[place.data].plugins and all(
            len(trials) == sweep.config["seeds"] * len(TRAINED[federation])
            for trials in (trials_of(sweep, entry, knobs) for knobs in strengths)
        ):
            return sweep
    whole = entry.chain(place.data)
    tried = max((len(v) for of in whole.values() for v in of.values() if _listed(v)), default=1)
    kept = [k for k in range(tried) if any(_is(entry.chain(place.data, [k]), s) for s in strengths)]
    fields = {
        "grid": {entry.name: entry.chain(place.data, kept)},
        "attacks": {},
        "federations": TRAINED[federation],
    }
    return place.sweep(f"{FOLDER}/{entry.name}/{federation}", fields)


def _listed(value: Any) -> bool:
    return isinstance(value, tuple)


def _is(chain: Mapping[str, Mapping[str, Any]], knobs: Knobs) -> bool:
    """Returns whether a chain with one strength has these knobs."""
    return all(
        knobs.get(f"{name}.{knob}", value) == value
        for name, of in chain.items()
        for knob, (value,) in ((k, v if _listed(v) else (v,)) for k, v in of.items())
    )


def trials_of(sweep: StoredSweep, entry: Entry, knobs: Knobs) -> list[dict[str, Any]]:
    """Returns the rows of the trials of a strength."""
    trials = read_frames(sweep).trials
    every = points_of(trials)["knobs"].to_dict()
    of_strength = [number for number, values in every.items() if values == knobs]
    right = (trials["method"] == entry.name) & trials["configuration"].isin(of_strength)
    return trials[right & ~trials["diverged"]].to_dict("records")  # pyright: ignore[reportCallIssue]


def _write(
    sweep: StoredSweep,
    entry: Entry,
    data: Data,
    strengths: list[tuple[Knobs, tuple[float, ...]]],
    folder: pathlib.Path,
) -> Iterator[pathlib.Path]:
    """Writes the wires of a sweep, and yields the index of each kind of federation."""
    plan = recorded(running.stored_plan(sweep.workdir, unfinished=True))
    arrays = split_arrays(plan.dataset.labels, plan.splits, plan.experiment.known_draws)
    by_kind: dict[str, list[Wires]] = {}
    for number, (knobs, gains) in enumerate(strengths):
        files: dict[str, dict[str, str]] = {}
        for trial in trials_of(sweep, entry, knobs):
            kind, seed = federation_of(trial["federation"]).kind, int(trial["seed"])
            name = f"{number}/seed{seed}.npz"
            wire = _wire(sweep.trial(trial["trial"]).exchange(), plan, arrays, seed)
            path = folder / kind / name
            checked_wire(path, wire)
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, allow_pickle=False, **wire)
            files.setdefault(kind, {})[name] = sha256_of(path)
        for kind, sha256 in files.items():
            by_kind.setdefault(kind, []).append(Wires(number, knobs, gains, sha256))
    result = entry.results[data]
    for kind, wires in by_kind.items():
        index = Recorded(
            data=data,
            entry=entry.name,
            federation=kind,
            revision=sweep.header["revision"],
            versions=sweep.header["versions"],
            plugins=result.plugins,
            wires=tuple(wires),
        )
        path = folder / kind / INDEX
        store.write_bytes(path, msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n")
        yield path


def _wire(
    exchange: Mapping[str, HostArray], plan: Plan, arrays: Mapping[str, HostArray], seed: int
) -> dict[str, HostArray]:
    """Returns the arrays of a wire for one trial."""
    rows = plan.splits[seed].train
    labels = plan.dataset.labels[rows]
    wire: dict[str, Any] = {"version": GRID, "epochs": exchange["epochs"], "labels": labels}
    if MATES + "order" not in exchange:  # else batches have rows that attackers are not scored on
        wire |= {"order": exchange["order"], "batch_size": plan.experiment.training.batch_size}
    if not exchange["sent"].all():
        wire["sent"] = exchange["sent"]
    passive = plan.experiment.parties.passive
    for p in range(passive):
        wire |= {f"party{p}_{name}": exchange[f"party{p}_{name}"] for name in EXCHANGED}
        columns = np.asarray(plan.table.features[p])[rows]
        wire[f"party{p}_columns"] = columns.reshape(len(rows), -1)
    wire["known_rows"] = np.sort(arrays["known_order"][seed][:KNOWN])
    wire["known_labels"] = labels[wire["known_rows"]]
    return {name: np.asarray(array) for name, array in wire.items()}
