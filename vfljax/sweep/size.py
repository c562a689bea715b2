"""What a plan needs of the machine, by arithmetic: nothing is computed or written.

Disk is what shards hold, the exchange and final weights; it is within a few percent where it is large. Memory
is the host's, and rougher (within a third where it was measured): the data on every device and the largest
shard in training, but not what a network computes on the way.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import jax

from vfljax import store
from vfljax.machine import bytes_text, free_disk, free_memory
from vfljax.models.last_layer import recorded_width
from vfljax.sweep import teachers
from vfljax.sweep.plan import Plan, Shard, divided_as
from vfljax.types import Spec

NUMBER = 4  # bytes of a float32 or int32
ROW = 1000  # bytes of a trial's row of results, and of its part of the checkpoint's index
FILES = 40_000  # bytes of a shard's Parquet schema, checkpoint metadata and manifest
COPIES = 4  # of its weights that a trial trains with: gradients, and two moments
BASE = 400 << 20  # compiled programs and what makes them, measured


class Size(NamedTuple):
    """What is left to train of a sweep, and what that needs."""

    trials: int
    memory: int  # bytes
    disk: int  # bytes that stay
    progress: int  # bytes of disk of an unfinished shard, while it is trained


def exchange_bytes(spec: Spec, members: int, recorded_epochs: int) -> int:
    """Returns the bytes of the exchange of some trials, as ``vfljax.store.exchange`` lists its arrays.

    Args:
      spec: of the trials.
      members: how many they are.
      recorded_epochs: how many are recorded.
    """
    rows, cuts = spec.recorded_rows, sum(module.out for module in spec.bottoms[: spec.passive])
    each_epoch = NUMBER + rows * (NUMBER + 1) + 2 * NUMBER * rows * cuts  # which, order, sent; z, g
    each_epoch += NUMBER * rows * recorded_width(spec)
    sums = NUMBER * rows * (3 * cuts + spec.passive)
    return members * (recorded_epochs * each_epoch + sums)


def bytes_of(plan: Plan, shard: Shard) -> int:
    """Returns the bytes on disk of a shard, once it is finished.

    Args:
      plan: of the sweep.
      shard: one of it.
    """
    group, members = plan.groups[shard.group], len(shard.trials)
    losses = 16 * group.spec.epochs  # and accuracies: two lists of float64
    trials = members * (NUMBER * group.weights + losses + ROW)
    epochs = len(plan.experiment.training.recorded_epochs)
    return exchange_bytes(group.spec, members, epochs) + trials + FILES


def _size_of(plan: Plan, shards: Sequence[Shard]) -> Size:
    """What training these shards takes."""
    progress, memory = [0], [0]
    epochs = len(plan.experiment.training.recorded_epochs)
    for shard in shards:
        group, members = plan.groups[shard.group], shard.capacity
        recorded = exchange_bytes(group.spec, members, epochs)
        # its trials' state and record, and all that was recorded before
        state = members * (COPIES * NUMBER * group.weights + 12 * group.spec.epochs)
        progress.append(state + exchange_bytes(group.spec, members, 1) + recorded)
        memory.append(progress[-1] + recorded)  # gathered by epoch, and stacked in the end
    return Size(
        trials=sum(len(shard.trials) for shard in shards),
        memory=BASE + _shared_bytes(plan, shards) + max(memory),
        disk=sum(bytes_of(plan, shard) for shard in shards),
        progress=max(progress),
    )


def _shared_bytes(plan: Plan, shards: Sequence[Shard]) -> int:
    """Memory of what all shards share: data, teachers and initial weights, on each of the devices."""
    seeds, rows = len(plan.seeds), len(plan.splits[0].train)
    groups = [plan.groups[number] for number in dict.fromkeys(shard.group for shard in shards)]
    weights = max((group.weights for group in groups), default=0)
    scores = teachers.most(groups) * rows * plan.dataset.num_classes
    orders = 2 * seeds * rows
    data = sum(leaf.nbytes for leaf in jax.tree.leaves(plan.table))  # what is streamed is no leaf
    return jax.device_count() * (data + NUMBER * (seeds * weights + scores + orders))


def unfinished(plan: Plan, workdir: pathlib.Path) -> list[Shard]:
    """Returns the shards still to be trained, of the stored division if there is one.

    Args:
      plan: of the sweep.
      workdir: its folder.
    """
    header = store.header_of(workdir)
    if header is None:
        return plan.shards
    shards = divided_as(plan, header).shards
    return [shard for shard in shards if not (workdir / "shards" / shard.name).is_dir()]


def needs(plan: Plan, workdir: pathlib.Path) -> str:
    """Returns what is left to train needs, in words.

    Args:
      plan: of the sweep.
      workdir: its folder.

    Raises:
      UserError: where the memory or the disk that is free is not enough for it.
    """
    size, limits = _size_of(plan, unfinished(plan, workdir)), plan.experiment.limits
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
        limits.check_free(f"training {trained}", what, needed, free, f"choose {choose}, {fewer}")
    return (
        f"about {bytes_text(size.memory)} of memory ({bytes_text(memory)} free) and "
        f"{bytes_text(size.disk)} of disk ({bytes_text(disk)} free)"
    )
