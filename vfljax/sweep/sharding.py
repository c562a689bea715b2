"""Divides trials into shards, and chooses by rough estimates how wide calls are and how hard programs are
optimized. Nothing is computed on a device.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from vfljax import machine
from vfljax.config import Config
from vfljax.models.last_layer import recorded_width
from vfljax.sweep import grouping, variants
from vfljax.sweep.batch_layout import default_width
from vfljax.sweep.programs import Effort
from vfljax.sweep.variants import AttackVariant
from vfljax.types import Spec

# of some thirteen files each, so that the folder of a large sweep has hundreds of files
SHARDS = 32
LONGEST = 600.0  # seconds of a shard of such a sweep
MEMORY = 2 << 30  # bytes of recorded exchange a shard may hold
# on an accelerator: shares of the host's and of a device's memory that recorded exchange may take, and the
# share of a device's memory for a shard's members (JAX keeps them before and after an epoch)
HOST_SHARE, RECORD_SHARE, STATE_SHARE = 1 / 16, 1 / 8, 0.5
STATES = 2 * 4 * 4  # bytes per weight: it, its gradient and two moments, before and after an epoch
# levels of ``programs.LEVELS``, with which the quickstart's programs run as fast as with full effort: LLVM's
# -O1, which compiles in a quarter less, and for attacks and scoring also kernels without MLIR
QUICK, PLAIN = 1, 2
# estimated seconds of running from which full effort pays; it takes about a second longer to compile
PAYS = 60.0
# attacks on at most so many rows of all trials, of at most so many estimated seconds, are compiled with the
# least effort: compiling them is quicker by more than running them is slower
FEW_ROWS, MOMENT = 20_000, 2.0
# likewise evaluation after short training, and scoring of at most so many rows over all attacks; the quickstart
# scores three times as many, and there least effort costs more than it saves
FEW_SCORED = 2_000_000
# a group's later shards take as many trials as its first ones, so that no program is compiled again, unless
# there would be more of them than this
ALIKE = 4


class Shard(NamedTuple):
    """At most about ``execution.shard_seconds`` of work: some trials of one group."""

    name: str
    group: int
    trials: tuple[int, ...]  # places in the group
    capacity: int  # members of the program
    stage: int = 0  # of the sweep that adds the trials; units of earlier stages are made first


def mapped_at_once(experiment: Config, few: bool) -> int:
    """Returns how many trials each device maps at once: as many as the config names, else ``default_width()``.

    Args:
      experiment: the config.
      few: whether one at a time is better on a CPU. It is for large networks, because vmapped convolutions are
        slower there than single ones (measured), and for programs that are compiled with the least effort,
        which run slowly, so that padding costs much.
    """
    few = few and machine.offered().cpu
    return experiment.execution.width or (1 if few else default_width())


def shards_of(
    groups: Sequence[grouping.Group],
    ends: Sequence[int] | np.ndarray,
    seconds: float,
    epochs: int,
    stored: Sequence[Shard],
) -> Iterator[Shard]:
    """Yields shards of all trials that are in no stored one, stage by stage (``Plan.stage_ends``). By rough
    estimates for this backend a shard takes about ``seconds`` (``trial_seconds``), and the exchange of its
    recorded ``epochs`` fits into memory (``_held_members``). If a sweep would have more than ``SHARDS`` of
    them, they take longer, up to ``LONGEST``.

    Unfinished shards are saved every 5 s, which bounds the work that a kill can lose.
    """
    devices, name = jax.device_count(), len(stored)
    total = sum(len(group.trials) * trial_seconds(group) for group in groups)
    seconds = max(seconds, min(total / devices / SHARDS, LONGEST))
    last = {shard.group: shard.capacity for shard in stored}  # of each group's last shard
    begun = [sum(len(s.trials) for s in stored if s.group == n) for n in range(len(groups))]
    for (stage, end), (number, group) in itertools.product(enumerate(ends), enumerate(groups)):
        # trials of later stages come after those of earlier ones in their group
        begin = begun[number]
        stop = int(np.sum(group.trials["trial"].to_numpy() < end))
        begun[number] = max(begin, stop)
        if (left := stop - begin) <= 0:
            continue
        most = int(seconds * devices / trial_seconds(group))
        most = max(devices, min(most, _held_members(group, epochs)))
        capacity = -(-left // -(-left // most))
        capacity = -(-capacity // devices) * devices
        if left <= ALIKE * last.get(number, 0):
            capacity = last[number]
        last[number] = capacity
        for first in range(begin, stop, capacity):
            places = tuple(range(first, min(first + capacity, stop)))
            yield Shard(f"{name:05d}-{group.name}", number, places, capacity, stage)
            name += 1


def exchange_numbers(spec: Spec, cut: int, epochs: int, rows: int) -> int:
    """Returns how many numbers a trial's recorded exchange has: of each recorded epoch embeddings, gradients
    and the inputs of last layers, and three sums over all epochs.

    Args:
      spec: of the trial.
      cut: the width of the embeddings, of all parties together whose exchange it is.
      epochs: the number of recorded epochs.
      rows: the number of recorded rows.
    """
    return rows * ((2 * epochs + 3) * cut + epochs * recorded_width(spec))


def _held_members(group: grouping.Group, epochs: int) -> int:
    """Returns how many trials a shard may have so that their recorded exchange fits into memory. On an
    accelerator their weights, and exchange and sums of an epoch, must also fit into the devices' memory."""
    spec, offer = group.spec, machine.offered()
    cuts, rows = sum(module.out for module in spec.bottoms[: spec.passive]), spec.recorded_rows
    exchange = 4 * exchange_numbers(spec, cuts, epochs, rows)
    if offer.cpu:
        return MEMORY // exchange
    most = int(min(HOST_SHARE * offer.host, offer.part(RECORD_SHARE, MEMORY)))
    held = max(MEMORY, most) // exchange
    if math.isinf(offer.memory):
        return held
    each = STATES * group.weights + 2 * 4 * exchange_numbers(spec, cuts, 1, rows)
    return min(held, jax.device_count() * (offer.part(STATE_SHARE, 0) // each))


def trial_seconds(group: grouping.Group) -> float:
    """Estimates a trial's training time. On a CPU core a step takes 60 us and 6 operations per weight and row
    at 20 GFLOP/s. On accelerators, where trials share calls, it takes the operations alone, at 2 TFLOP/s; an
    H100 reaches 14 with 1,024 small networks."""
    spec = group.spec
    call, rate = (60e-6, 20e9) if machine.offered().cpu else (0.0, 2e12)
    step = call + 6 * group.weights * spec.batch_size / rate
    return step * spec.epochs * spec.steps_per_epoch


def effort_of(
    groups: Sequence[grouping.Group],
    attacked: Sequence[AttackVariant],
    trained: bool,
    known_draws: int,
) -> Effort:
    """Chooses the effort of compiling each kind of program by the estimated time of its longest program, and
    that of attacks and scoring also by the rows that they read. A step of an attack is assumed to take as long
    as a step of training. Of a recording only initial weights are computed, with the least effort."""
    training, attacks = [0.0], [0.0]
    for group in groups:
        spec = group.spec
        training.append(trial_seconds(group) * len(group.trials) / jax.device_count())
        step = training[-1] / (spec.epochs * spec.steps_per_epoch)  # of all its trials
        for variant in attacked:
            bottoms = tuple(spec.bottoms[p] for p in variant.identity.attackers)
            attack = variants.make_attack(variant.identity, bottoms, spec.num_classes)
            attacks.append(step * attack.steps * len(variant.knobs))
    rows = sum(len(group.trials) * group.spec.recorded_rows for group in groups)
    scored = rows * known_draws * sum(len(variant.knobs) for variant in attacked)
    of_training = QUICK if max(training) < PAYS else None
    of_attacks = PLAIN if max(attacks) < PAYS else None
    return Effort(
        training=of_training if trained else 0,
        attacks=0 if rows <= FEW_ROWS and max(attacks) < MOMENT else of_attacks,
        evaluation=None if of_training is None else 0,
        scoring=0 if attacked and scored <= FEW_SCORED else of_attacks,
    )
