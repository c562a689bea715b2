"""Audits boosted trees on a user's table: those that ``trees_recording`` grows are attacked as wires.

The trees are those of ``federation.trees``: without a defense, under each defense of a grid (``trees_grid``),
and by the label party alone, for its utility.

Defenses that show fewer nodes hide nothing that an attacker could know of them, so that ``cohabitation`` and
``node_spreading``, which read all nodes that are told, count as knowing them. So they do for randomized labels
if gradients are encrypted: what is left in sight are nodes, and no node is read otherwise for them. If
gradients are sent plainly, ``node_posterior`` knows randomized labels, and it alone; of numbers ``posterior``.

A decision has ``SEEDS`` seeds of its own, which follow the audit's: undefended and the candidates are grown on
them and attacked in ``WORKDIR/decided/no_split``, which is looked at once. Its limits are those of several
looks, as for networks.
"""

from __future__ import annotations

import math
import pathlib
import time

import msgspec
import numpy as np

from vfljax import defenses, store, tasks
from vfljax.auditing import deciding, sentences, suite, wires
from vfljax.auditing.run import READING_TABLE
from vfljax.auditing.suite import UNDEFENDED
from vfljax.auditing.survey import AuditRequest, Survey, survey
from vfljax.auditing.trees_grid import Grid
from vfljax.auditing.trees_recording import Audited, audited, name_of, recorded
from vfljax.auditing.wires import WireRequest
from vfljax.datasets.splits import distinct_rows
from vfljax.datasets.strata import stratified
from vfljax.defenses import Knower
from vfljax.errors import UserError, argument, imported
from vfljax.federation.trees import ALL
from vfljax.report import decision, fresh, words
from vfljax.report.decision import LOOKS
from vfljax.report.judged_sweep import Judged
from vfljax.report.points import points_of
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling.work import May, Say
from vfljax.sweep.progress import heartbeat
from vfljax.types import NO_SPLIT

FOLDER = "wires"
SEEDS = LOOKS[1]
GROWN = (
    "XGBoost grew {rounds} rounds of trees of at most {depth} levels on the joined columns, which gives the "
    "trees of secure protocols. A passive party is told which rows are in each node whose histogram it "
    "computes, and divides the rows of its own splits."
)
TOLD_ALL = (
    "XGBoost grew {rounds} rounds of trees of at most {depth} levels on the joined columns, which gives the "
    "trees of secure protocols. As in XGBoost's federated mode and NVFlare every party applies every split, so "
    "that it is told the nodes of all trees and levels, also of those that the label party grows alone. In "
    "told_own it is told its own part, as in SecureBoost."
)
PLAIN = {
    "classification": "Gradients are sent without encryption. The sign of a row's first one names its class.",
    "regression": "Gradients are sent without encryption. A row's first one is its label, less the mean.",
}
ENCRYPTED = "Gradients are taken to be encrypted, so that nothing reads them."
BOUNDS = "Methods that randomize labels are left out: of numbers they need label_range."
OF_NODES = (Knower("cohabitation"), Knower("node_spreading"))
OF_NOISY_LABELS = {
    "classification": (Knower("node_posterior"),),
    "regression": (Knower("posterior"),),
}


def audit(
    request: AuditRequest,
    grid: Grid,
    folder: pathlib.Path,
    command: str,
    say: Say,
    *,
    plain: bool,
    end: float,
    decide: bool,
) -> None:
    """Surveys a table, grows and records all federations, and attacks them.

    Args:
      request: the table and the parties.
      grid: how trees grow.
      folder: of the audit; what is stored there is continued, or refused if it is something else.
      command: the command that the report names as the audit's origin.
      say: is given each line of progress.
      plain: whether gradients are sent without encryption.
      end: no attack is begun after it, of ``time.monotonic``.
      decide: whether a third of the time is kept to decide on seeds of their own.

    Raises:
      UserError: for a table that cannot be audited, if XGBoost is not installed, and for a folder of something
        else.
    """
    imported("xgboost", extra="trees", needed_by="an audit of trees")
    header = store.header_of(folder)
    if header is not None and header["config"]["data"]["name"] != "wire":
        remedy = ("choose another ", argument("workdir"), ". Nothing was changed")
        raise UserError(f"{folder} holds a sweep of networks", remedy=remedy)
    say(READING_TABLE)
    with heartbeat(say, lambda: READING_TABLE):
        surveyed = survey(request.table)
        grid = _allowed(grid, surveyed)
        found = audited(surveyed, plain, range(request.seeds))
    for line in _preamble(found, request, grid):
        say(line)
    wire = request_of(found, request, grid, folder, say)
    kept = (end - time.monotonic()) / 3 if decide and math.isfinite(end) else 0.0
    wires.attack(wire, folder, command, say, _until(end - kept))
    if decide and (chosen := _to_decide(judge_sweep(folder), grid)):
        of = audited(surveyed, plain, range(request.seeds, request.seeds + SEEDS))
        place = fresh.stage2_folder(folder, NO_SPLIT)
        names = words.listed([name for name in chosen.points if name != UNDEFENDED])
        say(f"deciding: {names or UNDEFENDED} on {SEEDS} seeds of their own")
        wires.attack(request_of(of, request, chosen, place, say), place, command, say, _until(end))
    if store.load(folder).unfinished:
        say(
            "The budget is spent, and the report says what was not reached. The same command continues it, "
            "when called again."
        )


def _allowed(grid: Grid, surveyed: Survey) -> Grid:
    """Returns the grid without methods that randomize numbers whose bounds are not given."""
    if surveyed.dataset.num_classes > 1 or surveyed.table.label_range:
        return grid
    points = {
        name: of for name, of in grid.points.items() if not any("epsilon" in knobs for knobs in of)
    }
    return grid._replace(points=points)


