"""What crossed the wire, on disk: written and read here, side by side.

A shard's ``exchange`` folder holds one .npy file an array, with a leading member axis S, and is read by
memory map. E counts the recorded epochs, N the recorded training rows, D a party's cut width::

    epochs                     [S, E] int32, which epochs those are
    order, sent                [S, E, N] place of a row in its epoch's sending order; whether it was sent
    party<p>_embeddings        [S, E, N, D] as passive party p sent them
    party<p>_gradients         [S, E, N, D] as it received them, of the batch-mean loss
    party<p>_sum_gradient      [S, N, D] sums over every epoch of g, of sign(g) and of g ** 2
    party<p>_sum_sign, party<p>_sum_square
    party<p>_sum_count         [S, N] times the row was sent
    party<p>_inputs            [S, E, N, H] what its last linear layer read, where that was recorded
    mates_order                [S, E, N + R] place of every row of the same batches, where an attack reads them
    mates_sent                 [S, E, R] of the R other rows
    mates_party<p>_embeddings, mates_party<p>_gradients  [S, E, R, D]
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vfljax.types import HostArray, Mates, Sums

BY_PARTY = ("embeddings", "gradients", "sum_gradient", "sum_sign", "sum_square")
INPUTS = "inputs"  # by party too, and in few sweeps
FIELDS = (*BY_PARTY, "sum_count", "order", "sent", "epochs")
MATES = "mates_"


def epoch_arrays(record: Any) -> dict[str, Any]:
    """Returns a recorded epoch's arrays by name.

    Args:
      record: a ``vfljax.federation.training.Record``: the order of the rows, which were sent, and, of each
        passive party, embeddings, gradients and, where they are recorded, inputs of the last layer are read.
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
      by_epoch: of each recorded epoch.
      epochs: those that are recorded.
      sums: of each passive party.
      rows: how many attackers are scored on, None for all; further ones are stored as batch mates.
    """
    stacked = {
        name: np.stack([by_epoch[epoch][name] for epoch in epochs], axis=1)
        for name in by_epoch[epochs[0]]
    }
    arrays = {name: array[:, :, :rows] for name, array in stacked.items()}
    if rows is not None and rows < stacked["order"].shape[2]:
        arrays |= {MATES + name: array[:, :, rows:] for name, array in stacked.items()}
        # places among the rows that are scored, as where no others are recorded; and among all
        arrays["order"] = arrays["order"].argsort(-1).argsort(-1).astype(np.int32)
        arrays[MATES + "order"] = stacked["order"]
    arrays["epochs"] = np.tile(np.asarray(epochs, np.int32), (len(arrays["order"]), 1))
    for p, party_sums in enumerate(sums):
        for field, array in party_sums._asdict().items():
            arrays[f"party{p}_sum_{field}"] = array[:, :rows]
    return arrays


def write(folder: pathlib.Path, arrays: Mapping[str, HostArray]) -> None:
    """Writes one .npy file an array.

    Args:
      folder: a new one.
      arrays: by name.
    """
    folder.mkdir(parents=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def read(folder: pathlib.Path) -> dict[str, HostArray]:
    """Returns every array by name, mapped from disk."""
    paths = sorted(folder.glob("*.npy"))
    return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in paths}


def has_mates(folder: pathlib.Path) -> bool:
    """Returns whether batch mates were recorded."""
    return (folder / f"{MATES}order.npy").exists()


def of_parties(
    arrays: Mapping[str, HostArray], member: int, parties: Sequence[int], mates: bool = False
) -> dict[str, Any]:
    """Returns the exchange arrays of one trial, concatenated over colluding parties.

    Arrays that all parties share are included once.

    Args:
      arrays: of a shard.
      member: the trial's place in it.
      parties: who colludes.
      mates: whether those of batch mates are added, where they were recorded.
    """

    def field(name: str, prefix: str = "") -> HostArray:
        if name not in (*BY_PARTY, INPUTS):  # the same for every party
            first = f"party{parties[0]}_{name}"
            return arrays[first if first in arrays else prefix + name][member]
        parts = [arrays[f"{prefix}party{p}_{name}"][member] for p in parties]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    recorded = (INPUTS,) if f"party{parties[0]}_{INPUTS}" in arrays else ()
    out = {name: field(name) for name in (*FIELDS, *recorded)}
    if mates and MATES + "order" in arrays:
        out |= {MATES + name: field(name, MATES) for name in Mates._fields}
    return out
