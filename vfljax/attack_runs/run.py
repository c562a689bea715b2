"""Runs the units of attacks of a sweep: loads trials batch by batch, attacks, scores and stores rows.

Attacks see a ``View`` and the known rows. Only ``scoring`` compares their scores with true labels.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import jax

from vfljax import attacks, plugins, store
from vfljax.attack_runs import cascade, local_only
from vfljax.attack_runs.batching import compile_attack_batch, make_attack_batch, run_attack_batch
from vfljax.attack_runs.bundles import Begun, Bundle, Stored, bundles_of
from vfljax.attack_runs.jobs import (
    ALL_LABELS,
    ATTACK,
    UNTRAINED,
    Job,
    attacks_among,
    from_entry,
    jobs_of,
    key_of,
)
from vfljax.attack_runs.scoring import Scorer
from vfljax.attacks import learners
from vfljax.config import Config
from vfljax.datasets.splits import label_groups
from vfljax.store.units import ATTACK as ATTACKS
from vfljax.store.units import LOCAL_ONLY, rule_of_learners
from vfljax.sweep import batch_layout, profile, programs, shard_trainer
from vfljax.sweep.grid import defense_values
from vfljax.sweep.known import split_arrays
from vfljax.sweep.plan import recorded
from vfljax.sweep.progress import Progress
from vfljax.sweep.sharding import mapped_at_once
from vfljax.sweep.variants import AttackVariant, attackers_of
from vfljax.types import federation_of

# columns of results
TRIAL = [*("trial", "configuration", "defenses", "seed", "federation", "status", "shard", "member")]


def opened_sweep(begun: Begun) -> Stored:
    """Returns what attacks need of a sweep."""
    plan, header = recorded(begun.plan), begun.header
    entries = header["attacks"].items()
    variants = {key: from_entry(entry, plan) for key, entry in entries if entry["status"] == "ok"}
    width = mapped_at_once(plan.experiment, few=plan.effort.attacks == 0)
    arrays = split_arrays(
        plan.dataset.labels,
        plan.splits,
        plan.experiment.known_draws,
        plan.candidates,
        label_groups(plan.dataset),
    )
    if plan.dataset.recording is not None and plan.dataset.recording.rows is not None:
        arrays["rows"] = plan.dataset.recording.rows
    scorer = Scorer(arrays, width, header["naming"], plan.effort.scoring, plan.positive)
    return Stored(begun, plan, arrays, scorer, variants)


def can_run(unit: store.Unit, header: Mapping[str, Any]) -> bool:
    """Returns whether this process has the code of a unit: an attack, or learners, of the rule that the header
    names."""
    if unit.kind == LOCAL_ONLY:
        return rule_of_learners(unit.of) == learners.RULE
    if unit.kind != ATTACKS:
        return True
    entry = header["attacks"][unit.of]
    row = attacks.TABLE.get(entry["attack"])
    return row is not None and row.rule == entry["rule"]


def check_plugins(experiment: Config, workdir: pathlib.Path) -> None:
    """Raises a UserError if a plugin that is needed is not in use, or is not the file of the stored rows.
    Stored rows of another rule of an attack do not count."""
    header = store.header_of(workdir)
    if header is None:
        return
    chains = defense_values(experiment)
    known = {name: about for name, about in header.get("plugins", {}).items() if name in chains}
    for entry in header["attacks"].values():
        row = attacks.TABLE.get(entry["attack"])
        if row is not None and row.rule == entry["rule"]:  # a new rule may be of another file
            known |= entry.get("plugins", {})
    plugins.required([*chains, *experiment.attacks], known, workdir)


def check_attacks(header: Mapping[str, Any], workdir: pathlib.Path) -> None:
    """Raises a UserError if a plugin that is in use is not the file with which stored attacks are made."""
    for about in header["attacks"].values():
        row = attacks.TABLE.get(about["attack"])
        if row is not None and row.rule == about["rule"]:
            plugins.required([about["attack"]], about.get("plugins", {}), workdir)


def run_units(units: Sequence[store.Unit], stored: Stored, ahead: programs.Spent) -> None:
    """Makes a unit of the local-only baseline, or units of variants of one attack on the same shards.

    Args:
      units: they are made together. If shards that they need are not trained, the rows of the others are saved
        as their progress.
      ahead: what ``compile_ahead`` has spent on them.
    """
    if units[0].kind == LOCAL_ONLY:
        with profile.span(profile.ATTACKS, LOCAL_ONLY):
            local_only.run(units[0], stored)
    else:
        with profile.span(profile.ATTACKS, units[0].program):
            _attack(units, stored, ahead)


def compile_ahead(units: Sequence[store.Unit], stored: Stored, pool: Executor) -> None:
    """Traces the programs that units of an attack will call, and compiles them in the background.

    Args:
      units: variants of one attack on the same shards, all of whose cheaper attacks are done.
      pool: compiles.
    """
    with profile.span(profile.ATTACKS, units[0].program):
        for bundle in bundles_of([_todo(_work(unit, stored)) for unit in units]):
            # untrained bottoms would be made first
            members = [member for member in bundle.members if member.what != UNTRAINED]
            if members:
                compile_attack_batch(make_attack_batch(bundle, stored), members[0], pool)


class _Work(NamedTuple):
    """What is to be done for a unit of attacks."""

    variant: AttackVariant
    trained: list[dict[str, Any]]  # rows of results of the shards that are trained
    jobs: list[Job]
    left: list[Job]  # those that are neither settled nor rejected
    rows: dict[tuple[Any, ...], dict[str, Any]]  # of jobs that are done or need not be, by key


def _todo(work: _Work) -> tuple[AttackVariant, list[Job]]:
    """Returns the variant of a unit, and its jobs that are neither settled nor done."""
    return work.variant, [job for job in work.left if job.key not in work.rows]


def _trained_shards(unit: store.Unit, stored: Stored) -> list[tuple[str, str]]:
    """Returns the units and the names of a unit's shards that are trained."""
    pairs = zip(unit.needs, unit.shards, strict=True)
    return [(name, shard) for name, shard in pairs if store.finished(stored.begun.workdir, name)]


