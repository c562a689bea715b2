"""Stores recordings as the trials of a sweep, as if they had been trained here."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from vfljax import store, tasks
from vfljax.auditing import suite
from vfljax.auditing.wires_agreement import Checked
from vfljax.auditing.wires_request import WireRequest
from vfljax.datasets.wire import read_wire
from vfljax.datasets.wire_record import EXCHANGED, Wire
from vfljax.store.exchange import NODES
from vfljax.sweep.grid import trial_rows
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.plan import Plan
from vfljax.sweep.sharding import Shard
from vfljax.types import HostArray, Sums


def write(
    plan: Plan, shard: Shard, workdir: pathlib.Path, request: WireRequest, found: Checked
) -> None:
    """Stores the trials of a shard, with initial weights by seed, because trained ones were not recorded."""
    group = plan.groups[shard.group]
    trials = group.trials.iloc[list(shard.trials)]
    level = plan.effort.training
    weights = initial_weights(group.spec, plan.experiment, plan.seeds, plan.table, level)
    seeds = trials["seed"].to_numpy()
    bottoms, active = jax.tree.map(lambda a: np.asarray(a)[seeds], tuple(weights))
    tree = {"bottoms": {str(p): bottom for p, bottom in enumerate(bottoms)}, "active": active}
    every = trial_rows(trials)
    wires = (read_wire(request.point(trial).runs[trial["seed"]], found.cut) for trial in every)
    members = [_exchange(wire, found.paths, len(found.epochs)) for wire in wires]
    arrays = {name: np.stack([member[name] for member in members]) for name in members[0]}
    rows = [
        _row(row, request, plan) | {"shard": shard.name, "member": i} for i, row in enumerate(every)
    ]
    store.write_shard(workdir, shard.name, rows, tree, arrays)


def _exchange(wire: Wire, paths: int = 0, epochs: int = 0) -> dict[str, HostArray]:
    """Returns the arrays of a trial's exchange, named as in ``store.exchange``, without the member axis.

    Of trees the recorded gradients are those of the first round in which any were sent, and the sums are over
    all rounds from there on.

    Args:
      wire: the recording.
      paths: the width to which the paths of trees are padded by zeros, so that all trials have it.
      epochs: the number of epochs to which a packed recording is brought, by some before the last in which
        nothing was sent; 0: as many as it has.
    """
    sent, rows = wire.sent, np.arange(wire.shape[1], dtype=np.int32)
    places = np.tile(rows, (len(sent), 1)) if wire.order is None else wire.order
    arrays: dict[str, HostArray] = {"epochs": wire.epochs, "order": places, "sent": sent}
    for p, party in enumerate(wire.parties):
        mine = sent if party.sent is None else party.sent
        if party.sent is not None:
            arrays[f"party{p}_sent"] = mine
        for name in EXCHANGED:
            array = getattr(party, name)
            array = np.zeros(wire.shape) if array is None else np.where(mine[..., None], array, 0)
            arrays[f"party{p}_{name}"] = array.astype(np.float32)
        g, count = arrays[f"party{p}_gradients"], mine.sum(axis=0, dtype=np.float32)
        if party.nodes is not None:
            z = arrays[f"party{p}_embeddings"]
            padding = (0, 0), (0, 0), (0, paths - z.shape[2])
            g = g[np.argmax(g.any(axis=(1, 2))) :]
            arrays[f"party{p}_embeddings"] = np.pad(z, padding)
            arrays[f"party{p}_gradients"], count = g[:1], count * len(g)
            arrays[f"party{p}_{NODES}"] = np.moveaxis(party.nodes, 1, 2)
        sums = Sums(g.sum(0), np.sign(g).sum(0), np.square(g).sum(0), count)
        arrays |= {f"party{p}_sum_{name}": array for name, array in sums._asdict().items()}
    if epochs > len(wire.epochs):
        added = np.full(epochs - len(wire.epochs), len(wire.epochs) - 1)
        for name, array in arrays.items():
            if name.endswith(("sent", "order", *EXCHANGED)):
                blank = np.zeros((len(added), *array.shape[1:]), array.dtype)
                arrays[name] = np.insert(array, added, blank, axis=0)
        arrays["epochs"] = np.arange(epochs, dtype=np.int32)
    return arrays


def _row(trial: Mapping[str, Any], request: WireRequest, plan: Plan) -> dict[str, Any]:
    """Returns a trial's row of results; utilities that are not given are null."""
    task = tasks.of(plan.dataset.num_classes)
    counted = task.utility(plan.balance).figure
    seed = trial["seed"]

    def of_seed(values: Sequence[float]) -> float | None:
        return float(values[seed % len(values)]) if values else None

    given = {"": request.point(trial).utility}
    given |= {"alone_": request.alone} if trial["method"] == suite.UNDEFENDED else {}
    utilities = {
        f"{who}{part}": of_seed(getattr(of, part) or of.test)
        for who, of in given.items()
        for part in of._fields
    }
    two = plan.dataset.num_classes == 2
    names = ("oriented_accuracy", "oriented_auc") if two else (counted,)
    return {
        **trial,
        **{
            f"{place}_{name}": value if name == counted else None
            for place, value in utilities.items()
            for name in names
        },
        "status": "ok",
        "diverged_epoch": None,
        "loss": [],
        f"train_{task.credited}": [],
        "seconds": 0.0,
    }
