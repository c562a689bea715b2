"""Train a sweep: plan, train by shards, store; resume wherever it was killed.

What enters: an experiment and a workdir. What leaves: a sweep directory (``vfljax.store``). Attacks
(``vfljax.attacking``) and the report read what was trained from that directory, never from this
module's memory.
"""

from __future__ import annotations

import contextlib
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import datasets, defenses, plugins, store
from vfljax.datasets import prepared
from vfljax.datasets.core import checksum, identity
from vfljax.defenses.rows import prior_of
from vfljax.federation import training
from vfljax.machine import cores, free_disk
from vfljax.models import weights as pretrained
from vfljax.store import exchange
from vfljax.sweep import (
    batch_layout,
    codebooks,
    grid,
    initial,
    programs,
    saving,
    serving,
    size,
    teachers,
)
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.orders import Orders
from vfljax.sweep.plan import (
    Plan,
    Shard,
    make_plan,
    planned_devices,
    recorded,
    split_arrays,
    width_of,
)
from vfljax.sweep.pooled_auc import pooled_auc
from vfljax.sweep.produced import revision, versions
from vfljax.sweep.progress import Progress
from vfljax.sweep.saving import Saved
from vfljax.types import HostArray, PyTree, Spec, Weights

# (plan, workdir, shards that are left, shards that are done): trains the former
TrainShards = Callable[[Plan, pathlib.Path, Sequence[Shard], Sequence[Shard]], None]

AHEAD = 1  # structures compiled while one trains
SAVE_SECONDS = 5.0  # progress of an unfinished shard is saved this often
SAVE_TAKES = 0.25  # seconds; a save that takes longer is made as much more rarely


def header(plan: Plan, command: str) -> dict[str, Any]:
    """What ``sweep.json`` says."""
    experiment, dataset = plan.experiment, plan.dataset
    values = checksum(dataset)
    defense_values, requests = (
        experiment.defense_values,
        [request.name for request in experiment.attacks],
    )
    balance = np.bincount(dataset.labels).tolist()
    files = {"model": experiment.model.pretrained, "teacher": experiment.teacher.pretrained}
    return {
        "schema": store.SCHEMA,
        "config": experiment.stored,
        "command": command,
        "versions": versions(),
        "revision": revision(),
        "backend": jax.default_backend(),
        "devices": jax.device_count(),
        "data": {
            "name": dataset.name,
            "rows": len(dataset.labels),
            "classes": dataset.num_classes,
            "balance": balance,
            "party_shapes": [list(x.shape[1:]) for x in plan.table.features],
            "train": len(plan.splits[0].train),
            "recorded": len(recorded(plan).splits[0].train),
            "validation": len(plan.splits[0].validation),
            "test": len(plan.splits[0].test),
        },
        "checksum": values,
        "reader": dataset.reader,
        "identity": identity(dataset, values),
        "plugins": plugins.described(
            [*defense_values, *requests], defense_values, prior_of(balance)
        ),
        "pretrained": {part: pretrained.digest(path) for part, path in files.items() if path},
        "settings": sum(len(g.trials) for g in plan.groups),
        "shards": [
            {
                "name": shard.name,
                "group": plan.groups[shard.group].name,
                "settings": shard.trials,
                "block": shard.capacity,
            }
            for shard in plan.shards
        ],
    }


def plan_of(experiment: Experiment, stored: Mapping[str, Any] | None) -> Plan:
    """The plan of a sweep; what is refused of its data names what changed since the ``stored`` header."""
    data = experiment.data
    with store.explained(stored, datasets.reader_of(data.name, data.dir)):
        return make_plan(experiment)


def planned(experiment: Experiment, workdir: pathlib.Path) -> tuple[Plan, str]:
    """The plan of a sweep, and what it needs, in words; refuses, before anything is written, what cannot be
    served and what does not fit."""
    stored = store.header_of(workdir)
    plugins.required(experiment.defense_values, (stored or {}).get("plugins", {}), workdir)
    plan = plan_of(experiment, stored)
    if stored is None:  # what a stored sweep cannot serve is skipped, not refused
        serving.check(plan)
    return plan, size.needs(plan, workdir)


def train_sweep(
    experiment: Experiment,
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
    trained: TrainShards | None = None,
) -> Plan:
    """Train every trial that is not stored yet. Returns the plan; results are in ``workdir``. ``trained``
    trains the shards that are left, None: ``train_shards``, one after the other in this process."""
    plan, needs = planned(experiment, workdir)
    with store.writing(workdir):
        return _train_sweep(plan, workdir, command, needs, say, trained or train_shards)


