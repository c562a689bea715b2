"""The sweep that judges a recommendation again, on seeds on which nothing was chosen.

The best of many operating points is chosen on the seeds on which it is judged, so its figures there are too
good. Its figures on fresh seeds, beside undefended's, are not. ``judged.Judged.confirmed`` has their verdicts.
"""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Mapping
from typing import Any

from vfljax import defenses
from vfljax.config import as_axis
from vfljax.report.judged import judge_sweep
from vfljax.report.points import points_of

SEEDS = 3  # as many as a verdict needs
NOTHING = "nothing is recommended, so there is nothing to confirm"


def fields(workdir: pathlib.Path) -> dict[str, Any] | None:
    """Returns the fields by which the config of the fresh sweep differs from that of a stored sweep.

    The fresh sweep trains undefended, and of each method that is recommended the operating points that are.

    Args:
      workdir: the folder of a sweep that is trained and attacked.

    Returns:
      New values of top-level fields; None if nothing is recommended.
    """
    found = judge_sweep(workdir)
    leading = found.leading
    chosen, bare = leading[leading["recommended"]], leading[leading["undefended"]]
    if not len(chosen):
        return None
    grid, experiment = found.experiment.stored["grid"], found.experiment
    points = points_of(found.trials)["knobs"]
    methods = {name: copy.deepcopy(dict(grid[name])) for name in bare["method"].unique()}
    for name, of in chosen.groupby("method", sort=False):
        places = [points[number] for number in of["configuration"].unique()]
        methods[str(name)] = _at(grid[name], places)
    return {
        "name": f"{experiment.name}: fresh seeds",
        "seeds": SEEDS,
        "first_seed": experiment.trained_seeds.stop,
        "grid": methods,
        "reproduces": {},
    }


def _at(chain: Mapping[str, Any], points: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the chain of a method, with the values that its knobs have at these points alone."""
    out = copy.deepcopy(dict(chain))
    for name, values in out.items():
        for knob, axis in values.items() if name in defenses.TABLE else ():
            if len(as_axis(axis)) > 1:
                at = {point[f"{name}.{knob}"] for point in points}
                values[knob] = tuple(value for value in as_axis(axis) if value in at)
    return out
