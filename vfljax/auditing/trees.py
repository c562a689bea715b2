"""Audits boosted trees on a user's table: grows federations, records them as wires, and has these attacked.

The rows of a seed are divided as an audit of networks divides them. The trees are those of
``federation.trees``: without a defense, under each defense of a grid (``configs/trees.py``), and by the label
party alone, for its utility. What passive parties are told of the first training rows of each federation is a
folder of the wire format in ``WORKDIR/wires``, which exists if and only if it is complete, so that a stopped
audit makes none of them again. ``wires.attack`` does the rest.

Defenses that show fewer nodes hide nothing that an attacker could know of them, so that ``cohabitation``, which
reads all nodes that are told, counts as knowing them. No attack is adapted to randomized labels.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from vfljax import defenses, store
from vfljax.auditing import sentences, suite, wires
from vfljax.auditing.run import READING
from vfljax.auditing.suite import RECORDED, SHARES, UNDEFENDED
from vfljax.auditing.survey import Survey, survey
from vfljax.auditing.wires import Recorded, Utility, WireRequest
from vfljax.config import combinations, returned
from vfljax.datasets.core import identity
from vfljax.datasets.splits import Split, distinct_rows, split_rows
from vfljax.defenses import Knower
from vfljax.errors import Field, UserError, argument, check, imported, unknown
from vfljax.federation import trees
from vfljax.federation.trees import UNTOLD, Boosting
from vfljax.launching.work import Say
from vfljax.report.rows import utility_of
from vfljax.store.atomic import replacing
from vfljax.sweep.progress import clock, heartbeat
from vfljax.types import HostArray

CONFIG = "configs/trees.py"
FOLDER, UTILITY = "wires", "utility.json"
LABEL_PARTY = "the label party alone"
LIMITS: Mapping[str, tuple[float, float]] = {
    "rounds": (1, 10_000),
    "depth": (1, 16),
    "learning_rate": (1e-6, 1),
    "alone": (0, 10_000),
    "cover": (0, 1),
    "epsilon": (0, np.inf),
}
"""The least and the largest value of each field of ``Boosting``."""
WHOLE = ("rounds", "depth", "alone")
UNDEFENDED_FIELDS = ("rounds", "depth", "learning_rate")  # the others are defenses
GROWN = (
    "XGBoost grew {rounds} rounds of trees of at most {depth} levels on the joined columns, which gives the "
    "trees of secure protocols. A passive party is told which rows are in each node whose histogram it "
    "computes, and divides the rows of its own splits."
)
PLAIN = "Gradients are sent without encryption. The sign of a row's first one names its class."
ENCRYPTED = "Gradients are taken to be encrypted, so that nothing reads them."
UNADAPTED = (
    "Attacks read what a defense leaves in sight. None is adapted to randomized labels, and none draws on the "
    "known strength of a defense."
)
SAID = 2.0  # seconds between lines of progress


class Grid(NamedTuple):
    """The federations that an audit grows, as a config names them."""

    base: Boosting
    points: Mapping[str, Sequence[Mapping[str, float]]]  # by method, fields of ``Boosting``

    def boosting(self, knobs: Mapping[str, float]) -> Boosting:
        """Returns how the trees of an operating point grow."""
        return self.base._replace(**knobs)

    @property
    def every(self) -> list[Boosting]:
        """How the trees of all operating points grow."""
        return [self.boosting(knobs) for points in self.points.values() for knobs in points]

    @property
    def shape(self) -> tuple[int, int]:
        """The most rounds, and the most levels, of any operating point."""
        return max(b.rounds for b in self.every), max(b.depth for b in self.every)


def grid_of(source: str) -> Grid:
    """Returns the grid of a config file such as ``configs/trees.py``, with the undefended federation first.

    Args:
      source: the path of a Python file, or of one that comes with vfljax.

    Raises:
      UserError: for a file that is missing or raises, and for fields and values that ``Boosting`` has not.
    """
    values = returned(source)
    for name in values:
        if name not in ("boosting", "grid"):
            raise unknown(f"field of {source}", name, ("boosting", "grid"))
    base = Boosting(**_fields("boosting", values.get("boosting", {}), UNDEFENDED_FIELDS))
    points = {UNDEFENDED: [{}]}
    methods = values.get("grid", {})
    if not isinstance(methods, Mapping):
        remedy = "give {method: {field: values}}"
        raise UserError("is no group", field=Field("grid"), value=methods, remedy=remedy)
    for method, axes in methods.items():
        if method == UNDEFENDED or not re.fullmatch(r"\w+", str(method)):
            what = "is always grown" if method == UNDEFENDED else "is no name"
            remedy = "leave it out" if method == UNDEFENDED else "choose letters, digits and _"
            raise UserError(what, field=Field("grid"), value=method, remedy=remedy)
        points[method] = combinations(_fields(f"grid.{method}", axes), f"grid.{method}")
    grid = Grid(base, points)
    for method, of in points.items():
        for knobs in of:
            where = "boosting" if method == UNDEFENDED else f"grid.{method}"
            boosting = grid.boosting(knobs)
            for name, value in boosting._asdict().items():
                low, high = LIMITS[name]
                field, whole = Field(f"{where}.{name}"), name in WHOLE
                check(field, value, low, high, whole=whole, infinite=name == "epsilon")
            if boosting.alone >= boosting.rounds:
                remedy = f"give fewer than the {boosting.rounds} rounds"
                field = Field(f"{where}.alone")
                raise UserError("leaves no round", field=field, value=boosting.alone, remedy=remedy)
    return grid


def _fields(place: str, values: Any, allowed: Sequence[str] = Boosting._fields) -> dict[str, Any]:
    """Returns a group of a config whose names are fields of ``Boosting``."""
    if not isinstance(values, Mapping):
        remedy = "give {field: value}"
        raise UserError("is no group", field=Field(place), value=values, remedy=remedy)
    for name in values:
        if name not in allowed:
            raise unknown((Field(place),), name, allowed)
    return dict(values)


class Audited(NamedTuple):
    """A table, and who takes part in a federation on it."""

    table: Survey
    passive: tuple[str, ...]
    label_party: str
    plain: bool  # whether gradients are sent without encryption
    splits: list[Split]  # by seed
    shown: list[HostArray]  # by seed, the training rows that are recorded; all seeds have as many
    identity: str  # of the data set

    @property
    def owners(self) -> HostArray:
        """The party of each column [F]: passive ones in their order, then the label party."""
        every = (*self.passive, self.label_party)
        party = {c: every.index(name) for name, of in self.table.owners.items() for c in of}
        return np.array([party[column.name] for column in self.table.dataset.columns], np.int32)

    @property
    def balance(self) -> list[int]:
        """The number of recorded rows of each class, of all seeds together."""
        dataset = self.table.dataset
        rows = dataset.labels[np.concatenate(self.shown)]
        return np.bincount(rows, minlength=dataset.num_classes).tolist()


def audited(table: Survey, label_party: str, plain: bool, seeds: int) -> Audited:
    """Draws the rows of each seed, and those of them that are recorded.

    These are the first training rows of an order that all seeds share, so that as many people as possible are
    recorded in several runs, and of equal rows only one.
    """
    dataset = table.dataset
    splits = [split_rows(dataset, seed, *SHARES) for seed in range(seeds)]
    order = np.argsort(np.random.default_rng(0).permutation(len(dataset.labels)))
    parts = [distinct_rows(dataset, split.train) for split in splits]
    count = min(RECORDED, *map(len, parts))
    shown = [part[np.argsort(order[part])][:count] for part in parts]
    passive = tuple(name for name in table.owners if name != label_party)
    return Audited(table, passive, label_party, plain, splits, shown, identity(dataset))


def audit(
    data: str,
    label: str,
    parties: Mapping[str, Sequence[str]],
    options: Mapping[str, Any],
    label_party: str,
    attackers: Sequence[str],
    folder: pathlib.Path,
    command: str,
    say: Say,
    *,
    grid: Grid,
    plain: bool,
    seeds: int,
    end: float,
    **of: Any,
) -> None:
    """Surveys a table, grows and records all federations, and attacks them.

    Args:
      data: the table's file.
      label: the column of the labels.
      parties: the columns of each party, by name or glob.
      options: of the table's loader.
      label_party: who has the labels.
      attackers: who attacks, each alone.
      folder: of the audit; what is stored there is continued, or refused if it is something else.
      command: the command that the report names as the audit's origin.
      say: is given each line of progress.
      grid: how trees grow.
      plain: whether gradients are sent without encryption.
      seeds: how many.
      end: no attack is begun after it, of ``time.monotonic``.
      **of: ``known`` and ``goal`` of ``request_of``.

    Raises:
      UserError: for a table that cannot be audited, if XGBoost is not installed, and for a folder of something
        else.
    """
    imported("xgboost", extra="trees", needed_by="an audit of trees")
    header = store.header_of(folder)
    if header is not None and header["config"]["data"]["name"] != "wire":
        remedy = ("choose another ", argument("workdir"), ". Nothing was changed")
        raise UserError(f"{folder} holds a sweep of networks", remedy=remedy)
    say(READING)
    with heartbeat(say, lambda: READING):
        found = audited(survey(data, label, parties, options), label_party, plain, seeds)
    request = request_of(found, grid, attackers, folder=folder, say=say, **of)

    def may(unit: store.Unit) -> bool:
        del unit  # of all kinds alike
        return time.monotonic() < end

    wires.attack(request, folder, command, say, may)
    if store.load(folder).unfinished:
        say("The budget is spent, and the report says what was not reached. The same call goes on.")


def request_of(
    of: Audited,
    grid: Grid,
    attackers: Sequence[str],
    known: int,
    goal: Mapping[str, float],
    folder: pathlib.Path,
    say: Say,
) -> WireRequest:
    """Grows and records all federations that are not recorded yet, and returns the request to attack them.

    Args:
      of: the table and the parties.
      grid: how trees grow.
      attackers: who attacks, each alone.
      known: labels that attackers know; 0: ``suite.known_labels``.
      goal: the fields of ``config.goal``.
      folder: of the audit.
      say: is given each line of progress.
    """
    table, dataset = of.table, of.table.dataset
    classes, every = dataset.num_classes, (*of.passive, of.label_party)
    most = known or suite.known_labels(
        dataset.labels[distinct_rows(dataset, np.arange(len(dataset.labels)))], classes
    )
    rows = len(of.shown[0])
    if most not in range(classes, rows):
        remedy = f"give from {classes} to {rows - 1}"
        raise UserError(
            "is too few or too many", field=argument("known"), value=most, remedy=remedy
        )
    _refuse_others(of, grid, folder)
    notes = (
        GROWN.format(**grid.base._asdict()),
        PLAIN if of.plain else ENCRYPTED,
        UNADAPTED,
        *sentences.table_notes(table),
        *([] if known else sentences.known_note(dataset, most)),
    )
    points = sum(map(len, grid.points.values())) - 1
    for line in (
        *sentences.found_in(table, of.label_party),
        f"  attackers: {', '.join(attackers)}, who know {most} labels",
        *(f"  {note}" for note in (*notes, *dataset.notes)),
        f"boosted trees, undefended and {sentences.counted(len(grid.points) - 1, 'defense')} at "
        f"{sentences.counted(points, 'operating point')}, {sentences.counted(len(of.splits), 'seed')}",
    ):
        say(line)
    with store.leading(folder):
        methods, alone = _recorded(of, grid, folder / FOLDER, say)
    parts = [sum(column.name in table.owners[name] for column in dataset.columns) for name in every]
    owner = {
        column: every.index(name) for name, columns in table.owners.items() for column in columns
    }
    own = (Knower("cohabitation"),)
    return WireRequest(
        methods=methods,
        known=most,
        alone=alone,
        known_by={name: own for name, of in grid.points.items() if "epsilon" not in of[0]},
        remarks={
            name: defenses.TABLE["label_dp"].remarks
            for name, of in grid.points.items()
            if "epsilon" in of[0]
        },
        fields={
            "name": f"audit of trees on {suite.printable(pathlib.PurePath(table.data).stem)}",
            "notes": notes,
            "parties": {"names": every},
            "attackers": tuple((of.passive.index(name),) for name in attackers),
            "goal": dict(goal),
        },
        data={
            "class_names": list(dataset.classes) or [*map(str, range(classes))],
            "party_shapes": [[count] for count in parts if count],
            "sources": [s._asdict() | {"owner": owner.get(s.name)} for s in dataset.sources],
        },
    )


def _refuse_others(of: Audited, grid: Grid, folder: pathlib.Path) -> None:
    """Refuses a folder whose undefended federations are others, before any is grown."""
    header = store.header_of(folder)
    if header is None:
        return
    data = header["config"]["data"]
    stored = [pathlib.Path(run).name for run in (data["dir"], *data["options"].get("runs", ()))]
    seeds = range(len(of.splits))
    if stored != [_name(of, grid, UNDEFENDED, grid.base, seed) for seed in seeds]:
        count = sentences.counted(len(stored), "seed")
        what = (
            f"{folder} holds an audit of {count} of other trees, other data or another encryption"
        )
        remedy = ("choose another ", argument("workdir"), ". Nothing was changed")
        raise UserError(what, remedy=remedy)


def _recorded(
    of: Audited, grid: Grid, folder: pathlib.Path, say: Say
) -> tuple[dict[str, list[Recorded]], Utility]:
    """Returns the recordings of each method, and the utility of the label party alone. Those that lack are
    made, seed by seed within an operating point."""
    begun = said = time.monotonic()
    todo = [(method, knobs) for method, points in grid.points.items() for knobs in points]
    only = grid.base._replace(alone=grid.base.rounds)
    left = [(LABEL_PARTY, {}, only), *((m, knobs, grid.boosting(knobs)) for m, knobs in todo)]
    places = {
        (number, seed): folder / _name(of, grid, method, boosting, seed)
        for number, (method, _, boosting) in enumerate(left)
        for seed in range(len(of.splits))
    }
    missing = [key for key, place in places.items() if not place.is_dir()]
    for made, key in enumerate(missing, 1):
        _record(of, grid, left[key[0]][2], key[1], places[key])
        now = time.monotonic()
        if now - said > SAID or made == len(missing):
            rest = (now - begun) / made * (len(missing) - made)
            say(f"{made} of {len(missing)} federations of trees are grown, {clock(rest)} left")
            said = now
    recorded = []
    for number in range(len(left)):
        runs = [places[number, seed] for seed in range(len(of.splits))]
        figures = [json.loads((run / UTILITY).read_text()) for run in runs]
        utility = Utility(*(tuple(figure[part] for figure in figures) for part in Utility._fields))
        recorded.append(Recorded(tuple(map(str, runs)), utility, left[number][1]))
    methods: dict[str, list[Recorded]] = {}
    for (method, _), point in zip(todo, recorded[1:], strict=True):
        methods.setdefault(method, []).append(point)
    return methods, recorded[0].utility


def _name(of: Audited, grid: Grid, method: str, boosting: Boosting, seed: int) -> str:
    """Returns the name of a recording, which differs if anything differs of which it is made."""
    made_of = [of.identity, of.owners.tolist(), of.plain, boosting, grid.shape, seed]
    digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:12]
    return f"{suite.printable(method).replace(' ', '_')}-{seed}-{digest}"


def _record(of: Audited, grid: Grid, boosting: Boosting, seed: int, place: pathlib.Path) -> None:
    """Grows the trees of a seed, and writes what passive parties are told of them, and their utility.

    Nodes are padded to the trees and levels of the whole grid by nodes that are not told, and gradients by 0.
    Of the label party alone the utility is all that is written.
    """
    dataset = of.table.dataset
    columns, labels = np.asarray(dataset.features, np.float32), dataset.labels
    split, shown, owners = of.splits[seed], of.shown[seed], of.owners
    holder, rows = len(of.passive), split.train
    made = trees.train(
        columns[rows], labels[rows], dataset.num_classes, owners, holder, boosting, seed
    )
    is_auc = utility_of(of.balance) == "AUC"
    figures = {
        part: _utility(trees.probabilities(made, columns[held]), labels[held], is_auc)
        for part, held in (("test", split.test), ("validation", split.validation))
    }
    arrays: dict[str, Any] = {}
    if boosting.alone < boosting.rounds:
        arrays = {"labels": labels[shown], "rows": shown, "version": np.array(1)}
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


def _utility(p: HostArray, labels: HostArray, is_auc: bool) -> float:
    """Returns the AUC or the accuracy of probabilities [N, C]."""
    return float(roc_auc_score(labels, p[:, 1]) if is_auc else np.mean(p.argmax(axis=1) == labels))
