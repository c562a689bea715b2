"""Estimates, before a plan is trained, which attacks run, which are skipped, and how long they take.

For a group that is not stored yet, a ``Sample`` stands for its trials. Every program of an attack is timed.
For an attack of many steps, a program of fewer steps is timed instead, and its time is scaled up.
"""

from __future__ import annotations

import functools
import math
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import pyarrow as pa

from vfljax import attacks, store
from vfljax.attacking import batching, local_only, versions
from vfljax.attacking.jobs import COLUMNS, Job, VariantPlan, plan_variant
from vfljax.attacking.scoring import Scorer
from vfljax.attacking.view import common_data, read_shard
from vfljax.attacks.learners import learn
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.forecast import Sample
from vfljax.sweep.plan import Plan, Shard, recorded, split_arrays
from vfljax.sweep.progress import spoken
from vfljax.sweep.serving import most_known
from vfljax.types import HostArray, PyTree, Spec

ATTACKING = ("attack", "federations", "trials", "calls", "attacking")
AGAIN = 20.0  # a first call shorter than this many seconds is repeated, and the repetition counts


class AttackCost(NamedTuple):
    """The estimated cost of those jobs of an attack variant that are not stored yet."""

    label: str
    federations: tuple[str, ...]
    trials: int  # that the whole variant attacks, stored ones included, without baselines
    calls: int
    seconds: float  # of all calls
    compiling: float  # seconds of compiling in the sweep, for programs cut to few steps here

    @property
    def cells(self) -> list[str]:
        """Its row of a table with the header ``ATTACKING``."""
        counts = f"{self.trials:,}", f"{self.calls:,}"
        return [self.label, ", ".join(self.federations), *counts, spoken(self.seconds)]


class AttackCosts(NamedTuple):
    """The estimated cost of all attacks of a plan."""

    costs: list[AttackCost]
    skipped: dict[str, str]  # label of a variant -> why it is not run
    fits: int  # learners of the local-only baseline that are fitted on the host
    fitting: float  # seconds of all of them


def attack_costs(
    plan: Plan, workdir: pathlib.Path, shards: Sequence[Shard], samples: Mapping[int, Sample]
) -> AttackCosts:
    """Returns the estimated cost of the attacks of the config.

    Args:
      plan: of the sweep.
      workdir: the folder of the sweep, which need not exist.
      shards: those that are not trained yet; finished ones are read.
      samples: by number of a group that is not stored, the sample that stands for its trials.
    """
    stored = _stored(recorded(plan), workdir, shards, samples)
    plan, skipped, costs, planned = stored.plan, {}, [], []
    for variant in plan.attack_variants:
        variant_plan = plan_variant(variant, plan, stored.sweep)
        left = variant_plan.skipped
        if not left:
            planned.append(variant_plan)
            left = _left(variant_plan, stored)
        if isinstance(left, str):
            skipped[variant.label] = left
        elif left:
            costs.append(_measured(variant_plan, left, stored))
    return AttackCosts(costs, skipped, *_fits(planned, stored))


def _stored(
    plan: Plan, workdir: pathlib.Path, shards: Sequence[Shard], samples: Mapping[int, Sample]
) -> batching.Stored:
    """Returns the sweep as if all its shards were trained; samples stand for those that are not."""
    exists = store.header_of(workdir) is not None
    draws = plan.experiment.known_draws
    arrays = split_arrays(plan.dataset.labels, plan.splits, draws, plan.candidates)
    finished = store.load(workdir) if exists else None
    rows = (
        finished.results.select(COLUMNS).to_pylist() if finished and len(finished.results) else []
    )
    for shard in shards:
        for place in shard.trials:
            trial = plan.groups[shard.group].trials[place]
            about = trial.id, trial.seed, trial.federation.name, "ok", shard.name, 0
            rows.append(dict(zip(COLUMNS, about, strict=True)))
    rows.sort(key=lambda row: row["trial"])  # as stored: a seed's baseline uses its first trial
    every = finished.header["shards"] if finished else []
    named = {s["name"]: s["group"] for s in every}
    named |= {shard.name: plan.groups[shard.group].name for shard in shards}
    header = {"shards": [{"name": name, "group": group} for name, group in named.items()]}
    sweep = store.StoredSweep(workdir, header, pa.Table.from_pylist(rows), pa.table({}))
    group_of = {shard.name: shard.group for shard in shards}

    def read(folder: pathlib.Path, name: str) -> tuple[PyTree, Mapping[str, HostArray]]:
        return samples[group_of[name]] if name in group_of else read_shard(folder, name)

    width = plan.experiment.execution.width or None
    summary = store.attack_summary(workdir) if exists else {}
    scorer = Scorer(arrays, width, most_known(plan), plan.effort.attacks, plan.positive)
    return batching.Stored(plan, sweep, arrays, scorer, summary, read)


