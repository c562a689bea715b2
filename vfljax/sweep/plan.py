"""A config with its data: on the device, divided into trials, groups of one program, and shards.

Everything that can be refused is refused by the end of ``make_plan``, before anything is trained or written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from vfljax import datasets, switches, tasks
from vfljax.config import Config
from vfljax.datasets.core import Dataset, PartyColumns, clipped
from vfljax.datasets.label_permutation import equal_scores, permute_labels
from vfljax.datasets.partition import divide
from vfljax.datasets.scaling import statistics
from vfljax.datasets.splits import Split, split_rows
from vfljax.datasets.strata import class_counts, tied
from vfljax.errors import UserError
from vfljax.federation.training import Table
from vfljax.machine import bytes_text, free_memory, on_device
from vfljax.models.making import tuples
from vfljax.models.reading import Streamed
from vfljax.sweep import codebooks, grid, grouping, initial, specs, teachers, variants
from vfljax.sweep.canaries import Told, plant
from vfljax.sweep.programs import Effort
from vfljax.sweep.sharding import Shard, effort_of, shards_of
from vfljax.sweep.variants import AttackVariant
from vfljax.types import HostArray, PyTree, Spec


class Plan(NamedTuple):
    """A config with its data on the device, attacks, trials in groups, and shards."""

    experiment: Config
    dataset: Dataset
    party_columns: tuple[PartyColumns, ...]  # of each party that owns columns
    shape: specs.DataShape
    table: Table
    splits: list[Split]
    candidates: HostArray  # [copies + 1, 2] of canaries, the last rows of the data set
    told: Told  # what columns alone tell of the canaries
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

    @property
    def balance(self) -> list[int]:
        """Number of rows of each class, or of all if labels are numbers, without copies that are canaries."""
        return class_counts(self.dataset, self._rows)

    @property
    def tied(self) -> int:
        """Number of these rows that have the most frequent label that is a number; 0 of classes."""
        return tied(self.dataset, self._rows)

    @property
    def _rows(self) -> int:
        return len(self.dataset.labels) - (len(self.candidates) - 1)

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


def make_plan(experiment: Config, earlier: Sequence[Config] = ()) -> Plan:
    """Load the data and plan every trial; nothing is trained and nothing is written.

    Args:
      experiment: what is trained.
      earlier: the configs of stages before this one: those that the sweep had before it was extended, and
        parts of it that are made first. No shard has trials of two stages.

    Raises:
      UserError: for data or a config that cannot be trained, and for switches of JAX.
    """
    switches.check()
    data = experiment.data
    dataset = _loaded(experiment)
    party_columns = divide(dataset, experiment.parties)
    scored, count = party_columns[: experiment.parties.passive], data.permute_groups
    alike = equal_scores(dataset, scored, count) if data.permute_labels and count else None
    # from here on these are the true labels
    dataset = permute_labels(dataset, data.permute_labels, alike)
    everything, seeds = len(dataset.labels), experiment.trained_seeds.stop
    check_free(
        experiment,
        f"config.first_seed + config.seeds={seeds:,}, a division of {everything:,} rows each,",
        # for each seed and row an int32 on the host and on every device
        "memory",
        4 * seeds * everything * (1 + jax.device_count()),
        free_memory(),
        "choose fewer seeds",
    )
    splits = [
        split_rows(dataset, seed, data.train, data.validation, data.test) for seed in range(seeds)
    ]
    rows = len(splits[0].train)
    if experiment.training.batch_size > rows:
        raise UserError(
            f"config.training.batch_size={experiment.training.batch_size} is more than the {rows} "
            f"training rows of {dataset.name}: choose at most {rows}, or more rows."
        )
    planted = plant(dataset, party_columns, splits, experiment)
    dataset, party_columns, splits, candidates, told = planted
    scaling = data.scaling, data.scaling_rows, data.resident_gb * 1e9
    table = make_table(party_columns, dataset.labels, splits, *scaling)
    if data.label_range:
        table = table._replace(label_range=on_device(data.label_range, np.float32))
    shape = specs.DataShape(dataset.num_classes, rows, tuple(c.input for c in party_columns))
    attacked = variants.attack_variants(experiment, shape.num_classes, shape.inputs[0])
    stages = [(config, trials_of(config, shape)) for config in (*earlier, experiment)]
    trials = stages[-1][1]
    grouping.check_programs(experiment, shape, trials)
    specs.check(experiment, shape, trials)
    parts = grid.added(stages)
    groups = grouping.joined(
        [grouping.groups(of, shape, new) for (of, _), new in zip(stages, parts) if len(new)]
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
        told=told,
        seeds=np.arange(seeds, dtype=np.uint32),
        attack_variants=tuple(attacked),
        groups=groups,
        shards=list(shards_of(groups, ends, experiment.execution.shard_seconds, epochs, ())),
        teachers={},
        codebooks={},
        devices=jax.device_count(),
        effort=effort_of(groups, attacked, dataset.recording is None, experiment.known_draws),
        earlier=tuple(earlier),
        stage_ends=tuple(ends.tolist()),
    )
    _check_recorded(plan)
    if experiment.model.pretrained:  # a wrong file is refused
        initial.unread_tensors(groups[0].spec, experiment, plan.seeds, table)
    return plan


def _loaded(experiment: Config) -> Dataset:
    """Returns the data set of a config, whose labels are what the config's task says."""
    data, task = experiment.data, experiment.model.task
    options = {k: tuples(v) for k, v in data.options.items()}
    if task and "task" in datasets.options_of(data.name):
        options = {"task": task, **options}
    dataset = datasets.load(data.name, data.dir, options)
    found = tasks.of(dataset.num_classes).name
    if task and task != found:
        what = f"is not the task of {dataset.name}, whose labels are for {found}"
        raise UserError(what, field="model.task", value=task, remedy="leave it out")
    return clipped(dataset, data.label_range)


