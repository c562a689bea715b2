"""Attacks a stored sweep: plans, loads trials batch by batch, attacks, scores and writes.

Attacks see a ``View`` and the known rows. Only ``scoring`` compares their scores with true labels.
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax

from vfljax import attacks, plugins, store
from vfljax.attacking import local_only, versions
from vfljax.attacking.batching import Stored, make_attack_batch, run_attack_batch, sharing_calls
from vfljax.attacking.diagnostics import belongs_to
from vfljax.attacking.jobs import Job, VariantPlan, attacks_among, key_of, plan_variant
from vfljax.attacking.reads import as_recorded
from vfljax.attacking.scoring import Scorer
from vfljax.config import Config
from vfljax.sweep import batch_layout, profile, programs, trainer
from vfljax.sweep.grid import defense_values, experiment_of
from vfljax.sweep.plan import Plan, divided_as, most_known, recorded, split_arrays
from vfljax.sweep.progress import Progress
from vfljax.sweep.variants import AttackVariant, attack_variants

Cost = dict[str, Any]  # of an attack: seconds, compiles, views
Attacked = tuple[VariantPlan, Cost]
# runs the jobs of variants, and yields each variant with its cost
RunVariants = Callable[[Sequence[VariantPlan], Stored], Iterable[Attacked]]


@profile.span("attacks, the host's work")
def attack_sweep(
    plan: Plan,
    workdir: pathlib.Path,
    names: Iterable[str] | Mapping[str, Any] | None = None,
    say: Callable[[str], None] = print,
    renew_rules: bool = False,
    run: RunVariants | None = None,
) -> None:
    """Attacks every stored trial with every variant that is not stored yet.

    Each attack is compiled once per shape of its arguments.

    Args:
      plan: of the stored sweep.
      workdir: the folder of the sweep.
      names: the attacks to run, or a mapping of names to options; those outside the config run with published
        defaults. None: the config's.
      say: is given each line of progress.
      renew_rules: attack variants anew that an earlier rule attacked; its rows are kept (``versions``).
      run: runs the variants that are not stored; None: ``run_variants``.
    """
    with store.writing(workdir):
        planned, stored = planned_variants(plan, workdir, names)
        shards = len(_trained(stored))
        todo, left = _divided(planned, stored, shards, renew_rules, say)
        baselines = local_only.jobs([*todo, *left], stored.plan)
        if baselines:
            store.open_variant(workdir, local_only.LABEL)
            about = local_only.described(baselines, workdir, shards)
            stored.summary[local_only.LABEL] = about
        # every variant is described before its first row is written
        store.write_attack_summary(workdir, stored.summary)
        local_only.run(baselines, stored)
        if todo:
            _run(todo, stored, run or run_variants)


def _divided(
    planned: Sequence[VariantPlan],
    stored: Stored,
    shards: int,
    renew_rules: bool,
    say: Callable[[str], None],
) -> tuple[list[VariantPlan], list[VariantPlan]]:
    """Returns the variants to run, and those that stay as another rule stored them. The summary gets an entry
    for each variant that is run or skipped."""
    todo: list[VariantPlan] = []
    left: list[VariantPlan] = []
    for variant_plan in planned:
        variant, why = variant_plan.variant, variant_plan.skipped
        if why:
            say(f"skipped {variant.label}: {why}")
            about = store.identity_columns(variant.identity)
            stored.summary[variant.key] = {**about, "status": "skipped", "reason": why}
        elif versions.settle(variant, _described(variant_plan, shards), stored, renew_rules, say):
            todo.append(variant_plan)
        else:
            left.append(variant_plan)
    return todo, left


def _run(todo: Sequence[VariantPlan], stored: Stored, run: RunVariants) -> None:
    """Runs variants, and stores the cost of each once all its rows are stored."""
    workdir, summary = stored.workdir, stored.summary
    for variant_plan, cost in run(todo, stored):
        variant = variant_plan.variant
        rows = stored.keys(variant)
        missing = sum(job.key not in rows for job in variant_plan.every_job)
        if missing:
            unit = store.unit_of(variant.key)
            raise store.Damaged(workdir, unit, f"{missing} rows are missing")
        about = summary[variant.key]
        about |= with_earlier_parts(cost, about)
        store.write_attack_summary(workdir, summary)


def _trained(stored: Stored) -> list[str]:
    """Returns the names of the shards that are trained."""
    names = [shard["name"] for shard in stored.sweep.header["shards"]]
    return [name for name in names if store.finished(stored.workdir, name)]


def planned_variants(
    plan: Plan, workdir: pathlib.Path, names: Iterable[str] | Mapping[str, Any] | None
) -> tuple[list[VariantPlan], Stored]:
    """Returns the plans of the requested variants, and what attacks need of the stored sweep.

    Args:
      plan: of the stored sweep.
      workdir: the folder of the sweep.
      names: as for ``attack_sweep``.
    """
    plan, sweep = recorded(plan), store.load(workdir)
    asked = plan.experiment if names is None else plan.experiment.with_attacks(names)
    plan = divided_as(plan, sweep.header)

    def variants(experiment: Config) -> list[AttackVariant]:
        reads = plan.party_columns[0].input
        return attack_variants(experiment, plan.dataset.num_classes, reads)

    draws = plan.experiment.known_draws
    arrays = split_arrays(plan.dataset.labels, plan.splits, draws, plan.candidates)
    # classes are named by as many labels as the attacks of the sweep's own config know
    trained = experiment_of(sweep)
    as_trained = plan._replace(experiment=trained, attack_variants=tuple(variants(trained)))
    naming = most_known(as_trained)
    scorer = Scorer(
        arrays, asked.execution.width or None, naming, plan.effort.attacks, plan.positive
    )
    stored = Stored(plan, sweep, arrays, scorer, store.attack_summary(workdir))
    _check_plugins(asked, stored)
    planned = (plan_variant(variant, plan, sweep) for variant in variants(asked))
    return [as_recorded(variant_plan, stored) for variant_plan in planned], stored


def _check_plugins(experiment: Config, stored: Stored) -> None:
    """Raises a UserError if a plugin that is needed is not in use, or is not the file of the stored rows.
    Stored rows of another rule of an attack do not count."""
    plugged = stored.sweep.header.get("plugins", {})
    known = {name: about for name, about in plugged.items() if about["kind"] == "defense"}
    for entry in stored.summary.values():
        for name, about in entry.get("plugins", {}).items():
            if name in attacks.TABLE and attacks.TABLE[name].rule == about["rule"]:
                known[name] = about
    plugins.required([*defense_values(experiment), *experiment.attacks], known, stored.workdir)


def run_variants(todo: Iterable[VariantPlan], stored: Stored) -> Iterator[Attacked]:
    """Runs variants one after the other in this process.

    Args:
      todo: the variants and their jobs.
      stored: the sweep.

    Yields:
      Each variant and what it cost.
    """
    for name in _trained(stored):
        store.verify(stored.workdir, name)
    for variant_plan in todo:
        yield variant_plan, run_variant(variant_plan, stored)


def with_earlier_parts(now: Mapping[str, Any], before: Mapping[str, Any]) -> Cost:
    """Returns the cost of an attack that was run in parts: seconds add up, programs count once.

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
      The cost of these jobs.
    """
    variant, began = variant_plan.variant, time.monotonic()
    steps = max(1, variant_plan.attack.steps)
    # stored jobs are found by their rows, not by files: batches differ between machines
    rows = stored.rows(variant)
    versions.check_options(variant, rows, stored.workdir)
    done = {key_of(row) for row in rows}
    total = steps * len(variant_plan.every_job)
    progress = Progress(f"attack {variant.label}", variant_plan.trials, total)
    todo = [job for job in variant_plan.every_job if job.key not in done]
    stored_jobs = [job for job in variant_plan.every_job if job.key in done]
    progress.resume(attacks_among(stored_jobs), steps * len(stored_jobs))
    together = sharing_calls(todo, variant_plan.attack)
    used = {_run_together(jobs, stored, progress) for jobs in together}
    progress.close()
    return {
        "seconds": time.monotonic() - began if used else 0.0,
        "compiles": sum(program.traces for program in used),
        "views": len(used),
    }


def _run_together(todo: Sequence[Job], stored: Stored, progress: Progress) -> programs.Program:
    """Loads, attacks and scores jobs that share calls. Rows are written every SAVE_SECONDS."""
    variant, group = todo[0].variant, todo[0].group
    batch = make_attack_batch(variant, group, stored)
    steps, program, left = max(1, batch.attack.steps), None, list(todo)
    rows, saved, chunk = {}, time.monotonic(), f"{group.federation}-{group.number}"

    def write() -> None:
        if rows:
            store.write_chunk(stored.workdir, variant.key, chunk, list(rows), [*rows.values()])
        rows.clear()

    try:
        while left:
            jobs = left[: batch.layout.capacity]
            try:
                program, figures = run_attack_batch(batch, jobs, stored)
            except jax.errors.JaxRuntimeError as error:
                width = batch_layout.fewer(batch.layout, variant.label, error, progress.say)
                batch = batch.narrowed(width)
                continue
            del left[: len(jobs)]
            for i, job in enumerate(jobs):
                rows[job.key] = job.figures({name: v[i].tolist() for name, v in figures.items()})
            if time.monotonic() - saved > trainer.SAVE_SECONDS:
                write()
                saved = time.monotonic()
            progress.update(attacks_among(jobs), steps * len(jobs))
    finally:  # on Ctrl-C too
        write()
    assert program is not None
    return program


def _described(variant_plan: VariantPlan, shards: int) -> dict[str, Any]:
    """Returns a variant's entry of ``attacks.json``; ``shards`` is the number of trained shards."""
    variant, attack = variant_plan.variant, variant_plan.attack
    owns_layer = all(belongs_to(attack.diagnostic, group.attackers) for group in variant_plan.jobs)
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
