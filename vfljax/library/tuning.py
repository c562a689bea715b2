"""``vfljax.tune``: searches operating points of defenses by Optuna, and confirms them on fresh seeds.

    DIR/tune.sqlite3    Optuna's study: every point and, once it is judged, its utility and leak
    DIR/batch-0/ ...    a sweep per batch; all have the same structure, so that they share compiled programs
    DIR/confirmed-3/    undefended and the frontier of 3 batches, on seeds on which nothing was chosen

The first batch is a Latin hypercube of the ranges. The points of later ones are chosen by Optuna's TPE sampler.
"""

from __future__ import annotations

import functools
import math
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax import store
from vfljax.auditing import planning, suite
from vfljax.defenses import TABLE
from vfljax.errors import UserError, imported, refusals, unknown_row
from vfljax.launching import running
from vfljax.library.sweeps import Sweep, folder_of, load
from vfljax.sweep.experiment import parse

STUDY = "tune.sqlite3"


class Tuned(NamedTuple):
    """The result of a search. Points hold knobs and figures; on fresh seeds these are "fresh_leak" etc."""

    points: list[dict[str, Any]]
    frontier: list[dict[str, Any]]  # points that no other point dominates, the lowest leak first
    study: pathlib.Path  # the file of Optuna's study
    sweeps: list[Sweep]  # one per batch
    confirmed: Sweep | None  # undefended and points of the frontier, on fresh seeds

    def frame(self) -> pd.DataFrame:
        """Returns a row per point."""
        return pd.DataFrame(self.points)


