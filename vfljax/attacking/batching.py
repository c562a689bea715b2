"""Loads, attacks and scores a chunk: the trials that one call of an attack's program takes."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import attacks, keys, machine
from vfljax.attacking.diagnostics import diagnosis
from vfljax.attacking.jobs import UNTRAINED, Job, VariantPlan, ViewGroup, draws_of
from vfljax.attacking.processes import in_processes
from vfljax.attacking.scoring import Scorer
from vfljax.attacking.view import (
    AttackInput,
    CommonData,
    attack_input,
    common_data,
    known_rows,
    no_known_rows,
    of_one_epoch,
    view_of,
)
from vfljax.attacks.core import Attack
from vfljax.attacks.learners import MANY_ROWS
from vfljax.federation.protocol import make_embed
from vfljax.federation.training import Table, rows_of
from vfljax.models.last_layer import recorded_width
from vfljax.models.rows import over_chunks
from vfljax.store.exchange import INPUTS, NODES
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.plan import Plan
from vfljax.sweep.sharding import width_of
from vfljax.sweep.variants import AttackVariant, make_attack
from vfljax.types import Agreed, Array, HostArray, Scores, Spec, Weights

BATCH_SIZE, MOST = 32, 1024  # most trials that one call attacks: on CPU, and on an accelerator
MEMORY = 1 << 29  # bytes of exchange that a batch may hold, besides what attacks compute from it
SHARE = 1 / 16  # the same limit as a share of an accelerator's memory, where that is known


class Stored(NamedTuple):
    """What attacks need of a stored sweep."""

    plan: Plan  # restricted to the recorded rows
    workdir: pathlib.Path
    header: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]  # the splits
    scorer: Scorer
    variants: Mapping[str, VariantPlan | None]  # by key; None: this process cannot run it


class AttackProgram(NamedTuple):
    """What an attack's program depends on besides the shapes of its arguments; static."""

    name: str
    options: tuple[tuple[str, Any], ...]
    bottoms: tuple[nn.Module, ...]  # the attackers' bottom models
    num_classes: int
    agreed: Agreed
    draws: int = 1  # number of draws of known labels
    attackers: tuple[int, ...] = ()  # if the attack needs a diagnostic of the whole federation
    spec: Spec | None = None  # likewise


class AttackBatch(NamedTuple):
    """What jobs that are ``sharing_calls`` have in common. A call takes ``layout.capacity`` jobs."""

    layout: batch_layout.Layout
    static: AttackProgram
    attack: Attack
    common: CommonData
    load: Callable[[Job], AttackInput]
    level: int | None  # optimization level of the compiler
    draws: int  # number of draws of known labels

    def narrowed(self, width: int) -> AttackBatch:
        """Returns the batch with calls of only ``width`` trials per device, all mapped at once."""
        layout = batch_layout.layout_of(width * jax.device_count(), width)
        return self._replace(layout=dataclasses.replace(layout, dealt=True))


def make_attack_batch(variant: AttackVariant, group: ViewGroup, stored: Stored) -> AttackBatch:
    """Returns what the jobs of a variant and group share, with its arrays on the devices.

    Args:
      variant: the attack variant.
      group: the trials that are attacked alike.
      stored: the sweep.
    """
    plan = stored.plan
    bottoms = tuple(group.spec.bottoms[p] for p in group.attackers)
    attack = make_attack(variant, bottoms, plan.dataset.num_classes)
    common = common_data(plan.table, stored.arrays, group.attackers)
    if attack.diagnostic:
        common = common._replace(table=plan.table._replace(scores=None))
    common = batch_layout.share(common)
    row = attacks.TABLE[variant.name]
    whole = row.whole_batches
    # attacks on whole batches use large arrays and run long: on CPU, one trial per device and call
    alone = whole and machine.offered().cpu
    width = 1 if alone else few_width(plan) or width_of(plan.experiment, group.spec)
    draws = draws_of(attack, plan.experiment.known_draws)
    capacity = jax.device_count() if alone else _capacity(plan, group, common, draws)
    layout = batch_layout.layout(capacity, width, plan.devices)
    options = {k: v for k, v in variant.options.items() if k not in row.host_options}
    if attack.one_epoch:  # which is the only one that ``load`` gives it
        options["epoch"] = -1
    diagnosed = {"attackers": group.attackers, "spec": group.spec} if attack.diagnostic else {}
    static = AttackProgram(
        name=row.computed_as or variant.name,
        options=tuple(sorted(options.items())),
        bottoms=bottoms,
        num_classes=plan.dataset.num_classes,
        agreed=Agreed(group.spec.batch_size),
        draws=1 if attack.host else draws,  # the features for a reader on the host use no label
        **diagnosed,
    )
    return AttackBatch(
        layout=dataclasses.replace(layout, dealt=True),
        static=static,
        attack=attack,
        common=common,
        load=_loader(attack, stored),
        level=None if whole else plan.effort.attacks,
        draws=draws,
    )


