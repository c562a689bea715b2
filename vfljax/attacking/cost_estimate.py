"""What attacking a plan takes, before it is trained: which attacks run, which are skipped, and the time.

What enters: a plan, and a ``Sample`` of each group that is not stored yet, which stands for its settings.
What leaves: an ``AttackCost`` of each form that runs, and why the others do not. Every program of an attack
is called once; of one of many steps a few stand for all, in a program of their own.
"""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import pyarrow as pa

from vfljax import attacks, store
from vfljax.attacking import local_only, versions
from vfljax.attacking.baselines import logistic_figures
from vfljax.attacking.batching import Block, Stored, attack_block, make_block, narrowed
from vfljax.attacking.jobs import Job, VariantPlan, ViewGroup, key_of, plan_variant
from vfljax.attacking.scoring import Scorer
from vfljax.attacking.view import common_data, read_shard
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.attack_variants import attack_variants, make_attack
from vfljax.sweep.forecast import Sample
from vfljax.sweep.plan import Plan, Shard, recorded, split_arrays
from vfljax.sweep.progress import spoken
from vfljax.sweep.serving import most_known
from vfljax.types import HostArray, PyTree, Spec

ATTACKING = ("attack", "federations", "settings", "calls", "attacking")
AGAIN = 20.0  # seconds of a first call up to which a second is measured
COLUMNS = ["trial", "seed", "federation", "status", "shard", "member"]


class AttackCost(NamedTuple):
    """What is left of an attack form, and what it takes."""

    label: str
    federations: tuple[str, ...]
    settings: int  # attacked, baselines aside
    calls: int
    seconds: float  # of all calls
    compiling: (
        float  # seconds that the sweep will compile: of programs that were cut to a few steps
    )

    @property
    def cells(self) -> list[str]:
        """Its row of a table with the header ``ATTACKING``."""
        counts = f"{self.settings:,}", f"{self.calls:,}"
        return [self.label, ", ".join(self.federations), *counts, spoken(self.seconds)]


class AttackCosts(NamedTuple):
    """All that is said of attacks."""

    costs: list[AttackCost]
    skipped: dict[str, str]  # why, by label
    fits: int  # regressions on the host, which attacks are compared with
    fitting: float  # seconds of all of them


def attack_costs(
    plan: Plan, workdir: pathlib.Path, shards: Sequence[Shard], samples: Mapping[int, Sample]
) -> AttackCosts:
    """What the attacks of the config take, on the ``shards`` that are not trained yet and those that are."""
    stored = _stored(recorded(plan), workdir, shards, samples)
    plan, skipped, costs, planned = stored.plan, {}, [], []
    for form in attack_variants(
        plan.experiment, plan.dataset.num_classes, plan.party_columns[0].input
    ):
        variant_plan = plan_variant(form, plan, stored.sweep)
        if isinstance(variant_plan, str):
            skipped[form.label] = variant_plan
            continue
        planned.append(variant_plan)
        left = _left(variant_plan, stored)
        if isinstance(left, str):
            skipped[form.label] = left
        elif any(left.values()):
            costs.append(_measured(variant_plan, left, stored))
    return AttackCosts(costs, skipped, *_fits(planned, stored))


def _stored(
    plan: Plan, workdir: pathlib.Path, shards: Sequence[Shard], samples: Mapping[int, Sample]
) -> Stored:
    """The sweep as if it were trained."""
    exists = store.header_of(workdir) is not None
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    finished = store.load(workdir) if exists else None
    rows = (
        finished.results.select(COLUMNS).to_pylist() if finished and len(finished.results) else []
    )
    for shard in shards:
        for place in shard.trials:
            setting = plan.groups[shard.group].trials[place]
            about = setting.id, setting.seed, setting.federation.name, "ok", shard.name, 0
            rows.append(dict(zip(COLUMNS, about, strict=True)))
    rows.sort(key=lambda row: row["trial"])  # as they are stored: baselines are of the first
    every = finished.header["shards"] if finished else []
    named = {s["name"]: s["group"] for s in every}
    named |= {shard.name: plan.groups[shard.group].name for shard in shards}
    header = {"shards": [{"name": name, "group": group} for name, group in named.items()]}
    sweep = store.Sweep(workdir, header, pa.Table.from_pylist(rows), pa.table({}))
    group_of = {shard.name: shard.group for shard in shards}

    def read(folder: pathlib.Path, name: str) -> tuple[PyTree, Mapping[str, HostArray]]:
        return samples[group_of[name]] if name in group_of else read_shard(folder, name)

    width = plan.experiment.execution.width or None
    summary = store.attack_summary(workdir) if exists else {}
    return Stored(plan, sweep, arrays, Scorer(arrays, width, most_known(plan)), summary, read)


