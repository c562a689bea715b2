"""A config with its data: on the device, divided into trials, groups of one program, and shards.

Everything that can be refused is refused by the end of ``make_plan``, before anything is trained or written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from vfljax import datasets, machine, switches
from vfljax.config import Config
from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.label_permutation import permute_labels
from vfljax.datasets.partition import divide
from vfljax.datasets.scaling import statistics
from vfljax.datasets.splits import Split, distinct_rows, split_rows
from vfljax.errors import UserError
from vfljax.federation.training import Table
from vfljax.machine import bytes_text, free_memory
from vfljax.models.last_layer import recorded_width
from vfljax.models.making import tuples
from vfljax.models.rows import Streamed
from vfljax.sweep import codebooks, grid, grouping, initial, specs, teachers, variants
from vfljax.sweep.canaries import NONE, plant
from vfljax.sweep.programs import Effort
from vfljax.sweep.variants import AttackVariant
from vfljax.types import HostArray, PyTree, Spec, federation_of

SHARDS = (
    32  # of some thirteen files each, so that the folder of a large sweep has hundreds of files
)
LONGEST = 600.0  # seconds of a shard of such a sweep
MEMORY = 2 << 30  # bytes of recorded exchange a shard may hold
# on an accelerator: shares of the host's and of a device's memory that recorded exchange may take, and the
# share of a device's memory for a shard's members (JAX keeps them before and after an epoch)
HOST_SHARE, RECORD_SHARE, STATE_SHARE = 1 / 16, 1 / 8, 0.5
STATES = 2 * 4 * 4  # bytes per weight: it, its gradient and two moments, before and after an epoch
# LLVM's -O1: compiling takes a quarter less, and the quickstart's programs run as fast as with full effort
QUICK = 1
# estimated seconds of running from which full effort pays; it takes about a second longer to compile
PAYS = 60.0
# attacks on at most so many rows of all trials, of at most so many estimated seconds, are compiled with the
# least effort: compiling them is quicker by more than running them is slower
FEW_ROWS, MOMENT = 20_000, 2.0
# so are evaluation of networks that train for a short time, and scoring of at most so many rows of all attacks
# together: in the quickstart, with three times as many, scoring takes longer than its compiling saves
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


class Plan(NamedTuple):
    """A config with its data on the device, attacks, trials in groups, and shards."""

    experiment: Config
    dataset: Dataset
    party_columns: tuple[PartyColumns, ...]  # of each party that owns columns
    shape: specs.DataShape
    table: Table
    splits: list[Split]
    candidates: HostArray  # [copies + 1, 2] of canaries, the last rows of the data set
    seeds: HostArray  # [Q] uint32
    attack_variants: tuple[AttackVariant, ...]
    groups: list[grouping.Group]
    shards: list[Shard]
    teachers: dict[int, int]  # trial id -> its teacher's place in table.scores
    codebooks: dict[int, dict[str, PyTree]]  # of each trial (by id) whose defenses train one
    devices: int  # number of devices that the sweep was first planned for; it decides widths
    effort: Effort  # of compiling, as it was first planned
    earlier: tuple[Config, ...] = ()  # the configs of the stages before ``experiment``
    stage_ends: tuple[int, ...] = ()  # the number of trials of each stage and those before it
    joins: bool = True  # whether chains share programs; sweeps older than this choice do not

    @property
    def balance(self) -> list[int]:
        """Number of rows of each class, without the copies that are canaries."""
        rows = len(self.dataset.labels) - (len(self.candidates) - 1)
        return np.bincount(self.dataset.labels[:rows], minlength=self.dataset.num_classes).tolist()

    @property
    def positive(self) -> int:
        """Of two classes, the one that a true positive rate, an ROC and a precision are of.

        It is the one that a table's option ``positive`` names, which then is the second class, else the rarer
        one; of equally rare ones, the second.
        """
        first, last = self.balance[0], self.balance[-1]
        return 1 if self.experiment.data.options.get("positive") or first >= last else 0

    def steps(self, shard: Shard) -> int:
        """Steps of training that a shard takes, over all its trials."""
        spec = self.groups[shard.group].spec
        return len(shard.trials) * spec.epochs * spec.steps_per_epoch


def make_plan(experiment: Config, earlier: Sequence[Config] = (), joins: bool = True) -> Plan:
    """Load the data and plan every trial; nothing is trained and nothing is written.

    Args:
      experiment: what is trained.
      earlier: the configs of stages before this one: those that the sweep had before it was extended, and
        parts of it that are made first. No shard has trials of two stages.
      joins: whether trials of several chains may share a program (``Plan.joins``).

    Raises:
      UserError: for data or a config that cannot be trained, and for switches of JAX.
    """
    switches.check()
    data = experiment.data
    dataset = datasets.load(data.name, data.dir, {k: tuples(v) for k, v in data.options.items()})
    dataset = permute_labels(dataset, data.permute_labels)  # from here on these are the true labels
    everything, seeds = len(dataset.labels), experiment.trained_seeds.stop
    check_free(
        experiment,
        f"config.first_seed + config.seeds={seeds:,}, a division of {everything:,} rows each,",
        # for each seed and row an int32 on the host and on every device
        *("memory", 4 * seeds * everything * (1 + jax.device_count()), free_memory()),
        "choose fewer seeds",
    )
    splits = [
        split_rows(dataset, seed, data.train, data.validation, data.test) for seed in range(seeds)
    ]
    party_columns, rows = divide(dataset, experiment.parties), len(splits[0].train)
    if experiment.training.batch_size > rows:
        raise UserError(
            f"config.training.batch_size={experiment.training.batch_size} is more than the {rows} "
            f"training rows of {dataset.name}: choose at most {rows}, or more rows."
        )
    dataset, party_columns, splits, candidates = plant(dataset, party_columns, splits, experiment)
    scaling = data.scaling, data.scaling_rows, data.resident_gb * 1e9
    table = make_table(party_columns, dataset.labels, splits, *scaling)
    shape = specs.DataShape(dataset.num_classes, rows, tuple(c.input for c in party_columns))
    attacked = variants.attack_variants(experiment, shape.num_classes, shape.inputs[0])
    stages = [(config, trials_of(config, shape)) for config in (*earlier, experiment)]
    trials = stages[-1][1]
    grouping.check_programs(experiment, shape, trials, joins)
    specs.check(experiment, shape, trials)
    parts = grid.added(stages)
    groups = grouping.joined(
        [grouping.groups(of, shape, new, joins) for (of, _), new in zip(stages, parts) if len(new)]
    )
    teachers.check(experiment.teacher, groups, table, shape)
    groups = [
        group._replace(weights=_weights_size(group.spec, table) + codebooks.numbers(group.spec))
        for group in groups
    ]
    epochs, ends = len(experiment.training.recorded_epochs), np.cumsum([len(new) for new in parts])
    plan = Plan(
        experiment=experiment,
        dataset=dataset,
        party_columns=party_columns,
        shape=shape,
        table=table,
        splits=splits,
        candidates=candidates,
        seeds=np.arange(seeds, dtype=np.uint32),
        attack_variants=tuple(attacked),
        groups=groups,
        shards=list(_shards(groups, ends, experiment.execution.shard_seconds, epochs, ())),
        teachers={},
        codebooks={},
        devices=jax.device_count(),
        effort=_effort(groups, attacked, dataset.recording is None, experiment.known_draws),
        earlier=tuple(earlier),
        stage_ends=tuple(ends.tolist()),
        joins=joins,
    )
    _check_recorded(plan)
    if experiment.model.pretrained:  # a wrong file is refused
        initial.unread_tensors(groups[0].spec, experiment, plan.seeds, table)
    return plan


def trials_of(config: Config, shape: specs.DataShape) -> pd.DataFrame:
    """Returns the table of a config's trials in the federations that it names or that its attacks are for.

    Args:
      config: what is trained.
      shape: the data's classes, rows and columns.
    """
    first = shape.num_classes, shape.inputs[0]
    attacked = variants.attack_variants(config, *first)
    federations = variants.federations(config, attacked, *first)
    grid.check_trials(config, federations)
    return grid.trials(config, federations)


def check_free(
    experiment: Config, who: str, what: str, needed: float, free: float, remedy: str
) -> None:
    """Raises UserError for work that needs more bytes than are free, unless the config lifts limits.

    Args:
      experiment: the config.
      who: the work, for the message.
      what: "memory" or "disk".
      needed: bytes that the work needs.
      free: bytes that are free.
      remedy: how to need less.
    """
    if needed > free and not experiment.beyond_limits:
        needs = f"{who} needs about {bytes_text(needed)} of {what} and {bytes_text(free)} is free"
        raise UserError(needs, remedy=(remedy, grid.LIFT))


def make_table(
    party_columns: Sequence[PartyColumns],
    labels: np.ndarray,
    splits: Sequence[Split],
    scaling: str,
    scaling_rows: str = "train",
    resident: float = np.inf,
) -> Table:
    """Returns a data set as training reads it: on the device, once for all trials, without teachers' scores.

    Args:
      party_columns: of each party that owns columns, passive ones first.
      labels: [R] int32.
      splits: one per seed.
      scaling: how columns are scaled, by the names of ``vfljax.datasets.scaling``.
      scaling_rows: the rows whose moments scale columns, "train" or "all".
      resident: bytes; if all features together take more, they stay on the host and are streamed.
    """
    everything = np.arange(len(labels))
    rows = [s.train if scaling_rows == "train" else everything for s in splits]
    moments = []
    for owned in party_columns:
        rule = "none" if owned.input.kind == "text" else scaling
        moments.append([statistics(owned.features, r, rule, owned.columns) for r in rows])
    streams = sum(owned.features.nbytes for owned in party_columns) > resident
    place: Any = Streamed if streams else jnp.asarray
    return Table(
        features=tuple(place(owned.features) for owned in party_columns),
        labels=jnp.asarray(labels),
        train=jnp.asarray(np.stack([s.train for s in splits])),
        validation=jnp.asarray(np.stack([s.validation for s in splits])),
        test=jnp.asarray(np.stack([s.test for s in splits])),
        mean=tuple(jnp.asarray(np.stack([m for m, _ in party])) for party in moments),
        scale=tuple(jnp.asarray(np.stack([s for _, s in party])) for party in moments),
        scores=None,
    )


def _check_recorded(plan: Plan) -> None:
    for seed, split in enumerate(recorded(plan).splits):
        if len(np.unique(plan.dataset.labels[split.train])) < plan.dataset.num_classes:
            raise UserError(
                f"config.training.record_rows={plan.experiment.training.record_rows}: the recorded "
                f"rows of seed {seed} have no row of some class: record more."
            )


def _weights_size(spec: Spec, table: Table) -> int:
    """Returns how many numbers the networks of one trial have, without computing them."""
    try:
        weights = initial.weight_shapes(spec, np.zeros(len(table.train), np.uint32), table)
    except (ValueError, TypeError, ArithmeticError) as error:  # such as too small an image
        raise UserError(f"config.model: {error}") from error
    return sum(math.prod(a.shape[1:]) for a in jax.tree.leaves(weights))


def _shards(
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


def _held_members(group: grouping.Group, epochs: int) -> int:
    """Returns how many trials a shard may have so that their recorded exchange fits into memory. On an
    accelerator their weights, and exchange and sums of an epoch, must also fit into the devices' memory."""
    spec, offer = group.spec, machine.offered()
    cuts, inputs = sum(module.out for module in spec.bottoms[: spec.passive]), recorded_width(spec)
    # z and g of each epoch, three sums, and inputs of last layers
    exchange = 4 * spec.recorded_rows * ((2 * epochs + 3) * cuts + epochs * inputs)
    if offer.cpu:
        return MEMORY // exchange
    most = int(min(HOST_SHARE * offer.host, offer.part(RECORD_SHARE, MEMORY)))
    held = max(MEMORY, most) // exchange
    if math.isinf(offer.memory):
        return held
    each = STATES * group.weights + 2 * 4 * spec.recorded_rows * (5 * cuts + inputs)
    return min(held, jax.device_count() * (offer.part(STATE_SHARE, 0) // each))


def trial_seconds(group: grouping.Group) -> float:
    """Estimates a trial's training time. On a CPU core a step takes 60 us and 6 operations per weight and row
    at 20 GFLOP/s. On accelerators, where trials share calls, it takes the operations alone, at 2 TFLOP/s; an
    H100 reaches 14 with 1,024 small networks."""
    spec = group.spec
    call, rate = (60e-6, 20e9) if machine.offered().cpu else (0.0, 2e12)
    step = call + 6 * group.weights * spec.batch_size / rate
    return step * spec.epochs * spec.steps_per_epoch


def _effort(
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
            bottoms = tuple(spec.bottoms[p] for p in variant.attackers)
            attack = variants.make_attack(variant, bottoms, spec.num_classes)
            attacks.append(step * attack.steps * len(variant.knobs))
    rows = sum(len(group.trials) * group.spec.recorded_rows for group in groups)
    scored = rows * known_draws * sum(len(variant.knobs) for variant in attacked)
    of_training, of_attacks = (QUICK if max(of) < PAYS else None for of in (training, attacks))
    return Effort(
        training=of_training if trained else 0,
        attacks=0 if rows <= FEW_ROWS and max(attacks) < MOMENT else of_attacks,
        evaluation=None if of_training is None else 0,
        scoring=0 if scored <= FEW_SCORED else of_attacks,
    )


def divided_as(plan: Plan, header: Mapping[str, Any]) -> Plan:
    """Returns the plan with the shards, devices and effort of a stored sweep, so that any resume keeps them.

    Trials that are in no stored shard, because the sweep is extended, are in new ones. If the sweep was planned
    for another backend, ``devices`` is the number of devices of this process.

    Args:
      plan: of the sweep, or of an extension of it.
      header: of the stored sweep.
    """
    number = {group.name: i for i, group in enumerate(plan.groups)}
    shards = [
        Shard(
            name=shard["name"],
            group=number[shard["group"]],
            trials=tuple(shard["trials"]),
            capacity=shard["capacity"],
            stage=shard.get("stage", 0),  # sweeps without it are older than stages
        )
        for shard in header["shards"]
    ]
    epochs = len(plan.experiment.training.recorded_epochs)
    seconds = plan.experiment.execution.shard_seconds
    shards += _shards(plan.groups, plan.stage_ends, seconds, epochs, shards)
    same = header.get("backend") == jax.default_backend()
    devices = header["devices"] if same else jax.device_count()
    effort = Effort(**header.get("effort", {}))
    if "scoring" not in header.get("effort", {}):  # an older sweep had one level for both
        effort = effort._replace(evaluation=effort.training, scoring=effort.attacks)
    return plan._replace(shards=shards, devices=devices, effort=effort)


def recorded(plan: Plan) -> Plan:
    """Returns the plan restricted to the training rows that attacks are scored on. If these are not all
    training rows, the test rows are cut to the same number, because an attack's models are evaluated on them
    in memory."""
    every = len(plan.splits[0].train)
    rows = plan.experiment.training.scored_rows(every)
    held = rows if rows < every else len(plan.splits[0].test)
    splits = [s._replace(train=s.train[:rows], test=s.test[:held]) for s in plan.splits]
    table = plan.table._replace(train=plan.table.train[:, :rows], test=plan.table.test[:, :held])
    return plan._replace(splits=splits, table=table)


def check_attacks(plan: Plan) -> None:
    """Checks, before anything is trained, whether attacks can be run.

    On a stored sweep an attack that cannot be run is skipped. Attacks for two classes are always skipped on
    data of more classes, so that one list of attacks serves several data sets.

    Args:
      plan: of the sweep.

    Raises:
      UserError: for an attack that is defined on none of the federations that the config names, and for one
        with a number of known labels that is not available.
    """
    classes, known_to = plan.dataset.num_classes, recorded(plan)
    names = {name for group in plan.groups for name in group.trials["federation"].unique()}
    trained = {federation_of(name).kind for name in names}
    named = plan.experiment.federations
    for variant in plan.attack_variants:
        for known in (point["known"] for point in variant.knobs if "known" in point):
            if error := known_error(variant.name, known, known_to):
                raise error
        bottoms = tuple(plan.groups[0].spec.bottoms[party] for party in variant.attackers)
        attack = variants.make_attack(variant, bottoms, classes)
        skipped = attack.binary and classes > 2
        if named and not skipped and not trained.intersection(attack.federations):
            raise UserError(
                f"config.federations={list(named)} has none of the federations that the attack {variant.label} "
                f"is defined on: add {' or '.join(map(repr, attack.federations))}, or leave {variant.name!r} "
                "out of config.attacks."
            )


def known_error(name: str, known: float, plan: Plan) -> UserError | None:
    """Returns why an attack cannot know so many labels of the training rows; None if it can.

    Known rows are balanced (``plan.split_arrays``): an attacker knows as many labels of every class, or all
    labels. No attacker knows a canary's label. Of a group of one label, such as copies of a row, one row
    counts, because attacks are not scored on rows whose group has a known one.

    Args:
      name: the attack.
      known: the number of labels that it asks for.
      plan: has the training rows. The rarest class is that of all seeds.
    """
    canary = len(plan.dataset.labels) - plan.experiment.canaries * len(plan.splits)  # the first
    dataset, free = plan.dataset, [s.train[s.train < canary] for s in plan.splits]
    classes, different = dataset.num_classes, [distinct_rows(dataset, rows) for rows in free]
    counts = [np.bincount(dataset.labels[rows], minlength=classes) for rows in different]
    rows = len(free[0])
    rarest = int(min(count.min() for count in counts))
    remedy, given = "ask for one a class or more, up to all", len(plan.splits[0].known)
    if given and known == given:
        return None
    if given:
        what = "labels are asked for"
        remedy = f"the recording gives the labels of {given} rows: ask for those"
    elif known < classes:
        what = f"labels are fewer than the {classes} classes"
    elif known > rows:
        what = f"labels are more than the {rows} training rows"
    elif classes * rarest < known < rows:
        each = -(-known // classes)
        what = f"labels ask for {each:g} of each class and the rarest has {rarest} training rows"
        what += " of different groups" * (len(different[0]) < rows)
        remedy = f"ask for at most {classes * rarest}, or for all {rows}"
    else:
        return None
    return UserError(what, field=f"attacks.{name}.known", value=known, remedy=remedy)


def most_known(plan: Plan) -> int:
    """Returns the largest number of known labels among the attacks' first knob values, which the report leads
    with; 0 if no attack knows any. So many labels name the classes of attacks that cannot name them."""
    known = [(variant.name, variant.knobs[0].get("known", 0)) for variant in plan.attack_variants]
    rows = len(plan.splits[0].train) - plan.experiment.canaries
    possible = (int(k) for name, k in known if k < rows and not known_error(name, k, plan))
    return max(possible, default=0)


def split_arrays(
    labels: np.ndarray,
    splits: Sequence[Split],
    draws: int = 1,
    candidates: HostArray = NONE,
    groups: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Returns the arrays of splits that are stored, with each seed's orders of known rows. If there are
    canaries, ``selects`` has the half of each seed's rows on which attacks on them are chosen. If there are
    groups of one label each, ``groups`` numbers those of each seed's training rows from 0.

    Args:
      labels: [R] int32.
      splits: one per seed.
      draws: number of draws of known rows. With Q seeds, draw r of seed s is row r Q + s of ``known_order``.
      candidates: of the last rows, which are canaries, as ``plant`` returns them.
      groups: [R] of ``splits.label_groups``.
    """
    orders, halves = [], []
    first = len(labels) - (len(candidates) - 1)
    pairs = candidates[[np.maximum(s.train - first, -1) for s in splits]]
    for draw, (seed, split) in itertools.product(range(draws), enumerate(splits)):
        rng = np.random.default_rng([seed, 7919, draw] if draw else [seed, 7919])
        classes = labels[split.train]
        queue = rng.permutation(len(classes))
        # the j-th row of every class precedes the (j+1)-th of any: the first n are balanced; canaries last
        turn, free = np.full(len(classes), len(classes)), split.train < first
        for c in np.unique(classes):
            of_class = queue[(classes[queue] == c) & free[queue]]
            turn[of_class] = np.arange(len(of_class))
        turn[split.known] = -1
        orders.append(queue[np.argsort(turn[queue], kind="stable")])
        if not draw:
            halves.append(rng.permutation(len(classes)) < len(classes) // 2)
    of_train = [] if groups is None else [groups[s.train] for s in splits]
    numbered = [np.unique(part, return_inverse=True)[1].astype(np.int32) for part in of_train]
    return {
        "labels": labels,
        **{part: np.stack([getattr(s, part) for s in splits]) for part in Split._fields[:3]},
        "known_order": np.stack(orders).astype(np.int32),
        **({"candidates": pairs, "selects": np.stack(halves)} if len(candidates) > 1 else {}),
        **({"groups": np.stack(numbered)} if numbered else {}),
    }


def width_of(experiment: Config, spec: Spec) -> int | None:
    """Returns how many trials are mapped at once; None: as many as the backend chooses.

    On a CPU it is 1 for large networks: vmapped convolutions are slower there than single ones (measured).

    Args:
      experiment: the config, which may name a width.
      spec: of the trials.
    """
    heavy = not spec.light and machine.offered().cpu
    return experiment.execution.width or (1 if heavy else None)
