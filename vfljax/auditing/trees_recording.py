"""Grows the federations of an audit of trees, and records what passive parties are told of them as wires.

The rows of a seed are divided as an audit of networks divides them. What passive parties are told of the first
training rows of each federation is a folder of the wire format, which exists if and only if it is complete, so
that a stopped audit makes none of them again.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score

from vfljax import tasks
from vfljax.auditing import suite
from vfljax.auditing.suite import RECORDED, SHARES
from vfljax.auditing.survey import Survey
from vfljax.auditing.trees_grid import Grid
from vfljax.auditing.wires import Recorded, Utilities
from vfljax.datasets.core import identity
from vfljax.datasets.splits import Split, distinct_rows, split_rows
from vfljax.datasets.strata import class_counts
from vfljax.federation import trees
from vfljax.federation.trees import UNTOLD, Boosting, Trees
from vfljax.scheduling.work import Say
from vfljax.store.atomic import replacing
from vfljax.sweep.progress import clock
from vfljax.tasks import REGRESSION
from vfljax.types import HostArray

UTILITY = "utility.json"
LABEL_PARTY = "the label party alone"
BETWEEN_LINES = 2.0  # seconds between lines of progress


class Audited(NamedTuple):
    """A table, and who takes part in a federation on it."""

    survey: Survey
    passive: tuple[str, ...]
    plain: bool  # whether gradients are sent without encryption
    seeds: range
    splits: list[Split]  # by seed
    shown: list[HostArray]  # by seed, the training rows that are recorded; all seeds have as many
    identity: str  # of the data set

    @property
    def owners(self) -> HostArray:
        """The party of each column [F]: passive ones in their order, then the label party."""
        every = (*self.passive, self.survey.table.label_party)
        party = {c: every.index(name) for name, of in self.survey.owners.items() for c in of}
        return np.array([party[column.name] for column in self.survey.dataset.columns], np.int32)

    @property
    def balance(self) -> list[int]:
        """The number of recorded rows of each class, or of all if labels are numbers, of all seeds together."""
        rows = np.concatenate(self.shown)
        dataset = self.survey.dataset
        return class_counts(dataset._replace(labels=dataset.labels[rows]), len(rows))


def audited(survey: Survey, plain: bool, seeds: range) -> Audited:
    """Draws the rows of each seed, and those of them that are recorded.

    These are the first training rows of an order that all seeds share, so that as many people as possible are
    recorded in several runs, and of equal rows only one.
    """
    dataset = survey.dataset
    splits = [split_rows(dataset, seed, *SHARES) for seed in seeds]
    order = np.argsort(np.random.default_rng(0).permutation(len(dataset.labels)))
    parts = [distinct_rows(dataset, split.train) for split in splits]
    count = min(RECORDED, *map(len, parts))
    shown = [part[np.argsort(order[part])][:count] for part in parts]
    passive = tuple(name for name in survey.owners if name != survey.table.label_party)
    return Audited(survey, passive, plain, seeds, splits, shown, identity(dataset))


def recorded(
    of: Audited, grid: Grid, folder: pathlib.Path, say: Say
) -> tuple[dict[str, list[Recorded]], Utilities]:
    """Returns the recordings of each method, and the utility of the label party alone. Those that lack are
    made, seed by seed within an operating point."""
    begun = last_line = time.monotonic()
    todo = [(method, knobs) for method, points in grid.points.items() for knobs in points]
    only = grid.base._replace(alone=grid.base.rounds)
    left = [(LABEL_PARTY, {}, only), *((m, knobs, grid.boosting(m, knobs)) for m, knobs in todo)]
    places = {
        (number, seed): folder / name_of(of, grid, method, boosting, seed)
        for number, (method, _, boosting) in enumerate(left)
        for seed in range(len(of.splits))
    }
    missing = [key for key, place in places.items() if not place.is_dir()]
    for made, key in enumerate(missing, 1):
        _record(of, grid, left[key[0]][2], key[1], places[key])
        now = time.monotonic()
        if now - last_line > BETWEEN_LINES or made == len(missing):
            rest = (now - begun) / made * (len(missing) - made)
            say(f"{made} of {len(missing)} federations of trees are grown, {clock(rest)} left")
            last_line = now
    recorded = []
    for number in range(len(left)):
        runs = [places[number, seed] for seed in range(len(of.splits))]
        figures = [json.loads((run / UTILITY).read_text()) for run in runs]
        utility = Utilities(
            *(tuple(figure[part] for figure in figures) for part in Utilities._fields)
        )
        recorded.append(Recorded(tuple(map(str, runs)), utility, left[number][1]))
    methods: dict[str, list[Recorded]] = {}
    for (method, _), point in zip(todo, recorded[1:], strict=True):
        methods.setdefault(method, []).append(point)
    return methods, recorded[0].utility


def name_of(of: Audited, grid: Grid, method: str, boosting: Boosting, seed: int) -> str:
    """Returns the name of a recording, which differs if anything differs of which it is made. ``seed`` is the
    place of its seed among the audit's."""
    number = of.seeds[seed]
    made_of = [of.identity, of.owners.tolist(), of.plain, boosting, grid.shape, number]
    made_of += [of.survey.table.label_range] if of.survey.table.label_range else []
    digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:12]
    return f"{suite.printable(method).replace(' ', '_')}-{number}-{digest}"


