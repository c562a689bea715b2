"""Surveys an audit's table before anything is trained: who owns columns, and which ones reveal labels."""

from __future__ import annotations

import fnmatch
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from vfljax import datasets, metrics, store, tasks
from vfljax.config import Goal
from vfljax.datasets.core import Dataset, clipped
from vfljax.datasets.frames import arrow_of, read_frame
from vfljax.datasets.partition import owned_columns
from vfljax.datasets.strata import class_counts, stratified
from vfljax.datasets.table_errors import one_line
from vfljax.errors import UnknownError, UserError, argument, options_in, unknown

FRAME = "table.parquet"  # the file of an audit's folder to which a data frame is written
REVEALING = 0.5  # advantage over chance (``above_chance``) from which a column is reported
COPY = 0.98  # advantage from which a column is taken for a copy of the label
ROWS = 20_000  # most rows on which columns are judged
FOLDS = 3
_concordance = jax.jit(metrics.concordance)
Folds = list[tuple[np.ndarray, np.ndarray]]
LEAF = 20  # least rows of a leaf of the boosting, which is scikit-learn's default


PARTIES = argument("parties")


class PartitionedTable(NamedTuple):
    """A table with its label, and the parties that own its columns."""

    data: Any  # its file, or a data frame that an audit writes to one
    label: str  # the column of the labels
    parties: Mapping[str, Sequence[str]]  # the columns of each, by name or glob
    label_party: str
    options: Mapping[str, Any]  # of the table's loader
    label_range: tuple[float, ...] = ()  # ``config.data.label_range``


class AuditRequest(NamedTuple):
    """The request to audit a table."""

    table: PartitionedTable
    attackers: tuple[str, ...]  # parties that attack, each alone
    known: int  # labels that attackers know; 0: as many as ``suite.known_labels`` says
    seeds: int
    goal: Goal


class RevealingColumn(NamedTuple):
    """A column that alone predicts the labels well."""

    column: str
    party: str
    leak: float  # on the scale of the label's task


class Survey(NamedTuple):
    """The table of an audit, and what is known about its columns."""

    table: PartitionedTable
    dataset: Dataset
    options: dict[str, Any]  # of the loader; "drop" includes the columns that no party owns
    owners: dict[str, tuple[str, ...]]  # party -> its columns
    unowned: tuple[str, ...]  # columns that no party owns; they are dropped
    constant: tuple[str, ...]  # parties whose columns never change
    revealing: Sequence[RevealingColumn]  # the most revealing first
    reach: Mapping[str, float]  # leak of boosting on each party's columns, and on all "together"
    sparse: tuple[str, ...] = ()  # columns with too few numbers for boosting


def survey(table: PartitionedTable) -> Survey:
    """Reads a table, finds every party's columns, and scores each column by itself.

    Args:
      table: its ``data`` is a file.

    Raises:
      UserError: for any fault of the table, and for parties whose columns it lacks.
    """
    options, parties = dict(table.options), table.parties
    read = read_frame(table.data, options.get("options"))
    names, label = [*read.frame.columns], one_line(table.label)  # as the loader's
    if label not in names:
        raise unknown(("column in ", argument("label")), label, names, read.hint)
    try:
        dropped = _dropped(options.get("drop", ()), names)
        groups = options.get("groups", "")
        features = [name for name in names if name not in {label, groups, *dropped}]
        reasons = dict.fromkeys({*dropped, groups} - {""}, "is dropped or names groups")
        owners = _owned(parties, features, reasons | {label: "is the label and no feature"})
    except UnknownError as error:
        raise UnknownError((*error.parts, *read.hint)) from None
    del read
    taken = {name for columns in owners.values() for name in columns}
    unowned = tuple(name for name in features if name not in taken)
    options = {"label": label, **options, "drop": (*sorted(dropped), *unowned)}
    dataset = clipped(datasets.load("table", table.data, options), table.label_range)
    present = {column.name for column in dataset.columns}
    kept = {party: tuple(c for c in columns if c in present) for party, columns in owners.items()}
    for party, columns in kept.items():
        if not columns and parties[party]:
            raise UserError((PARTIES, f": no column of {party} can be used: name others."))
    varying = {
        column.name
        for column, values in zip(dataset.columns, dataset.features.T, strict=True)
        if len(np.unique(values)) > 1
    }
    constant = [party for party, columns in kept.items() if columns and not varying & {*columns}]
    found = _revealing(dataset, kept), *_reach(dataset, kept)
    return Survey(table, dataset, options, kept, unowned, tuple(constant), *found)