def tune(
    defenses: Mapping[str, Mapping[str, Any]] | Sequence[str] | str,
    config: Mapping[str, Any],
    workdir: str | os.PathLike[str],
    *,
    batches: int = 3,
    points: int = 8,
    confirm: int = 8,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> Tuned:
    """Searches the knobs of defenses for a high utility on validation rows and a low leak.

    The leak is that of the strongest attack, with model splitting if the config trains that. The same call
    continues a search that was stopped or killed, and with more ``batches`` it goes on. Call
    ``vfljax.use_this_machine()`` first, as for ``run_sweep``.

    Args:
      defenses: the knobs of each, {"noise": {"scale": (1e-4, 1.0, "log")}}. A knob has a value or a range
        (low, high), perhaps with "log" or "whole". A name alone is the range of the defense's strengths.
      config: as for ``run_sweep``; its grid is not used.
      workdir: the folder of the search.
      batches: the total number of batches; stored batches beyond it are kept.
      points: of each defense in a batch.
      confirm: how many points of the frontier, at most, are trained and attacked on fresh seeds.
      seed: of the search.
      say: is given each line of progress.

    Raises:
      UserError: for knobs that cannot be searched, and if ``workdir`` holds another search.
    """
    folder = folder_of(workdir)
    optuna = imported("optuna", extra="tune", needed_by="tune")
    least = {"batches": 1, "points": 1, "confirm": 0, "seed": 0}
    for name, number in zip(least, (batches, points, confirm, seed), strict=True):
        if type(number) is not int or number < least[name]:
            raise UserError(f"{name}={number!r} is no whole number of at least {least[name]}.")
    names: Any = defenses if isinstance(defenses, (list, tuple, Mapping)) else [defenses]
    if not names:
        raise UserError("there is no defense to search: name one.")
    searched = {
        name: _searched(optuna, name, defenses[name] if isinstance(defenses, Mapping) else {})
        for name in names
    }
    spaces = [ranges for _, ranges in searched.values()]
    slots = [name for name in searched for _ in range(points)]  # the defenses of a batch
    values = parse(config).stored
    judged, chains, sweeps, confirmed = [], {}, [], None
    with store.writing(folder):
        study = _study(optuna, folder / STUDY, spaces, points, seed)
        batches = max(batches, -(-len(_known(optuna, study)) // len(slots)))
        for batch in range(batches):
            trials = _asked(optuna, study, [searched[name][1] for name in slots], batch, seed)
            grid = {}
            for name, t in zip(slots, trials, strict=True):
                knobs = {k: t.params.get(f"{name}.{k}", x) for k, x in searched[name][0].items()}
                grid[f"{name} {t.number}"] = {name: knobs}
            part = {**values, "name": f"{values['name']}: batch {batch}", "grid": grid}
            sweep, figures = judge(part, folder / f"batch-{batch}", say)
            for method, trial in zip(grid, trials, strict=True):
                about = {"number": trial.number, "method": method, "batch": batch}
                judged.append({**about, **trial.params, **figures[method]})
                if not trial.state.is_finished():
                    leak = figures[method]["leak"]
                    # no leak is measured if training diverged, which must not look good
                    utility = figures[method]["validation_utility"]
                    study.tell(trial.number, (utility, 1.0 if math.isnan(leak) else leak))
            chains |= grid
            sweeps.append(sweep)
        best = {trial.number for trial in study.best_trials}
        frontier = [point for point in judged if point["number"] in best]
        frontier.sort(key=lambda point: point["leak"])
        if confirm:
            chosen = frontier[:: -(-len(frontier) // confirm)]
            grid = {point["method"]: chains[point["method"]] for point in chosen}
            part = {
                **{**values, "name": f"{values['name']}: fresh seeds", "seeds": planning.FRESH},
                "first_seed": values["first_seed"] + values["seeds"],
                "grid": {suite.UNDEFENDED: {}, **grid},
            }
            confirmed, figures = judge(part, folder / f"confirmed-{batches}", say)
            for point in chosen:
                point |= {f"fresh_{name}": x for name, x in figures[point["method"]].items()}
    return Tuned(judged, frontier, folder / STUDY, sweeps, confirmed)


def judge(
    values: Mapping[str, Any], folder: pathlib.Path, say: Callable[[str], None]
) -> tuple[Sweep, dict[str, dict[str, Any]]]:
    """Trains and attacks the sweep of a config, unless it is finished. Returns it, and figures by method."""
    running.finish(parse(values), folder, "vfljax.tune", say)
    sweep, figures = load(folder), {}
    reference, assessments = sweep.assessed.reference, sweep.assessed.assessments
    federation = assessments[0].federation
    for a in assessments:
        if a.federation == federation:
            utilities = a.configuration.validation[federation].values()
            # a seed that diverged counts as a guess
            kept = [reference.guess if math.isnan(u) else u for u in utilities]
            figures[a.method] = {
                "validation_utility": float(np.mean(kept)),
                "test_utility": a.utility.mean,
                "leak": a.leak.mean,
                "verdict": str(a.verdict or ""),
            }
    return sweep, figures


def _searched(optuna: Any, name: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Returns all knobs of a defense, with an audit's values for those that are not given, and Optuna's
    distributions of the knobs that have a range, by names such as "noise.scale"."""
    if name not in TABLE:
        raise unknown_row("defense", name, TABLE)
    if not isinstance(given, Mapping):
        remedy = f"give {{{name!r}: {{KNOB: (LOW, HIGH)}}}}"
        raise UserError(f"{name}={given!r} names no knob", remedy=remedy)
    row, strengths, ranges = TABLE[name], TABLE[name].strengths, {}
    knobs = {knob: row.example[knob] for knob in row.required}
    if strengths is not None:
        low, high = min(strengths.values), max(strengths.values)
        scale = "whole" if strengths.whole else "log" if high > 10 * low else "linear"
        knobs |= strengths.fixed
        given = given or {strengths.knob: (low, high, scale)}
    knobs |= given
    real, whole = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
    scales = {"linear": real, "log": functools.partial(real, log=True), "whole": whole}
    for knob, value in knobs.items():
        if isinstance(value, (tuple, list)):
            try:
                low, high, scale = (*value, "linear")[:3]
                ranges[f"{name}.{knob}"] = scales[scale](low, high)
            except (ValueError, TypeError, KeyError) as error:
                remedy = "give (low, high), (low, high, 'log') or (low, high, 'whole')"
                raise UserError(f"{name}.{knob}={value!r} is no range", remedy=remedy) from error
    if not ranges:
        raise UserError(f"no knob of {name} has a range: give one of {', '.join(row.knobs)}.")
    return knobs, ranges


def _study(
    optuna: Any, path: pathlib.Path, spaces: list[dict[str, Any]], points: int, seed: int
) -> Any:
    """Opens the study of a search. A new one begins with a Latin hypercube of the ranges of each defense."""
    with refusals(f"Optuna, of {path.name},"):
        study = optuna.create_study(
            storage=f"sqlite:///{path.absolute()}",
            # another search is another study in this file; its first batch is refused by batch-0
            study_name=f"{points} points of {', '.join(x for ranges in spaces for x in ranges)}",
            directions=("maximize", "minimize"),
            load_if_exists=True,
        )
    if not study.get_trials():
        rng = np.random.default_rng(seed)
        for ranges in spaces:
            axes = {}
            for name, x in ranges.items():
                spaced = np.geomspace if x.log else np.linspace
                axis = spaced(x.low, x.high, 2 * points + 1)[1::2]  # the middles of equal parts
                axis = axis.round() if isinstance(x.low, int) else axis
                axes[name] = rng.permutation(axis).tolist()
            for values in zip(*axes.values(), strict=True):
                study.enqueue_trial(dict(zip(axes, values, strict=True)))
    return study


def _known(optuna: Any, study: Any) -> list[Any]:
    """Returns the trials for which the study was asked, in order."""
    states = optuna.trial.TrialState
    return study.get_trials(states=(states.RUNNING, states.COMPLETE))


def _asked(
    optuna: Any, study: Any, slots: list[dict[str, Any]], batch: int, seed: int
) -> list[Any]:
    """Returns the trials of a batch. The study is asked for those that it does not hold yet."""
    stored = 0
    for trial in _known(optuna, study):
        if trial.params.keys() == slots[stored % len(slots)].keys():
            stored += 1
        else:  # a process was killed while it asked
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    for place in range(stored, (batch + 1) * len(slots)):
        # seeded for each point, so that a search that goes on does not draw the same points again
        drawn = int(np.random.default_rng([seed, place]).integers(2**31))
        study.sampler = optuna.samplers.TPESampler(n_startup_trials=1, seed=drawn)
        study.ask(slots[place % len(slots)])
    return _known(optuna, study)[batch * len(slots) : (batch + 1) * len(slots)]
