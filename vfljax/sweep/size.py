"""Estimates the disk and memory that a plan needs, by arithmetic: nothing is computed or written.

The disk holds the shards: exchange and final weights. Its estimate is within a few percent if it is large.
The memory is the host's: the data on every device and the largest shard in training, but not what a network
computes on the way. Its estimate is rougher, within a third where it was measured.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import jax

from vfljax.machine import bytes_text, free_disk, free_memory
from vfljax.sweep import teachers
from vfljax.sweep.plan import Plan, check_free
from vfljax.sweep.sharding import Shard, exchange_numbers
from vfljax.types import Spec

NUMBER = 4  # bytes of a float32 or int32
ROW = 1000  # bytes of a trial's row of results, and of its part of the checkpoint's index
FILES = 40_000  # bytes of a shard's Parquet schema, checkpoint metadata and manifest
COPIES = 4  # arrays of the weights' size that a trial trains with: weights, gradients, two moments
BASE = 400 << 20  # bytes of compiled programs and of the compiler, measured


class Size(NamedTuple):
    """The number of trials of a sweep that are left to train, and the bytes that they need."""

    trials: int
    memory: int  # bytes
    disk: int  # bytes that stay
    progress: int  # bytes of disk of an unfinished shard, while it is trained


def exchange_bytes(spec: Spec, members: int, recorded_epochs: int) -> int:
    """Returns the bytes of the exchange of some trials, as ``vfljax.store.exchange`` lists its arrays.

    Args:
      members: the number of trials.
      recorded_epochs: the number of recorded epochs.
    """
    rows, cuts = spec.recorded_rows, sum(module.out for module in spec.bottoms[: spec.passive])
    each = NUMBER * exchange_numbers(spec, cuts, recorded_epochs, rows)
    each += recorded_epochs * (NUMBER + rows * (NUMBER + 1))  # epoch, order, sent
    return members * (each + NUMBER * rows * spec.passive)  # counts of epochs


def bytes_of(plan: Plan, shard: Shard) -> int:
    """Returns the bytes on disk of a shard, once it is finished.

    Args:
      shard: one of its shards.
    """
    group, members = plan.groups[shard.group], len(shard.trials)
    losses = 16 * group.spec.epochs  # losses and accuracies, two lists of float64
    trials = members * (NUMBER * group.weights + losses + ROW)
    epochs = len(plan.experiment.training.recorded_epochs)
    return exchange_bytes(group.spec, members, epochs) + trials + FILES


def _size_of(plan: Plan, shards: Sequence[Shard]) -> Size:
    """Returns the size of what is left to train, given the shards that are left."""
    progress, memory = [0], [0]
    epochs = len(plan.experiment.training.recorded_epochs)
    for shard in shards:
        group, members = plan.groups[shard.group], shard.capacity
        recorded = exchange_bytes(group.spec, members, epochs)
        # its trials' state and record, and all that was recorded before
        state = members * (COPIES * NUMBER * group.weights + 12 * group.spec.epochs)
        progress.append(state + exchange_bytes(group.spec, members, 1) + recorded)
        memory.append(progress[-1] + recorded)  # by epoch, and in the end also stacked
    return Size(
        trials=sum(len(shard.trials) for shard in shards),
        memory=BASE + _shared_bytes(plan, shards) + max(memory),
        disk=sum(bytes_of(plan, shard) for shard in shards),
        progress=max(progress),
    )


def _shared_bytes(plan: Plan, shards: Sequence[Shard]) -> int:
    """Returns the bytes of what all shards share, on all devices: data, teachers' scores, initial weights."""
    seeds, rows = len(plan.seeds), len(plan.splits[0].train)
    groups = [plan.groups[number] for number in dict.fromkeys(shard.group for shard in shards)]
    weights = max((group.weights for group in groups), default=0)
    scores = teachers.most(groups) * rows * plan.dataset.num_classes
    orders = 2 * seeds * rows
    data = sum(leaf.nbytes for leaf in jax.tree.leaves(plan.table))  # without streamed features
    return jax.device_count() * (data + NUMBER * (seeds * weights + scores + orders))


def unfinished(plan: Plan, workdir: pathlib.Path) -> list[Shard]:
    """Returns the shards still to be trained.

    Args:
      plan: of the sweep, divided as it is stored.
    """
    return [shard for shard in plan.shards if not (workdir / "shards" / shard.name).is_dir()]


def needs(plan: Plan, workdir: pathlib.Path) -> str:
    """Returns a phrase on the memory and disk that the shards left to train need.

    Raises:
      UserError: if the free memory or the free disk does not suffice.
    """
    size = _size_of(plan, unfinished(plan, workdir))
    if not size.trials:
        return "all of them are stored"
    memory, disk = free_memory(), free_disk(workdir)
    rows, members = plan.groups[0].spec.recorded_rows, max(s.capacity for s in plan.shards)
    fields = "(config.training.record_rows) or epochs (config.training.record)"
    fewer = f"record fewer of the {rows:,} rows {fields}"
    at_a_time = f"{members:,} trial{'s' * (members > 1)} at a time"
    for trained, what, needed, free, choose in (
        (at_a_time, "memory", size.memory, memory, "smaller networks"),
        (f"{size.trials:,} trials", "disk", size.disk + size.progress, disk, "fewer trials"),
    ):
        who, remedy = f"training {trained}", f"choose {choose}, {fewer}"
        check_free(plan.experiment, who, what, needed, free, remedy)
    return (
        f"about {bytes_text(size.memory)} of memory ({bytes_text(memory)} free) and "
        f"{bytes_text(size.disk)} of disk ({bytes_text(disk)} free)"
    )