def _record(of: Audited, grid: Grid, boosting: Boosting, seed: int, place: pathlib.Path) -> None:
    """Grows the trees of a seed, and writes what passive parties are told of them, and their utility.

    ``seed`` is its place among the audit's. Nodes are padded to the trees and levels of the whole grid by nodes
    that are not told, and gradients by 0. Of the label party alone the utility is all that is written.
    """
    dataset = of.survey.dataset
    columns, labels = np.asarray(dataset.features, np.float32), dataset.labels
    split, shown, owners = of.splits[seed], of.shown[seed], of.owners
    holder, rows = len(of.passive), split.train
    number = of.seeds[seed]
    trained = columns[rows], labels[rows], dataset.num_classes, owners, holder, boosting, number
    made = trees.train(*trained, of.survey.table.label_range)
    utility = tasks.of(dataset.num_classes).utility(of.balance).name
    figures = {
        part: UTILITIES[utility](made, columns[held], labels[held])
        for part, held in (("test", split.test), ("validation", split.validation))
    }
    arrays: dict[str, Any] = {}
    if boosting.alone < boosting.rounds:
        arrays = {"labels": labels[shown], "rows": shown, "version": np.array(1)}
        if dataset.num_classes == 1:
            arrays["task"] = np.array(REGRESSION.name)
        count, levels = grid.shape[0] * made.a_round, grid.shape[1]
        seen = made.labels[np.argsort(rows)[np.searchsorted(np.sort(rows), shown)]]
        for party in range(len(of.passive)):
            nodes = trees.nodes(made, columns[shown], party)
            more = (0, count - nodes.shape[0]), (0, levels - nodes.shape[1]), (0, 0)
            arrays[f"party{party}_nodes"] = np.pad(nodes, more, constant_values=UNTOLD)
            arrays[f"party{party}_columns"] = columns[shown][:, owners == party]
            if of.plain:
                g = trees.gradients(made, columns[shown], seen)
                arrays[f"party{party}_gradients"] = np.pad(g, (more[0], (0, 0), (0, 0)))
    with replacing(place, sum(np.asarray(a).nbytes for a in arrays.values()), keep=True) as new:
        new.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(new / f"{name}.npy", array, allow_pickle=False)
        (new / UTILITY).write_text(json.dumps(figures))


def _accuracy(made: Trees, columns: HostArray, labels: HostArray) -> float:
    return float(np.mean(trees.probabilities(made, columns).argmax(axis=1) == labels))


def _auc(made: Trees, columns: HostArray, labels: HostArray) -> float:
    return float(roc_auc_score(labels, trees.probabilities(made, columns)[:, 1]))


def _r2(made: Trees, columns: HostArray, labels: HostArray) -> float:
    return float(r2_score(labels, trees.predictions(made, columns)))


UTILITIES: dict[str, Callable[[Trees, HostArray, HostArray], float]] = {
    "accuracy": _accuracy,
    "AUC": _auc,
    "R²": _r2,
}
"""The utility of trees on some rows, by its name in reports."""
