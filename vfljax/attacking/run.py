"""Attack a stored sweep: plan, load a block of settings, attack, score, write.

What enters: a sweep directory (weights and exchange, read by block of settings) and the attackers'
own columns. What leaves: one row a setting and attack. Attacks see a ``View`` and the known rows;
true labels meet their scores only in ``scoring``.
"""

from __future__ import annotations

import functools
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax

from vfljax import attacks, plugins, store
from vfljax.attacking import local_only, versions
from vfljax.attacking.baselines import logistic_figures
from vfljax.attacking.batching import Stored, attack_block, make_block
from vfljax.attacking.diagnostics import belongs_to
from vfljax.attacking.jobs import (
    ATTACK,
    Job,
    VariantPlan,
    ViewGroup,
    key_of,
    plan_variant,
)
from vfljax.attacking.scoring import Scorer
from vfljax.attacking.view import (
    common_data,
)
from vfljax.attacks.core import Attack
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.attack_variants import AttackVariant, attack_variants
from vfljax.sweep.experiment import Experiment, experiment_of
from vfljax.sweep.plan import Plan, planned_devices, recorded, split_arrays
from vfljax.sweep.progress import Progress
from vfljax.sweep.serving import most_known

Cost = dict[str, Any]  # of an attack: seconds, compiles, views
Attacked = tuple[VariantPlan, Cost]
# runs the jobs of forms on settings; yields each form, of the settings that were attacked, and its cost
RunVariants = Callable[[Sequence[VariantPlan], Stored], Iterable[Attacked]]
# (attackers, seed, known) -> figures
Logistic = Callable[[tuple[int, ...], int, int], dict[str, float]]


