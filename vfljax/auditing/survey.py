"""The table of an audit, looked at before anything is trained: who owns what, and what gives labels away.

What enters: a ``Request``. What leaves: a ``Look``, or a ``UserError`` of one line. Nothing is written.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from vfljax import datasets
from vfljax.auditing.request import PARTIES, Request, of_audit
from vfljax.datasets.core import Dataset
from vfljax.datasets.number_formats import is_number
from vfljax.datasets.partition import owned_columns
from vfljax.datasets.reading import read
from vfljax.datasets.table_errors import one_line
from vfljax.errors import UserError, options_in, unknown

TELLING = 0.5
"""The advantage over chance at which a column alone is named, by more than chance can do in so many rows:
leak AUC .75 of two classes."""
COPY = 0.98  # ... and from which it as good as is the label
ROWS = 20_000  # that a column is judged on
READING = ("delimiter", "header", "file_encoding")  # the loader's options that name columns


class Telling(NamedTuple):
    """A column that alone says much of the labels."""

    column: str
    party: str
    figure: float  # leak AUC of two classes, balanced top-1 of more

    def sentence(self, classes: int) -> str:
        """What a person should check."""
        does = (
            f"ranks the labels with AUC {self.figure:.2f}"
            if classes == 2
            else f"names the right one of {classes} classes for {self.figure:.0%} of the rows, classes "
            "counting alike"
        )
        doubt = (
            "it all but is the label: leave it out if it is made from it"
            if advantage(self.figure, classes) >= COPY
            else "leave it out if it is not known before the label is"
        )
        return f"{self.column} ({self.party}) alone {does}: {doubt}."


class Look(NamedTuple):
    """What was seen."""

    dataset: Dataset
    options: dict[str, Any]  # of the loader, with what nobody owns dropped
    owners: dict[str, tuple[str, ...]]  # party -> its columns
    nobody: tuple[str, ...]  # columns that no party owns, dropped
    constant: tuple[str, ...]  # parties whose columns never change
    telling: tuple[Telling, ...]


def look(request: Request) -> Look:
    """Read the table, find every party's columns, and judge each column by itself."""
    options = dict(request.options)
    names = _names(request.data, options)
    if request.label not in names:
        odd = any(map(is_number, names)) and options.get("header", True)
        hint = options_in(" Where the first line is no header: {header}=False.") if odd else ""
        raise unknown(("column in ", of_audit("label")), request.label, names, hint)
    dropped = _matching(options.get("drop", ()), names)
    groups = options.get("groups", "")
    features = [name for name in names if name not in {request.label, groups, *dropped}]
    owners = owned(request.parties, features, request.label, {*dropped, groups} - {""})
    taken = {name for some in owners.values() for name in some}
    nobody = tuple(name for name in features if name not in taken)
    options["drop"] = (*sorted(dropped), *nobody)
    dataset = datasets.load("table", request.data, {"label": request.label, **options})
    present = {column.name for column in dataset.columns}
    owners = {party: tuple(c for c in some if c in present) for party, some in owners.items()}
    for party, some in owners.items():
        if not some and request.parties[party]:
            what = f": no column of {party} can be used: name others."
            raise UserError((PARTIES, what))
    by_name = {column: party for party, some in owners.items() for column in some}
    rarest = int(np.bincount(dataset.labels, minlength=dataset.num_classes).min())
    slack = rarest**-0.5 if rarest else 1.0  # two standard errors, or more
    telling = [
        Telling(name, by_name[name], figure)
        for name, figure in judge(dataset, by_name).items()
        if advantage(figure, dataset.num_classes) - slack >= TELLING
    ]
    varying = {
        column.name
        for place, column in enumerate(dataset.columns)
        if len(np.unique(dataset.features[:, place])) > 1
    }
    constant = [party for party, some in owners.items() if some and not varying.intersection(some)]
    telling.sort(key=lambda one: -one.figure)
    return Look(dataset, options, owners, nobody, tuple(constant), tuple(telling))


def _names(path: str, options: Mapping[str, Any]) -> list[str]:
    """The columns' names, as the loader will read them."""
    frame, _ = read(path, **{k: options[k] for k in READING if k in options})
    return list(frame.columns)


def _matching(patterns: Any, names: Sequence[str]) -> set[str]:
    """The columns that ``drop`` names, by names and globs."""
    several = [patterns] if isinstance(patterns, str) else patterns
    dropped: set[str] = set()
    for pattern in map(str, several):
        hits = [pattern] if pattern in names else fnmatch.filter(names, pattern)
        if not hits:
            raise unknown(options_in("column in {drop}="), pattern, names)
        dropped |= set(hits)
    return dropped


def owned(
    parties: Mapping[str, Sequence[str]],
    features: Sequence[str],
    label: str,
    absent: Collection[str] = (),
) -> dict[str, list[str]]:
    """Every party's columns among the ``features``, by ``dividing.owned_columns``. Raises UserError also
    where a party names the label, or a column that is ``absent`` from the features."""
    for party, patterns in parties.items():
        for pattern in map(one_line, patterns):
            if pattern == label:
                what = f": {party} names {label!r}, which is the label and no feature"
                raise UserError((PARTIES, what), remedy="leave it out")
            if pattern in absent:
                what = f": {party} names {pattern!r}, which is dropped or names groups"
                raise UserError((PARTIES, what), remedy="leave it out")
    return owned_columns(features, parties, PARTIES)


def advantage(figure: float, classes: int) -> float:
    """How far a figure is on the way from chance to certainty; 0 for nan."""
    chance = 0.5 if classes == 2 else 1 / classes
    return 0.0 if math.isnan(figure) else (figure - chance) / (1 - chance)


def judge(dataset: Dataset, owners: Mapping[str, str]) -> dict[str, float]:
    """Of each source column, what a small tree on it alone says of labels it has not seen: leak AUC of
    two classes, balanced top-1 of more; nan for a column that never changes."""
    rng = np.random.default_rng(0)
    labels, rows = dataset.labels, np.arange(len(dataset.labels))
    if len(rows) > ROWS:
        rows = np.sort(rng.choice(rows, ROWS, replace=False))
    y = labels[rows]
    kept = np.isin(y, np.flatnonzero(np.bincount(y) >= 3))  # of rarer ones nothing can be said
    rows, y = rows[kept], y[kept]
    out: dict[str, float] = {}
    places: dict[str, list[int]] = {}
    for place, column in enumerate(dataset.columns):
        places.setdefault(column.name, []).append(place)
    for name, some in places.items():
        if name in owners:
            x = np.asarray(dataset.features[rows][:, some], np.float64)
            out[name] = _alone(x, y) if len(np.unique(y)) > 1 else math.nan
    return out


def _alone(x: np.ndarray, y: np.ndarray) -> float:
    gone = np.isnan(x)
    lowest = np.where(gone, np.inf, x).min(initial=np.inf)
    x = np.where(gone, lowest - 1.0, x)  # that it is missing may tell too
    if (x == x[:1]).all() or not np.isfinite(lowest):
        return math.nan
    tree = DecisionTreeClassifier(
        max_leaf_nodes=32, min_samples_leaf=3, class_weight="balanced", random_state=0
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    chances: Any = cross_val_predict(tree, x, y, cv=folds, method="predict_proba")
    if chances.shape[1] == 2:
        auc = float(roc_auc_score(y == y.max(), chances[:, 1]))
        return max(auc, 1 - auc)
    return float(balanced_accuracy_score(y, np.unique(y)[chances.argmax(1)]))