def few_width(plan: Plan) -> int | None:
    """Returns how many trials are mapped at once by attacks that are compiled with the least effort, else None.

    On a CPU it is 1 unless the config names a width: they run slowly, and few trials would be padded to it.
    """
    least = plan.effort.attacks == 0 and machine.offered().cpu
    return (plan.experiment.execution.width or 1) if least else None


def sharing_calls(jobs: Iterable[Job], attack: Attack) -> list[list[Job]]:
    """Returns the jobs of an attack, those together that can share calls of its program, whatever their group.
    A call computes as many members as its program takes, so small groups alone would waste most of it."""
    shared: dict[tuple[Any, ...], list[Job]] = {}
    for job in jobs:
        attackers, spec = job.group.attackers, job.group.spec
        bottoms = tuple(spec.bottoms[p] for p in attackers)
        shapes = attackers, bottoms, spec.batch_size, spec.light, recorded_width(spec)
        shared.setdefault((*shapes, spec if attack.diagnostic else None), []).append(job)
    return [*shared.values()]


def make_attack_member(static: AttackProgram) -> Callable[[AttackInput, CommonData], Scores]:
    """Returns ``attack(input, common)``, which computes the ``Scores`` [draws, N, C] of one trial. An oracle
    is given the label of every row."""
    attack = attacks.TABLE[static.name](static.bottoms, static.num_classes, **dict(static.options))
    diagnose = diagnosis(static.spec, attack.diagnostic, static.attackers)

    def attack_member(run: AttackInput, common: CommonData) -> Scores:
        run = _filled(run, static.bottoms)
        count: Any = run.knobs.get("known", jnp.float32(0))
        if attack.oracle:
            count = jnp.float32(common.known_order.shape[1])
        key = keys.fold(keys.run_key(run.seed), "attack", run.key_name)
        columns = not {"columns", "bottoms"}.isdisjoint(attack.reads)
        view = view_of(run, common, static.agreed, diagnose(run, common), columns)

        def of_draw(draw: Array | int) -> Scores:
            if "known" in attack.knobs or attack.oracle:
                known = known_rows(common, run.seed, count, draw)
            else:
                known = no_known_rows(common)
            return attack.run(key, view, known, run.knobs)

        if static.draws == 1:
            return jax.tree.map(lambda x: x[None], of_draw(0))
        # what depends on no label is computed once
        return jax.vmap(of_draw)(jnp.arange(static.draws))

    attack_member.__name__ = f"attack_{static.name}"
    return attack_member


def run_attack_batch(
    batch: AttackBatch, jobs: Sequence[Job], stored: Stored
) -> dict[str, np.ndarray]:
    """Loads, attacks and scores the trials of some jobs; returns each figure [jobs] by name.

    Args:
      batch: what the jobs share.
      jobs: at most as many as the batch takes.
      stored: the sweep.
    """
    inputs, scores = batch_scores(batch, jobs, stored)
    return stored.scorer.figures(scores, inputs, batch.attack, batch.layout.capacity)


def batch_scores(
    batch: AttackBatch, jobs: Sequence[Job], stored: Stored
) -> tuple[AttackInput, Scores]:
    """Loads and attacks the trials of some jobs.

    Args:
      batch: what the jobs share.
      jobs: at most as many as the batch takes.
      stored: the sweep.

    Returns:
      The inputs [jobs] of the program, and the scores [members of the batch, draws, N, C].
    """
    program, inputs, arguments = _called(batch, jobs)
    scores = program(*arguments, count=len(jobs))
    if batch.attack.host:
        features = batch.layout.unpad(scores.train, len(jobs))[:, 0]
        scores = batch.layout.pad(_read(features, batch, jobs, inputs, stored))
    return inputs, scores


