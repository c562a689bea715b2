"""Turns a judged sweep into tidy pandas frames and labeled xarray arrays; all judgments are the report's."""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vfljax import store
from vfljax.errors import UnknownError, UserError, imported, short_path, unknown
from vfljax.report.frames import read_frames
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import half_row, limits
from vfljax.report.points import points_of
from vfljax.report.verdicts import MEANINGS
from vfljax.store.header import differences
from vfljax.store.loading import TIMES
from vfljax.sweep.grid import experiment_of
from vfljax.types import federation_of

VERDICTS = {str(verdict): meaning for verdict, meaning in MEANINGS.items()}
"""Every verdict, and what the limits show if it holds. If several hold, the first one is given."""
AXES = ("configuration", "federation", "seed")  # of labeled arrays
LEAKS = ("leak", "excess", "success")  # of every attack, on one more axis
FIRST = (
    *("method", "configuration", "configuration_label", "panel", "federation", "trial", "seed"),
    *("attack", "label", "known", "draws", "role", "leak", "excess"),
)
"""The first columns of ``leak_frame``."""
COMPARED = ("method", "configuration", "federation", "figure", "attack")
MEANS = ("a", "b", "difference", "lower", "upper", "seeds", "found_in")


def about(sweep: store.StoredSweep) -> dict[str, str]:
    """Returns a description of a stored sweep: five lines by their heads."""
    results, data = sweep.results.to_pandas(), sweep.header["data"]
    attacked = sweep.attacks["attack"].unique().to_pylist() if sweep.attacks.num_rows else []
    none = pd.DataFrame(columns=["method", "seed", "federation"])
    of = results if len(results) else none
    kinds = dict.fromkeys(federation_of(name).kind for name in of["federation"].unique())
    first, *more = sweep.unfinished or ["nothing"]
    return {
        f"sweep {experiment_of(sweep).name}": short_path(sweep.workdir),
        f"data {data['name']}": f"{data['train']} training and {data['test']} test rows a seed, "
        f"{data['classes']} classes, {len(data['party_shapes'])} parties with columns",
        "trials": f"{len(of)} of {sweep.header['trials']}, {of['method'].nunique()} methods, "
        f"{of['seed'].nunique()} seeds, federations {', '.join(kinds) or 'none'}",
        "attacks": ", ".join(attacked) or "none",
        "unfinished": f"{first} (and {len(more)} more)" if more else first,
    }


def verdict_frame(judged: Judged, known: int | None = None) -> pd.DataFrame:
    """Returns the verdicts for one K, with the knobs of each configuration.

    Args:
      judged: of a sweep.
      known: K, the number of labels that attackers know; None: the one that the report leads with.
    """
    verdicts, most = judged.verdicts, judged.facts.known
    if len(verdicts) and known is not None and known not in set(verdicts["known"]):
        counts = sorted({*map(int, verdicts["known"])}, reverse=True)
        raise unknown("number of known labels", f"{known}", map(str, counts))
    chosen = verdicts[verdicts["known"] == (most if known is None else known)]
    return chosen.reset_index(drop=True).join(_knobs(judged), on="configuration")


def _knobs(judged: Judged) -> pd.DataFrame:
    """Returns the knobs of each configuration, indexed by it; NaN for those of other methods."""
    return _wide(points_of(judged.trials)["knobs"])


def _wide(knobs: pd.Series) -> pd.DataFrame:
    """Returns dicts of knobs as columns."""
    return pd.DataFrame.from_dict(knobs.to_dict(), orient="index")


