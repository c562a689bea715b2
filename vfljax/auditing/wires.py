"""Attacks the exchange of a federation that was trained elsewhere, from a recording (``datasets.wire``).

A recording becomes a stored sweep of one configuration, in which each run is a seed, so that it is attacked,
judged and reported like any other. Recordings of the same runs under a defense are a second configuration.
Only the name of this defense is known: no attack knows it, and it is never recommended. A recording lacks the
bottom models, and utility unless it is given.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from vfljax import attacks, store
from vfljax.attacking.batching import batch_scores, make_attack_batch
from vfljax.attacking.jobs import ATTACK, VariantPlan, jobs_of, planned
from vfljax.attacking.run import opened
from vfljax.attacks.learners import MANY_ROWS
from vfljax.auditing import suite
from vfljax.config import as_axis
from vfljax.datasets.bins import spelled
from vfljax.datasets.wire import alike, cut_at, read
from vfljax.datasets.wire_checks import EXCHANGED, Wire, checked
from vfljax.errors import Text, UserError, argument, unknown, user_path
from vfljax.launching import running
from vfljax.report.rows import utility_of
from vfljax.store.exchange import NODES
from vfljax.sweep import train
from vfljax.sweep.grid import parse, rows_of
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.plan import Plan, Shard, divided_as, make_plan, split_arrays
from vfljax.types import NO_SPLIT, SPLIT, HostArray, Sums

DEFENDED = "defended"
UNKNOWN_DEFENSE = "wire:defense"
DESCRIPTION = {
    **dict.fromkeys(("version", "sha256", "syntax"), ""),
    **{"plugin": "wire", "kind": "defense", "needs_top": False, "two_classes": False},
    **{"knobs": {}, "options": {}, "example": {}, "neutral": None, "remarks": []},
    "known_by": {kind: [["", ""]] for kind in (SPLIT, NO_SPLIT)},  # no attack that is run
}
"""The description of the unknown defense, in the form of a plugin's row that is not in use."""
UNEQUAL = "Batches differ in size ({} rows on average): attacks that read which rows shared one are not run."
CUT = "Labels are numbers, and classes are made of them by quantiles of all runs: {}."
BINS = argument("bins")
TREES = (
    "A federation of {} boosted trees of {} levels. Attackers see which rows share a node, and gradients if "
    "they were sent without encryption."
)
PREDICTIONS = "predictions.parquet"
UTILITIES = ("utility", "alone", "after_utility")


class WireRequest(NamedTuple):
    """The request to attack recordings. A utility is measured on rows outside training, one for all runs or
    one per run: accuracy, or AUC if the rarer of two classes has under 30 % of the rows."""

    runs: tuple[str, ...]  # a file or folder each
    after: tuple[str, ...] = ()  # the same runs under a defense
    federation: str = "split"  # or "no_split"
    bins: int = 0  # classes that quantiles make of labels that are numbers; 0: labels are classes
    known: int = 0  # labels that attackers know; 0: those recorded, else ``suite.known_labels``
    attacks: tuple[str, ...] = ()  # names; (): all
    utility: tuple[float, ...] = ()  # of the runs
    alone: tuple[float, ...] = ()  # of the label party without the other parties
    after_utility: tuple[float, ...] = ()  # of the runs under a defense


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
                checked(place, run)
            place.parent.mkdir(parents=True, exist_ok=True)
            np.savez(place, allow_pickle=False, **run)
        paths.append(str(place if isinstance(run, Mapping) else user_path(run, "wire")))
    return tuple(paths)


def attack(
    request: WireRequest, workdir: pathlib.Path, command: str, say: Callable[[str], None] = print
) -> bool:
    """Stores recordings as a sweep, and runs every attack that is not stored yet.

    Args:
      request: the recordings, and how to attack them.
      workdir: the folder of the sweep.
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress.

    Returns:
      Whether the recordings have labels to score with; without labels, predictions are written, not figures.

    Raises:
      UserError: of one line, for recordings or a request that are not valid.
    """
    wires = _checked(request)
    experiment = parse(_config(request, wires[suite.UNDEFENDED][0]))
    plan = make_plan(experiment)
    recording = plan.dataset.recording
    assert recording is not None
    plugins = {UNKNOWN_DEFENSE: DESCRIPTION} if request.after else {}
    header = train.header(plan, command) | {"plugins": plugins}
    header["data"] |= {"validation": 0, "test": 0, "label_columns": True}
    variants = planned(plan, experiment)
    with store.leading(workdir):
        header = store.begin(workdir, header)
        plan = divided_as(plan, header)
        arrays = split_arrays(plan.dataset.labels, plan.splits, experiment.known_draws)
        store.write_shared(workdir, store.splits_name(header), arrays)
        for shard in plan.shards:
            if not store.finished(workdir, f"shards/{shard.name}"):
                _write(plan, shard, workdir, request, wires)
    for each in variants:
        if each.skipped:
            say(f"skipped {each.variant.label}: {each.skipped}")
    if recording.labeled:
        running.attack_stored(plan, workdir, None, say=say).check()
    else:
        _predict(plan, workdir, variants, header, say)
    return recording.labeled


