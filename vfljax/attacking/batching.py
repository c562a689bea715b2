"""A block of jobs: so many settings as one call of an attack's program takes, loaded, attacked and scored.

What enters: jobs of one form and group, and the stored sweep. What leaves: their figures. Which jobs there
are is ``jobs``' business, and what becomes of the figures that of ``run``.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import machine, store
from vfljax.attacking.baselines import untrained_cut
from vfljax.attacking.jobs import UNTRAINED, Job, ViewGroup
from vfljax.attacking.program import AttackProgram, make_attack_lane, program_of
from vfljax.attacking.scoring import Scorer
from vfljax.attacking.view import AttackInput, CommonData, common_data, input_of, read_shard
from vfljax.attacks.core import Attack
from vfljax.models.last_layer import recorded_width
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.attack_variants import AttackVariant
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.plan import Plan, width_of
from vfljax.types import PyTree

BLOCK, MOST = 32, 1024  # settings attacked by one call on CPU, and at most on an accelerator
MEMORY = 1 << 29  # bytes of exchange a block may hold; what attacks make of it comes on top
SHARE = 1 / 16  # the same of an accelerator's memory, where that is known


class Stored(NamedTuple):
    """What attacking needs of a stored sweep."""

    plan: Plan  # of the recorded rows
    sweep: store.Sweep
    arrays: Mapping[str, np.ndarray]  # the splits
    scorer: Scorer
    summary: dict[str, dict[str, Any]]  # what ``attacks.json`` says
    shard: Callable[[pathlib.Path, str], tuple[PyTree, Mapping[str, np.ndarray]]] = read_shard

    @property
    def workdir(self) -> pathlib.Path:
        return self.sweep.workdir

    def rows(self, form: AttackVariant) -> list[dict[str, Any]]:
        """The form's rows."""
        return store.read_variant(self.workdir, form.variant).to_pylist()


class Block(NamedTuple):
    """What the jobs of one form and group share: one program over so many of them at a time."""

    layout: batch_layout.Layout
    static: AttackProgram
    attack: Attack
    batch_size: int
    common: CommonData
    load: Callable[[Job], AttackInput]


def make_block(form: AttackVariant, group: ViewGroup, attack: Attack, stored: Stored) -> Block:
    """What these jobs share, on the devices."""
    common = _common(group, attack, stored)
    static, layout = requested(form, group, attack, stored.plan, common)
    return Block(
        layout,
        static,
        attack,
        group.spec.batch_size,
        common,
        _loader(group, attack, stored),
    )


def attack_block(
    block: Block, jobs: Sequence[Job], stored: Stored
) -> tuple[programs.Program, dict[str, np.ndarray]]:
    """Load, attack and score at most a block of jobs: the program, and each figure [jobs]."""
    inputs = jax.tree.map(lambda *leaves: np.stack(leaves), *map(block.load, jobs))
    on_devices = block.layout.pad(inputs)
    program = programs.program(
        make_attack_lane, (block.static,), block.layout, on_devices, block.common
    )
    scores = program(on_devices, block.common)
    figures = stored.scorer.figures(
        scores, inputs, block.attack, block.batch_size, block.layout.capacity
    )
    return program, figures


def narrowed(block: Block, width: int) -> Block:
    """The block with so many settings at once on each device, and as many a call."""
    return block._replace(layout=batch_layout.layout_of(width * jax.device_count(), width))


def _loader(group: ViewGroup, attack: Attack, stored: Stored) -> Callable[[Job], AttackInput]:
    """What reads a job's ``AttackInput``: a stored setting's, or with an untrained bottom in place."""
    plan, workdir = stored.plan, stored.workdir

    @functools.cache
    def untrained() -> tuple[Any, np.ndarray]:
        weights = initial_weights(group.spec, plan.experiment, plan.seeds, plan.table)
        cut = untrained_cut(weights, plan.table, group.spec, group.attackers)
        return jax.device_get(weights.bottoms), cut

    def load(job: Job) -> AttackInput:
        knobs = job.knobs(len(plan.splits[0].train))
        shard = stored.shard(workdir, job.row["shard"])
        one = input_of(
            shard, job.row, job.form.name, knobs, group.attackers, bool(attack.diagnostic)
        )
        if job.what != UNTRAINED:
            return one
        initial, cut = untrained()
        bottoms = tuple(
            jax.tree.map(lambda a: a[job.seed], initial[party]) for party in group.attackers
        )
        embeddings = np.tile(cut[job.seed], (len(one.exchange["epochs"]), 1, 1))
        return one._replace(bottoms=bottoms, exchange={**one.exchange, "embeddings": embeddings})

    return load


def _common(group: ViewGroup, attack: Attack, stored: Stored) -> CommonData:
    """What all trials of a group share, on the devices."""
    common = common_data(stored.plan.table, stored.arrays, group.attackers)
    if attack.diagnostic:
        common = common._replace(table=stored.plan.bare_table)
    return batch_layout.share(common)


def requested(
    form: AttackVariant, group: ViewGroup, attack: Attack, plan: Plan, common: CommonData
) -> tuple[AttackProgram, batch_layout.Layout]:
    """Returns what decides a group's program apart from the shapes of its jobs: its static part and layout."""
    width = width_of(plan.experiment, group.spec)
    layout = batch_layout.layout(_block(plan, group, common), width, plan.devices)
    return program_of(form, group, attack, plan.dataset.num_classes), layout


def _block(plan: Plan, group: ViewGroup, common: CommonData) -> int:
    """Members of one call. On CPU these are BLOCK, and few of large networks, which run one after the
    other there, so that progress shows and a kill loses little. On an accelerator they are as many as
    memory allows, at most MOST and the trials of the plan, and fewer where the compiled program says
    so (``TooLarge``)."""
    spec = group.spec
    epochs, cut = (
        len(plan.experiment.training.recorded_epochs),
        sum(spec.bottoms[p].out for p in group.attackers),
    )
    columns = sum(int(np.prod(x.shape[1:])) for x in common.features)
    rows, held = len(plan.splits[0].train), len(plan.splits[0].test)
    size = 4 * (rows * ((2 * epochs + 3) * cut + columns) + held * columns)
    size += 4 * rows * epochs * recorded_width(spec)
    devices, offer = jax.device_count(), machine.offered()
    if offer.cpu:
        most = 2 * plan.devices if not spec.light else BLOCK
        return max(devices, min(most, MEMORY // size))
    trials = sum(len(group.trials) for group in plan.groups) + len(plan.seeds)
    whole = 1 << (trials - 1).bit_length()  # few different ones, so that sweeps share programs
    return max(devices, min(MOST, whole, devices * offer.part(SHARE, MEMORY) // size))
