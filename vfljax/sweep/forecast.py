"""Measures the cost of training a plan without training it: every program is compiled, as the sweep would
compile it, and called for one or two epochs.

Only compiled programs are written, to the compile cache, so that the sweep does not compile them again.
Constants take the place of teachers' scores and codebooks, which would have to be trained.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.federation import training
from vfljax.machine import bytes_text, cores, device_memory
from vfljax.store import exchange
from vfljax.sweep import batch_layout, codebooks, programs, teachers
from vfljax.sweep.plan import Plan, Shard, trial_seconds
from vfljax.sweep.progress import spoken
from vfljax.sweep.trainer import Orders, Trainer, empty_snapshot
from vfljax.types import HostArray, PyTree

LONG = 20.0  # of an epoch that is estimated to take more seconds, only a few steps are measured
STEPS = 3  # how many steps are measured then
TRAINING = (
    *("program", "trials", "shards", "members a call", "at once", "memory a member"),
    *("an epoch", "training"),
)


class TrainingCost(NamedTuple):
    """The part of a group that is left to train, and the cost of training it."""

    name: str
    trials: int
    shards: int
    capacity: int  # members a call
    together: int  # members mapped at once, over all devices
    member_bytes: int  # memory of each member in training
    epoch: float  # seconds of one epoch of a call
    seconds: float  # seconds of training all shards for all epochs and evaluating them

    @property
    def cells(self) -> list[str]:
        """Its row of a table with the header ``TRAINING``."""
        counts = (f"{n:,}" for n in (self.trials, self.shards, self.capacity, self.together))
        times = spoken(self.epoch), spoken(self.seconds)
        return [self.name, *counts, bytes_text(self.member_bytes), *times]


class Sample(NamedTuple):
    """One member's weights and exchange after an epoch, as they would be read from a shard of one member."""

    weights: PyTree
    arrays: dict[str, HostArray]


def ready(plan: Plan) -> Plan:
    """Returns the plan with constants in place of teachers' scores and codebooks, which are not trained."""
    taught, teacher_of = teachers.lessons(plan.groups, plan.table)
    plan = plan._replace(codebooks=codebooks.blank(plan.groups))
    if taught is None:
        return plan
    shape = len(taught.labels), len(plan.splits[0].train), plan.dataset.num_classes
    scores = jnp.full(shape, 1 / shape[-1], jnp.float32)
    return plan._replace(table=plan.table._replace(scores=scores), teachers=teacher_of)


def training_costs(
    plan: Plan, shards: Sequence[Shard]
) -> tuple[list[TrainingCost], dict[int, Sample]]:
    """Returns the training cost of each group, and a sample of each group by the group's number.

    Args:
      plan: of the sweep, as ``ready`` returns it.
      shards: the shards to train.
    """
    costs, samples, orders = [], {}, Orders(plan)
    plan = plan._replace(shards=list(shards))
    numbers = list(dict.fromkeys(shard.group for shard in shards))
    trainers: dict[int, Trainer] = {}
    with ThreadPoolExecutor(max_workers=cores()) as pool:
        for place, number in enumerate(numbers):
            for near in numbers[place : place + 2]:  # the next is compiled while this one runs
                if near not in trainers:
                    first = next(shard for shard in shards if shard.group == near)
                    trainers[near] = Trainer(plan, first, pool, orders)
            of_group = [shard for shard in shards if shard.group == number]
            trainer = _fitting(trainers.pop(number), of_group[0], pool)
            cost, samples[number] = _measured(trainer, of_group)
            costs.append(cost)
    return costs, samples


