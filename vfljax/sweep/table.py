"""The data as training reads it: on the device, once for all trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from vfljax.datasets.core import PartyColumns
from vfljax.datasets.scaling import statistics
from vfljax.datasets.splits import Split
from vfljax.federation.training import Table
from vfljax.models.rows import Streamed


def make_table(
    blocks: Sequence[PartyColumns],
    labels: np.ndarray,
    splits: Sequence[Split],
    scaling: str,
    scaling_rows: str = "train",
    resident: float = np.inf,
) -> Table:
    """The device's view of a data set for all seeds; teacher scores are added by the sweep. Features
    of more than ``resident`` bytes in all stay on the host."""
    everything = np.arange(len(labels))
    rows = [s.train if scaling_rows == "train" else everything for s in splits]
    moments = []
    for block in blocks:
        kind = "none" if block.input.kind == "text" else scaling
        moments.append([statistics(block.features, r, kind, block.columns) for r in rows])
    streams = sum(block.features.nbytes for block in blocks) > resident
    place: Any = Streamed if streams else jnp.asarray
    return Table(
        features=tuple(place(block.features) for block in blocks),
        labels=jnp.asarray(labels),
        train=jnp.asarray(np.stack([s.train for s in splits])),
        validation=jnp.asarray(np.stack([s.validation for s in splits])),
        test=jnp.asarray(np.stack([s.test for s in splits])),
        mean=tuple(jnp.asarray(np.stack([m for m, _ in party])) for party in moments),
        scale=tuple(jnp.asarray(np.stack([s for _, s in party])) for party in moments),
        scores=None,
    )