def _train_sweep(
    plan: Plan,
    workdir: pathlib.Path,
    command: str,
    needs: str,
    say: Callable[[str], None],
    trained: TrainShards,
) -> Plan:
    experiment = plan.experiment
    if prepared.is_prepared(experiment.data.dir):
        prepared.verify(experiment.data.dir)  # a changed byte must not be trained on
    stored = store.begin(workdir, header(plan, command))
    plan = divided_as(plan, stored)
    say(
        f"{sum(len(g.trials) for g in plan.groups)} trials in {len(plan.groups)} programs on "
        f"{jax.device_count()} {jax.default_backend()} devices, {len(plan.shards)} shards, in {workdir}: "
        f"{needs}"
    )
    if experiment.model.pretrained:
        unread = initial.unread_tensors(plan.groups[0].spec, experiment, plan.seeds, plan.table)
        rest = f"; of it left out: {', '.join(unread)}" if unread else ""
        say(f"bottoms start from {experiment.model.pretrained}{rest}")
    arrays = split_arrays(plan.dataset.labels, recorded(plan).splits)
    arrays["test"] = np.stack([split.test for split in plan.splits])  # those of the results: all
    store.write_root_arrays(workdir, "splits.npz", arrays)
    done = [shard for shard in plan.shards if store.finished(workdir, shard.name)]
    todo = [shard for shard in plan.shards if shard not in done]
    if todo:
        plan = ready(plan, workdir)
        trained(plan, workdir, todo, done)
    return plan


def divided_as(plan: Plan, header: Mapping[str, Any]) -> Plan:
    """The plan with the shards of the stored one, and trials mapped at once as there: a resume on another
    machine keeps the division."""
    number = {group.name: i for i, group in enumerate(plan.groups)}
    shards = [
        Shard(s["name"], number[s["group"]], tuple(s["settings"]), s["block"])
        for s in header["shards"]
    ]
    return plan._replace(shards=shards, devices=planned_devices(header))


def ready(plan: Plan, workdir: pathlib.Path) -> Plan:
    """The plan with all that its defenses read and is trained before them: teachers and codebooks, which are
    stored."""
    plan = with_teachers(plan, workdir)
    return plan._replace(codebooks=codebooks.codebooks(plan.groups, workdir))


def with_teachers(plan: Plan, workdir: pathlib.Path) -> Plan:
    """The plan with the scores of every teacher its defenses read; trained once, then stored."""
    taught, teacher_of = teachers.lessons(plan.groups, plan.table)
    if taught is None:
        return plan
    arrays = store.read_root_arrays(workdir, "teacher.npz")
    if arrays is not None:
        scores = arrays["scores"]
    else:
        scores = teachers.train_teachers(
            plan.experiment.teacher,
            taught,
            plan.table,
            plan.party_columns[-1].input,
            plan.dataset.num_classes,
            plan.seeds,
        )
        store.write_root_arrays(workdir, "teacher.npz", {"scores": scores})
    return plan._replace(table=plan.table._replace(scores=jnp.asarray(scores)), teachers=teacher_of)


def steps_of(plan: Plan, shard: Shard) -> int:
    """Steps of training that a shard takes, over all its trials."""
    spec = plan.groups[shard.group].spec
    return len(shard.trials) * spec.epochs * spec.steps_per_epoch


def progress_of(plan: Plan, todo: Sequence[Shard], done: Sequence[Shard]) -> Progress:
    """The progress line of training what is left ``todo``."""
    every = [*todo, *done]
    steps = [steps_of(plan, shard) for shard in every]
    progress = Progress("train", sum(len(s.trials) for s in every), sum(steps))
    for shard in done:
        progress.resume(len(shard.trials), steps_of(plan, shard))
    return progress


def _as_it_is(shard: Shard) -> contextlib.AbstractContextManager[object]:
    """A shard that fails ends the sweep."""
    return contextlib.nullcontext(shard)


def train_shards(
    plan: Plan,
    workdir: pathlib.Path,
    todo: Sequence[Shard],
    done: Sequence[Shard] = (),
    attempt: Callable[[Shard], contextlib.AbstractContextManager[object]] = _as_it_is,
) -> None:
    """Train the shards ``todo`` one after the other in this process, each within ``attempt``; what others are
    ``done`` enters the progress line alone."""
    progress = progress_of(plan, todo, done)
    numbers = list(dict.fromkeys(shard.group for shard in todo))
    trainers: dict[int, Trainer] = {}
    orders = Orders(plan)
    with ThreadPoolExecutor(max_workers=cores()) as pool:

        def trainer_of(number: int, width: int | None = None) -> Trainer:
            first = next(s for s in todo if s.group == number)
            return Trainer(plan, plan.groups[number], first, pool, orders, width)

        for shard in todo:
            place = numbers.index(shard.group)
            for number in numbers[:place]:
                trainers.pop(number, None)  # its tables are done with
            with attempt(shard):
                for number in numbers[place : place + 1 + AHEAD]:
                    if number not in trainers:
                        width = _stored_width(plan, number, workdir)
                        trainers[number] = trainer_of(number, width)
                need = size.bytes_of(plan, shard)
                if need > free_disk(workdir):
                    raise store.full(workdir / "shards" / shard.name, need)
                width = _try_shard(trainers[shard.group], shard, plan, workdir, progress)
                while width:
                    trainers.pop(shard.group)
                    trainers[shard.group] = trainer_of(shard.group, width)
                    width = _try_shard(trainers[shard.group], shard, plan, workdir, progress)
    progress.close()