def attack_sweep(
    plan: Plan,
    workdir: pathlib.Path,
    names: Iterable[str] | None = None,
    say: Callable[[str], None] = print,
    renew_rules: bool = False,
    run: RunVariants | None = None,
) -> None:
    """Attack every stored setting with every form not yet stored; one compile an attack and shape.

    ``names`` limits the attacks; those outside the config run with published defaults. ``renew_rules``
    attacks anew what an attack's earlier rule attacked, and keeps the earlier rows (``rules``). ``run`` runs
    the forms that are not stored, None: ``run_variants``, one after the other in this process.
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
    for form, variant_plan in _planned(experiment, stored):
        if isinstance(variant_plan, str):
            say(f"skipped {form.label}: {variant_plan}")
            about = {**store.identity_columns(form.identity), "status": "skipped"}
            summary[form.variant] = {**about, "reason": variant_plan}
            continue
        about = described(variant_plan, len(trained))
        if not versions.settle(form, about, summary, workdir, renew_rules, say):
            left.append(variant_plan)
            continue
        todo.append(variant_plan)
    baselines = local_only.jobs([*todo, *left], experiment.seeds)
    if baselines:
        store.open_variant(workdir, local_only.LABEL)
        summary[local_only.LABEL] = local_only.described(baselines, workdir, len(trained))
    # what an attack is, is known before its first row
    store.write_attack_summary(workdir, summary)
    logistic = _logistic(stored)
    for variant_plan, cost in run(todo, stored) if todo else ():
        _run_logistic(variant_plan, stored, logistic)
        _check_complete(variant_plan, stored)
        about = summary[variant_plan.form.variant]
        about |= with_earlier_parts(cost, about)
        store.write_attack_summary(workdir, summary)
    local_only.run(baselines, plan, workdir, stored.arrays, stored.scorer)


def planned_variants(
    plan: Plan, workdir: pathlib.Path, names: Iterable[str] | None
) -> tuple[list[VariantPlan], Stored]:
    """The forms that can be run on a stored sweep, and what attacking it needs; ``names`` as in
    ``attack_sweep``."""
    experiment, stored = _stored(recorded(plan), workdir, names)
    planned = [variant_plan for _, variant_plan in _planned(experiment, stored)]
    return [variant_plan for variant_plan in planned if not isinstance(variant_plan, str)], stored


def _stored(
    plan: Plan, workdir: pathlib.Path, names: Iterable[str] | None
) -> tuple[Experiment, Stored]:
    """What is asked for, and the stored sweep."""
    experiment = plan.experiment if names is None else plan.experiment.with_attacks(names)
    sweep = store.load(workdir)
    plan = plan._replace(devices=planned_devices(sweep.header))
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    # by as many labels as the sweep's own attacks know, not as those asked for now
    trained = experiment_of(sweep)
    variants = attack_variants(trained, plan.dataset.num_classes, plan.party_columns[0].input)
    naming = most_known(plan._replace(experiment=trained, attack_variants=tuple(variants)))
    scorer = Scorer(arrays, experiment.execution.width or None, naming)
    return experiment, Stored(plan, sweep, arrays, scorer, store.attack_summary(workdir))


def _planned(
    experiment: Experiment, stored: Stored
) -> Iterator[tuple[AttackVariant, VariantPlan | str]]:
    plan = stored.plan
    for form in attack_variants(experiment, plan.dataset.num_classes, plan.party_columns[0].input):
        yield form, plan_variant(form, plan, stored.sweep)


def _check_plugins(experiment: Experiment, sweep: store.Sweep, summary: versions.Summary) -> None:
    """Refuse rows of plugins that are not in use, or whose files are not those of what is stored; an
    attack whose rule has a new number is another one."""
    names = [request.name for request in experiment.attacks]
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
    """Run forms one after the other in this process."""
    for shard in stored.sweep.header["shards"]:
        if store.finished(stored.workdir, shard["name"]):
            store.verify(stored.workdir / "shards" / shard["name"], deep=True)
    for variant_plan in todo:
        yield variant_plan, run_variant(variant_plan, stored)


def with_earlier_parts(now: Mapping[str, Any], before: Mapping[str, Any]) -> Cost:
    """The cost of an attack that was run in parts: seconds add up, programs are the same."""
    return {
        "seconds": before.get("seconds", 0.0) + now["seconds"],
        "compiles": max(before.get("compiles", 0), now["compiles"]),
        "views": max(before.get("views", 0), now["views"]),
    }


def run_variant(variant_plan: VariantPlan, stored: Stored) -> Cost:
    """Run every job of a form on settings that is not stored yet; returns what that cost."""
    form, attack, began = variant_plan.form, variant_plan.attack, time.monotonic()
    steps = max(1, attack.steps)
    # what is stored is known by its rows, not its file: blocks differ between machines
    rows = stored.rows(form)
    versions.check_options(form, rows, stored.workdir)
    done = {key_of(row) for row in rows}
    total = sum(len(jobs) for jobs in variant_plan.jobs.values())
    progress = Progress(f"attack {form.label}", variant_plan.settings, steps * total)
    used = set()
    for group, jobs in variant_plan.jobs.items():
        todo = [job for job in jobs if job.key not in done]
        progress.resume(_attacks(jobs) - _attacks(todo), steps * (len(jobs) - len(todo)))
        if todo:
            one = variant_plan.attacks[group]
            used.add(_run_group(form, group, one, todo, stored, progress))
    progress.close()
    return {
        "seconds": time.monotonic() - began if used else 0.0,
        "compiles": sum(program.traces for program in used),
        "views": len(used),
    }


def _check_complete(variant_plan: VariantPlan, stored: Stored) -> None:
    """Refuse to end while a job has no row."""
    rows = {key_of(row) for row in stored.rows(variant_plan.form)}
    missing = sum(job.key not in rows for job in variant_plan.every_job)
    if missing:
        unit = store.unit_of(variant_plan.form.variant)
        raise store.Damaged(stored.workdir, unit, f"{missing} rows are missing")


def _attacks(jobs: Sequence[Job]) -> int:
    return sum(job.what == ATTACK for job in jobs)


def described(variant_plan: VariantPlan, shards: int) -> dict[str, Any]:
    """What an attack is, as ``attacks.json`` says it; ``shards`` are trained."""
    form, attack = variant_plan.form, variant_plan.attack
    owns_layer = all(belongs_to(attack.diagnostic, g.attackers) for g in variant_plan.attacks)
    return {
        **store.identity_columns(form.identity),
        "status": "ok",
        "steps": attack.steps,
        "knobs": form.knobs,
        "oracle": attack.oracle or (bool(attack.diagnostic) and not owns_layer),
        "labels": "all" if attack.oracle else "",
        "adaptive": attack.adaptive,
        "federations": list(attack.federations),
        "trials": variant_plan.settings,
        "diverged": variant_plan.diverged,
        "rows": len(variant_plan.every_job),
        "shards": shards,
        **({"plugins": about} if (about := plugins.described([form.name])) else {}),
    }


def _run_group(
    form: AttackVariant,
    group: ViewGroup,
    attack: Attack,
    todo: Sequence[Job],
    stored: Stored,
    progress: Progress,
) -> programs.Program:
    """Load a block of jobs, attack, score, write; until none is left."""
    steps, block, program = max(1, attack.steps), make_block(form, group, attack, stored), None
    left = list(todo)
    while left:
        jobs = left[: block.layout.capacity]
        try:
            program, figures = attack_block(block, jobs, stored)
        except jax.errors.JaxRuntimeError as error:
            width = batch_layout.fewer(block.layout, form.label, error, progress.say)
            block = block._replace(layout=batch_layout.layout_of(width * jax.device_count(), width))
            continue
        del left[: len(jobs)]
        rows = [
            job.figures({name: float(values[i]) for name, values in figures.items()})
            for i, job in enumerate(jobs)
        ]
        _write(form, f"{group.federation}-{group.number}", jobs, rows, stored)
        progress.update(_attacks(jobs), steps * len(jobs))
    assert program is not None
    return program


def _logistic(stored: Stored) -> Logistic:
    """The baseline without any federation; it runs on the host."""
    plan = stored.plan

    @functools.cache  # it is the same beside every federation and attack
    def figures(attackers: tuple[int, ...], seed: int, known: int) -> dict[str, float]:
        common = jax.device_get(common_data(plan.table, stored.arrays, attackers))
        inputs = tuple(plan.party_columns[p].input for p in attackers)
        return logistic_figures(common, inputs, plan.dataset.num_classes, seed, known)

    return figures


def _run_logistic(variant_plan: VariantPlan, stored: Stored, logistic_of: Logistic) -> None:
    """Write the baseline's rows of a form that are not stored yet, which are one file."""
    done = {key_of(row) for row in stored.rows(variant_plan.form)}
    jobs, rows = [job for job in variant_plan.logistic if job.key not in done], []
    for job in jobs:
        known = int(job.knobs(len(stored.plan.splits[0].train))["known"])
        rows.append(job.figures(logistic_of(job.group.attackers, job.seed, known)))
    if jobs:
        _write(variant_plan.form, "logistic", jobs, rows, stored)


def _write(
    form: AttackVariant, name: str, jobs: Sequence[Job], rows: list[dict[str, Any]], stored: Stored
) -> None:
    identities = [job.key for job in jobs]
    store.write_chunk(stored.workdir, form.variant, name, identities, rows)
