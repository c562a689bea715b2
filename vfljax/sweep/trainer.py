"""One shard of trials, trained: compiled programs, the order of rows, the loop over epochs, and its result.

What enters: a plan, one of its shards and the folder of the sweep. What leaves: the finished shard in that
folder; which shards are trained, and in which order, ``vfljax.sweep.train`` decides.
"""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import defenses, store
from vfljax.federation import training
from vfljax.federation.evaluation import make_evaluate, pooled_auc
from vfljax.models.rows import Streamed
from vfljax.store import exchange
from vfljax.sweep import batch_layout, grid, initial, programs, saving
from vfljax.sweep.plan import Plan, Shard, width_of
from vfljax.sweep.progress import Progress
from vfljax.sweep.saving import Saved
from vfljax.types import MALICIOUS, HostArray, PyTree, Spec, State, Weights

ORDER_BYTES = 256 << 20  # orders of rows kept for the next group and shard
SAVE_SECONDS = 5.0  # progress of an unfinished shard is saved this often
FEW = 8  # times as many trials as are undefended: a shard small enough to be trained once more as a whole
SAVE_TAKES = 0.25  # seconds; a save that takes longer is made as much more rarely


class Orders:
    """The order of rows of every seed and epoch: the same for all groups and shards of a sweep, so it
    is made once, and kept on the devices as far as ``ORDER_BYTES`` go (small networks train faster than rows
    sort)."""

    def __init__(self, plan: Plan) -> None:
        self._seeds, self._rows = jnp.asarray(plan.seeds), len(plan.splits[0].train)
        each = 8 * len(plan.seeds) * self._rows * jax.device_count()  # order and place, int32
        self._most = ORDER_BYTES // each
        self._kept: dict[int, training.Epoch] = {}

    def of(self, epoch: int) -> training.Epoch:
        """The orders of one epoch, as ``batch_layout.share`` places them."""
        if epoch in self._kept:
            return self._kept[epoch]
        orders = batch_layout.share(training.epoch_of(jnp.int32(epoch), self._seeds, self._rows))
        if len(self._kept) < self._most:
            self._kept[epoch] = orders
        return orders


class Trainer:
    """The compiled programs of one group: training epochs, and evaluation of final weights."""

    def __init__(
        self,
        plan: Plan,
        group: grid.Group,
        shard: Shard,
        pool: Executor,
        orders: Orders,
        width: int | None = None,
    ) -> None:
        """``width``: trials mapped at once on each device, None: ``width_of`` them."""
        spec, experiment = group.spec, plan.experiment
        chosen = width or width_of(experiment, spec)
        self.group, self.orders = group, orders
        self.teachers, self.codebooks = plan.teachers, plan.codebooks
        self.readers = defenses.readers(spec.defenses)
        self.milestones = experiment.training.milestones
        self.layout = batch_layout.layout(shard.capacity, chosen, plan.devices)
        if width:
            self.layout = batch_layout.layout_of(shard.capacity, width)
        largest = max(shard.capacity for shard in plan.shards)
        self.evaluation_layout = batch_layout.layout(largest, chosen, plan.devices)
        self.level = plan.effort.training
        weights = initial.initial_weights(spec, experiment, plan.seeds, plan.table, self.level)
        self.table, self.initial = batch_layout.share((plan.table, weights))
        released = experiment.training.evaluation == "released"
        self._zeros: training.Snapshot | None = (
            None  # of as many members as every shard's program takes
        )
        self.observe = pooled_auc if released else training.unobserved
        arguments = self.start(shard), self.shared(0)
        into = self.spare(shard)
        self.program = programs.program(
            training.make_run, (spec, self.observe), self.layout, *arguments, into, self.level
        )
        self.program.compile_ahead(*arguments, pool, into)

    def shared(self, epoch: int) -> tuple[Any, ...]:
        """What all members share in an epoch."""
        return self.table, self.initial, self.orders.of(epoch)

    def start(self, shard: Shard) -> tuple[training.Member, training.Snapshot]:
        """A shard's members and what they start from, on the devices."""
        trials = [self.group.trials[i] for i in shard.trials]
        spec = self.group.spec
        numbers = grid.members_of(spec, trials, self.milestones, self.teachers, self.codebooks)
        member = self.layout.pad(numbers)
        if self._zeros is None:
            self._zeros = empty_snapshot(spec, member, self.table, self.initial)
        return member, self.layout.pad(self._zeros)

    def spare(self, shard: Shard) -> PyTree:
        """What the first epoch of a shard writes its results into; None where they are memory of their own,
        as where all members of a device are mapped at once."""
        count = self.layout.capacity
        if self.layout.width * jax.device_count() == count:
            return None
        return self.start(shard)[1], self.layout.pad(np.zeros(count, bool))

    def states(self, state: State, count: int) -> PyTree:
        """The states of ``count`` trials' defenses that predictions are read with."""
        states = {reader.name: state.defense[reader.name] for reader in self.readers}
        return batch_layout.unpad(states, count)

    def evaluate(
        self, seeds: Any, weights: Weights, states: PyTree, count: int
    ) -> dict[str, np.ndarray]:
        """The figures of ``count`` trials' final weights [count], as of ``make_evaluate``."""
        trained = self.evaluation_layout.pad((seeds, weights, states))
        bare = self.table._replace(scores=None)  # evaluation has no teacher
        static = (initial.models(self.group.spec, self.readers),)
        program = programs.fitting_program(
            make_evaluate, static, self.evaluation_layout, trained, bare, self.level
        )
        return batch_layout.unpad(program(trained, bare), count)