def _work(unit: store.Unit, stored: Stored) -> _Work:
    workdir, variant = stored.begun.workdir, stored.variants[unit.of]
    assert variant is not None, "the unit cannot be run"
    names = [shard for _, shard in _trained_shards(unit, stored)]
    trained = store.read_results(workdir, names).select(TRIAL).to_pylist()
    jobs = jobs_of(variant, stored.plan, trained)
    rows = {key_of(row): row for row in store.read_partial_rows(workdir, unit.name)}
    spared = {key: {"rejected": True} for key in _rejected(unit, jobs, stored)}
    settled = _settled(unit, jobs, trained, stored)
    spared |= {key: {"settled_by": label} for key, label in settled.items()}
    for job in jobs:
        if job.key in spared and job.what == ATTACK:
            rows[job.key] = job.figures(spared[job.key])
    return _Work(variant, trained, jobs, [job for job in jobs if job.key not in spared], rows)


def _attack(units: Sequence[store.Unit], stored: Stored, ahead: programs.Spent) -> None:
    workdir, began, before = stored.begun.workdir, time.monotonic(), programs.spent()
    there = _trained_shards(units[0], stored)
    for name, _ in there:
        store.verify_unit(workdir, name)
    works = {unit.name: _work(unit, stored) for unit in units}
    variants = [work.variant for work in works.values()]
    of = variants[0].label if len(variants) == 1 else f"{variants[0].name} x {len(variants)}"
    left = {name: work.left for name, work in works.items()}
    progress = Progress(
        f"attack {of}",
        sum(map(attacks_among, left.values())),
        sum(_steps(work.left, work.variant) for work in works.values()),
    )
    for work in works.values():
        done = [job for job in work.left if job.key in work.rows]
        progress.resume(attacks_among(done), _steps(done, work.variant))
    for bundle in bundles_of([_todo(work) for work in works.values()]):
        _run_bundle(bundle, works, stored, progress)
    progress.close()
    if len(there) < len(units[0].shards):  # some cannot be trained now
        for name, work in works.items():
            store.write_partial_rows(workdir, name, [*work.rows.values()])
        return
    # what the units cost together is divided among them by their jobs, so that their sum is right
    spent = programs.spent_since(before)
    seconds = {
        "seconds": time.monotonic() - began + ahead.tracing,
        "tracing": spent.tracing + ahead.tracing,
        "compiling": spent.compiling,
        "running": spent.running,
    }
    every = sum(map(len, left.values()))
    for place, (name, work) in enumerate(works.items()):
        share = len(work.left) / every if every else 1 / len(works)
        cost = {
            **{kind: share * of_kind for kind, of_kind in seconds.items()},
            "compiles": 0 if place else spent.traces + ahead.traces,
            "trials": attacks_among(work.jobs),
            "diverged": _diverged(work.variant, work.trained),
            "rows": len(work.rows),
        }
        store.write_rows(workdir, name, [*work.rows.values()], cost=cost)


