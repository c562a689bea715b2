"""Loads, attacks and scores a chunk: the trials that one call of an attack's program takes.

The variants of an attack on the same trials are one program. It computes what they share once, such as ranks
or a graph (``attacks.core.once``), and every point of their knobs side by side.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import attacks, keys, machine
from vfljax.attack_runs.bundles import MOST_KNOWN, Bundle, Stored, learns_from_all
from vfljax.attack_runs.diagnostics import diagnosis
from vfljax.attack_runs.inputs import filled, loader
from vfljax.attack_runs.jobs import Job, ViewGroup, draws_of
from vfljax.attack_runs.processes import in_processes
from vfljax.attack_runs.projection import width_read
from vfljax.attack_runs.view import AttackInput, common_data, known_rows, no_known_rows, view_of
from vfljax.attacks.core import HostReader, scores_of, sharing
from vfljax.attacks.learners import MANY_ROWS
from vfljax.federation.training import Table, of_parties
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.plan import Plan
from vfljax.sweep.sharding import exchange_numbers, mapped_at_once
from vfljax.sweep.variants import AttackVariant, make_attack
from vfljax.types import Agreed, Array, HostArray, Scores, Spec

BATCH_SIZE, MOST = 32, 1024  # most trials that one call attacks: on CPU, and on an accelerator
MEMORY = 1 << 29  # bytes of exchange that a batch may hold, besides what attacks compute from it
SHARE = 1 / 16  # the same limit as a share of an accelerator's memory, where that is known


class AttackProgram(NamedTuple):
    """What an attack's program depends on besides the shapes of its arguments; static."""

    name: str
    variants: tuple[tuple[tuple[str, Any], ...], ...]  # static options
    bottoms: tuple[nn.Module, ...]  # the attackers' bottom models
    num_classes: int
    agreed: Agreed
    draws: int = 1  # number of draws of known labels
    attackers: tuple[int, ...] = ()  # if the attack needs a diagnostic of the whole federation
    spec: Spec | None = None  # likewise


class AttackBatch(NamedTuple):
    """A bundle with what its members have in common. A call takes ``layout.capacity`` of them."""

    bundle: Bundle  # its attacks are built with the bottoms of its attackers
    layout: batch_layout.Layout
    static: AttackProgram
    computed: tuple[int, ...]  # of each variant, its place among the results of the program
    draws: tuple[int, ...]  # of each variant, the number of draws of known labels
    common: Table
    load: Callable[[Job], AttackInput]
    level: int | None  # optimization level of the compiler

    def narrowed(self, width: int) -> AttackBatch:
        """Returns the batch with calls of only ``width`` trials per device, all mapped at once."""
        layout = batch_layout.layout_of(width * jax.device_count(), width)
        return self._replace(layout=dataclasses.replace(layout, dealt=True))


