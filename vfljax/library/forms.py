"""Turns a sweep into tidy pandas frames and labeled xarray arrays. All judgments are those of the report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vfljax import store
from vfljax.errors import UserError, imported, shown, unknown
from vfljax.report import intervals, worth
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import (
    FIGURES,
    ConfigurationSummary,
    attacks_of,
    configurations,
    reference_of,
    varying_knobs,
)
from vfljax.report.judging import MEANINGS
from vfljax.report.stored_rows import AttackFigures, StoredRows, read
from vfljax.store.header import differences
from vfljax.store.loading import TIMES
from vfljax.sweep.experiment import experiment_of

VERDICTS = {str(verdict): meaning for verdict, meaning in MEANINGS.items()}
"""Every verdict, and what the limits show if it holds. If several hold, the first one is given."""
AXES = ("configuration", "federation", "seed")  # of labeled arrays
LEAKS = ("leak", "excess", "success")  # of every attack, on one more axis
COMPARED = (
    *("method", "configuration", "federation", "figure", "attack", "a", "b"),
    *("difference", "lower", "upper", "seeds", "found_in"),
)


def about(rows: StoredRows) -> dict[str, str]:
    """Returns a description of a stored sweep: five lines by their heads."""
    sweep, trials, data = rows.sweep, rows.trials, rows.sweep.header["data"]
    attacks = dict.fromkeys(row.identity.attack for row in rows.attacks)
    federations = dict.fromkeys(trial.figures["federation"] for trial in trials)
    methods, seeds = ({getattr(t, name) for t in trials} for name in ("method", "seed"))
    first, *more = sweep.unfinished or ["nothing"]
    return {
        f"sweep {experiment_of(sweep).name}": shown(sweep.workdir),
        f"data {data['name']}": f"{data['train']} training and {data['test']} test rows a seed, "
        f"{data['classes']} classes, {len(data['party_shapes'])} parties with columns",
        "trials": f"{len(trials)} of {sweep.header['trials']}, {len(methods)} methods, {len(seeds)} seeds, "
        f"federations {', '.join(federations) or 'none'}",
        "attacks": ", ".join(attacks) or "none",
        "unfinished": f"{first} (and {len(more)} more)" if more else first,
    }


def verdict_frame(assessed: Assessed) -> pd.DataFrame:
    """Returns a row for every configuration and federation of an assessed sweep."""
    records = []
    for a in assessed.assessments:
        estimates = {"leak": a.leak, "excess": a.excess, "change": a.change, "utility": a.utility}
        estimates |= {"utility_change": a.cost, "gain_kept": a.kept.share}
        figures = {
            f"{name}{end}": value
            for name, estimate in estimates.items()
            for end, value in zip(("", "_lower", "_upper"), (estimate.mean, *estimate.limits))
        }
        about = {
            "method": a.method,
            "configuration": a.label,
            "number": a.configuration.number,
            "federation": a.federation,
            "verdict": a.verdict and str(a.verdict),
            "cost": str(a.kept.cost) if a.configuration.defended else None,
            "chosen": a.chosen,
            "strongest": a.strongest and a.strongest.name,
            "local_only": a.strongest.local_only if a.strongest else None,
            "defense_known": a.known,
        }
        records.append({**about, **figures, **a.configuration.knobs})
    return pd.DataFrame(records)


def leak_frame(rows: StoredRows) -> pd.DataFrame:
    """Returns a row for every attack on every trial of a stored sweep."""
    by_number = {c.number: c for c in configurations(rows)}
    trials = {trial.trial: trial for trial in rows.trials}
    records = []
    for row in itertools.chain(*attacks_of(rows).values()):
        trial, identity = trials[row.trial], row.identity
        configuration = by_number[trial.configuration]
        about = {
            "method": trial.method,
            "configuration": configuration.label,
            "number": configuration.number,
            "federation": trial.figures["federation"],
            "seed": trial.seed,
            "trial": trial.trial,
            "attack": identity.attack,
            "variant": identity.label,
            "known": identity.known,
            "point": row.point,
            "oracle": row.oracle,
        }
        figures = {name: row.figures.get(name) for name in FIGURES} | {"excess": row.excess}
        settings = {f"attack.{name}": value for name, value in settings_of(row).items()}
        records.append({**about, **figures, **configuration.knobs, **settings})
    return pd.DataFrame(records)


def settings_of(row: AttackFigures) -> dict[str, Any]:
    """Returns the options and the numeric knobs of an attack."""
    return {**dict(row.identity.options), **row.knobs}


def labeled_arrays(rows: StoredRows, method: str | None = None) -> Any:
    """Returns the figures of every trial and attack as an xarray Dataset.

    Args:
      rows: of a stored sweep.
      method: a method whose knobs become axes; None for all methods, with configurations as an axis.
    """
    xarray = imported("xarray", extra="analysis", needed_by="to_xarray")
    results = rows.sweep.results
    if not results.num_rows:
        return xarray.Dataset(coords={axis: [] for axis in AXES})
    frame = results.to_pandas()
    floats = (f.name for f in results.schema if pa.types.is_floating(f.type))
    numbers = [name for name in floats if name not in TIMES]
    knobs = [name for name in numbers if "." in name]
    figures = frame.set_index(list(AXES))[[name for name in numbers if name not in knobs]]
    points = frame.drop_duplicates("configuration")
    coordinates = {
        name: ("configuration", points[name].to_numpy(float if name in knobs else str))
        for name in ("method", "defenses", *knobs)
    }
    # in the planned order, and seeds by their numbers
    order = {axis: np.array(list(frame[axis].unique())) for axis in AXES}
    order["seed"].sort()
    arrays = xarray.Dataset(figures.to_xarray().reindex(order).data_vars, {**order, **coordinates})
    leaks = leak_frame(rows)
    if not leaks.empty:
        leaks = leaks[leaks["point"] == 0]
        leaks = leaks.assign(configuration=leaks["number"], attack=leaks["variant"])
        by_attack = leaks.set_index([*AXES, "attack"])[[*LEAKS]].astype(float).to_xarray()
        arrays = arrays.assign(by_attack.reindex(order).data_vars)
    return arrays if method is None else _along_knobs(arrays, configurations(rows), method)


def _along_knobs(arrays: Any, summaries: Iterable[ConfigurationSummary], method: str) -> Any:
    """Returns the arrays of one method. Knobs that vary are axes in place of the configuration."""
    members = [c for c in summaries if c.method == method]
    if not members:
        raise unknown("method of this sweep", method, dict.fromkeys(c.method for c in summaries))
    knobs = varying_knobs(members)
    points = [tuple(c.knobs[knob] for knob in knobs) for c in members]
    if len(members) != math.prod(len({*values}) for values in zip(*points)):
        raise UserError(
            f"{method} has no full grid of {', '.join(knobs)}: call to_xarray(), by configuration."
        )
    of_members = [name for name, c in arrays.coords.items() if c.dims == ("configuration",)]
    arrays = arrays.sel(configuration=[c.number for c in members]).drop_vars(of_members)
    if not knobs:
        return arrays.isel(configuration=0)
    xarray = imported("xarray", extra="analysis", needed_by="to_xarray")
    index = pd.MultiIndex.from_tuples(points, names=knobs)
    axes = xarray.Coordinates.from_pandas_multiindex(index, "configuration")
    arrays = arrays.drop_vars(knobs, errors="ignore").assign_coords(axes)
    return arrays.unstack("configuration").transpose(*knobs, ...)


def compare(a: store.StoredSweep, b: store.StoredSweep) -> pd.DataFrame:
    """Returns every figure of two sweeps with the difference b - a, paired by seed.

    Configurations match if their methods, knobs and kinds of federation are equal, and attacks if their options
    and knobs are. All else of the configs may differ: ``frame.attrs["changed_fields"]`` lists these fields.

    Args:
      a: a sweep.
      b: another one, of the same data and splits.

    Returns:
      A row for every utility on test rows and every attack's leak: its means ``a`` and ``b`` over the seeds of
      both, their ``difference`` with Student's limits for 3 ``seeds`` or more, each one-sided at 95 %, and
      ``found_in``: "both", or "a" or "b" if only this sweep has the figure.

    Raises:
      UserError: for sweeps of other data or splits, whose seeds cannot be paired.
    """
    for sweep in (a, b):
        if not isinstance(sweep, store.StoredSweep):
            kind = type(sweep).__name__
            raise UserError(f"compare needs sweeps and not {kind}: give what vfljax.load returns.")
    left, right = ({**x.header["data"], **x.header} for x in (a, b))
    if any(left[name] != right[name] for name in ("checksum", "train", "validation", "test")):
        raise UserError(
            f"{a.workdir} and {b.workdir} have other data or splits: seeds are paired only if these are equal."
        )
    rows = read(a)
    left, right = _figures(rows), _figures(read(b))
    floor = intervals.half_row(reference_of(rows).rows)
    records = []
    for key, (cells, _) in {**left, **right}.items():
        x, y = (side[key][1] if key in side else {} for side in (left, right))
        seeds = [seed for seed in x if seed in y and math.isfinite(x[seed] + y[seed])]
        found_in = "both" if x and y else "a" if x else "b"
        used = (seeds, seeds) if x and y else (x, y)
        means = [worth.paired([v[s] for s in of_v]).mean for v, of_v in zip((x, y), used)]
        spread = floor if cells[3] == LEAKS[0] else 0.0
        difference = worth.paired([y[seed] - x[seed] for seed in seeds], spread)
        figures = (*means, difference.mean, *difference.limits, len(seeds), found_in)
        records.append((*cells, *figures))
    frame = pd.DataFrame(records, columns=list(COMPARED))
    frame.attrs["changed_fields"] = [str(field) for field in differences(a.config, b.config)]
    return frame


def _figures(rows: StoredRows) -> dict[Hashable, tuple[tuple[str, ...], dict[int, float]]]:
    """Returns the utility of every configuration and the leak of every attack on it, by keys that match equal
    figures of two sweeps: the first cells of ``COMPARED``, and values by seed."""
    utility, figures = worth.utility_of(rows.balance), {}
    by_number = {c.number: c for c in configurations(rows)}
    for c in by_number.values():
        for federation, by_seed in c.test.items():
            cells = c.method, c.label, federation, utility, ""
            figures[c.method, frozenset(c.knobs.items()), federation] = cells, dict(by_seed)
    trials = {trial.trial: trial for trial in rows.trials}
    for row in itertools.chain(*attacks_of(rows).values()):
        trial = trials[row.trial]
        c, federation = by_number[trial.configuration], trial.federation
        of_row = row.identity, frozenset(row.knobs.items())
        key = c.method, frozenset(c.knobs.items()), federation, *of_row
        cells = c.method, c.label, federation, LEAKS[0], row.identity.label
        figures.setdefault(key, (cells, {}))[1][row.seed] = row.figures["leak"]
    return figures
