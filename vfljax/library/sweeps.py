"""``vfljax.load`` and the ``Sweep`` that every call of the library returns."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from vfljax import store
from vfljax.errors import imported
from vfljax.library import logs
from vfljax.store.loading import TIMES

AXES = ("configuration", "federation", "seed")  # of ``Sweep.to_xarray``


class Sweep(store.StoredSweep):
    """A stored sweep: its tables, its trials, and what the report concludes of it.

    ``results`` and ``attacks`` are Arrow tables of the stored rows; ``trial`` reads one trial's arrays.
    """

    def frame(self) -> Any:
        """Returns ``results`` and ``attacks`` as one tidy pandas frame.

        It has a row per trial and attack, with every knob and figure of both; a trial without attacks has one
        row.
        """
        results = store.without_aliases(self.results).to_pandas()
        results = results.rename(columns={"seconds": "training_seconds"})
        results["arm"] = results["method"]  # the name until 0.1, kept for one version
        if not self.attacks.num_rows:
            return results
        attacks = store.without_aliases(self.attacks).to_pandas()
        fresh = [c for c in attacks.columns if c == "trial" or c not in results.columns]
        return results.merge(attacks[fresh], on="trial", how="left")

    def to_xarray(self) -> Any:
        """Returns the numeric columns of ``results`` as an xarray Dataset [configuration, federation, seed].

        A figure is NaN where nothing was trained. The method, the defenses and the knobs of each configuration
        are coordinates.
        """
        xarray = imported("xarray", extra="analysis", needed_by="to_xarray")
        if not self.results.num_rows:
            return xarray.Dataset(coords={axis: [] for axis in AXES})
        frame = store.without_aliases(self.results).to_pandas()
        floats = (f.name for f in self.results.schema if pa.types.is_floating(f.type))
        numbers = [name for name in floats if name not in TIMES]
        knobs = [name for name in numbers if "." in name]
        figures = frame.set_index(list(AXES))[[name for name in numbers if name not in knobs]]
        points = frame.drop_duplicates("configuration")
        coordinates = {
            name: ("configuration", points[name].to_numpy(float if name in knobs else str))
            for name in ("method", "defenses", *knobs)
        }
        # as they were planned, and seeds by their numbers
        order = {axis: np.array(list(frame[axis].unique())) for axis in AXES}
        order["seed"].sort()
        return xarray.Dataset(
            figures.to_xarray().reindex(order).data_vars, {**order, **coordinates}
        )

    # after the fact, from what is stored
    to_mlflow = logs.to_mlflow
    to_wandb = logs.to_wandb
    to_tensorboard = logs.to_tensorboard


def load(workdir: str | os.PathLike[str]) -> Sweep:
    """Returns the sweep that is stored in a folder, finished or not.

    Tables are read at once and arrays when they are asked for. ``unfinished`` lists what is missing.

    Args:
      workdir: the folder of the sweep.

    Raises:
      UserError: in one line, with the command that mends it, for what is read and is not what was written.
    """
    return Sweep(*store.load(workdir))
