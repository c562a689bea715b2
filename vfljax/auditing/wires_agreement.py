"""Checks that recordings are of one federation, and that a request fits them."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from vfljax import attacks, tasks
from vfljax.auditing import suite
from vfljax.auditing.wires_request import WireRequest
from vfljax.datasets.core import sum_of_arrays
from vfljax.datasets.wire import cut_at, equal_in_all_runs, read_wire
from vfljax.datasets.wire_record import EXCHANGED, Wire
from vfljax.errors import Text, UserError, argument, unknown
from vfljax.types import NO_SPLIT, SPLIT, HostArray

BINS = argument("bins")


class Checked(NamedTuple):
    """What the recordings of a request have in common, and what tells them from others."""

    first: Wire
    digests: dict[str, str]  # of each run's exchange, by method, knobs and run
    recorded: dict[str, list[dict[str, Any]]]  # likewise the rows of ``_counts``
    cut: HostArray | None  # the thresholds of ``bins``
    paths: int  # the most nodes that all trees of a recording have; 0 for networks
    epochs: tuple[int, ...]  # of the recording that has most; packed ones are brought to as many


def checked(request: WireRequest) -> Checked:
    """Checks a request, and that all recordings are of the same federation."""
    runs, known = request.bare.runs, request.known
    count, kinds = len(runs), (SPLIT, NO_SPLIT)
    _must(count, "wire", runs, "names no recording", "give a file or folder")
    right, remedy = request.federation in kinds, f"choose {' or '.join(kinds)}"
    _must(right, "federation", request.federation, "is unknown", remedy)
    for name in request.attacks:
        if name not in attacks.TABLE:
            raise unknown("attack", name, attacks.TABLE)
    utilities = {"alone": [request.alone]}
    for method, points in request.methods.items():
        bare = method == suite.UNDEFENDED
        utility = "utility" if bare else "after_utility"
        utilities.setdefault(utility, []).extend(point.utility for point in points)
        for point in points:
            of_all = f"names {len(point.runs)} recordings of {count} runs"
            remedy = "give one of each run, in their order"
            _must(len(point.runs) == count, "after", point.runs, of_all, remedy)
    cut = cut_at(runs, request.bins, BINS)
    first, paths, digests, recorded = read_wire(runs[0], cut), 0, {}, {}
    of_numbers = tasks.of(first.classes) is tasks.REGRESSION
    what = "is audited on labels that are classes, and these are numbers"
    right, remedy = not (request.observed and of_numbers), ("leave it out, or give ", BINS, "=2")
    _must(right, "after_epsilon", ..., what, remedy)
    low = -np.inf if of_numbers else 0  # R² has no least value
    remedy = (
        f"give one {'up' if of_numbers else 'from 0'} to 1, or one for each of the {count} runs"
    )
    for name, of in utilities.items():
        for values in (values for utility in of for values in utility):
            right = all(low <= u <= 1 and np.isfinite(u) for u in values) and len(values) in (
                0,
                1,
                count,
            )
            _must(right, name, values, "is no utility", remedy)
    epochs = first.epochs
    every = [(name, point) for name, points in request.methods.items() for point in points]
    for number, path in enumerate(runs):
        bare = read_wire(path, cut)
        for method, point in every:
            run = bare if point is request.bare else read_wire(point.runs[number], cut)
            _must_be_alike(point.runs[number], run, bare)
            paths, epochs = max(paths, _paths(run)), max(epochs, run.epochs, key=len)
            place = json.dumps([method, dict(point.knobs), number])
            digests[place], recorded[place] = _digest(run), _counts(run, method, number)
    rows, width, classes = *first.shape[1:], first.classes
    fewest = tasks.of(classes).least_known(classes)
    right, remedy = (
        known in range(fewest, rows) or known == 0,
        f"give from {fewest} to {rows - 1}",
    )
    _must(right, "known", known, "is too few or too many", remedy)
    what = f"has embeddings of width {width} for {classes} {'number' if of_numbers else 'classes'}"
    remedy = (
        "without a top model they are the outputs: logits, of one number a class, or one number"
    )
    right = request.federation == SPLIT or width == classes
    _must(right, "federation", request.federation, what, remedy)
    return Checked(first, digests, recorded, cut, paths, tuple(epochs.tolist()))


def _counts(wire: Wire, method: str, run: int) -> list[dict[str, Any]]:
    """Returns for each party how much of a run was recorded; None stands for what the wire does not tell. A
    federation of trees has no messages."""
    if wire.trees is not None:
        return []
    rows = []
    for party, of in enumerate(wire.parties):
        sent = wire.sent if of.sent is None else of.sent
        rows.append(
            {
                "method": method,
                "run": run,
                "party": party,
                "rows": wire.shape[1],
                "width": wire.shape[2],
                "epochs": len(wire.epochs),
                "messages": of.messages,
                "entries": int(sent.sum()) + (of.unanswered or 0),
                "unanswered": of.unanswered,
                "silent": wire.silent,
                "never": int((~sent.any(axis=0)).sum()),
                "packed": wire.packed,
                "columns": 0 if of.columns is None else of.columns.shape[1],
            }
        )
    return rows


def _digest(wire: Wire) -> str:
    """Returns the SHA-256 of what crossed between the parties."""
    parts = (getattr(party, name) for party in wire.parties for name in (*EXCHANGED, "nodes"))
    return sum_of_arrays(np.zeros(0) if part is None else np.asarray(part) for part in parts)


def recordings_of(
    header: Mapping[str, Any], found: Checked, workdir: pathlib.Path
) -> dict[str, str]:
    """Returns the digests of all recordings of a sweep. Raises a UserError if some of those that are stored are
    others now: what is stored of them would be taken for theirs."""
    stored = header.get("recordings", {})
    if any(stored.get(place, digest) != digest for place, digest in found.digests.items()):
        remedy = ("choose another ", argument("workdir"), ". Nothing was changed")
        raise UserError(f"{workdir} holds attacks on other recordings", remedy=remedy)
    return {**stored, **found.digests}


def _paths(wire: Wire) -> int:
    """Returns the number of nodes that all trees of a recording have, the most of all parties; 0 if none."""
    of_trees = (p.embeddings for p in wire.parties if p.nodes is not None)
    return max((np.asarray(z).shape[2] for z in of_trees), default=0)


def _must_be_alike(path: str, run: Wire, bare: Wire) -> None:
    """Raises a UserError unless a run under a defense is recorded as the run without, of the same rows."""
    common, rows = equal_in_all_runs(bare), ("labels", "known_rows", "rows")
    differ = [name for name, value in equal_in_all_runs(run).items() if value != common[name]]
    differ += [n for n in rows if not np.array_equal(getattr(run, n), getattr(bare, n))]
    remedy = "both are recorded alike, of the same rows in the same order"
    for what in differ[:1]:
        raise UserError(f"{path} differs from the run without a defense in {what}: {remedy}.")


def _must(right: Any, name: str, value: Any, what: str, remedy: Text) -> None:
    """Raises a UserError on an argument, unless ``right``."""
    if not right:
        raise UserError(what, field=argument(name), value=value, remedy=remedy)