def compile_attack_batch(batch: AttackBatch, job: Job, pool: Executor) -> None:
    """Traces the program of a batch, and compiles it in the background.

    Args:
      batch: what the jobs share.
      job: one of them, but none of UNTRAINED, whose bottoms would be made first.
      pool: compiles.
    """
    program, _, arguments = _called(batch, [job])
    program.compile(*arguments, pool=pool)


def _called(
    batch: AttackBatch, jobs: Sequence[Job]
) -> tuple[programs.Program, AttackInput, tuple[AttackInput, CommonData]]:
    """Returns the program of a batch, its inputs [jobs] on the host, and its arguments."""
    inputs = jax.tree.map(lambda *leaves: np.stack(leaves), *map(batch.load, jobs))
    arguments = batch.layout.pad(inputs), batch.common
    program = programs.program(
        make_attack_member, (batch.static,), batch.layout, *arguments, level=batch.level
    )
    return program, inputs, arguments


def _read(
    features: HostArray,
    batch: AttackBatch,
    jobs: Sequence[Job],
    inputs: AttackInput,
    stored: Stored,
) -> Scores:
    """Returns the scores [jobs, draws, N, C] that a reader on the host gives features [jobs, N, W]."""
    arrays, tasks = stored.arrays, []
    for x, job, known in zip(features, jobs, inputs.knobs["known"]):
        of_seed = arrays["labels"][arrays["train"][job.seed]]
        orders = arrays["known_order"][job.seed :: len(stored.plan.splits)]
        rows = orders[: batch.draws, : int(known)]
        tasks.append((x, rows, of_seed[rows], stored.plan.dataset.num_classes, job.seed))
    assert batch.attack.host is not None
    rows_read = len(tasks) * batch.draws * features.shape[1]
    scores: HostArray = np.stack(in_processes(batch.attack.host, tasks, rows_read))
    return Scores(scores)


def _loader(attack: Attack, stored: Stored) -> Callable[[Job], AttackInput]:
    """Returns a function that loads a job's ``AttackInput``, for UNTRAINED jobs with untrained bottoms."""
    plan, workdir = stored.plan, stored.workdir

    @functools.cache
    def untrained(group: ViewGroup) -> tuple[Any, np.ndarray]:
        weights = initial_weights(
            group.spec, plan.experiment, plan.seeds, plan.table, plan.effort.training
        )
        cut = _untrained_cut(weights, plan.table, group.spec, group.attackers, plan.effort.attacks)
        return jax.device_get(weights.bottoms), cut

    def as_read(run: AttackInput, variant: AttackVariant) -> AttackInput:
        run = _as_read(run, attack)
        if not attack.one_epoch:
            return run
        epoch = {**attacks.TABLE[variant.name].options, **variant.options}["epoch"]
        return run._replace(
            exchange=of_one_epoch(run.exchange, epoch, "embeddings" in attack.reads)
        )

    def load(job: Job) -> AttackInput:
        trained = attack_input(
            workdir,
            job.row,
            job.variant.name,
            job.knobs(len(plan.splits[0].train)),
            job.group.attackers,
            bool(attack.diagnostic),
            attacks.TABLE[job.variant.name].whole_batches,
        )
        if job.what != UNTRAINED:
            return as_read(trained, job.variant)
        initial, cut = untrained(job.group)
        bottoms = tuple(
            jax.tree.map(lambda a: a[job.seed], initial[party]) for party in job.group.attackers
        )
        embeddings = np.tile(cut[job.seed], (len(trained.exchange["epochs"]), 1, 1))
        exchange = {**trained.exchange, "embeddings": embeddings}
        return as_read(trained._replace(bottoms=bottoms, exchange=exchange), job.variant)

    return load


OF_EXCHANGE = {
    "embeddings": ("embeddings",),
    "gradients": ("gradients", "sum_gradient", "sum_sign", "sum_square"),
    "order": ("order",),
}
"""The arrays of an exchange that an attack is given only if it reads them, by name in ``READS``."""


