"""Programs that are needed later, compiled in the background while settings train.

What enters: a plan. What leaves: compiled programs, in the one table of them (``programs.program``). Nothing
else is handed over: attacks read what was trained from disk, ask for their programs as ever, and find
them there. A program whose shapes the plan does not tell as the stored sweep will is one more that
nobody asks for, and the attack compiles its own.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pyarrow as pa

from vfljax import store
from vfljax.attacking import alone, scoring
from vfljax.attacking.batching import requested, shared_data
from vfljax.attacking.jobs import FormPlan, Job, ViewGroup, plan_form
from vfljax.attacking.program import make_attack_lane
from vfljax.attacking.view import AttackInput, input_of
from vfljax.federation.training import empty_record
from vfljax.store import exchange
from vfljax.sweep import batch_layout, initial, programs
from vfljax.sweep.attack_variants import attack_forms
from vfljax.sweep.background import Task
from vfljax.sweep.plan import Plan, recorded, split_arrays
from vfljax.types import PyTree, Spec


def begin(plan: Plan, submit: Callable[[Task], None]) -> None:
    """Submit the plan's programs, those that are needed first before others: initial weights, then
    attacks and their scoring."""
    for spec in dict.fromkeys(initial.models(group.spec) for group in plan.groups):
        submit(functools.partial(initial.compile_ahead, spec, plan.seeds, plan.table))

    def submit_attacks() -> None:
        for task in attack_tasks(plan):
            submit(task)

    submit(submit_attacks)


def attack_tasks(plan: Plan) -> Iterator[Task]:
    """A task for each form and group of settings, in the order in which they will be attacked; the last
    for whoever stays away."""
    sweep, known = as_trained(plan), recorded(plan)
    arrays = split_arrays(plan.dataset.labels, known.splits)
    form_plans = []
    for form in attack_forms(
        plan.experiment, plan.dataset.num_classes, plan.party_columns[0].input
    ):
        form_plan = plan_form(form, known, sweep)
        if isinstance(form_plan, str):
            continue
        # a large grid's jobs are not kept until their program's turn comes
        first = {group: jobs[:1] for group, jobs in form_plan.jobs.items()}
        form_plans.append(form_plan._replace(jobs=first, logistic=[]))
    for form_plan in form_plans:
        for group, jobs in form_plan.jobs.items():
            for job in jobs:
                yield functools.partial(compile_group, form_plan, group, job, known, arrays)
    if alone.jobs(form_plans, plan.experiment.seeds):
        one = plan.dataset.num_classes, plan.groups[0].spec.batch_size
        yield functools.partial(scoring.compile_one_ahead, arrays, *one)


def as_trained(plan: Plan) -> store.Sweep:
    """The sweep that the plan will have stored, if no setting diverges: its shards and its settings."""
    shards = [{"name": s.name, "group": plan.groups[s.group].name} for s in plan.shards]
    rows = [
        {**plan.groups[shard.group].trials[place].row(), "status": "ok"}
        | {"shard": shard.name, "lane": lane}
        for shard in plan.shards
        for lane, place in enumerate(shard.trials)
    ]
    columns = ("setting", "seed", "federation", "status", "shard", "lane")
    results = pa.table({name: [row[name] for row in rows] for name in columns})
    return store.Sweep(pathlib.Path(), {"shards": shards}, results, pa.table({}))


def compile_group(
    form_plan: FormPlan, group: ViewGroup, job: Job, plan: Plan, arrays: Mapping[str, np.ndarray]
) -> programs.Program:
    """Compile what attacks the settings of a group, of which ``job`` is one, and what scores that."""
    form, attack = form_plan.form, form_plan.attacks[group]
    common = shared_data(group, attack, plan, arrays)
    static, layout = requested(form, group, attack, plan, common)
    one = expected_input(job, plan, bool(attack.diagnostic))
    shapes = layout.shapes(one), batch_layout.shared_shapes(common)
    program = programs.program_ahead(make_attack_lane, (static,), layout, *shapes)
    width, batch_size = plan.experiment.execution.width or None, group.spec.batch_size
    if program.results is not None:
        scoring.compile_ahead(program.results, arrays, width, batch_size, layout.capacity)
    return program


def expected_input(job: Job, plan: Plan, all_weights: bool) -> AttackInput:
    """What the job will be given, in shapes and types: every number is 0."""
    spec, row = job.group.spec, {**job.row, "lane": 0}
    knobs = job.knobs(len(plan.splits[0].train))
    stored = _weights(spec, plan), _exchange(spec, plan.experiment.training.recorded_epochs)
    return input_of(stored, row, job.form.name, knobs, job.group.attackers, all_weights)


def _weights(spec: Spec, plan: Plan) -> PyTree:
    """Of a shard of one setting, as checkpoints have them."""
    shapes = initial.weight_shapes(spec, plan.seeds, plan.table)
    weights = jax.tree.map(lambda a: np.zeros((1, *a.shape[1:]), a.dtype), shapes)
    return {"bottoms": {str(p): b for p, b in enumerate(weights.bottoms)}, "active": weights.active}


def _exchange(spec: Spec, epochs: Sequence[int]) -> dict[str, Any]:
    """Of a shard of one setting, as ``exchange.read`` gives it."""
    cut = tuple(jax.ShapeDtypeStruct((1, module.out), np.float32) for module in spec.bottoms)
    shapes = jax.eval_shape(lambda: empty_record(spec, cut))
    record = jax.tree.map(lambda a: np.zeros((1, *a.shape), a.dtype), shapes)
    crossed = record.embeddings, record.gradients, record.inputs
    one = exchange.epoch_arrays(record.order, record.sent, *crossed)
    return exchange.all_arrays(dict.fromkeys(epochs, one), epochs, record.sums)