def _until(end: float) -> May:
    """Returns which units may be begun: all of them, before ``end`` of ``time.monotonic``."""
    return lambda unit: time.monotonic() < end


def _to_decide(found: Judged, grid: Grid) -> Grid | None:
    """Returns the grid of undefended and the candidates of an audit; None if nothing could be decided.

    An audit that is decided on keeps its candidates. Of a method with several knobs, all combinations of the
    candidates' values are grown.
    """
    header = store.header_of(fresh.stage2_folder(found.sweep.workdir, NO_SPLIT))
    if header is not None:
        values = {
            name: next(iter(chain.values()), {}) for name, chain in header["config"]["grid"].items()
        }
    elif NO_SPLIT in deciding.panels(found):
        decided = found.decisions[NO_SPLIT]
        verdicts = decision.of_panel(found.verdicts, found.facts.known, NO_SPLIT)
        chosen = decision.next_candidates(decided, found.facts.goal, verdicts)
        points, values = points_of(found.trials), {UNDEFENDED: {}}
        for v in chosen:
            of = values.setdefault(v["method"], {})
            for knob, value in points.loc[v["configuration"], "knobs"].items():
                of.setdefault(knob.rpartition(".")[2], []).append(value)
        if not chosen and not decided.untried:
            return None
    else:
        return None
    kept = {
        name: [of for of in grid.points[name] if all(of[k] in axis for k, axis in axes.items())]
        for name, axes in values.items()
    }
    return grid._replace(points=kept)


def _known(of: Audited, request: AuditRequest) -> int:
    """Returns how many labels the attackers know."""
    dataset = of.survey.dataset
    different = distinct_rows(dataset, np.arange(len(dataset.labels)))
    drawn = stratified(dataset)
    return request.known or suite.known_labels(drawn.labels[different], drawn.num_classes)


def _notes(of: Audited, request: AuditRequest, grid: Grid) -> tuple[str, ...]:
    """Returns the notes of the report."""
    return (
        (TOLD_ALL if grid.base.told == ALL else GROWN).format(**grid.base._asdict()),
        PLAIN[tasks.of(of.survey.dataset.num_classes).name] if of.plain else ENCRYPTED,
        *[BOUNDS] * (of.survey.dataset.num_classes == 1 and not request.table.label_range),
        *sentences.table_notes(of.survey),
        *([] if request.known else sentences.known_note(of.survey.dataset, _known(of, request))),
    )


def _preamble(of: Audited, request: AuditRequest, grid: Grid) -> list[str]:
    """Returns the lines that a terminal shows before the audit begins."""
    points = sum(map(len, grid.points.values())) - 1
    return [
        *sentences.found_in(of.survey, of.survey.table.label_party),
        f"  attackers: {', '.join(request.attackers)}, who know {_known(of, request)} labels",
        *(f"  {note}" for note in (*_notes(of, request, grid), *of.survey.dataset.notes)),
        f"boosted trees, undefended and {words.count(len(grid.points) - 1, 'defense')} at "
        f"{words.count(points, 'operating point')}, {words.count(len(of.splits), 'seed')}",
    ]


def request_of(
    of: Audited, request: AuditRequest, grid: Grid, folder: pathlib.Path, say: Say
) -> WireRequest:
    """Grows and records all federations that are not recorded yet, and returns the request to attack them.

    Args:
      of: the table and its rows.
      request: the attackers, what they know, and the goal.
      grid: how trees grow.
      folder: of the audit.
      say: is given each line of progress.
    """
    surveyed, dataset = of.survey, of.survey.dataset
    classes, every = dataset.num_classes, (*of.passive, of.survey.table.label_party)
    most = _known(of, request)
    rows = len(of.shown[0])
    fewest = tasks.of(classes).least_known(classes)
    if most not in range(fewest, rows):
        remedy = f"give from {fewest} to {rows - 1}"
        raise UserError(
            "is too few or too many", field=argument("known"), value=most, remedy=remedy
        )
    _refuse_others(of, grid, folder)
    with store.leading(folder):
        methods, alone = recorded(of, grid, folder / FOLDER, say)
    parts = [
        sum(column.name in surveyed.owners[name] for column in dataset.columns) for name in every
    ]
    owner = {
        column: every.index(name) for name, columns in surveyed.owners.items() for column in columns
    }
    randomized = [name for name, of in grid.points.items() if "epsilon" in of[0]]
    epsilons = {knobs["epsilon"] for name in randomized for knobs in grid.points[name]} - {np.inf}
    noisy = OF_NOISY_LABELS[tasks.of(classes).name]
    knobs = {knower.attack: {"epsilon": (*sorted(epsilons),)} for knower in noisy if epsilons}
    return WireRequest(
        methods=methods,
        known=most,
        knobs=knobs,
        alone=alone,
        known_by={
            name: noisy if of.plain and name in randomized else OF_NODES for name in grid.points
        },
        remarks=dict.fromkeys(randomized, defenses.TABLE["label_dp"].remarks),
        fields={
            "name": f"audit of trees on {suite.printable(pathlib.PurePath(surveyed.table.data).stem)}",
            "notes": _notes(of, request, grid),
            "parties": {"names": every},
            "attackers": tuple((of.passive.index(name),) for name in request.attackers),
            "goal": msgspec.structs.asdict(request.goal),
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
    if stored != [name_of(of, grid, UNDEFENDED, grid.base, k) for k in range(len(of.splits))]:
        count = words.count(len(stored), "seed")
        what = (
            f"{folder} holds an audit of {count} of other trees, other data, another encryption, or trees of "
            "which other nodes are told"
        )
        remedy = ("choose another ", argument("workdir"), ". Nothing was changed")
        raise UserError(what, remedy=remedy)