def _as_read(run: AttackInput, attack: Attack) -> AttackInput:
    """Returns the input without what the attack does not read, which need not be moved to the devices."""
    summed = "parameter gradients" in attack.reads  # which are computed from gradients by batch
    reads = {*attack.reads, *(("gradients", "order") if summed else ())}
    left_out = [name for read, names in OF_EXCHANGE.items() if read not in reads for name in names]
    left_out += [] if summed else [INPUTS]
    left_out += [] if NODES in reads else [NODES]
    kept = {name: a for name, a in run.exchange.items() if name not in left_out}
    return run._replace(exchange=kept, bottoms=run.bottoms if "bottoms" in reads else ())


def _filled(run: AttackInput, bottoms: tuple[nn.Module, ...]) -> AttackInput:
    """Returns the input with zeros for the arrays that ``_as_read`` left out. No score depends on them."""
    sent, width = run.exchange["sent"], sum(bottom.out for bottom in bottoms)
    of_epochs = jnp.zeros((*sent.shape, width))
    empty: dict[str, Array] = dict.fromkeys(("embeddings", "gradients"), of_epochs)
    empty |= dict.fromkeys(OF_EXCHANGE["gradients"][1:], of_epochs[0])
    empty["order"] = jnp.zeros(sent.shape, jnp.int32)
    return run._replace(exchange={**empty, **run.exchange})


def make_untrained_cut(
    spec: Spec, attackers: tuple[int, ...]
) -> Callable[[Weights, Array, Table], Array]:
    """Returns ``cut(weights [Q, ...], seeds [Q], table)``, the attackers' embeddings [Q, N, D] of all training
    rows."""
    embed = make_embed(spec)

    def of_seed(weights: Weights, seed: Array, table: Table) -> Array:
        def of(rows: Array) -> Array:
            cut = embed(weights, rows_of(table, seed, rows))
            return jnp.concatenate([cut[p] for p in attackers], axis=-1)

        return over_chunks(of, table.train[seed], spec.chunk)

    return jax.vmap(of_seed, in_axes=(0, 0, None))


def _untrained_cut(
    weights: Weights, table: Table, spec: Spec, attackers: tuple[int, ...], level: int | None = None
) -> HostArray:
    """The attackers' embeddings [Q, N, D] of all training rows from each seed's initial weights [Q, ...]."""
    seeds = jnp.arange(len(table.train))
    arguments = weights, seeds, table._replace(scores=None)  # the table is not compiled in
    return np.asarray(
        programs.compiled(make_untrained_cut, (spec, attackers), arguments, level)(*arguments)
    )


def _capacity(plan: Plan, group: ViewGroup, common: CommonData, draws: int) -> int:
    """Returns the number of members of one call.

    On CPU it is at most BATCH_SIZE, or two per device for large networks, which run one after the other
    there: progress is shown often, and an interruption loses little. On an accelerator memory limits it, at
    most to MOST and the trials of the plan; ``TooLarge`` lowers it if the compiled program needs more.
    """
    spec = group.spec
    epochs = len(plan.experiment.training.recorded_epochs)
    cut = sum(spec.bottoms[p].out for p in group.attackers)
    columns = sum(int(np.prod(x.shape[1:])) for x in common.features)
    rows, held = len(plan.splits[0].train), len(plan.splits[0].test)
    size = 4 * (rows * ((2 * epochs + 3) * cut + columns) + held * columns)
    size = draws * (size + 4 * rows * epochs * recorded_width(spec))
    devices, offer = jax.device_count(), machine.offered()
    trials = sum(len(group.trials) for group in plan.groups) + len(plan.seeds)
    whole = 1 << (trials - 1).bit_length()  # a power of two, so that sweeps share programs
    if offer.cpu:
        most = 2 * plan.devices if not spec.light else BATCH_SIZE
        # padding members are computed too, which takes long with many rows
        most = min(most, whole) if rows > MANY_ROWS else most
        return max(devices, min(most, MEMORY // size))
    return max(devices, min(MOST, whole, devices * offer.part(SHARE, MEMORY) // size))
