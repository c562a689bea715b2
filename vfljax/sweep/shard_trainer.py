"""Trains one shard of trials: compiled programs, the order of rows, the loop over epochs, and the result.

``vfljax.scheduling.work`` decides which shard is trained next.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportAssignmentType=false

from __future__ import annotations

import collections
import copy
import dataclasses
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from vfljax import defenses, store, tasks
from vfljax.federation import training
from vfljax.federation.evaluation import make_evaluate, make_margins
from vfljax.models.reading import Streamed
from vfljax.store import exchange
from vfljax.sweep import batch_layout, grid, grouping, initial, programs, saving, specs
from vfljax.sweep.alone import Alone
from vfljax.sweep.plan import Plan
from vfljax.sweep.progress import Progress
from vfljax.sweep.saving import Saved
from vfljax.sweep.sharding import Shard, mapped_at_once
from vfljax.types import HostArray, PyTree, Spec, State, Weights

ORDER_BYTES = 256 << 20  # orders of rows kept for the next group and shard
SAVE_SECONDS = 5.0  # progress of an unfinished shard is saved this often
FEW = 8  # a call that cannot skip members may train all again if at least one in FEW is undefended
SAVE_TAKES = 0.25  # seconds; if a save takes longer, saves are made more rarely in proportion


class Orders:
    """The order of rows of every seed and epoch. It is the same for all groups and shards of a sweep, so it
    is computed once and kept on the devices, up to ``ORDER_BYTES``: an epoch of a small network takes less
    time than sorting the rows."""

    def __init__(self, plan: Plan) -> None:
        self._seeds, self._rows = plan.seeds, len(plan.splits[0].train)
        each = 8 * len(plan.seeds) * self._rows * jax.device_count()  # order and place, int32
        self._most = ORDER_BYTES // each
        self._kept: dict[int, training.Epoch] = {}

    def of(self, epoch: int) -> training.Epoch:
        """The orders of one epoch, as ``batch_layout.share`` places them."""
        if epoch in self._kept:
            return self._kept[epoch]
        orders = batch_layout.share(training.epoch_of(epoch, self._seeds, self._rows))
        if len(self._kept) < self._most:
            self._kept[epoch] = orders
        return orders


class Trainer:
    """The compiled programs of one group: training epochs, and evaluation of final weights."""

    def __init__(
        self, plan: Plan, shard: Shard, pool: Executor, orders: Orders, width: int | None = None
    ) -> None:
        """``width`` trials are mapped at once on each device; None: ``mapped_at_once`` decides."""
        self.plan, self.group, self.orders = plan, plan.groups[shard.group], orders
        spec = self.group.spec
        chosen = width or mapped_at_once(plan.experiment, few=not spec.light)
        self.readers = defenses.readers(spec.defenses)
        self.layout = batch_layout.layout(shard.capacity, chosen, plan.devices)
        if width:
            self.layout = batch_layout.layout_of(shard.capacity, width)
        # whether a call needs no loop over members; its results then take fresh memory
        self.all_at_once = self.layout.width * jax.device_count() == self.layout.capacity
        largest = max(shard.capacity for shard in plan.shards)
        self.evaluation_layout = batch_layout.layout(largest, chosen, plan.devices)
        self.level = plan.effort.training
        drawn = initial.initial_weights(spec, plan.experiment, plan.seeds, plan.table, self.level)
        self.table, self.initial = batch_layout.share((plan.table, drawn))
        released = plan.experiment.training.evaluation == "released"
        margins = make_margins if released else None
        self._zeros: training.Snapshot | None = None  # an empty snapshot of all members of a call
        static, arguments = ((spec, margins), (self.start(shard), self.shared(0), self._spare()))
        self.program = programs.program(
            training.make_run, static, self.layout, arguments, self.level
        )
        self.program.compile(*arguments, pool)

    def shared(self, epoch: int) -> tuple[Any, ...]:
        """Returns the arguments that all members share in an epoch."""
        return self.table, self.initial, self.orders.of(epoch)

    def trials(self, shard: Shard) -> pd.DataFrame:
        """Returns a shard's rows of the table of trials."""
        return self.group.trials.iloc[list(shard.trials)]

    def start(self, shard: Shard) -> tuple[training.Member, training.Snapshot]:
        """Returns a shard's members and the empty snapshot that they start from, on the devices."""
        plan, milestones = self.plan, self.plan.experiment.training.milestones
        members = specs.member_of_trials(
            self.group.spec, self.trials(shard), milestones, plan.teachers, plan.codebooks
        )
        member = self.layout.pad(members)
        if self._zeros is None:
            self._zeros = empty_snapshot(self.group.spec, member, self.table, self.initial)
        return member, self.layout.pad(self._zeros)

    def _spare(self) -> PyTree:
        """Returns arrays that the first epoch's results are written over; None if they take fresh memory."""
        if self.all_at_once:
            return None
        return self.layout.pad((self._zeros, np.zeros(self.layout.capacity, bool)))

    def epochs(
        self,
        member: training.Member,
        snapshot: training.Snapshot,
        first: int = 0,
        count: int | None = None,
    ) -> Iterator[tuple[training.Snapshot, Any]]:
        """Yields the snapshot after each epoch that is left, and which members are finite.

        A snapshot is overwritten by the epoch after the next one. The next epoch does not overwrite it,
        because an interrupt in that epoch may still have to save it.

        Args:
          member: of a shard, on the devices.
          snapshot: what it starts from.
          first: the epoch to begin with.
          count: how many members are sure to be trained, the first ones; None: all (``programs.Program``).
        """
        spare = self._spare()
        for epoch in range(first, self.group.spec.epochs):
            after, finite = self.program((member, snapshot), self.shared(epoch), spare, count)
            yield after, finite
            spare = None if spare is None else (snapshot, finite)
            snapshot = after

    def evaluate(
        self, trials: pd.DataFrame, state: State
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Returns the figures of trials after their last epoch, and what is stored of their networks.

        Args:
          trials: those of the first members of a call.
          state: of all members of the call.

        Returns:
          The figures of ``make_evaluate``, each [trials]; and, on the host, the final weights and the states
          of the defenses through which predictions are read.
        """
        states = {reader.name: state.defense[reader.name] for reader in self.readers}
        weights, states = batch_layout.unpad((state.weights, states), len(trials))
        seeds: HostArray = trials["seed"].to_numpy(np.int32)
        trained = self.evaluation_layout.pad((seeds, weights, states))
        bare = self.table._replace(scores=None)  # evaluation has no teacher
        static = (initial.models(self.group.spec, self.readers),)
        layout, level = self.evaluation_layout, self.plan.effort.evaluation
        program = programs.program(
            make_evaluate, static, layout, (trained, bare), level, fitting=True
        )
        bottoms = {str(p): bottom for p, bottom in enumerate(weights.bottoms)}
        tree = {"bottoms": bottoms, "active": weights.active}
        figures = batch_layout.unpad(program(trained, bare), len(trials))
        return figures, tree | ({"defenses": states} if states else {})


def empty_snapshot(
    spec: Spec, member: training.Member, table: training.Table, weights: Weights
) -> training.Snapshot:
    """Returns the snapshot of zeros that a run takes at epoch 0, where only its shapes matter.

    Args:
      member: their numbers, with a leading member axis.
      weights: every seed's initial weights [Q, ...].
    """
    # shapes suffice: indexing a member of arrays that lie on several devices would compile a program
    single = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), member)
    shapes = jax.eval_shape(training.make_start(spec), single, table, weights)
    count = batch_layout.leading(member)

    def zeros(a: jax.ShapeDtypeStruct) -> Any:
        if batch_layout.is_key(a):
            return jax.random.wrap_key_data(np.zeros((count, 2), np.uint32))
        return np.zeros((count, *a.shape), a.dtype)

    return jax.tree.map(zeros, shapes)


def train_shard(
    trainer: Trainer,
    shard: Shard,
    workdir: pathlib.Path,
    progress: Progress,
    learned: Alone | None = None,
) -> None:
    """Trains one shard epoch by epoch, saves its progress now and then, and writes it when it is finished.

    Args:
      trainer: the compiled programs of its group.
      shard: has the trials.
      progress: counts steps and trials.
      learned: other learners of the label party; without it undefended trials have no figures of these.
    """
    trials = trainer.trials(shard)
    count, training_config = len(trials), trainer.plan.experiment.training
    trained, finite, seconds = _train_epochs(trainer, shard, workdir, progress)
    state, record = trained.snapshot
    record = record._replace(embeddings=(), gradients=(), inputs=())  # copies are in ``recorded``
    record = batch_layout.unpad(record, count)
    figures, tree = trainer.evaluate(trials, state)
    alone = _alone_figures(trainer, shard, trials)
    seeds = dict(zip(trials["trial"], trials["seed"], strict=True))
    credited = tasks.of(trainer.group.spec.num_classes).credited
    others = {trial: learned.figures(seeds[trial]) for trial in alone} if learned else {}
    rows = [
        _row(row, shard.name, i, figures, record, bool(finite[i]), seconds / count, credited)
        | alone.get(row["trial"], {})
        | others.get(row["trial"], {})
        for i, row in enumerate(grid.trial_rows(trials))
    ]
    scored = training_config.scored_rows(trainer.group.spec.num_rows)
    epochs = training_config.recorded_epochs
    arrays = exchange.all_arrays(trained.recorded, epochs, record.sums, scored)
    store.write_shard(workdir, shard.name, rows, tree, arrays, trainer.layout.width)
    progress.update(count, 0)


def _train_epochs(
    trainer: Trainer, shard: Shard, workdir: pathlib.Path, progress: Progress
) -> tuple[Saved, HostArray, float]:
    """Trains a shard from its last save or the start. Returns its end, which trials are finite [trials], and
    the seconds. An interrupt, such as a scheduler's signal, saves the progress; so does an exit, by which
    submitit ends a job that it has requeued."""
    spec, count, began = trainer.group.spec, len(shard.trials), time.monotonic()
    recorded_epochs = trainer.plan.experiment.training.recorded_epochs
    member, snapshot = trainer.start(shard)
    now = saving.read(workdir, shard.name, count, snapshot) or Saved(0, snapshot, {})
    now = now._replace(snapshot=trainer.layout.pad(now.snapshot))
    progress.resume(0, now.epoch * spec.steps_per_epoch * count)
    finite: Any = np.ones(trainer.layout.capacity, bool)
    earlier = None
    ends, saved, wait = [], began, SAVE_SECONDS
    try:
        for snapshot, finite in trainer.epochs(member, now.snapshot, now.epoch):
            # an accelerator computes this epoch while the host waits for the one before
            jax.block_until_ready(finite if earlier is None else earlier)
            earlier = finite if trainer.all_at_once else None
            ends.append(time.monotonic())
            progress.update(0, spec.steps_per_epoch * count, trainer.group.name)
            recorded = now.recorded
            if now.epoch in recorded_epochs:
                crossed = batch_layout.unpad(exchange.epoch_arrays(snapshot.record), count)
                # copied, because the host's array may be a view of the device's memory
                recorded = recorded | {now.epoch: {k: np.array(a) for k, a in crossed.items()}}
            now = Saved(now.epoch + 1, snapshot, recorded)
            if now.epoch < spec.epochs and time.monotonic() - saved > wait:
                before = time.monotonic()
                saving.save(workdir, shard.name, count, trainer.layout.width, now)
                saved = time.monotonic()
                wait = SAVE_SECONDS * max(1.0, (saved - before) / SAVE_TAKES)
    except (KeyboardInterrupt, SystemExit):
        if 0 < now.epoch < spec.epochs:
            saving.save(workdir, shard.name, count, trainer.layout.width, now)
        raise
    finite = batch_layout.unpad(finite, count)
    ends[-1:] = [time.monotonic()] * len(ends[-1:])  # the last epoch has ended only now
    return now, finite, _training_seconds(began, ends, spec.epochs)


def _alone_figures(
    trainer: Trainer, shard: Shard, trials: pd.DataFrame
) -> dict[int, dict[str, float | None]]:
    """Returns undefended trials' figures without the passive parties, "alone_test_accuracy" and so on.

    The federation's networks are trained on the same rows, with zeros in the passive parties' columns. These
    parties send one constant for all rows, which never changes because they do not learn. (A top model with
    batch statistics would mistake a moving constant for a signal.) There are no figures for trials with
    defenses or malicious parties, if the label party owns no columns, or if columns stay on the host. The
    shard's own program trains them, unless it cannot skip the others and these are many.
    """
    undefended = trials[(trials["defenses"] == "") & ~grid.is_malicious(trials)]
    plan, spec = trainer.plan, trainer.group.spec
    features = plan.table.features
    if (
        undefended.empty
        or not spec.label_features
        or any(isinstance(x, Streamed) for x in features)
    ):
        return {}
    others, label_party = features[: spec.passive], features[spec.passive :]
    table = plan.table._replace(features=(*map(jnp.zeros_like, others), *label_party))
    places = np.flatnonzero(trials.index.isin(undefended.index))
    shard = shard._replace(trials=tuple(shard.trials[i] for i in places))
    whole = trainer.all_at_once and len(trials) > FEW * len(undefended)
    if not whole:
        alone = copy.copy(trainer)
        alone.table = batch_layout.share(table)
    else:
        bare_spec = dataclasses.replace(spec, defenses=())
        shard = Shard("alone", 0, tuple(range(len(undefended))), len(undefended))
        group = grouping.Group(shard.name, bare_spec, undefended)
        bare = plan._replace(table=table._replace(scores=None), shards=[shard], groups=[group])
        with ThreadPoolExecutor(1) as pool:
            # not wider than the trainer of the shard, whose width fits into memory
            alone = Trainer(bare, shard, pool, trainer.orders, trainer.layout.width)
    member, snapshot = alone.start(shard)
    # on the host, so that no program is compiled for each shape
    absent = np.array(member.hparams.absent)
    absent[:, : spec.passive] = 1.0
    absent = jax.device_put(absent, member.hparams.absent.sharding)
    member = member._replace(hparams=member.hparams._replace(absent=absent))
    run = alone.epochs(member, snapshot, count=len(undefended))
    ((snapshot, finite),) = collections.deque(run, maxlen=1)
    figures, _ = alone.evaluate(undefended, snapshot.state)
    finite = batch_layout.unpad(finite, len(undefended))
    names = [n for n in figures if n.startswith(("validation_", "test_"))]
    names = [n for n in names if n.endswith(("accuracy", "auc", "r2"))]
    return {
        trial: {f"alone_{n}": float(figures[n][i]) if finite[i] else None for n in names}
        for i, trial in enumerate(undefended["trial"])
    }


def _training_seconds(began: float, ends: Sequence[float], epochs: int) -> float:
    """Returns the seconds of all epochs, given when those of this process ended. The first epoch waits for
    the compiler, so it is counted as long as the mean of the others, if there are any."""
    if len(ends) > 1:
        return (ends[-1] - ends[0]) / (len(ends) - 1) * epochs
    return ends[-1] - began if ends else 0.0


def _row(
    row: Mapping[str, Any],
    shard: str,
    member: int,
    figures: Mapping[str, np.ndarray],
    record: training.Record,
    finite: bool,
    seconds: float,
    credited: str,
) -> dict[str, Any]:
    """Returns a row of results: every knob, metric and the status. Metrics of a diverged run are null."""
    pooled_figures, pooled = {}, float(record.observed[member, -1])
    if np.isfinite(pooled):
        oriented = 1 - pooled if figures["inverted"][member] else pooled
        pooled_figures = {"test_pooled_auc": pooled, "test_pooled_oriented_auc": oriented}
    loss = record.loss[member]
    broken = np.flatnonzero(~np.isfinite(loss))
    return {
        **row,
        **{name: float(values[member]) if finite else None for name, values in figures.items()},
        **(pooled_figures if finite else {}),
        "status": "ok" if finite else "diverged",
        "diverged_epoch": None if finite else int(broken[0]) if len(broken) else len(loss) - 1,
        "loss": [float(x) for x in loss],
        f"train_{credited}": [float(x) for x in record.accuracy[member]],
        "shard": shard,
        "member": member,
        "seconds": seconds,
    }