def _dropped(patterns: Any, names: Sequence[str]) -> set[str]:
    """Returns the columns that the option ``drop`` selects by names and globs."""
    dropped: set[str] = set()
    for pattern in map(str, [patterns] if isinstance(patterns, str) else patterns):
        matches = [pattern] if pattern in names else fnmatch.filter(names, pattern)
        if not matches:
            raise unknown(options_in("column in {drop}="), pattern, names)
        dropped.update(matches)
    return dropped


def _owned(
    parties: Mapping[str, Sequence[str]], features: Sequence[str], reasons: Mapping[str, str]
) -> dict[str, list[str]]:
    """Returns every party's columns. ``reasons`` says of other columns why no party may name them."""
    for party, patterns in parties.items():
        for pattern in map(one_line, patterns):
            if pattern in reasons:
                what = f": {party} names {pattern!r}, which {reasons[pattern]}"
                raise UserError((PARTIES, what), remedy="leave it out")
    return owned_columns(features, parties, PARTIES)


def _revealing(dataset: Dataset, owners: Mapping[str, Sequence[str]]) -> list[RevealingColumn]:
    """Returns the columns whose advantage is above ``REVEALING`` by more than small samples explain."""
    rows = _judged_rows(dataset)
    stratum = stratified(dataset).labels[rows]
    rows = rows[np.bincount(stratum)[stratum] >= FOLDS]  # rarer classes cannot be in all folds
    y = dataset.labels[rows]
    if len(np.unique(y)) < 2:
        return []
    rarest = min(class_counts(dataset, len(dataset.labels)))
    slack = rarest**-0.5 if rarest else 1.0  # at least two standard errors
    places: dict[str, list[int]] = {}
    for place, column in enumerate(dataset.columns):
        places.setdefault(column.name, []).append(place)
    party_of = {column: party for party, columns in owners.items() for column in columns}
    revealing, folds = [], _folds(dataset, rows)
    for name, columns in places.items():
        leak = _leak(np.asarray(dataset.features[rows][:, columns], np.float64), y, folds)
        if name in party_of and above_chance(leak, dataset.num_classes) - slack >= REVEALING:
            revealing.append(RevealingColumn(name, party_of[name], leak))
    return sorted(revealing, key=lambda column: -column.leak)


def above_chance(leak: float, classes: int) -> float:
    """Returns the advantage of a leak over chance, scaled from 0 (chance) to 1 (certainty); 0 for nan.

    Args:
      leak: AUC for two classes, balanced top-1 for more, concordance for numbers.
      classes: C, or 1 for numbers.
    """
    chance = tasks.of(classes).chance(classes)
    return 0.0 if math.isnan(leak) else (leak - chance) / (1 - chance)