def _left(variant_plan: VariantPlan, stored: Stored) -> dict[ViewGroup, list[Job]] | str:
    """The jobs of a form that are not stored, or why it is left as it is."""
    form, workdir = variant_plan.form, stored.workdir
    summary, trained = stored.summary, len(stored.sweep.header["shards"])
    earlier = versions.earlier(form, summary)
    if earlier and versions.is_whole(earlier, summary, workdir, trained):
        return f"it is stored by its rule {summary[earlier]['rule']}, and left as it is"
    exists = (workdir / store.unit_of(form.variant)).is_dir()
    done = {key_of(row) for row in stored.rows(form)} if exists else set()
    return {
        group: [job for job in jobs if job.key not in done]
        for group, jobs in variant_plan.jobs.items()
    }


def _measured(
    variant_plan: VariantPlan, left: Mapping[ViewGroup, Sequence[Job]], stored: Stored
) -> AttackCost:
    """A form's cost: groups of one program are measured once."""
    form, whole = variant_plan.form, variant_plan.attack
    few = _few(whole.steps, [group.spec for group in left])
    reducible = few < whole.steps and "steps" in attacks.TABLE[form.name].options
    scale = whole.steps / few if reducible else 1.0
    if reducible:
        form = form._replace(options={**form.options, "steps": few})
    measured: dict[Any, tuple[int, float, float]] = {}
    calls, seconds, compiling = 0, 0.0, 0.0
    for group, jobs in left.items():
        if not jobs:
            continue
        bottoms = tuple(group.spec.bottoms[p] for p in group.attackers)
        attack = make_attack(form, bottoms, stored.plan.dataset.num_classes)
        block = make_block(form, group, attack, stored)
        key = block.static, block.layout, group.attackers
        if key not in measured:
            first = [job._replace(form=form) for job in jobs[: block.layout.capacity]]
            measured[key] = _call_of(block, first, stored)
            compiling += measured[key][2] if reducible else 0.0
        size, each, _ = measured[key]
        count = math.ceil(len(jobs) / size)
        calls += count
        seconds += count * each * scale
    federations = tuple(dict.fromkeys(group.federation for group, jobs in left.items() if jobs))
    return AttackCost(
        variant_plan.form.label, federations, variant_plan.settings, calls, seconds, compiling
    )


def _few(steps: int, specs: Sequence[Spec]) -> int:
    """How many of an attack's steps are measured: all, unless they are many or the networks large."""
    most, few = (2048, 256) if all(spec.light for spec in specs) else (32, 8)
    return steps if steps <= most else few


def _call_of(block: Block, jobs: Sequence[Job], stored: Stored) -> tuple[int, float, float]:
    """Settings of a call of the block, or of as many as fit into a device's memory, and its ``_call``."""
    while True:
        some = jobs[: block.layout.capacity]
        try:
            return block.layout.capacity, *_call(lambda b=block, s=some: attack_block(b, s, stored))
        except batch_layout.TooLarge as error:
            block = narrowed(block, error.width)


def _call(run: Any) -> tuple[float, float]:
    """Seconds of a call, and of tracing and compiling before the first."""
    compiled, began = programs.compile_seconds(), time.monotonic()
    run()
    compiling = programs.compile_seconds() - compiled
    seconds = time.monotonic() - began - compiling
    if seconds < AGAIN:  # what a first call does once would count much
        began = time.monotonic()
        run()
        seconds = time.monotonic() - began
    return seconds, compiling


def _fits(variant_plans: Sequence[VariantPlan], stored: Stored) -> tuple[int, float]:
    """How many regressions on the host the forms are compared with, stored ones aside, and the seconds
    of all."""
    plan, workdir = stored.plan, stored.workdir
    exists = (workdir / store.unit_of(local_only.LABEL)).is_dir()
    rows = store.read_variant(workdir, local_only.LABEL).to_pylist() if exists else []
    done = {local_only.key_of(row) for row in rows}
    jobs = local_only.jobs(variant_plans, plan.experiment.seeds)
    wanted = [job for job in jobs if job.key not in done]
    count = len(wanted) + sum(len(one.logistic) for one in variant_plans if not rows)
    if not wanted:
        return 0, 0.0
    first = wanted[0]
    common = jax.device_get(common_data(plan.table, stored.arrays, first.attackers))
    inputs = tuple(plan.party_columns[p].input for p in first.attackers)
    arguments = common, inputs, plan.dataset.num_classes, first.seed, first.known
    return count, count * _call(lambda: logistic_figures(*arguments))[0]
