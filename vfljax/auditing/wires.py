"""Attacks the exchange of a federation that was trained elsewhere, from a recording (``datasets.wire``).

Recordings become a stored sweep, in which each run is a seed, so that they are attacked, judged and reported
like any other. Its methods are the federation without a defense, and the same runs under defenses. Such a
defense needs no code any more, and no attack is said to know it unless the request names one. A recording lacks
the bottom models, and utility unless it is given.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from vfljax import attacks, defenses, plugins, store, tasks
from vfljax.attacking.batching import batch_scores, families_of, make_attack_batch
from vfljax.attacking.jobs import ATTACK, VariantPlan, jobs_of, planned
from vfljax.attacking.run import opened_sweep
from vfljax.attacks.learners import MANY_ROWS
from vfljax.auditing import suite
from vfljax.config import as_axis
from vfljax.datasets.bins import spelled
from vfljax.datasets.core import sum_of_arrays
from vfljax.datasets.wire import cut_at, equal_in_all_runs, read_wire
from vfljax.datasets.wire_checks import EXCHANGED, Wire, checked_wire
from vfljax.defenses import Knower, Remarks
from vfljax.defenses.rows import LEARNS, private_remarks
from vfljax.errors import Text, UserError, argument, unknown, user_path
from vfljax.launching import running
from vfljax.launching.work import May, anything
from vfljax.report.words import NONE
from vfljax.store.exchange import NODES
from vfljax.sweep import train
from vfljax.sweep.grid import knobs_of, parse, trial_rows
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.known import split_arrays
from vfljax.sweep.plan import Plan, divided_as
from vfljax.sweep.sharding import Shard
from vfljax.types import NO_SPLIT, SPLIT, HostArray, Sums

DEFENDED = "defended"
NOBODY = (Knower(""),)  # no attack that is run
UNEQUAL = (
    "Batches have not all the same size ({}): attacks that read which rows shared one are not run."
)
CUT = "Labels are numbers, and classes are made of them by quantiles of all runs: {}."
BINS = argument("bins")
LABEL_PARTY = "the label party"
PREDICTIONS = "predictions.parquet"
CLAIMED = private_remarks(
    lambda options: True, lambda epsilon, options, prior: NONE, f"label DP {LEARNS}"
)
"""The remarks of a recorded defense whose knob epsilon is what it claims."""


class Utility(NamedTuple):
    """The utility of some runs, one for all of them or one each: accuracy, or AUC if the rarer of two classes
    has under 30 % of the rows; () where it is not known."""

    test: tuple[float, ...] = ()
    validation: tuple[float, ...] = ()  # by default as ``test``; operating points are chosen by it


class Recorded(NamedTuple):
    """The recordings of one operating point of a method."""

    runs: tuple[str, ...]  # a file or folder each
    utility: Utility = Utility()
    knobs: Mapping[str, float] = {}


class WireRequest(NamedTuple):
    """The request to attack recordings."""

    # the operating points of each method, all recorded in the same runs; ``suite.UNDEFENDED`` is one of them
    methods: Mapping[str, Sequence[Recorded]]
    federation: str = "split"  # or "no_split"
    bins: int = 0  # classes that quantiles make of labels that are numbers; 0: labels are classes
    known: int = 0  # labels that attackers know; 0: those recorded, else ``suite.known_labels``
    attacks: tuple[str, ...] = ()  # names; (): all
    knobs: Mapping[
        str, Mapping[str, Sequence[float]]
    ] = {}  # by attack, beside its options in ``suite``
    alone: Utility = Utility()  # of the label party without the other parties
    # whether an epsilon that a method claims is audited on half of the rows (``sweep.counterfactuals``)
    observed: bool = False
    # by method, the attacks that take its defense into account, by default none, and what a report remarks
    known_by: Mapping[str, tuple[Knower, ...]] = {}
    remarks: Mapping[str, Remarks] = {}
    fields: Mapping[str, Any] = {}  # of the sweep's config, in place of those of ``_config``
    data: Mapping[str, Any] = {}  # likewise of the header's ``data``

    @property
    def bare(self) -> Recorded:
        """The runs without a defense."""
        return self.methods[suite.UNDEFENDED][0]

    @property
    def chains(self) -> dict[str, str]:
        """The name of the defense of each method but the undefended one, in the table of defenses."""
        return {
            name: "wire:" + re.sub(r"\W+", "_", name)
            for name in self.methods
            if name != suite.UNDEFENDED
        }

    def point(self, trial: Mapping[str, Any]) -> Recorded:
        """Returns the recordings that a trial, a row of ``grid.trials``, is one run of."""
        of = knobs_of(trial).get(self.chains.get(trial["method"], ""), {})
        return next(point for point in self.methods[trial["method"]] if point.knobs == of)


class _Checked(NamedTuple):
    """What the recordings of a request have in common, and what tells them from others."""

    first: Wire
    digests: dict[str, str]  # of each run's exchange, by method, knobs and run
    recorded: dict[str, list[dict[str, Any]]]  # likewise the rows of ``_counts``
    cut: HostArray | None  # the thresholds of ``bins``
    paths: int  # the most nodes that all trees of a recording have; 0 for networks
    epochs: tuple[int, ...]  # of the recording that has most; packed ones are brought to as many


def written(runs: Any, path: pathlib.Path, bins: int = 0) -> tuple[str, ...]:
    """Returns the paths of runs. A run that is given as arrays is first written to a file.

    Args:
      runs: a mapping of arrays by name or a path, or several of these.
      path: of the new files; the number of the run is added to its stem.
      bins: as of ``WireRequest``.
    """
    single = isinstance(runs, str | pathlib.PurePath | Mapping)
    paths = []
    for number, run in enumerate([runs] if single else runs):
        place = path.with_stem(f"{path.stem}{number}")
        if isinstance(run, Mapping):
            if not bins:  # else its labels are no classes yet, and it is checked when it is read
                checked_wire(place, run)
            place.parent.mkdir(parents=True, exist_ok=True)
            np.savez(place, allow_pickle=False, **run)
        paths.append(str(place if isinstance(run, Mapping) else user_path(run, "wire")))
    return tuple(paths)


def attack(
    request: WireRequest,
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
    may: May = anything,
) -> bool:
    """Stores recordings as a sweep, and runs every attack that is not stored yet.

    Args:
      request: the recordings, and how to attack them.
      workdir: the folder of the sweep.
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress.
      may: whether a unit of attacks may still be begun.

    Returns:
      Whether the recordings have labels to score with; without labels, predictions are written, not figures.

    Raises:
      UserError: of one line, for recordings or a request that are not valid.
    """
    found = _checked(request)
    for method, name in request.chains.items():
        known_by = {kind: request.known_by.get(method, NOBODY) for kind in (SPLIT, NO_SPLIT)}
        remarks = request.remarks.get(method, Remarks())
        row = plugins.recorded(request.methods[method][0].knobs, known_by, remarks)
        defenses.TABLE[name] = row
    _refuse_fewer(request, workdir)
    experiment = parse(_config(request, found))
    plan = train.plan_of(experiment, store.header_of(workdir))  # it may be extended
    recording = plan.dataset.recording
    assert recording is not None
    header = train.header(plan, command)
    header["data"] |= {"validation": 0, "test": 0, "label_columns": True}
    header["data"] |= {"trees": found.first.trees, "missing": recording.missing, **request.data}
    variants = planned(plan, experiment)
    with store.leading(workdir):
        stored = store.header_of(workdir) or {}
        recordings = _recordings(stored, found, workdir)
        recorded = {**stored.get("recorded", {}), **found.recorded}
        header = store.begin(workdir, header)
        header |= {"recordings": recordings, "recorded": recorded}
        header = store.write(workdir, header)
        plan = divided_as(plan, header)
        of_labels = plan.dataset.labels, plan.splits, experiment.known_draws, plan.candidates
        arrays = split_arrays(*of_labels)
        if recording.rows is not None:
            arrays["rows"] = recording.rows
        store.write_shared(workdir, store.splits_name(header), arrays)
        for shard in plan.shards:
            if not store.finished(workdir, f"shards/{shard.name}"):
                _write(plan, shard, workdir, request, found)
    if recording.labeled:
        running.attack_stored(plan, workdir, None, say=say, may=may).check()
    else:
        for each in (each for each in variants if each.skipped):
            say(f"skipped {each.variant.label}: {each.skipped}")
        _predict(plan, workdir, variants, header, say)
    return recording.labeled


def _refuse_fewer(request: WireRequest, workdir: pathlib.Path) -> None:
    """Refuses a folder that holds recordings of methods that the request has not."""
    header = store.header_of(workdir)
    stored = header["config"] if header is not None else {}
    if stored and stored["data"]["name"] == "wire":
        lacking = [method for method in stored["grid"] if method not in request.methods]
        if lacking:
            what = f"{workdir} also holds recordings of {', '.join(lacking)}"
            raise UserError(
                what, remedy=("give them again, or choose another ", argument("workdir"))
            )


def _checked(request: WireRequest) -> _Checked:
    """Checks a request, and that all recordings are of the same federation."""
    runs, known = request.bare.runs, request.known
    count, kinds = len(runs), (SPLIT, NO_SPLIT)
    _must(count, "wire", runs, "names no recording", "give a file or folder")
    right, remedy = request.federation in kinds, f"choose {' or '.join(kinds)}"
    _must(right, "federation", request.federation, "is unknown", remedy)
    for name in request.attacks:
        if name not in attacks.TABLE:
            raise unknown("attack", name, attacks.TABLE)
    utilities = {"alone": [request.alone]}
    for method, points in request.methods.items():
        bare = method == suite.UNDEFENDED
        utility = "utility" if bare else "after_utility"
        utilities.setdefault(utility, []).extend(point.utility for point in points)
        for point in points:
            of_all = f"names {len(point.runs)} recordings of {count} runs"
            remedy = "give one of each run, in their order"
            _must(len(point.runs) == count, "after", point.runs, of_all, remedy)
    remedy = f"give one from 0 to 1, or one for each of the {count} runs"
    for name, of in utilities.items():
        for values in (values for utility in of for values in utility):
            right = all(0 <= u <= 1 for u in values) and len(values) in (0, 1, count)
            _must(right, name, values, "is no utility", remedy)
    cut = cut_at(runs, request.bins, BINS)
    first, paths, digests, recorded = read_wire(runs[0], cut), 0, {}, {}
    epochs = first.epochs
    every = [(name, point) for name, points in request.methods.items() for point in points]
    for number, path in enumerate(runs):
        bare = read_wire(path, cut)
        for method, point in every:
            run = bare if point is request.bare else read_wire(point.runs[number], cut)
            _must_be_alike(point.runs[number], run, bare)
            paths, epochs = max(paths, _paths(run)), max(epochs, run.epochs, key=len)
            place = json.dumps([method, dict(point.knobs), number])
            digests[place], recorded[place] = _digest(run), _counts(run, method, number)
    rows, width, classes = *first.shape[1:], first.classes
    right, remedy = (
        known in range(classes, rows) or known == 0,
        f"give from {classes} to {rows - 1}",
    )
    _must(right, "known", known, "is too few or too many", remedy)
    what = f"has embeddings of width {width} for {classes} classes"
    remedy = "without a top model they are logits, of one number a class"
    right = request.federation == SPLIT or width == classes
    _must(right, "federation", request.federation, what, remedy)
    return _Checked(first, digests, recorded, cut, paths, tuple(epochs.tolist()))


def _counts(wire: Wire, method: str, run: int) -> list[dict[str, Any]]:
    """Returns for each party how much of a run was recorded; None stands for what the wire does not tell. A
    federation of trees has no messages."""
    if wire.trees is not None:
        return []
    rows = []
    for party, of in enumerate(wire.parties):
        sent = wire.sent if of.sent is None else of.sent
        count = wire.counts[party] if wire.counts else None
        rows.append(
            {
                "method": method,
                "run": run,
                "party": party,
                "rows": wire.shape[1],
                "width": wire.shape[2],
                "epochs": len(wire.epochs),
                "messages": count and count.messages,
                "entries": int(sent.sum()) + (count.unanswered if count else 0),
                "unanswered": count and count.unanswered,
                "silent": wire.silent,
                "never": int((~sent.any(axis=0)).sum()),
                "packed": wire.packed,
                "columns": 0 if of.columns is None else of.columns.shape[1],
            }
        )
    return rows


def _digest(wire: Wire) -> str:
    """Returns the SHA-256 of what crossed between the parties."""
    parts = (getattr(party, name) for party in wire.parties for name in (*EXCHANGED, "nodes"))
    return sum_of_arrays(np.zeros(0) if part is None else np.asarray(part) for part in parts)


def _recordings(
    header: Mapping[str, Any], found: _Checked, workdir: pathlib.Path
) -> dict[str, str]:
    """Returns the digests of all recordings of a sweep. Raises a UserError if some of those that are stored are
    others now: what is stored of them would be taken for theirs."""
    stored = header.get("recordings", {})
    if any(stored.get(place, digest) != digest for place, digest in found.digests.items()):
        remedy = ("choose another ", argument("workdir"), ". Nothing was changed")
        raise UserError(f"{workdir} holds attacks on other recordings", remedy=remedy)
    return {**stored, **found.digests}


def _paths(wire: Wire) -> int:
    """Returns the number of nodes that all trees of a recording have, the most of all parties; 0 if none."""
    of_trees = (p.embeddings for p in wire.parties if p.nodes is not None)
    return max((np.asarray(z).shape[2] for z in of_trees), default=0)


def _must_be_alike(path: str, run: Wire, bare: Wire) -> None:
    """Raises a UserError unless a run under a defense is recorded as the run without, of the same rows."""
    common, rows = equal_in_all_runs(bare), ("labels", "known_rows", "rows")
    differ = [name for name, value in equal_in_all_runs(run).items() if value != common[name]]
    differ += [n for n in rows if not np.array_equal(getattr(run, n), getattr(bare, n))]
    remedy = "both are recorded alike, of the same rows in the same order"
    for what in differ[:1]:
        raise UserError(f"{path} differs from the run without a defense in {what}: {remedy}.")


def _must(right: Any, name: str, value: Any, what: str, remedy: Text) -> None:
    """Raises a UserError on an argument, unless ``right``."""
    if not right:
        raise UserError(what, field=argument(name), value=value, remedy=remedy)


def _config(request: WireRequest, found: _Checked) -> dict[str, Any]:
    """Returns the config of the sweep."""
    first, cut, runs = found.first, found.cut, request.bare.runs
    passive, classes, epochs = len(first.parties), first.classes, found.epochs
    known = request.known or len(first.known_rows)
    if not known and first.labels is not None:
        known = suite.known_labels(first.labels, classes)
    paths = [str(pathlib.Path(path).resolve()) for path in runs]
    options_of_data: dict[str, Any] = {"runs": tuple(paths[1:])}
    if cut is not None:
        options_of_data["bins"] = request.bins
    # the scores of trees are added up as logits are without a top model
    federation = request.federation if first.trees is None else NO_SPLIT
    attacked = suite.ATTACKS if first.trees is None else suite.OF_TREES
    attacked = {name: {**of, **request.knobs.get(name, {})} for name, of in attacked.items()}
    options = suite.suited(attacked, (federation,), known, classes)
    names = request.attacks or [n for n in options if not attacks.TABLE[n].whole_batches]
    if not known:  # attacks that know labels are left out
        names = [n for n in names if "known" not in options.get(n, {})]
    canaries = (first.shape[1] - len(first.known_rows)) // 2  # the other half fits the proxy
    values = {
        "name": f"{pathlib.Path(runs[0]).stem}: a recorded exchange",
        "notes": (
            "The federation was trained elsewhere; its exchange was recorded, and nothing was trained here.",
            *([] if cut is None else [CUT.format(", ".join(map(spelled, cut)))]),
            *([] if first.equal_batches else [UNEQUAL.format(first.batch_size)]),
        ),
        "seeds": len(runs),
        "data": {"name": "wire", "dir": paths[0], "options": options_of_data},
        "parties": {
            "passive": passive,
            "label_features": False,
            "columns": tuple((f"party {p} column *",) for p in range(passive)),
            "names": (*first.names, LABEL_PARTY) if first.names else (),
        },
        "model": suite.model(classes) | {"cut": first.shape[2], "top": "mlp", "top_hidden": ()},
        "training": {"epochs": epochs[-1] + 1, "batch_size": first.batch_size, "record": epochs},
        "known_draws": 1 if len(first.known_rows) or first.shape[1] > MANY_ROWS else suite.DRAWS,
        "attackers": tuple((p,) for p in range(passive)),
        "federations": (federation,),
        "grid": {
            suite.UNDEFENDED: {},
            **{m: {name: _axes(request.methods[m])} for m, name in request.chains.items()},
        },
        "attacks": {name: _of_epochs(options.get(name, {}), epochs) for name in names},
        **({"canaries": canaries, "canary_labels": "observed"} if request.observed else {}),
    }
    parties = {**values["parties"], **request.fields.get("parties", {})}
    return {**values, **request.fields, "parties": parties}


def _axes(points: Sequence[Recorded]) -> dict[str, tuple[float, ...]]:
    """Returns the values of each knob of a method, whose operating points are all combinations of them."""
    return {
        knob: tuple(dict.fromkeys(point.knobs[knob] for point in points))
        for knob in points[0].knobs
    }


def _of_epochs(options: Mapping[str, Any], epochs: Sequence[int]) -> dict[str, Any]:
    """Returns the options of an attack, without epochs that were not recorded."""
    values = as_axis(options.get("epoch", ()))
    kept = tuple(v for v in values if v in (-1, *epochs) or isinstance(v, str))
    rest = {name: axis for name, axis in options.items() if name != "epoch"}
    return {**rest, "epoch": kept} if kept else rest


def _write(
    plan: Plan, shard: Shard, workdir: pathlib.Path, request: WireRequest, found: _Checked
) -> None:
    """Stores the trials of a shard, with initial weights by seed, because trained ones were not recorded."""
    group = plan.groups[shard.group]
    trials = group.trials.iloc[list(shard.trials)]
    level = plan.effort.training
    weights = initial_weights(group.spec, plan.experiment, plan.seeds, plan.table, level)
    seeds = trials["seed"].to_numpy()
    bottoms, active = jax.tree.map(lambda a: np.asarray(a)[seeds], tuple(weights))
    tree = {"bottoms": {str(p): bottom for p, bottom in enumerate(bottoms)}, "active": active}
    every = trial_rows(trials)
    wires = (read_wire(request.point(trial).runs[trial["seed"]], found.cut) for trial in every)
    members = [_exchange(wire, found.paths, len(found.epochs)) for wire in wires]
    arrays = {name: np.stack([member[name] for member in members]) for name in members[0]}
    rows = [
        _row(row, request, plan) | {"shard": shard.name, "member": i} for i, row in enumerate(every)
    ]
    store.write_shard(workdir, shard.name, rows, tree, arrays)


def _exchange(wire: Wire, paths: int = 0, epochs: int = 0) -> dict[str, HostArray]:
    """Returns the arrays of a trial's exchange, named as in ``store.exchange``, without the member axis.

    Of trees the recorded gradients are those of the first round in which any were sent, and the sums are over
    all rounds from there on.

    Args:
      wire: the recording.
      paths: the width to which the paths of trees are padded by zeros, so that all trials have it.
      epochs: the number of epochs to which a packed recording is brought, by some before the last in which
        nothing was sent; 0: as many as it has.
    """
    sent, rows = wire.sent, np.arange(wire.shape[1], dtype=np.int32)
    places = np.tile(rows, (len(sent), 1)) if wire.order is None else wire.order
    arrays: dict[str, HostArray] = {"epochs": wire.epochs, "order": places, "sent": sent}
    for p, party in enumerate(wire.parties):
        mine = sent if party.sent is None else party.sent
        if party.sent is not None:
            arrays[f"party{p}_sent"] = mine
        for name in EXCHANGED:
            array = getattr(party, name)
            array = np.zeros(wire.shape) if array is None else np.where(mine[..., None], array, 0)
            arrays[f"party{p}_{name}"] = array.astype(np.float32)
        g, count = arrays[f"party{p}_gradients"], mine.sum(axis=0, dtype=np.float32)
        if party.nodes is not None:
            z = arrays[f"party{p}_embeddings"]
            padding = (0, 0), (0, 0), (0, paths - z.shape[2])
            g = g[np.argmax(g.any(axis=(1, 2))) :]
            arrays[f"party{p}_embeddings"] = np.pad(z, padding)
            arrays[f"party{p}_gradients"], count = g[:1], count * len(g)
            arrays[f"party{p}_{NODES}"] = np.moveaxis(party.nodes, 1, 2)
        sums = Sums(g.sum(0), np.sign(g).sum(0), np.square(g).sum(0), count)
        arrays |= {f"party{p}_sum_{name}": array for name, array in sums._asdict().items()}
    if epochs > len(wire.epochs):
        added = np.full(epochs - len(wire.epochs), len(wire.epochs) - 1)
        for name, array in arrays.items():
            if name.endswith(("sent", "order", *EXCHANGED)):
                blank = np.zeros((len(added), *array.shape[1:]), array.dtype)
                arrays[name] = np.insert(array, added, blank, axis=0)
        arrays["epochs"] = np.arange(epochs, dtype=np.int32)
    return arrays


def _row(trial: Mapping[str, Any], request: WireRequest, plan: Plan) -> dict[str, Any]:
    """Returns a trial's row of results; utilities that are not given are null."""
    counted = tasks.of(plan.dataset.num_classes).utility(plan.balance).figure
    seed = trial["seed"]

    def of_seed(values: Sequence[float]) -> float | None:
        return float(values[seed % len(values)]) if values else None

    given = {"": request.point(trial).utility}
    given |= {"alone_": request.alone} if trial["method"] == suite.UNDEFENDED else {}
    utilities = {
        f"{who}{part}": of_seed(getattr(of, part) or of.test)
        for who, of in given.items()
        for part in of._fields
    }
    two = plan.dataset.num_classes == 2
    names = ("oriented_accuracy", "oriented_auc") if two else (counted,)
    return {
        **trial,
        **{
            f"{place}_{name}": value if name == counted else None
            for place, value in utilities.items()
            for name in names
        },
        "status": "ok",
        "diverged_epoch": None,
        "loss": [],
        "train_accuracy": [],
        "seconds": 0.0,
    }