def _left(variant_plan: VariantPlan, stored: batching.Stored) -> list[Job] | str:
    """Returns the jobs of a variant that are not stored, or why the variant is left as it is."""
    variant, trained = variant_plan.variant, len(stored.sweep.header["shards"])
    earlier = versions.earlier(variant, stored.summary)
    if earlier and versions.is_whole(earlier, stored, trained):
        rule = stored.summary[earlier]["rule"]
        return f"it is stored by its rule {rule}, and left as it is"
    exists = (stored.workdir / store.unit_of(variant.key)).is_dir()
    done = stored.keys(variant) if exists else set()
    return [job for job in variant_plan.every_job if job.key not in done]


def _measured(
    variant_plan: VariantPlan, left: Sequence[Job], stored: batching.Stored
) -> AttackCost:
    """Measures the cost of a variant, each program once."""
    variant, whole = variant_plan.variant, variant_plan.attack
    few = _few(whole.steps, [job.group.spec for job in left])
    reducible = few < whole.steps and "steps" in attacks.TABLE[variant.name].options
    scale = whole.steps / few if reducible else 1.0
    if reducible:
        variant = variant._replace(options={**variant.options, "steps": few})
    calls, seconds, compiling = 0, 0.0, 0.0
    for jobs in batching.sharing_calls(left, whole):
        batch = batching.make_attack_batch(variant, jobs[0].group, stored)
        first = [job._replace(variant=variant) for job in jobs[: batch.layout.capacity]]
        size, each, once = _call_of(batch, first, stored)
        compiling += once if reducible else 0.0
        count = math.ceil(len(jobs) / size)
        calls += count
        seconds += count * each * scale
    federations = tuple(dict.fromkeys(job.group.federation for job in left))
    return AttackCost(
        variant_plan.variant.label, federations, variant_plan.trials, calls, seconds, compiling
    )


def _few(steps: int, specs: Sequence[Spec]) -> int:
    """Returns how many steps to measure: all up to 2048 (32 for large networks), else 256 (8)."""
    most, few = (2048, 256) if all(spec.light for spec in specs) else (32, 8)
    return steps if steps <= most else few


def _call_of(
    batch: batching.AttackBatch, jobs: Sequence[Job], stored: batching.Stored
) -> tuple[int, float, float]:
    """Returns how many trials a call takes, fewer if memory is short, and the two times of ``_call``."""
    while True:
        run = functools.partial(
            batching.run_attack_batch, batch, jobs[: batch.layout.capacity], stored
        )
        try:
            return batch.layout.capacity, *_call(run)
        except batch_layout.TooLarge as error:
            batch = batch.narrowed(error.width)


def _call(run: Any) -> tuple[float, float]:
    """Returns the seconds of one call, and those of tracing and compiling before the first call."""
    compiled, began = programs.compile_seconds(), time.monotonic()
    run()
    compiling = programs.compile_seconds() - compiled
    seconds = time.monotonic() - began - compiling
    if seconds < AGAIN:  # the one-time work of a first call would distort a short time
        began = time.monotonic()
        run()
        seconds = time.monotonic() - began
    return seconds, compiling


def _fits(variant_plans: Sequence[VariantPlan], stored: batching.Stored) -> tuple[int, float]:
    """Returns how many learners of the local-only baseline are not stored yet, and the seconds of all."""
    plan, workdir = stored.plan, stored.workdir
    exists = (workdir / store.unit_of(local_only.LABEL)).is_dir()
    done = local_only.stored_keys(workdir) if exists else set()
    wanted = [job for job in local_only.jobs(variant_plans, plan) if job.key not in done]
    if not wanted:
        return 0, 0.0
    first = wanted[0]
    common = jax.device_get(common_data(plan.table, stored.arrays, first.attackers))
    columns = local_only.own_columns(plan, common, first.attackers, first.known, first.seed)
    names = dict.fromkeys(job.learner for job in wanted)
    each = {name: _call(lambda name=name: learn(name, columns))[0] for name in names}
    return len(wanted), sum(each[job.learner] for job in wanted)
