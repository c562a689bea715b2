"""Writes and reads what crossed the wire.

A shard's ``exchange.safetensors`` holds arrays by name, with a leading member axis S. A trial's part of an
array is read without the others. E is the number of recorded epochs, N of recorded training rows, and D a
party's cut width::

    epochs                     [S, E] int32, which epochs those are
    order, sent                [S, E, N] place of a row in its epoch's sending order; whether it was sent
    party<p>_embeddings        [S, E, N, D] as passive party p sent them
    party<p>_gradients         [S, E, N, D] as it received them, of the batch-mean loss
    party<p>_sum_gradient      [S, N, D] sums over every epoch of g, of sign(g) and of g ** 2
    party<p>_sum_sign, party<p>_sum_square
    party<p>_sum_count         [S, N] times the row was sent
    party<p>_inputs            [S, E, N, H] what its last linear layer read, if that was recorded
    party<p>_nodes             [S, T, N, L] int32 node of a row at each level of boosted trees, if there are any
    mates_order                [S, E, N + R] place of all rows in the sending order, if mates were recorded
    mates_sent                 [S, E, R] whether each of the R batch mates was sent
    mates_party<p>_embeddings, mates_party<p>_gradients  [S, E, R, D]
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from vfljax.store.atomic import give_usual_mode
from vfljax.types import HostArray, Mates, Sums

FILE = "exchange.safetensors"
BY_PARTY = ("embeddings", "gradients", "sum_gradient", "sum_sign", "sum_square")
INPUTS, NODES = "inputs", "nodes"  # also by party, but only few sweeps record them
FIELDS = (*BY_PARTY, "sum_count", "order", "sent", "epochs")
MATES = "mates_"


def epoch_arrays(record: Any) -> dict[str, Any]:
    """Returns a recorded epoch's arrays by name.

    Args:
      record: a ``vfljax.federation.training.Record``. Its fields ``order`` and ``sent`` are read, and each
        passive party's ``embeddings``, ``gradients`` and, if they were recorded, ``inputs``.
    """
    arrays = {"order": record.order, "sent": record.sent}
    for p, (z, g) in enumerate(zip(record.embeddings, record.gradients, strict=True)):
        arrays |= {f"party{p}_embeddings": z, f"party{p}_gradients": g}
    return arrays | {f"party{p}_{INPUTS}": a for p, a in enumerate(record.inputs)}


def all_arrays(
    by_epoch: Mapping[int, Mapping[str, HostArray]],
    epochs: Sequence[int],
    sums: Sequence[Sums],
    rows: int | None = None,
) -> dict[str, HostArray]:
    """Returns every array of a shard's exchange.

    Args:
      by_epoch: the ``epoch_arrays`` of each recorded epoch, with a leading member axis.
      epochs: the recorded epochs.
      sums: the running sums of each passive party.
      rows: number of rows that attackers are scored on, None for all. Other rows are stored as batch mates.
    """
    stacked = {
        name: np.stack([by_epoch[epoch][name] for epoch in epochs], axis=1)
        for name in by_epoch[epochs[0]]
    }
    arrays = {name: array[:, :, :rows] for name, array in stacked.items()}
    if rows is not None and rows < stacked["order"].shape[2]:
        arrays |= {MATES + name: array[:, :, rows:] for name, array in stacked.items()}
        # "order" has places among the scored rows, as without mates, and "mates_order" among all rows
        arrays["order"] = arrays["order"].argsort(-1).argsort(-1).astype(np.int32)
        arrays[MATES + "order"] = stacked["order"]
    arrays["epochs"] = np.tile(np.asarray(epochs, np.int32), (len(arrays["order"]), 1))
    for p, party_sums in enumerate(sums):
        for field, array in party_sums._asdict().items():
            arrays[f"party{p}_sum_{field}"] = array[:, :rows]
    return arrays


def write(path: pathlib.Path, arrays: Mapping[str, HostArray]) -> None:
    """Writes arrays by name to one file."""
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    give_usual_mode(path)  # safetensors gives it to its owner alone


def read(path: pathlib.Path) -> dict[str, Any]:
    """Returns every array by name; an index of the leading axis reads the part of that trial."""
    file = safe_open(path, framework="np")
    return {name: file.get_slice(name) for name in sorted(file.keys())}


def of_parties(
    arrays: Mapping[str, Any], member: int, parties: Sequence[int], mates: bool = False
) -> dict[str, Any]:
    """Returns the exchange arrays of one trial, concatenated over colluding parties.

    Arrays that all parties share are included once.

    Args:
      arrays: the exchange arrays of a shard, as ``read`` returns them.
      member: index of the trial in the shard.
      parties: the colluding parties.
      mates: whether to add the arrays of batch mates, if they were recorded.
    """

    def field(name: str, prefix: str = "") -> HostArray:
        if name not in (*BY_PARTY, INPUTS, NODES):  # the same for every party
            first = f"party{parties[0]}_{name}"
            return arrays[first if first in arrays else prefix + name][member]
        parts = [arrays[f"{prefix}party{p}_{name}"][member] for p in parties]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    recorded = [name for name in (INPUTS, NODES) if f"party{parties[0]}_{name}" in arrays]
    out = {name: field(name) for name in (*FIELDS, *recorded)}
    if mates and MATES + "order" in arrays:
        out |= {MATES + name: field(name, MATES) for name in Mates._fields}
    return out
