"""Attacks the exchange of a federation that was trained elsewhere, from a recording (``datasets.wire``).

Recordings become a stored sweep, in which each run is a seed, so that they are attacked, judged and reported
like any other. Its methods are the federation without a defense, and the same runs under defenses. Such a
defense needs no code any more, and no attack is said to know it unless the request names one. A recording lacks
the bottom models, and utility unless it is given.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vfljax import defenses, plugins, store
from vfljax.attack_runs.batching import batch_scores, make_attack_batch
from vfljax.attack_runs.bundles import Begun, bundles_of
from vfljax.attack_runs.jobs import ATTACK, jobs_of, planned
from vfljax.attack_runs.run import opened_sweep
from vfljax.auditing.wires_agreement import checked, recordings_of
from vfljax.auditing.wires_config import config_of
from vfljax.auditing.wires_request import CLAIMED, NOBODY, Recorded, Utilities, WireRequest
from vfljax.auditing.wires_trials import write
from vfljax.datasets.wire_checks import checked_wire
from vfljax.defenses.rows import no_remarks
from vfljax.errors import UserError, argument, user_path
from vfljax.scheduling import running
from vfljax.scheduling.work import May, anything
from vfljax.sweep import train
from vfljax.sweep.grid import parse
from vfljax.sweep.known import split_arrays
from vfljax.sweep.plan import Plan, divided_as
from vfljax.sweep.variants import AttackVariant
from vfljax.types import NO_SPLIT, SPLIT, HostArray

__all__ = [
    "CLAIMED",
    "DEFENDED",
    "PREDICTIONS",
    "Recorded",
    "Utilities",
    "WireRequest",
    "attack",
    "written",
]


DEFENDED = "defended"
PREDICTIONS = "predictions.parquet"


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
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress.
      may: whether a unit of attacks may still be begun.

    Returns:
      Whether the recordings have labels to score with; without labels, predictions are written, not figures.

    Raises:
      UserError: of one line, for recordings or a request that are not valid.
    """
    found = checked(request)
    for method, name in request.chains.items():
        known_by = {kind: request.known_by.get(method, NOBODY) for kind in (SPLIT, NO_SPLIT)}
        remarks = request.remarks.get(method, no_remarks)
        row = plugins.recorded(request.methods[method][0].knobs, known_by, remarks)
        defenses.TABLE[name] = row
    _refuse_fewer(request, workdir)
    experiment = parse(config_of(request, found))
    plan = train.plan_of(experiment, store.header_of(workdir))  # it may be extended
    recording = plan.dataset.recording
    assert recording is not None
    header = train.header(plan, command)
    header["data"] |= {"validation": 0, "test": 0, "label_columns": True}
    header["data"] |= {"trees": found.first.trees, "missing": recording.missing, **request.data}
    variants = planned(plan, experiment)
    with store.leading(workdir):
        stored = store.header_of(workdir) or {}
        recordings = recordings_of(stored, found, workdir)
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
                write(plan, shard, workdir, request, found)
    if recording.labeled:
        running.attack_stored(plan, workdir, None, say=say, may=may).check()
    else:
        for each in (each for each in variants if each.skipped):
            say(f"skipped {each.label}: {each.skipped}")
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


def _predict(
    plan: Plan,
    workdir: pathlib.Path,
    variants: Sequence[AttackVariant],
    header: Mapping[str, Any],
    say: Callable[[str], None],
) -> None:
    """Writes each row's class by every attack, at its first knobs, and the margin over the next class, or its
    score if labels are numbers."""
    stored = opened_sweep(Begun(plan, workdir, header))
    trained = store.read_results(workdir, [shard.name for shard in plan.shards]).to_pylist()
    tables: dict[tuple[int, int], dict[str, HostArray]] = {}
    for each in (each for each in variants if not each.skipped):
        jobs = (job for job in jobs_of(each, stored.plan, trained) if job.what == ATTACK)
        for job in (job for job in jobs if not job.point):
            bundle = bundles_of([(each, [job])])[0]
            _, scores = batch_scores(make_attack_batch(bundle, stored), [job], stored)
            by_class: HostArray = np.asarray(scores[0].train)[0, 0].mean(axis=0)
            columns = tables.setdefault((job.row["trial"], job.seed), {})
            label = each.label
            if by_class.shape[1] == 1:  # labels are numbers, and so are their scores
                columns[label] = by_class[:, 0]
                continue
            first, second = np.sort(by_class, axis=1)[:, :-3:-1].T
            columns[label] = np.where(np.isnan(first), -1, by_class.argmax(axis=1))
            columns[f"{label}: margin"] = first - second
    frames = [
        pd.DataFrame({"trial": trial, "run": run, **columns}).rename_axis("row").reset_index()
        for (trial, run), columns in tables.items()
    ]
    if not frames:
        say("no labels to score with, and no attack was run, so that there are no predictions")
        return
    pd.concat(frames).to_parquet(workdir / PREDICTIONS, index=False)
    say(f"no labels to score with: predictions are in {workdir / PREDICTIONS}")