def make_attack_batch(bundle: Bundle, stored: Stored) -> AttackBatch:
    """Returns what the members of a bundle share, with its arrays on the devices.

    Args:
      bundle: the variants and jobs.
    """
    plan, first = stored.plan, bundle.members[0]
    group, name = first.group, first.variant.name
    bottoms = tuple(group.spec.bottoms[p] for p in group.attackers)
    variants = tuple(
        variant._replace(attack=make_attack(variant.identity, bottoms, plan.dataset.num_classes))
        for variant in bundle.variants
    )
    bundle, built = bundle._replace(variants=variants), variants[0].attack
    everyone = range(len(plan.table.features))
    parties = everyone if built.diagnostic else group.attackers
    common = batch_layout.share(common_data(plan.table, stored.arrays, parties))
    row = attacks.TABLE[name]

    def options_of(variant: AttackVariant) -> tuple[tuple[str, Any], ...]:
        options = {k: v for k, v in variant.identity.options if k not in row.host_options}
        if learns_from_all(first):
            options[MOST_KNOWN] = common.train.shape[1]
        return tuple(sorted(options.items()))

    options = [options_of(variant) for variant in variants]
    different = list(dict.fromkeys(options))
    # an attacker that learns from every label knows the same in each draw
    most = 1 if learns_from_all(first) else plan.experiment.known_draws
    draws = tuple(draws_of(variant.attack, most) for variant in variants)
    whole = row.whole_batches
    # attacks on whole batches use large arrays and run long: on CPU, one trial per device and call
    alone = whole and machine.offered().cpu
    few = not group.spec.light or plan.effort.attacks == 0
    width = max(1, mapped_at_once(plan.experiment, few) // bundle.points)
    scored = len(different) * bundle.points * max(draws)
    capacity = jax.device_count()
    if not alone:
        cut = sum(width_read(bottom.out, row.widest) for bottom in bottoms)
        capacity = _capacity(plan, group, cut, max(draws), scored)
    layout = batch_layout.layout(capacity, 1 if alone else width, plan.devices)
    diagnosed = {"attackers": group.attackers, "spec": group.spec} if built.diagnostic else {}
    static = AttackProgram(
        name=row.computed_as or name,
        variants=tuple(different),
        bottoms=bottoms,
        num_classes=plan.dataset.num_classes,
        agreed=Agreed(group.spec.batch_size, group.spec.huber),
        # the features for a reader on the host use no label
        draws=1 if built.host else draws[0],
        **diagnosed,
    )
    return AttackBatch(
        bundle=bundle,
        layout=dataclasses.replace(layout, dealt=True),
        static=static,
        computed=tuple(map(different.index, options)),
        draws=draws,
        common=common,
        load=loader(bundle, stored),
        level=None if whole or row.full_effort else plan.effort.attacks,
    )


def make_attack_member(static: AttackProgram) -> Callable[[AttackInput, Table], tuple[Scores, ...]]:
    """Returns ``attack(input, common)``, which computes the ``Scores`` [points, draws, N, C] of one trial by
    every variant. An oracle is given the label of every row."""
    table = attacks.TABLE[static.name]
    every = [table(static.bottoms, static.num_classes, **dict(of)) for of in static.variants]
    first, reads = every[0], {name for attack in every for name in attack.reads}
    diagnose = diagnosis(static.spec, first.diagnostic, static.attackers)

    def attack_member(run: AttackInput, common: Table) -> tuple[Scores, ...]:
        run = filled(run, static.bottoms, attacks.TABLE[static.name].widest)
        key = keys.fold(keys.run_key(run.seed), "attack", run.key_name)
        columns = not {"columns", "bottoms"}.isdisjoint(reads)
        diagnosed = diagnose(run, common)
        if diagnosed:
            common = of_parties(common, static.attackers)
        view = view_of(run, common, static.agreed, diagnosed, columns)

        def of_draw(knobs: dict[str, Array], draw: Array | int) -> tuple[Scores, ...]:
            count: Any = knobs.get("known", jnp.float32(0))
            if first.oracle:
                count = jnp.float32(common.train.shape[1])
            if "known" in first.knobs or first.oracle:
                known = known_rows(common, run.seed, count, draw)
            else:
                known = no_known_rows(common)
            with sharing():
                return scores_of(every, key, view, known, knobs)

        def of_point(knobs: dict[str, Array]) -> tuple[Scores, ...]:
            if static.draws == 1:
                return jax.tree.map(lambda x: x[None], of_draw(knobs, 0))
            # what depends on no label is computed once
            return jax.vmap(of_draw, in_axes=(None, 0))(knobs, jnp.arange(static.draws))

        if all(len(values) == 1 for values in run.knobs.values()):
            point = {name: values[0] for name, values in run.knobs.items()}
            return jax.tree.map(lambda x: x[None], of_point(point))
        return jax.vmap(of_point)(run.knobs)

    attack_member.__name__ = f"attack_{static.name}"
    return attack_member


def run_attack_batch(
    batch: AttackBatch, members: Sequence[Job], stored: Stored
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Loads, attacks and scores some members of a bundle. Yields each job with its figures by name.

    Args:
      members: at most as many as the batch takes.
    """
    bundle = batch.bundle
    inputs, scores = batch_scores(batch, members, stored)
    for place, variant in enumerate(bundle.variants):
        for point in range(bundle.points):
            jobs = [bundle.job_of(place, point, member) for member in members]
            if not any(jobs):
                continue
            knobs = {name: values[:, point] for name, values in inputs.knobs.items()}
            figures = stored.scorer.figures(
                scores[place],
                inputs._replace(knobs=knobs),
                variant.attack,
                batch.layout.capacity,
                point,
            )
            for i, job in enumerate(jobs):
                if job is not None:
                    yield job, {name: values[i].tolist() for name, values in figures.items()}


def batch_scores(
    batch: AttackBatch, members: Sequence[Job], stored: Stored
) -> tuple[AttackInput, list[Scores]]:
    """Loads and attacks some members of a bundle.

    Args:
      members: at most as many as the batch takes.

    Returns:
      The inputs [members] of the program, and by variant the scores [capacity, points, draws, N, C].
    """
    program, inputs, arguments = _called(batch, members)
    computed = program.run_whole(*arguments, len(members))
    if batch.bundle.variants[0].attack.host is None:
        return inputs, [computed[place] for place in batch.computed]
    features = [batch.layout.unpad(of.train, len(members))[:, 0, 0] for of in computed]
    by_variant = _read(features, batch, members, inputs, stored)
    return inputs, [batch.layout.pad(scores) for scores in by_variant]


def compile_attack_batch(batch: AttackBatch, job: Job, pool: Executor) -> None:
    """Traces the program of a batch, and compiles it in the background.

    Args:
      batch: of a bundle.
      job: one of its members, but none of UNTRAINED, whose bottoms would be made first.
      pool: compiles.
    """
    program, _, arguments = _called(batch, [job])
    program.compile(*arguments, pool=pool)


def _called(
    batch: AttackBatch, members: Sequence[Job]
) -> tuple[programs.Program, AttackInput, tuple[AttackInput, Table]]:
    """Returns the program of a batch, its inputs [members] on the host, and its arguments."""
    inputs = jax.tree.map(lambda *leaves: np.stack(leaves), *map(batch.load, members))
    arguments = batch.layout.pad(inputs), batch.common
    program = programs.program(
        make_attack_member, (batch.static,), batch.layout, arguments, batch.level
    )
    return program, inputs, arguments


def _read(
    features: Sequence[HostArray],
    batch: AttackBatch,
    members: Sequence[Job],
    inputs: AttackInput,
    stored: Stored,
) -> list[Scores]:
    """Returns by variant the scores [members, points, draws, N, C] that its reader on the host gives features
    [members, N, W] of each result of the program."""
    arrays, tasks, points = stored.arrays, [], inputs.knobs["known"].shape[1]
    of_variants = zip(batch.bundle.variants, batch.computed, batch.draws, strict=True)
    for variant, place, draws in of_variants:
        for x, job, known in zip(features[place], members, inputs.knobs["known"], strict=True):
            of_seed = arrays["labels"][arrays["train"][job.seed]]
            orders = arrays["known_order"][job.seed :: len(stored.plan.splits)]
            drawn = [orders[:draws, : int(count)] for count in known]
            of_points = [(rows, of_seed[rows]) for rows in drawn]
            tasks.append(
                (variant.attack.host, x, of_points, stored.plan.dataset.num_classes, job.seed)
            )
    rows_read = points * len(members) * features[0].shape[1] * sum(batch.draws)
    found = in_processes(_read_points, tasks, rows_read)
    by_variant = [found[k : k + len(members)] for k in range(0, len(found), len(members))]
    return [Scores(np.stack(of)) for of in by_variant]  # pyright: ignore[reportArgumentType]


def _read_points(
    reader: HostReader,
    features: HostArray,
    of_points: Sequence[tuple[HostArray, HostArray]],
    classes: int,
    seed: int,
) -> HostArray:
    """Returns the scores [points, draws, N, C] of a reader, given the known rows and labels of each point."""
    return np.stack([reader(features, *known, classes, seed) for known in of_points])


def _capacity(plan: Plan, group: ViewGroup, cut: int, draws: int, scored: int) -> int:
    """Returns the number of members of one call.

    On CPU it is at most BATCH_SIZE, or two per device for large networks, which run one after the other
    there: progress is shown often, and an interruption loses little. On an accelerator memory limits it, at
    most to MOST and the trials of the plan; it is halved if the compiled program needs more.

    Args:
      group: whose members they are.
      cut: the width of what is read of the exchange.
      draws: number of draws of known labels.
      scored: how many times a member is scored: by variant, point and draw.
    """
    spec = group.spec
    epochs = len(plan.experiment.training.recorded_epochs)
    columns = sum(math.prod(plan.table.features[p].shape[1:]) for p in group.attackers)
    rows, held = len(plan.splits[0].train), len(plan.splits[0].test)
    read = exchange_numbers(spec, cut, epochs, rows) + (rows + held) * columns
    size = 4 * (draws * read + rows * scored * plan.dataset.num_classes)
    devices, offer = jax.device_count(), machine.offered()
    trials = sum(len(group.trials) for group in plan.groups) + len(plan.seeds)
    whole = 1 << (trials - 1).bit_length()  # a power of two, so that sweeps share programs
    if offer.cpu:
        most = 2 * plan.devices if not spec.light else BATCH_SIZE
        # padding members are computed too, which takes long with many rows
        most = min(most, whole) if rows > MANY_ROWS else most
        return max(devices, min(most, MEMORY // size))
    return max(devices, min(MOST, whole, devices * offer.part(SHARE, MEMORY) // size))