def trials_of(config: Config, shape: specs.DataShape) -> pd.DataFrame:
    """Returns the table of a config's trials in the federations that it names or that its attacks are for.

    Args:
      shape: the data's classes, rows and columns.
    """
    attacked = variants.attack_variants(config, shape.num_classes, shape.inputs[0])
    federations = variants.federations(config, attacked, shape.num_classes)
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
      labels: [R] int32 classes, or float32 numbers.
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
    of_labels = {}
    if labels.dtype.kind == "f":  # numbers, which are never scaled by rows that are not trained on
        of_seeds = [labels[s.train].astype(np.float64) for s in splits]
        of_labels["label_mean"] = on_device([of.mean() for of in of_seeds], np.float32)
        of_labels["label_scale"] = on_device([of.std() or 1.0 for of in of_seeds], np.float32)
    streams = sum(owned.features.nbytes for owned in party_columns) > resident
    place: Any = Streamed if streams else on_device
    return Table(
        features=tuple(place(owned.features) for owned in party_columns),
        labels=on_device(labels),
        train=on_device([s.train for s in splits]),
        validation=on_device([s.validation for s in splits]),
        test=on_device([s.test for s in splits]),
        mean=tuple(on_device([m for m, _ in party]) for party in moments),
        scale=tuple(on_device([s for _, s in party]) for party in moments),
        scores=None,
        **of_labels,
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
            stage=shard["stage"],
        )
        for shard in header["shards"]
    ]
    epochs = len(plan.experiment.training.recorded_epochs)
    seconds = plan.experiment.execution.shard_seconds
    shards += shards_of(plan.groups, plan.stage_ends, seconds, epochs, shards)
    same = header["backend"] == jax.default_backend()
    devices = header["devices"] if same else jax.device_count()
    return plan._replace(shards=shards, devices=devices, effort=Effort(**header["effort"]))


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