def _reach(
    dataset: Dataset, owners: Mapping[str, Sequence[str]]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Returns the leak of gradient boosting with all labels on each party's columns, and on all "together",
    and the columns that are left out of it because some fold has too few numbers of them. Parties without
    other columns are left out; there is no leak at all if a class has too few rows."""
    rows = _judged_rows(dataset)
    y = dataset.labels[rows]
    if np.bincount(stratified(dataset).labels[rows]).min() < FOLDS:
        return {}, ()
    groups = {party: set(columns) for party, columns in owners.items() if columns}
    groups["together"] = set().union(*groups.values())
    # boosting fails if a column has no number at all, and could not divide fewer than a leaf's rows anyway
    folds = _folds(dataset, rows)
    counts = [(~np.isnan(dataset.features[rows[train]])).sum(axis=0) for train, _ in folds]
    used = np.min(counts, axis=0) >= min(LEAF, len(rows) // FOLDS)
    sparse = {column.name for column, enough in zip(dataset.columns, used) if not enough}
    out = {}
    for who, names in groups.items():
        places = [k for k, column in enumerate(dataset.columns) if used[k] and column.name in names]
        if places:
            x = np.asarray(dataset.features[rows][:, places], np.float64)
            kind = HistGradientBoostingClassifier
            kind = HistGradientBoostingRegressor if dataset.num_classes == 1 else kind
            boosting = kind(max_iter=60, min_samples_leaf=LEAF, random_state=0)
            out[who] = _scored(boosting, x, y, folds)
    return out, tuple(sorted(sparse & groups["together"]))


def _judged_rows(dataset: Dataset) -> np.ndarray:
    rows = len(dataset.labels)
    return np.sort(np.random.default_rng(0).choice(rows, min(rows, ROWS), replace=False))


def _leak(x: np.ndarray, y: np.ndarray, folds: Folds) -> float:
    missing = np.isnan(x)
    lowest = np.where(missing, np.inf, x).min(initial=np.inf)
    x = np.where(missing, lowest - 1.0, x)  # that a value is missing may reveal the label too
    if (x == x[:1]).all() or not np.isfinite(lowest):
        return math.nan
    shape: dict[str, Any] = {"max_leaf_nodes": 32, "random_state": 0}
    if y.dtype.kind == "f":
        return _scored(DecisionTreeRegressor(min_samples_leaf=LEAF, **shape), x, y, folds)
    tree = DecisionTreeClassifier(min_samples_leaf=3, class_weight="balanced", **shape)
    return _scored(tree, x, y, folds)


def _folds(dataset: Dataset, rows: np.ndarray) -> Folds:
    """Returns the places among ``rows`` that train each fold and those that are scored. Groups, such as copies
    of a row, stay in one fold unless a class has rows in fewer groups than there are folds."""
    y, how = (
        stratified(dataset).labels[rows],
        {"n_splits": FOLDS, "shuffle": True, "random_state": 0},
    )
    if dataset.groups is not None:
        groups = dataset.groups[rows]
        of_group = np.unique(np.stack([y, groups]), axis=1)[0]  # the class of each group's rows
        if np.unique(of_group, return_counts=True)[1].min() >= FOLDS:
            return list(StratifiedGroupKFold(**how).split(y, y, groups))
    return list(StratifiedKFold(**how).split(y, y))


def _scored(model: Any, x: np.ndarray, y: np.ndarray, folds: Folds) -> float:
    """Returns the cross-validated score of a model: AUC for two classes, or concordance of numbers, both in the
    better direction, or balanced top-1 for more classes."""
    # on a busy machine threads of OpenMP that wait for each other take twenty times as long as one (measured)
    with threadpool_limits(1, "openmp"):
        if y.dtype.kind == "f":
            named = np.asarray(cross_val_predict(model, x, y, cv=folds), np.float32)
            found = float(_concordance(named, y))
            return max(found, 1 - found)
        chances: Any = cross_val_predict(model, x, y, cv=folds, method="predict_proba")
    if chances.shape[1] == 2:
        auc = float(roc_auc_score(y == y.max(), chances[:, 1]))
        return max(auc, 1 - auc)
    return float(balanced_accuracy_score(y, np.unique(y)[chances.argmax(1)]))


def written_frame(frame: Any, folder: pathlib.Path) -> pathlib.Path:
    """Writes a data frame, without its index, to an audit's folder, and returns the path.

    Args:
      frame: a pandas ``DataFrame`` or a ``pyarrow.Table``.
      folder: of the audit.

    Raises:
      UserError: if ``frame`` is no data frame, or not the frame with which the folder's audit began.
    """
    path, arrow = folder / FRAME, arrow_of(frame, "the frame")
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "sweep.json").exists() and path.exists():
        stored = pq.read_table(path.absolute())
        # Arrow takes two NaN for different values, pandas for one missing value
        if not (stored.equals(arrow) or stored.to_pandas().equals(arrow.to_pandas())):
            remedy = ("choose another ", argument("workdir"), ". Nothing was changed")
            raise UserError(f"{folder} holds an audit of another frame", remedy=remedy)
        return path
    store.write_table(path, arrow)
    return path