def _checked(request: WireRequest) -> dict[str, list[Wire]]:
    """Returns the wires of all runs by the name of the method."""
    count = len(request.runs)
    of_all = f"names {len(request.after)} recordings of {count} runs"
    must = functools.partial(_must, request)
    must(count, "wire", "names no recording", "give a file or folder")
    must(len(request.after) in (0, count), "after", of_all, "give one of each run, in their order")
    kinds = SPLIT, NO_SPLIT
    must(request.federation in kinds, "federation", "is unknown", f"choose {' or '.join(kinds)}")
    for name in request.attacks:
        if name not in attacks.TABLE:
            raise unknown("attack", name, attacks.TABLE)
    for name in UTILITIES:
        values = getattr(request, name)
        right = all(0 <= u <= 1 for u in values) and len(values) in (0, 1, count)
        remedy = f"give one from 0 to 1, or one for each of the {count} runs"
        must(right, name, "is no utility", remedy)
    compared = request.after or not request.after_utility
    must(
        compared,
        "after_utility",
        "is of no recording",
        ("give ", argument("after"), ", or leave it out"),
    )
    cut = cut_at(request.runs, request.bins, BINS)
    runs, after = ([read(path, cut) for path in paths] for paths in (request.runs, request.after))
    for path, run, bare in zip(request.after, after, runs):
        common, rows = alike(bare), ("labels", "known_rows")
        differ = [name for name, value in alike(run).items() if value != common[name]]
        differ += [n for n in rows if not np.array_equal(getattr(run, n), getattr(bare, n))]
        remedy = "both are recorded alike, of the same rows in the same order"
        for what in differ[:1]:
            raise UserError(f"{path} differs from the run without a defense in {what}: {remedy}.")
    rows, width, classes = *runs[0].shape[1:], runs[0].classes
    right = request.known in range(classes, rows) or request.known == 0
    must(right, "known", "is too few or too many", f"give from {classes} to {rows - 1}")
    what = f"has embeddings of width {width} for {classes} classes"
    remedy = "without a top model they are logits, of one number a class"
    must(request.federation == SPLIT or width == classes, "federation", what, remedy)
    return {suite.UNDEFENDED: runs, DEFENDED: after}


def _must(request: WireRequest, right: Any, name: str, what: str, remedy: Text) -> None:
    """Raises a UserError on a field of the request, unless ``right``."""
    if not right:
        value = getattr(request, {"wire": "runs"}.get(name, name))
        raise UserError(what, field=argument(name), value=value, remedy=remedy)


def _config(request: WireRequest, first: Wire) -> dict[str, Any]:
    """Returns the config of the sweep."""
    passive, classes, epochs = len(first.parties), first.classes, first.epochs.tolist()
    known = request.known or len(first.known_rows)
    if not known and first.labels is not None:
        known = suite.known_labels(first.labels, classes)
    paths = [str(pathlib.Path(path).resolve()) for path in request.runs]
    options_of_data: dict[str, Any] = {"runs": tuple(paths[1:])}
    cut = cut_at(request.runs, request.bins, BINS)
    if cut is not None:
        options_of_data["bins"] = request.bins
    # the scores of trees are added up as logits are without a top model
    federation = request.federation if first.trees is None else NO_SPLIT
    attacked = suite.ATTACKS if first.trees is None else suite.OF_TREES
    options = suite.suited(attacked, (federation,), known, classes)
    names = request.attacks or [n for n in options if not attacks.TABLE[n].whole_batches]
    if not known:  # attacks that know labels are left out
        names = [n for n in names if "known" not in options.get(n, {})]
    return {
        "name": f"{pathlib.Path(request.runs[0]).stem}: a recorded exchange",
        "notes": (
            "The federation was trained elsewhere; its exchange was recorded, and nothing was trained here.",
            *([] if cut is None else [CUT.format(", ".join(map(spelled, cut)))]),
            *([] if first.equal_batches else [UNEQUAL.format(first.batch_size)]),
            *([] if first.trees is None else [TREES.format(*first.trees)]),
        ),
        "seeds": len(request.runs),
        "data": {"name": "wire", "dir": paths[0], "options": options_of_data},
        "parties": {
            "passive": passive,
            "label_features": False,
            "columns": tuple((f"party {p} column *",) for p in range(passive)),
        },
        "model": suite.model(classes) | {"cut": first.shape[2], "top": "mlp", "top_hidden": ()},
        "training": {
            "epochs": epochs[-1] + 1,
            "batch_size": first.batch_size,
            "record": tuple(epochs),
        },
        "known_draws": 1 if len(first.known_rows) or first.shape[1] > MANY_ROWS else suite.DRAWS,
        "attackers": tuple((p,) for p in range(passive)),
        "federations": (federation,),
        "grid": {suite.UNDEFENDED: {}, **({DEFENDED: {}} if request.after else {})},
        "attacks": {name: _of_epochs(options.get(name, {}), epochs) for name in names},
    }


