"""The sweep that judges one configuration again beside undefended, on seeds on which nothing was chosen.

It is what is switched on, or, where limits leave the decision open, what is nearest to be. One configuration is
judged once, on as many seeds as are likely to settle it, so that its limits need no correction. If it is denied
and another is then nearest, that one joins it on the same seeds: it was chosen by others, and what is denied
does not count (``decision``). ``judged_sweep.Judged.confirmed`` has the verdicts.
"""

from __future__ import annotations

import copy
import math
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from vfljax import defenses, store
from vfljax.config import as_axis
from vfljax.report.decision import LOOKS, Decided, Row
from vfljax.report.judged_sweep import CONFIRMED, STAGE2, Judged
from vfljax.report.points import points_of
from vfljax.report.sweep_answers import judge_sweep

SEEDS, MOST = 7, 30
"""The seeds that judge again what was switched on, and the most of what is open."""
NOTHING = "no defense is switched on or near to be, so there is nothing to confirm"


def seeds_for(decided: Decided) -> int:
    """Returns on how many fresh seeds a decision's point is judged again."""
    v = decided.point or decided.leading
    if decided.point or v is None:
        return SEEDS
    needed = [v[name] for name in ("verdict_seeds", "cost_seeds") if not math.isnan(v[name])]
    return int(min(max([SEEDS, *needed]), MOST))


def named(judged: Judged) -> dict[str, Row]:
    """Returns what is judged again, by panel."""
    every = {panel: of.point or of.leading for panel, of in judged.decisions.items()}
    return {panel: v for panel, v in every.items() if v is not None}


def fields(workdir: pathlib.Path) -> dict[str, Any] | None:
    """Returns the fields by which the config of the fresh sweep differs from that of a stored sweep.

    Args:
      workdir: the folder of a sweep that is trained and attacked.

    Returns:
      New values of top-level fields; None if there is nothing to judge again.
    """
    found = judge_sweep(workdir)
    points = named(found)
    if not points:
        return None
    experiment, stored = found.experiment, store.header_of(workdir / CONFIRMED)
    before = {} if stored is None else stored["config"]["grid"]
    attacked = [of.experiment.stored["attacks"] for of in found.stage2.values()]
    return {
        "name": f"{experiment.name}: fresh seeds",
        "seeds": max(seeds_for(found.decisions[panel]) for panel in points),
        "first_seed": first_seed(found),
        "grid": {**before, **grid_of(found, [v["configuration"] for v in points.values()])},
        "attacks": {name: options for of in attacked for name, options in of.items()}
        or experiment.stored["attacks"],
        "reproduces": {},
    }


def first_seed(found: Judged) -> int:
    """Returns the first seed after all that a sweep and its decisions have, or may come to have."""
    last = found.experiment.trained_seeds.stop
    return max(
        [last + LOOKS[-1], *(of.experiment.trained_seeds.stop for of in found.stage2.values())]
    )


def grid_of(found: Judged, configurations: Iterable[int]) -> dict[str, Any]:
    """Returns the grid of undefended and of some configurations of a sweep, an entry for each.

    The entry of a configuration is called after its label, and each of its knobs has one value.
    """
    grid, leading = found.experiment.stored["grid"], found.leading
    bare = leading.loc[leading["undefended"], "method"].unique()
    out = {name: copy.deepcopy(dict(grid[name])) for name in bare}
    points = points_of(found.trials)
    for number in dict.fromkeys(configurations):
        of = points.loc[number]
        out[str(of["label"])] = _at(grid[of["method"]], of["knobs"])
    return out


def _at(chain: Mapping[str, Any], knobs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the chain of a method, with the values that its knobs have at one point."""
    out = copy.deepcopy(dict(chain))
    for name, values in out.items():
        for knob, axis in values.items() if name in defenses.TABLE else ():
            if len(as_axis(axis)) > 1:
                values[knob] = knobs[f"{name}.{knob}"]
    return out


def stage2_folder(workdir: pathlib.Path, panel: str) -> pathlib.Path:
    """Returns the folder of the sweep on which a panel is decided."""
    return workdir / STAGE2 / panel
