"""Attacks a stored sweep: plans, loads trials batch by batch, attacks, scores and writes.

What enters: a sweep directory (weights and exchange) and the attackers' own columns. What leaves: a row for
each trial and attack. Attacks see a ``View`` and the known rows; true labels meet their scores only in
``scoring``.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax

from vfljax import attacks, plugins, store
from vfljax.attacking import local_only, versions
from vfljax.attacking.batching import Stored, make_attack_batch, run_attack_batch
from vfljax.attacking.diagnostics import belongs_to
from vfljax.attacking.jobs import ATTACK, Job, VariantPlan, ViewGroup, key_of, plan_variant
from vfljax.attacking.scoring import Scorer
from vfljax.attacks.core import Attack
from vfljax.sweep import batch_layout, profile, programs
from vfljax.sweep.attack_variants import AttackVariant, attack_variants
from vfljax.sweep.experiment import Experiment, experiment_of
from vfljax.sweep.plan import Plan, divided_as, recorded, split_arrays
from vfljax.sweep.progress import Progress
from vfljax.sweep.serving import most_known

Cost = dict[str, Any]  # of an attack: seconds, compiles, views
Attacked = tuple[VariantPlan, Cost]
# runs the jobs of variants; yields each, with the trials that were attacked, and its cost
RunVariants = Callable[[Sequence[VariantPlan], Stored], Iterable[Attacked]]


@profile.span("attacks, the host's work")
def attack_sweep(
    plan: Plan,
    workdir: pathlib.Path,
    names: Iterable[str] | None = None,
    say: Callable[[str], None] = print,
    renew_rules: bool = False,
    run: RunVariants | None = None,
) -> None:
    """Attacks every stored trial with every variant that is not stored yet.

    Each attack is compiled once a shape.

    Args:
      plan: of the stored sweep.
      workdir: the folder of the sweep.
      names: the attacks to run; those outside the config run with published defaults. None: the config's.
      say: is given each line of progress.
      renew_rules: attack anew what an earlier rule of an attack attacked; its rows are kept (``versions``).
      run: runs the variants that are not stored; None: ``run_variants``.
    """
    with store.writing(workdir):
        _attack_sweep(recorded(plan), workdir, names, say, renew_rules, run or run_variants)


def _attack_sweep(
    plan: Plan,
    workdir: pathlib.Path,
    names: Iterable[str] | None,
    say: Callable[[str], None],
    renew_rules: bool,
    run: RunVariants,
) -> None:
    experiment, stored = _stored(plan, workdir, names)
    sweep, summary = stored.sweep, stored.summary
    trained = [s["name"] for s in sweep.header["shards"] if store.finished(workdir, s["name"])]
    todo, left = [], []
    _check_plugins(experiment, sweep, summary)
    for variant, variant_plan in _planned(experiment, stored):
        if isinstance(variant_plan, str):
            say(f"skipped {variant.label}: {variant_plan}")
            about = {**store.identity_columns(variant.identity), "status": "skipped"}
            summary[variant.key] = {**about, "reason": variant_plan}
            continue
        about = described(variant_plan, len(trained))
        if not versions.settle(variant, about, summary, workdir, renew_rules, say):
            left.append(variant_plan)
            continue
        todo.append(variant_plan)
    inputs = [columns.input for columns in plan.party_columns]
    baselines = local_only.jobs([*todo, *left], experiment.seeds, inputs)
    if baselines:
        store.open_variant(workdir, local_only.LABEL)
        summary[local_only.LABEL] = local_only.described(baselines, workdir, len(trained))
    # what an attack is, is known before its first row
    store.write_attack_summary(workdir, summary)
    local_only.run(baselines, plan, workdir, stored.arrays, stored.scorer)
    for variant_plan, cost in run(todo, stored) if todo else ():
        _check_complete(variant_plan, stored)
        about = summary[variant_plan.variant.key]
        about |= with_earlier_parts(cost, about)
        store.write_attack_summary(workdir, summary)


def planned_variants(
    plan: Plan, workdir: pathlib.Path, names: Iterable[str] | None
) -> tuple[list[VariantPlan], Stored]:
    """Returns the variants that can be run on a stored sweep, and what attacking it needs.

    Args:
      plan: of the stored sweep.
      workdir: the folder of the sweep.
      names: as of ``attack_sweep``.
    """
    experiment, stored = _stored(recorded(plan), workdir, names)
    planned = [variant_plan for _, variant_plan in _planned(experiment, stored)]
    return [variant_plan for variant_plan in planned if not isinstance(variant_plan, str)], stored


def _stored(
    plan: Plan, workdir: pathlib.Path, names: Iterable[str] | None
) -> tuple[Experiment, Stored]:
    """What is asked for, and the stored sweep."""
    experiment = plan.experiment if names is None else plan.experiment.with_attacks(names)
    sweep = store.load(workdir)
    plan = divided_as(plan, sweep.header)
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    # by as many labels as the sweep's own attacks know, not as those asked for now
    trained = experiment_of(sweep)
    variants = attack_variants(trained, plan.dataset.num_classes, plan.party_columns[0].input)
    naming = most_known(plan._replace(experiment=trained, attack_variants=tuple(variants)))
    scorer = Scorer(arrays, experiment.execution.width or None, naming, plan.effort.attacks)
    return experiment, Stored(plan, sweep, arrays, scorer, store.attack_summary(workdir))


def _planned(
    experiment: Experiment, stored: Stored
) -> Iterator[tuple[AttackVariant, VariantPlan | str]]:
    plan = stored.plan
    for variant in attack_variants(
        experiment, plan.dataset.num_classes, plan.party_columns[0].input
    ):
        yield variant, plan_variant(variant, plan, stored.sweep)


def _check_plugins(experiment: Experiment, sweep: store.Sweep, summary: versions.Summary) -> None:
    """Refuse rows of plugins that are not in use, or whose files are not those of what is stored; an
    attack whose rule has a new number is another one."""
    names = list(experiment.attacks)
    stored = {
        name: about
        for name, about in sweep.header.get("plugins", {}).items()
        if about["kind"] == "defense"
    }
    for entry in summary.values():
        for name, about in entry.get("plugins", {}).items():
            if name in attacks.TABLE and attacks.TABLE[name].rule == about["rule"]:
                stored[name] = about
    plugins.required([*experiment.defense_values, *names], stored, sweep.workdir)


def run_variants(todo: Sequence[VariantPlan], stored: Stored) -> Iterator[Attacked]:
    """Runs variants one after the other in this process.

    Args:
      todo: the variants and their jobs.
      stored: the sweep.

    Yields:
      Each variant and what it cost.
    """
    for shard in stored.sweep.header["shards"]:
        if store.finished(stored.workdir, shard["name"]):
            store.verify(stored.workdir, shard["name"])
    for variant_plan in todo:
        yield variant_plan, run_variant(variant_plan, stored)


def with_earlier_parts(now: Mapping[str, Any], before: Mapping[str, Any]) -> Cost:
    """Returns the cost of an attack that was run in parts: seconds add up, programs are the same.

    Args:
      now: the cost of this part.
      before: the cost of the earlier ones.
    """
    return {
        "seconds": before.get("seconds", 0.0) + now["seconds"],
        "compiles": max(before.get("compiles", 0), now["compiles"]),
        "views": max(before.get("views", 0), now["views"]),
    }


def run_variant(variant_plan: VariantPlan, stored: Stored) -> Cost:
    """Runs every job of a variant that is not stored yet.

    Args:
      variant_plan: the variant and its jobs.
      stored: the sweep.

    Returns:
      What that cost.
    """
    variant, attack, began = variant_plan.variant, variant_plan.attack, time.monotonic()
    steps = max(1, attack.steps)
    # what is stored is known by its rows, not its file: batches differ between machines
    rows = stored.rows(variant)
    versions.check_options(variant, rows, stored.workdir)
    done = {key_of(row) for row in rows}
    total = sum(len(jobs) for jobs in variant_plan.jobs.values())
    progress = Progress(f"attack {variant.label}", variant_plan.trials, steps * total)
    used = set()
    for group, jobs in variant_plan.jobs.items():
        todo = [job for job in jobs if job.key not in done]
        progress.resume(_attacks(jobs) - _attacks(todo), steps * (len(jobs) - len(todo)))
        if todo:
            on_group = variant_plan.attacks[group]
            used.add(_run_group(variant, group, on_group, todo, stored, progress))
    progress.close()
    return {
        "seconds": time.monotonic() - began if used else 0.0,
        "compiles": sum(program.traces for program in used),
        "views": len(used),
    }


def _check_complete(variant_plan: VariantPlan, stored: Stored) -> None:
    """Refuse to end while a job has no row."""
    rows = {key_of(row) for row in stored.rows(variant_plan.variant)}
    missing = sum(job.key not in rows for job in variant_plan.every_job)
    if missing:
        unit = store.unit_of(variant_plan.variant.key)
        raise store.Damaged(stored.workdir, unit, f"{missing} rows are missing")


def _attacks(jobs: Sequence[Job]) -> int:
    return sum(job.what == ATTACK for job in jobs)


def described(variant_plan: VariantPlan, shards: int) -> dict[str, Any]:
    """Returns a variant's entry of ``attacks.json``.

    Args:
      variant_plan: the variant and its jobs.
      shards: how many shards are trained.
    """
    variant, attack = variant_plan.variant, variant_plan.attack
    owns_layer = all(belongs_to(attack.diagnostic, g.attackers) for g in variant_plan.attacks)
    return {
        **store.identity_columns(variant.identity),
        "status": "ok",
        "steps": attack.steps,
        "knobs": variant.knobs,
        "oracle": attack.oracle or (bool(attack.diagnostic) and not owns_layer),
        "labels": "all" if attack.oracle else "",
        "adaptive": attack.adaptive,
        "baselines": list(attack.baselines),
        "federations": list(attack.federations),
        "trials": variant_plan.trials,
        "diverged": variant_plan.diverged,
        "rows": len(variant_plan.every_job),
        "shards": shards,
        **({"plugins": about} if (about := plugins.described([variant.name])) else {}),
    }


def _run_group(
    variant: AttackVariant,
    group: ViewGroup,
    attack: Attack,
    todo: Sequence[Job],
    stored: Stored,
    progress: Progress,
) -> programs.Program:
    """Loads, attacks, scores and writes the jobs of a group, batch by batch."""
    steps, program = max(1, attack.steps), None
    batch = make_attack_batch(variant, group, attack, stored)
    left = list(todo)
    while left:
        jobs = left[: batch.layout.capacity]
        try:
            program, figures = run_attack_batch(batch, jobs, stored)
        except jax.errors.JaxRuntimeError as error:
            width = batch_layout.fewer(batch.layout, variant.label, error, progress.say)
            batch = batch.narrowed(width)
            continue
        del left[: len(jobs)]
        rows = [
            job.figures({name: float(values[i]) for name, values in figures.items()})
            for i, job in enumerate(jobs)
        ]
        _write(variant, f"{group.federation}-{group.number}", jobs, rows, stored)
        progress.update(_attacks(jobs), steps * len(jobs))
    assert program is not None
    return program


def _write(
    variant: AttackVariant,
    name: str,
    jobs: Sequence[Job],
    rows: list[dict[str, Any]],
    stored: Stored,
) -> None:
    identities = [job.key for job in jobs]
    store.write_chunk(stored.workdir, variant.key, name, identities, rows)