def _of_epochs(options: Mapping[str, Any], epochs: Sequence[int]) -> dict[str, Any]:
    """Returns the options of an attack, without epochs that were not recorded."""
    values = as_axis(options.get("epoch", ()))
    kept = tuple(v for v in values if v in (-1, *epochs) or isinstance(v, str))
    rest = {name: axis for name, axis in options.items() if name != "epoch"}
    return {**rest, "epoch": kept} if kept else rest


def _write(
    plan: Plan,
    shard: Shard,
    workdir: pathlib.Path,
    request: WireRequest,
    wires: Mapping[str, Sequence[Wire]],
) -> None:
    """Stores the trials of a shard, with initial weights by seed, because trained ones were not recorded."""
    group = plan.groups[shard.group]
    trials = group.trials.iloc[list(shard.trials)]
    weights = initial_weights(group.spec, plan.experiment, plan.seeds, plan.table)
    seeds = trials["seed"].to_numpy()
    bottoms, active = jax.tree.map(lambda a: np.asarray(a)[seeds], tuple(weights))
    tree = {"bottoms": {str(p): bottom for p, bottom in enumerate(bottoms)}, "active": active}
    every = (party for runs in wires.values() for run in runs for party in run.parties)
    paths = max(0 if p.nodes is None else np.asarray(p.embeddings).shape[2] for p in every)
    places = zip(trials["method"], seeds, strict=True)
    members = [_exchange(wires[method][seed], paths) for method, seed in places]
    arrays = {name: np.stack([member[name] for member in members]) for name in members[0]}
    rows = [
        _row(row, request, plan) | {"shard": shard.name, "member": i}
        for i, row in enumerate(rows_of(trials))
    ]
    store.write_shard(workdir, shard.name, rows, tree, arrays)


def _exchange(wire: Wire, paths: int = 0) -> dict[str, HostArray]:
    """Returns the arrays of a trial's exchange, named as in ``store.exchange``, without the member axis.

    Of trees the recorded gradients are those of the first round in which any were sent, and the sums are over
    all rounds from there on.

    Args:
      wire: the recording.
      paths: the width to which the paths of trees are padded by zeros, so that all trials have it.
    """
    sent, rows = wire.sent, np.arange(wire.shape[1], dtype=np.int32)
    places = np.tile(rows, (len(sent), 1)) if wire.order is None else wire.order
    arrays: dict[str, HostArray] = {"epochs": wire.epochs, "order": places, "sent": sent}
    for p, party in enumerate(wire.parties):
        for name in EXCHANGED:
            array = getattr(party, name)
            array = np.zeros(wire.shape) if array is None else np.where(sent[..., None], array, 0)
            arrays[f"party{p}_{name}"] = array.astype(np.float32)
        g, count = arrays[f"party{p}_gradients"], sent.sum(axis=0, dtype=np.float32)
        if party.nodes is not None:
            z = arrays[f"party{p}_embeddings"]
            padding = (0, 0), (0, 0), (0, paths - z.shape[2])
            g = g[np.argmax(g.any(axis=(1, 2))) :]
            arrays[f"party{p}_embeddings"] = np.pad(z, padding)
            arrays[f"party{p}_gradients"], count = g[:1], count * len(g)
            arrays[f"party{p}_{NODES}"] = np.moveaxis(party.nodes, 1, 2)
        sums = Sums(g.sum(0), np.sign(g).sum(0), np.square(g).sum(0), count)
        arrays |= {f"party{p}_sum_{name}": array for name, array in sums._asdict().items()}
    return arrays


def _row(trial: Mapping[str, Any], request: WireRequest, plan: Plan) -> dict[str, Any]:
    """Returns a trial's row of results; utilities that are not given are null."""
    two = plan.dataset.num_classes == 2
    accuracy = "oriented_accuracy" if two else "accuracy"
    counted = "oriented_auc" if utility_of(plan.balance) == "AUC" else accuracy
    defended = trial["method"] == DEFENDED

    def of_seed(values: Sequence[float]) -> float | None:
        return float(values[trial["seed"] % len(values)]) if values else None

    given = {"": of_seed(request.after_utility if defended else request.utility)}
    given |= {} if defended else {"alone_": of_seed(request.alone)}
    names = (accuracy, *["oriented_auc"] * two)
    return {
        **trial,
        "defenses": UNKNOWN_DEFENSE if defended else "",
        **{
            f"{who}{part}_{name}": value if name == counted else None
            for who, value in given.items()
            for part in ("validation", "test")
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
    stored = opened(plan, workdir, header)
    trained = store.read_results(workdir, [shard.name for shard in plan.shards]).to_pylist()
    tables: dict[tuple[int, int], dict[str, HostArray]] = {}
    for each in (each for each in variants if not each.skipped):
        jobs = (job for job in jobs_of(each, stored.plan, trained) if job.what == ATTACK)
        for job in (job for job in jobs if not job.point):
            batch = make_attack_batch(each.variant, job.group, stored)
            _, _, scores = batch_scores(batch, [job], stored)
            by_class: HostArray = np.asarray(scores.train)[0].mean(axis=0)
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