def _predict(
    plan: Plan,
    workdir: pathlib.Path,
    variants: Sequence[VariantPlan],
    header: Mapping[str, Any],
    say: Callable[[str], None],
) -> None:
    """Writes each row's class by every attack, at its first knobs, and the margin over the next class."""
    stored = opened_sweep(plan, workdir, header)
    trained = store.read_results(workdir, [shard.name for shard in plan.shards]).to_pylist()
    tables: dict[tuple[int, int], dict[str, HostArray]] = {}
    for each in (each for each in variants if not each.skipped):
        jobs = (job for job in jobs_of(each, stored.plan, trained) if job.what == ATTACK)
        for job in (job for job in jobs if not job.point):
            family = families_of([(each, [job])])[0]
            _, scores = batch_scores(make_attack_batch(family, stored), [job], stored)
            by_class: HostArray = np.asarray(scores[0].train)[0, 0].mean(axis=0)
            first, second = np.sort(by_class, axis=1)[:, :-3:-1].T
            columns = tables.setdefault((job.row["trial"], job.seed), {})
            label = each.variant.label
            columns[label] = np.where(np.isnan(first), -1, by_class.argmax(axis=1))
            columns[f"{label}: margin"] = first - second
    frames = [
        pd.DataFrame({"trial": trial, "run": run, **columns}).rename_axis("row").reset_index()
        for (trial, run), columns in tables.items()
    ]
    if frames:
        pd.concat(frames).to_parquet(workdir / PREDICTIONS, index=False)
    say(f"no labels to score with: predictions are in {workdir / PREDICTIONS}")