def leak_frame(judged: Judged) -> pd.DataFrame:
    """Returns a row for every attack on every trial, with what was attacked and with which options.

    To the columns of ``report.frames`` it adds ``method``, ``configuration_label``, the ``excess`` over the
    best local-only learner of the same attackers, known labels, draws and seed, the knobs of the configuration,
    and the attack's options as ``attack.NAME``, beside its numeric knobs.
    """
    rows, trials = judged.rows, judged.trials
    attacks = rows[rows["role"] != "learner"].copy()
    at = ["attackers", "known", "draws", "seed"]
    reached = rows[rows["role"] == "learner"].groupby(at)["leak"].max()
    reached = reached.reindex(pd.MultiIndex.from_frame(attacks[at])).to_numpy()
    alone = np.where(attacks["known"] > 0, reached, judged.facts.chance)
    oracle = attacks["role"] == "oracle"  # no learner knows as much
    excess = np.where(oracle, np.nan, attacks["leak"] - alone)
    points = points_of(trials)
    placed = attacks.assign(
        method=attacks["configuration"].map(points["method"]),
        configuration_label=attacks["configuration"].map(points["label"]),
        excess=excess,
    )
    options = {key: dict(identity.options) for key, identity in _identities(judged.sweep).items()}
    placed = placed[[*FIRST, *(name for name in placed if name not in FIRST)]]
    placed = placed.join(_wide(points["knobs"]), on="configuration")
    if not options:
        return placed
    columns = pd.DataFrame.from_dict(options, orient="index").add_prefix("attack.")
    columns = columns.drop(columns=[name for name in columns if name in placed])
    return placed.join(columns, on="variant")


def _identities(sweep: store.StoredSweep) -> dict[str, Any]:
    """Returns the identity of each attack that was run, by its variant."""
    return {
        variant: store.identity_of(entry)
        for variant, entry in store.attack_summary(sweep.workdir).items()
        if entry["status"] != "skipped"
    }


def attack_frame(judged: Judged, name: str, values: Mapping[str, Any]) -> pd.DataFrame:
    """Returns the rows of ``leak_frame`` of one attack whose options and numeric knobs have these values."""
    leaks = leak_frame(judged)
    rows = leaks[leaks["attack"] == name]
    if rows.empty:
        raise unknown("attack of this sweep", name, leaks["attack"].unique())
    chosen = pd.Series(True, rows.index)
    for key, value in values.items():
        name_of = f"attack.{key}"
        of = rows[name_of] if name_of in rows else [math.nan] * len(rows)
        chosen &= np.array([bool(np.all(each == value)) for each in of])
    if not chosen.any():
        asked = ", ".join(f"{key}={value!r}" for key, value in values.items())
        columns = [column for column in rows if column.startswith("attack.")]
        pairs = rows[columns].drop_duplicates().to_dict("records")
        there = dict.fromkeys(
            f"{key.removeprefix('attack.')}={value!r}"
            for pair in pairs
            for key, value in pair.items()
            if value is not None and value == value  # NaN: another attack's option
        )
        raise UnknownError(f"no rows of {name} have {asked}: choose from {', '.join(there)}.")
    return rows[chosen].dropna(axis="columns", how="all")


def labeled_arrays(
    results: pa.Table, judge: Callable[[], Judged], method: str | None = None
) -> Any:
    """Returns the figures of every trial and attack as an xarray Dataset.

    Args:
      results: of a sweep.
      judge: gives the sweep with its frames; it is called only if there are results.
      method: a method whose knobs become axes; None for all methods, with configurations as an axis.
    """
    xarray = imported("xarray", extra="analysis", needed_by="to_xarray")
    if not results.num_rows:
        return xarray.Dataset(coords={axis: [] for axis in AXES})
    frame, judged = results.to_pandas(), judge()
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
    leaks = leak_frame(judged)
    leaks = leaks[leaks["point"] == 0]
    if judged.sweep.attacks.num_rows:
        stored = judged.sweep.attacks.select(["variant", "federation", "label"]).to_pandas()
        names = stored.drop_duplicates(["variant", "federation"])
        leaks = leaks.drop(columns=["attack", "label"]).merge(names, on=["variant", "federation"])
        leaks = leaks.rename(columns={"label": "attack"})
        by_attack = leaks.set_index([*AXES, "attack"])[[*LEAKS]]
        arrays = arrays.assign(by_attack.astype(float).to_xarray().reindex(order).data_vars)
    return arrays if method is None else _along_knobs(arrays, judged.trials, method)