def _fitting(trainer: Trainer, shard: Shard, pool: ThreadPoolExecutor) -> Trainer:
    """Returns the trainer, or one with fewer members at once, so that it fits into the devices' memory: the
    sweep too takes fewer when memory runs out. Raises UserError if not even one at once fits."""
    plan, orders = trainer.plan, trainer.orders
    while (too_large := trainer.program.too_large()) is not None:
        trainer = Trainer(plan, shard, pool, orders, too_large.width)
    free = device_memory()
    while True:
        need = trainer.program.member_bytes(trainer.start(shard)) * trainer.layout.capacity
        if need <= free or trainer.layout.width == 1:
            break
        trainer = Trainer(plan, shard, pool, orders, trainer.layout.width // 2)
    remedy = "choose a smaller network or batch, or a smaller config.execution.shard_seconds"
    who = f"training {trainer.layout.capacity:,} trials of {trainer.group.name} in one call"
    plan.experiment.limits.check_free(who, "device memory", need, free, remedy)
    return trainer


def _measured(trainer: Trainer, shards: Sequence[Shard]) -> tuple[TrainingCost, Sample]:
    first, spec, layout = shards[0], trainer.group.spec, trainer.layout
    settings = trainer.plan.experiment.training
    start, epochs = trainer.start(first), settings.recorded_epochs
    member_bytes = trainer.program.member_bytes(start)
    rough = trial_seconds(trainer.group) * layout.capacity / jax.device_count()
    if rough / spec.epochs > LONG:
        seconds, snapshot = _few_steps(trainer, first)
    else:
        seconds, snapshot = _one_epoch(trainer, start)
    trials = [trainer.group.trials[first.trials[0]]]
    began, compiling = time.monotonic(), programs.compile_seconds()
    _, tree = trainer.evaluate(trials, snapshot.state)
    compiling = programs.compile_seconds() - compiling
    evaluating = max(time.monotonic() - began - compiling, 0.0)
    cost = TrainingCost(
        trainer.group.name,
        sum(len(shard.trials) for shard in shards),
        len(shards),
        layout.capacity,
        layout.width * jax.device_count(),
        member_bytes,
        seconds,
        len(shards) * (spec.epochs * seconds + evaluating),
    )
    record, rows = batch_layout.unpad(snapshot.record, 1), spec.recorded_rows
    record = jax.tree.map(lambda a: _of_rows(a, len(record.order[0]), rows), record)
    record = record._replace(order=np.arange(rows, dtype=np.int32)[None])
    by_epoch = dict.fromkeys(epochs, exchange.epoch_arrays(record))
    scored = settings.scored_rows(spec.num_rows)
    return cost, Sample(tree, exchange.all_arrays(by_epoch, epochs, record.sums, scored))


def _one_epoch(
    trainer: Trainer, start: tuple[training.Member, training.Snapshot]
) -> tuple[float, training.Snapshot]:
    """Returns the seconds of one epoch of a call, and the snapshot after it. It is the second epoch, if there
    is one, because the first also allocates memory."""
    ends, after = [time.monotonic()], start[1]
    for result in itertools.islice(trainer.epochs(*start), 2):
        after, _ = jax.block_until_ready(result)
        ends.append(time.monotonic())
    return ends[-1] - ends[-2], after


def _few_steps(trainer: Trainer, shard: Shard) -> tuple[float, training.Snapshot]:
    """Returns the same as ``_one_epoch``, scaled up from ``STEPS`` steps of the members that run at once."""
    spec = trainer.group.spec
    rows = min(STEPS * spec.batch_size, spec.num_rows)
    few = dataclasses.replace(spec, num_rows=rows, recorded=min(spec.recorded, rows))
    cut = trainer.table._replace(train=trainer.table.train[:, :rows])
    if cut.scores is not None:
        cut = cut._replace(scores=cut.scores[:, :rows])
    at_once = trainer.layout.width * jax.device_count()
    layout = batch_layout.Layout(at_once, trainer.layout.width)
    trials = [trainer.group.trials[i] for i in shard.trials[:at_once]]
    member = layout.pad(trainer.members(few, trials))
    start = member, layout.pad(empty_snapshot(few, member, cut, trainer.initial))
    now = training.epoch_of(jnp.int32(0), jnp.asarray(trainer.plan.seeds), rows)
    shared = batch_layout.share((cut, trainer.initial, now))
    static = few, trainer.observe
    program = programs.program(
        training.make_run, static, layout, start, shared, level=trainer.level
    )
    jax.block_until_ready(program(start, shared))
    began = time.monotonic()
    snapshot, _ = jax.block_until_ready(program(start, shared))
    scale = spec.steps_per_epoch / few.steps_per_epoch * trainer.layout.capacity / at_once
    return (time.monotonic() - began) * scale, snapshot


def _of_rows(a: HostArray, has: int, rows: int) -> HostArray:
    """Returns an array [members, has, ...] with its rows repeated up to ``rows``; others are unchanged."""
    if has == rows or a.ndim < 2 or a.shape[1] != has:
        return a
    return a[:, np.arange(rows) % has]