def _settled(
    unit: store.Unit, jobs: Sequence[Job], trained: Sequence[Mapping[str, Any]], stored: Stored
) -> dict[tuple[Any, ...], str]:
    """Returns the label of the cheaper attack that settles a job, by the job's key, for those that are settled.

    Undefended runs are never settled: defenses are compared with them under the attacks that have figures on
    both, and a defense may break the attack that settled the others. Classes that an attack cannot name by
    itself are named by as many labels as other attacks know, which then count as known to it.
    """
    configuration = {row["trial"]: row["configuration"] for row in trained if row["defenses"]}
    jobs = [job for job in jobs if job.row["trial"] in configuration]
    cheaper = [name for name in unit.after if (stored.begun.workdir / name).is_dir()]

    def about(row: Mapping[str, Any]) -> dict[str, Any]:
        variant = stored.variants[row["variant"]]
        assert variant is not None, "the unit cannot be run"
        return {
            **row,
            "configuration": configuration[row["trial"]],
            "known": row["known"] or stored.begun.header["naming"],
            "cost": attacks.TABLE[variant.name].cost,
            "role": cascade.role_of(variant.attack),
        }

    rows = store.read_rows(stored.begun.workdir, cheaper).to_pylist()
    rows = [row for row in rows if row["trial"] in configuration]
    labels = cascade.settled_by(map(about, rows), [about(job.figures({})) for job in jobs])
    return {job.key: label for job, label in zip(jobs, labels, strict=True) if label}


def _rejected(unit: store.Unit, jobs: Sequence[Job], stored: Stored) -> set[tuple[Any, ...]]:
    """Returns the keys of the jobs of a dear attack on configurations that are rejected for what cheap ones
    read. All of these are done on the unit's shards, because it comes after them."""
    variant = stored.variants[unit.of]
    assert variant is not None, "the unit cannot be run"
    dear = attacks.TABLE[variant.name].cost > cascade.CHEAP
    able = [job for job in jobs if job.what in (ATTACK, ALL_LABELS) and job.row["defenses"]]
    if not dear or not able or cascade.role_of(variant.attack) != "attack":
        return set()
    rejected = {*stored.begun.rejected(unit.shards)}
    places = (
        (job.row["configuration"], federation_of(job.row["federation"]).panel) for job in able
    )
    return {job.key for job, place in zip(able, places, strict=True) if place in rejected}


def _steps(jobs: Sequence[Job], variant: AttackVariant) -> int:
    return max(1, variant.attack.steps) * len(jobs)


def _diverged(variant: AttackVariant, trained: Sequence[Mapping[str, Any]]) -> int:
    """Returns how many trials are not attacked because their training diverged."""
    of = (row for row in trained if row["status"] != "ok")
    return sum(bool(attackers_of(variant, row["federation"])) for row in of)


def _run_bundle(
    bundle: Bundle, works: Mapping[str, _Work], stored: Stored, progress: Progress
) -> None:
    """Loads, attacks and scores the members of a bundle, and adds the rows of its jobs. Rows are saved every
    ``SAVE_SECONDS``, and when this is interrupted."""
    rows_of = {work.variant.key: work.rows for work in works.values()}
    batch = make_attack_batch(bundle, stored)
    steps, left, saved = (
        max(1, bundle.variants[0].attack.steps),
        list(bundle.members),
        time.monotonic(),
    )

    def save() -> None:
        for name, work in works.items():
            if work.rows:
                store.write_partial_rows(stored.begun.workdir, name, [*work.rows.values()])

    try:
        while left:
            members = left[: batch.layout.capacity]
            made = []
            try:
                for job, figures in run_attack_batch(batch, members, stored):
                    rows_of[job.variant.key][job.key] = job.figures(figures)
                    made.append(job)
            except jax.errors.JaxRuntimeError as error:
                label = bundle.variants[0].label
                width = batch_layout.halved(batch.layout, label, error, progress.say)
                batch = batch.narrowed(width)
                continue
            del left[: len(members)]
            if time.monotonic() - saved > shard_trainer.SAVE_SECONDS:
                save()
                saved = time.monotonic()
            progress.update(attacks_among(made), steps * len(made))
    except (KeyboardInterrupt, SystemExit):
        save()
        raise