def empty_snapshot(
    spec: Spec, member: training.Member, table: training.Table, weights: Weights
) -> training.Snapshot:
    """Returns zeros that a run is given at epoch 0, whose shapes alone matter.

    Args:
      spec: of the trials.
      member: their numbers, with a leading member axis.
      table: the data.
      weights: every seed's initial weights [Q, ...].
    """
    # by shape alone: a member taken from arrays that lie on several devices would be a program of its own
    single = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), member)
    shapes = jax.eval_shape(training.make_start(spec), single, table, weights)
    count = batch_layout.leading(member)

    def zeros(a: jax.ShapeDtypeStruct) -> Any:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(jnp.zeros((count, 2), jnp.uint32))
        return np.zeros((count, *a.shape), a.dtype)

    return jax.tree.map(zeros, shapes)


def train_shard(
    trainer: Trainer, shard: Shard, plan: Plan, workdir: pathlib.Path, progress: Progress
) -> None:
    """Train one shard epoch by epoch, saving now and then, and write it when it is whole.

    Args:
      trainer: the compiled programs of its group.
      shard: which trials.
      plan: of the sweep.
      workdir: the folder of the sweep.
      progress: is told of steps and trials.
    """
    trials = [trainer.group.trials[i] for i in shard.trials]
    count, epochs = len(trials), plan.experiment.training.recorded_epochs
    member, snapshot = trainer.start(shard)
    start = saving.read(workdir, shard.name, count, snapshot) or Saved(0, snapshot, {})
    trained, finite, seconds = _train_epochs(
        trainer, shard, member, start, epochs, workdir, progress
    )
    state, record = trained.snapshot
    record = record._replace(embeddings=(), gradients=(), inputs=())  # those recorded are copied
    record = batch_layout.unpad(record, count)
    weights = batch_layout.unpad(state.weights, count)
    states = trainer.states(state, count)
    figures = trainer.evaluate(batch_layout.unpad(member.seed, count), weights, states, count)
    alone = alone_figures(trainer, shard, trials, plan)
    rows = [
        _row(trial, shard.name, i, figures, record, bool(finite[i]), seconds / count)
        | alone.get(trial.id, {})
        for i, trial in enumerate(trials)
    ]
    tree = {"bottoms": {str(p): b for p, b in enumerate(weights.bottoms)}, "active": weights.active}
    if states:  # what its predictions are read with
        tree["defenses"] = states
    scored = plan.experiment.training.scored_rows(trainer.group.spec.num_rows)
    arrays = exchange.all_arrays(trained.recorded, epochs, record.sums, scored)
    store.write_shard(workdir, shard.name, rows, tree, arrays, trainer.layout.width)
    progress.update(count, 0)


def alone_figures(
    trainer: Trainer, shard: Shard, trials: Sequence[grid.Trial], plan: Plan
) -> dict[int, dict[str, float | None]]:
    """Returns the figures of the label party alone, "alone_test_accuracy" and so on, by undefended trial.

    The networks of the federation are trained on the same rows, with nothing in the other parties' columns:
    what these send is the same for every row. There are none of trials with defenses or with a malicious
    optimizer, where the label party owns no columns, nor where columns stay on the host. A small shard is
    trained as it is, by the program that there is, and of a large one the undefended trials by another.
    """
    plain = [not t.chain.knobs and t.federation.kind != MALICIOUS for t in trials]
    places = [i for i, undefended in enumerate(plain) if undefended]
    spec, features = trainer.group.spec, plan.table.features
    if not places or not spec.label_features or any(isinstance(x, Streamed) for x in features):
        return {}
    others, own = features[: spec.passive], features[spec.passive :]
    table = plan.table._replace(features=(*map(jnp.zeros_like, others), *own))
    rows = {place: place for place in places}
    if len(trials) <= FEW * len(places):
        alone = copy.copy(trainer)
        alone.table = batch_layout.share(table)
    else:
        bare_spec, rows = dataclasses.replace(spec, defenses=()), dict(enumerate(places))
        group = grid.Group("alone", bare_spec, tuple(trials[i] for i in places))
        shard = Shard(group.name, 0, tuple(rows), len(rows))
        bare = plan._replace(table=table._replace(scores=None), shards=[shard], groups=[group])
        with ThreadPoolExecutor(1) as pool:
            # not wider than what fits the memory, by the shard that this is beside
            alone = Trainer(bare, group, shard, pool, trainer.orders, trainer.layout.width)
    member, snapshot = alone.start(shard)
    spare = alone.spare(shard)
    finite: Any = np.ones(alone.layout.capacity, bool)
    for epoch in range(spec.epochs):
        after, finite = alone.program((member, snapshot), alone.shared(epoch), spare)
        spare = None if spare is None else (snapshot, finite)
        snapshot = after
    count, state = len(shard.trials), snapshot.state
    seeds, weights = (batch_layout.unpad(x, count) for x in (member.seed, state.weights))
    figures = alone.evaluate(seeds, weights, alone.states(state, count), count)
    finite = batch_layout.unpad(finite, count)
    names = [n for n in figures if n.startswith(("validation_", "test_"))]
    names = [n for n in names if n.endswith(("accuracy", "auc"))]
    return {
        trials[place].id: {f"alone_{n}": float(figures[n][i]) if finite[i] else None for n in names}
        for i, place in rows.items()
    }