def _along_knobs(arrays: Any, trials: pd.DataFrame, method: str) -> Any:
    """Returns the arrays of one method. Knobs that vary are axes in place of the configuration."""
    members = trials.loc[trials["method"] == method, "configuration"].unique()
    if not len(members):
        raise unknown("method of this sweep", method, trials["method"].unique())
    values = _wide(points_of(trials)["knobs"]).loc[members]
    knobs = [name for name in values if values[name].nunique(dropna=False) > 1]
    points = list(values[knobs].itertuples(index=False, name=None))
    if len(members) != math.prod(values[knob].nunique(dropna=False) for knob in knobs):
        raise UserError(
            f"{method} has no full grid of {', '.join(knobs)}: call to_xarray(), by configuration."
        )
    of_members = [name for name, c in arrays.coords.items() if c.dims == ("configuration",)]
    arrays = arrays.sel(configuration=members).drop_vars(of_members)
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
    scored = half_row(read_frames(a).facts.scored_rows)
    sides = [_figures(sweep) for sweep in (a, b)]
    key = ["key", "seed"]
    paired = sides[0].merge(sides[1][[*key, "value"]], how="outer", on=key, suffixes=("_a", "_b"))
    # what a lacks is named as in b
    names = pd.concat(sides).drop_duplicates("key").set_index("key")[list(COMPARED)]
    records = []
    for each, of in paired.groupby("key", sort=False):
        x, y = of["value_a"].to_numpy(), of["value_b"].to_numpy()
        both = np.isfinite(x) & np.isfinite(y)
        has = [each in set(side["key"]) for side in sides]
        found_in = "both" if all(has) else "a" if has[0] else "b"
        least = scored if names.loc[each, "figure"] == "leak" else 0.0
        used = np.where(both, [x, y], np.nan) if all(has) else np.stack([x, y])
        difference = limits(np.where(both, y - x, np.nan), least)
        means = limits(used).mean.tolist()
        figures = (float(value) for value in difference[1:])
        records.append((*names.loc[each], *means, *figures, int(both.sum()), found_in))
    frame = pd.DataFrame(records, columns=[*COMPARED, *MEANS])
    frame.attrs["changed_fields"] = [str(field) for field in differences(a.config, b.config)]
    return frame


def _figures(sweep: store.StoredSweep) -> pd.DataFrame:
    """Returns the utility of every trial and the leak of every attack on it.

    The columns are ``COMPARED``, ``seed``, ``value``, and a ``key`` that matches equal figures of two sweeps.
    """
    rows, trials, facts, _ = read_frames(sweep)
    points, identities = points_of(trials), _identities(sweep)
    names = points["label"]
    place = {
        number: (method, tuple(sorted((k, str(v)) for k, v in knobs.items())))
        for number, method, knobs in points[["method", "knobs"]].itertuples(name=None)
    }
    records = []
    columns = ["configuration", "federation", "seed", "test_utility"]
    for c, federation, seed, value in trials[columns].itertuples(index=False, name=None):
        kind = federation_of(federation).kind
        key = str((*place[c], kind))
        records.append((key, place[c][0], names[c], kind, facts.utility, "", seed, value))
    attacks = rows[(rows["role"] != "learner") & rows["leak"].notna()]
    of_knobs = [name for name in attacks if name.startswith("attack.")]
    columns = ["configuration", "federation", "variant", "label", "seed", "leak", *of_knobs]
    for c, federation, variant, label, seed, value, *given in attacks[columns].itertuples(
        index=False, name=None
    ):
        kind = federation_of(federation).kind
        key = str((*place[c], kind, identities[variant], tuple(map(str, given))))
        records.append((key, place[c][0], names[c], kind, "leak", label, seed, value))
    return pd.DataFrame(records, columns=["key", *COMPARED, "seed", "value"])