def _try_shard(
    trainer: Trainer, shard: Shard, plan: Plan, workdir: pathlib.Path, progress: Progress
) -> int:
    """Train a shard: 0, or the width to go on with where the device's memory is exhausted."""
    try:
        train_shard(trainer, shard, plan, workdir, progress)
        return 0
    except jax.errors.JaxRuntimeError as error:
        return batch_layout.fewer(trainer.layout, trainer.group.name, error, progress.say)


def _stored_width(plan: Plan, number: int, workdir: pathlib.Path) -> int | None:
    """How many trials of a group were trained at once on each device so far, by a backend like this, unless
    the config says how many; None where none were. The last counts: memory that is exhausted halves it."""
    backend = store.read_header(workdir)["backend"]
    if plan.experiment.execution.width or backend != jax.default_backend():
        return None
    names = [shard.name for shard in reversed(plan.shards) if shard.group == number]
    return next(filter(None, (store.width_of_shard(workdir, name) for name in names)), None)


class Trainer:
    """The compiled programs of one group: training epochs, and evaluation of final weights."""

    def __init__(
        self,
        plan: Plan,
        group: grid.Group,
        shard: Shard,
        pool: ThreadPoolExecutor,
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
        weights = initial.initial_weights(spec, experiment, plan.seeds, plan.table)
        self.table, self.initial = batch_layout.share((plan.table, weights))
        released = experiment.training.evaluation == "released"
        self.observe = pooled_auc if released else training.nobody
        arguments = self.start(shard), self.shared(0)
        into = self.spare(shard)
        self.program = programs.program(
            training.make_run, (spec, self.observe), self.layout, *arguments, into
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
        return member, self.layout.pad(empty_snapshot(spec, member, self.table, self.initial))

    def spare(self, shard: Shard) -> PyTree:
        """What the first epoch of a shard writes its results into; None where they are memory of their own,
        as where all members of a device are mapped at once."""
        count = self.layout.capacity
        if self.layout.width * jax.device_count() == count:
            return None
        return self.start(shard)[1], self.layout.pad(np.zeros(count, bool))

    def evaluate(
        self, seeds: Any, weights: Weights, states: PyTree, count: int
    ) -> dict[str, np.ndarray]:
        """The figures of ``count`` trials' final weights [count], as of ``make_evaluate``."""
        trained = self.evaluation_layout.pad((seeds, weights, states))
        bare = self.table._replace(scores=None)  # evaluation has no teacher
        static = (initial.models(self.group.spec, self.readers),)
        program = programs.fitting_program(
            training.make_evaluate, static, self.evaluation_layout, trained, bare
        )
        return batch_layout.unpad(program(trained, bare), count)


def empty_snapshot(
    spec: Spec, member: training.Member, table: training.Table, weights: Weights
) -> training.Snapshot:
    """What a run that starts at epoch 0 is given (and ignores): the shapes matter."""
    # by shape alone: a member taken from arrays that lie on several devices would be a program of its own
    one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), member)
    shapes = jax.eval_shape(training.make_start(spec), one, table, weights)
    count = batch_layout.leading(member)

    def zeros(a: jax.ShapeDtypeStruct) -> Any:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(jnp.zeros((count, 2), jnp.uint32))
        return np.zeros((count, *a.shape), a.dtype)

    return jax.tree.map(zeros, shapes)


def train_shard(
    trainer: Trainer, shard: Shard, plan: Plan, workdir: pathlib.Path, progress: Progress
) -> None:
    """Train one shard epoch by epoch, saving now and then, and commit it."""
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
    states = {reader.name: state.defense[reader.name] for reader in trainer.readers}
    states = batch_layout.unpad(states, count)
    figures = trainer.evaluate(batch_layout.unpad(member.seed, count), weights, states, count)
    rows = [
        _row(trial, shard.name, i, figures, record, bool(finite[i]), seconds / count)
        for i, trial in enumerate(trials)
    ]
    tree = {"bottoms": {str(p): b for p, b in enumerate(weights.bottoms)}, "active": weights.active}
    if states:  # what its predictions are read with
        tree["defenses"] = states
    arrays = exchange.all_arrays(trained.recorded, epochs, record.sums)
    store.write_shard(workdir, shard.name, rows, tree, arrays, trainer.layout.width)
    progress.update(count, 0)


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
        "lane": member,
        "seconds": seconds,
    }