def _train_epochs(
    trainer: Trainer,
    shard: Shard,
    member: training.Member,
    start: Saved,
    recorded_epochs: Sequence[int],
    workdir: pathlib.Path,
    progress: Progress,
) -> tuple[Saved, HostArray, float]:
    """Train a shard from where it ``start``s: the end, which trials [members] are finite, and the
    seconds. An interrupt, which a scheduler's signal is too, saves what is trained; so does an exit, by which
    submitit ends a job that it has requeued."""
    spec, count, began = trainer.group.spec, len(shard.trials), time.monotonic()
    now = start._replace(snapshot=trainer.layout.pad(start.snapshot))
    spare, earlier = trainer.spare(shard), None
    progress.resume(0, now.epoch * spec.steps_per_epoch * count)
    finite: Any = np.ones(trainer.layout.capacity, bool)
    ends, saved, wait = [], began, SAVE_SECONDS
    try:
        while now.epoch < spec.epochs:
            epoch, shared = now.epoch, trainer.shared(now.epoch)
            # not over its own start, which an interrupt may still have to save
            snapshot, all_finite = trainer.program((member, now.snapshot), shared, spare)
            # an accelerator computes this epoch while the host waits for the one before
            jax.block_until_ready(all_finite if earlier is None else earlier)
            earlier = all_finite if spare is None else None
            ends.append(time.monotonic())
            progress.update(0, spec.steps_per_epoch * count, trainer.group.name)
            recorded = now.recorded
            if epoch in recorded_epochs:
                crossed = batch_layout.unpad(epoch_arrays(snapshot.record), count)
                # a copy, where the host's array is the device's memory
                recorded = recorded | {epoch: {name: np.array(a) for name, a in crossed.items()}}
            spare = None if spare is None else (now.snapshot, all_finite)
            now, finite = Saved(epoch + 1, snapshot, recorded), all_finite
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
    ends[-1:] = [time.monotonic()] * len(ends[-1:])  # the last was not waited for
    return now, finite, _training_seconds(began, ends, spec.epochs)


def _training_seconds(began: float, ends: Sequence[float], epochs: int) -> float:
    """How long all epochs take, from when those of this process ended: the first waits for the compiler, and
    counts as much as another where there is one."""
    if len(ends) > 1:
        return (ends[-1] - ends[0]) / (len(ends) - 1) * epochs
    return ends[-1] - began if ends else 0.0


def epoch_arrays(record: training.Record) -> dict[str, Any]:
    """What is stored of a recorded epoch."""
    crossed = record.embeddings, record.gradients, record.inputs
    return exchange.epoch_arrays(record.order, record.sent, *crossed)


def _row(
    trial: grid.Trial,
    shard: str,
    member: int,
    figures: Mapping[str, np.ndarray],
    record: training.Record,
    finite: bool,
    seconds: float,
) -> dict[str, Any]:
    """One row of results: every knob, every metric, status. Metrics of a diverged run are null."""
    pooled_figures, pooled = {}, float(record.observed[member, -1])
    if np.isfinite(pooled):
        oriented = 1 - pooled if figures["inverted"][member] else pooled
        pooled_figures = {"test_pooled_auc": pooled, "test_pooled_oriented_auc": oriented}
    loss = record.loss[member]
    broken = np.flatnonzero(~np.isfinite(loss))
    return {
        **trial.row(),
        **{name: float(values[member]) if finite else None for name, values in figures.items()},
        **(pooled_figures if finite else {}),
        "status": "ok" if finite else "diverged",
        "diverged_epoch": None if finite else int(broken[0]) if len(broken) else len(loss) - 1,
        "loss": [float(x) for x in loss],
        "train_accuracy": [float(x) for x in record.accuracy[member]],
        "shard": shard,
        "member": member,
        "seconds": seconds,
    }
