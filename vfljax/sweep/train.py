"""Train a sweep: plan, train by shards, store; resume wherever it was killed.

Attacks (``vfljax.attacking``) and the report read what was trained from the sweep's directory, never from this
module's memory.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import pathlib
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import datasets, plugins, store, switches
from vfljax.config import Config
from vfljax.datasets import prepared
from vfljax.datasets.core import checksum, identity
from vfljax.defenses.rows import prior_of
from vfljax.errors import shown
from vfljax.machine import cores, free_disk
from vfljax.models import weights as pretrained
from vfljax.sweep import batch_layout, codebooks, initial, profile, size, teachers
from vfljax.sweep.grid import defense_values
from vfljax.sweep.plan import (
    Plan,
    Shard,
    check_attacks,
    divided_as,
    make_plan,
    recorded,
    split_arrays,
)
from vfljax.sweep.progress import Progress
from vfljax.sweep.trainer import Orders, Trainer, train_shard

# called with the plan, the workdir, the shards to train, and the shards that are done
TrainShards = Callable[[Plan, pathlib.Path, Sequence[Shard], Sequence[Shard]], None]

AHEAD = 1  # number of groups whose programs are compiled while another group trains


def versions() -> dict[str, str]:
    """Returns the versions of Python, of the main packages and of vfljax, to be stored with results."""
    names = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "scikit-learn")
    installed = {name: importlib.metadata.version(name) for name in names}
    installed["python"] = platform.python_version()
    try:
        installed["vfljax"] = importlib.metadata.version("vfljax")
    except importlib.metadata.PackageNotFoundError:
        installed["vfljax"] = "not installed"
    return installed


def processor_name() -> str:
    """Returns the name of this machine's processor, or its architecture if the name is unknown."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    pairs = (line.partition(":") for line in lines)
    names = (value.strip() for name, _, value in pairs if name.strip() == "model name")
    return next(names, platform.processor() or platform.machine())


def revision() -> str:
    """Returns the git revision of this code, with '+' if files are changed; empty outside git."""
    folder = pathlib.Path(__file__).parent
    call = functools.partial(
        subprocess.run, cwd=folder, capture_output=True, text=True, check=False
    )
    try:
        head = call(["git", "rev-parse", "--short=12", "HEAD"])
        dirty = call(["git", "status", "--porcelain", "--untracked-files=no"])
    except OSError:
        return ""
    if head.returncode:
        return ""
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")


def header(plan: Plan, command: str) -> dict[str, Any]:
    """Returns what ``sweep.json`` holds.

    Args:
      plan: of the sweep.
      command: the command line that begins it.
    """
    experiment, dataset = plan.experiment, plan.dataset
    values = checksum(dataset)
    values_of = defense_values(experiment)
    files = {"model": experiment.model.pretrained, "teacher": experiment.teacher.pretrained}
    return {
        "schema": store.SCHEMA,
        "config": experiment.stored,
        "command": command,
        "versions": versions(),
        "revision": revision(),
        "backend": jax.default_backend(),
        "devices": jax.device_count(),
        "effort": plan.effort._asdict(),
        "switches": switches.changed(),
        "data": {
            "name": dataset.name,
            "rows": sum(plan.balance),
            "classes": dataset.num_classes,
            "class_names": list(dataset.classes) or [*map(str, range(dataset.num_classes))],
            "positive": plan.positive,
            "balance": plan.balance,
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
            [*values_of, *experiment.attacks], values_of, prior_of(plan.balance)
        ),
        "pretrained": {part: pretrained.digest(path) for part, path in files.items() if path},
        "trials": sum(len(g.trials) for g in plan.groups),
        "shards": [s._asdict() | {"group": plan.groups[s.group].name} for s in plan.shards],
    }


def plan_of(experiment: Config, stored: Mapping[str, Any] | None) -> Plan:
    """Returns the plan of a sweep. If the data are refused, the error says what changed since it was begun.

    Args:
      experiment: what is trained.
      stored: the header of the sweep, None before it is begun.
    """
    data = experiment.data
    with store.explained(stored, datasets.reader_of(data.name, data.dir)):
        return make_plan(experiment)


def planned(experiment: Config, workdir: pathlib.Path) -> tuple[Plan, str]:
    """Returns the plan of a sweep, and what it needs, in words.

    Args:
      experiment: what is trained.
      workdir: the folder of the sweep.

    Raises:
      UserError: before anything is written, for trials or attacks that cannot be run, or do not fit.
    """
    stored = store.header_of(workdir)
    plugins.required(defense_values(experiment), (stored or {}).get("plugins", {}), workdir)
    plan = plan_of(experiment, stored)
    if stored is None:  # on a stored sweep, attacks that cannot be run are skipped
        check_attacks(plan)
    return plan, size.needs(plan, workdir)


@profile.span("training, the host's work")
def train_sweep(
    experiment: Config,
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
    trained: TrainShards | None = None,
) -> Plan:
    """Train every trial that is not stored yet.

    Args:
      experiment: what is trained.
      workdir: the folder of the sweep, for all results.
      command: the command line.
      say: receives lines about the progress.
      trained: trains the shards that are left; None: ``train_shards``, one after the other in this process.

    Returns:
      The plan.
    """
    plan, needs = planned(experiment, workdir)
    with store.writing(workdir):
        plan = _begun(plan, workdir, command, needs, say)
        done = [shard for shard in plan.shards if store.finished(workdir, shard.name)]
        todo = [shard for shard in plan.shards if shard not in done]
        if todo:
            plan = ready(plan, workdir)
            (trained or train_shards)(plan, workdir, todo, done)
    return plan


def _begun(
    plan: Plan, workdir: pathlib.Path, command: str, needs: str, say: Callable[[str], None]
) -> Plan:
    """Writes the header and the splits. Returns the plan, divided as the stored sweep if there is one."""
    experiment = plan.experiment
    if prepared.is_prepared(experiment.data.dir):
        prepared.verify(experiment.data.dir)  # a changed byte must not be trained on
    plan = divided_as(plan, store.begin(workdir, header(plan, command)))
    say(
        f"{sum(len(g.trials) for g in plan.groups)} trials in {len(plan.groups)} programs on "
        f"{jax.device_count()} {jax.default_backend()} devices, {len(plan.shards)} shards, in "
        f"{shown(workdir)}: {needs}"
    )
    if experiment.model.pretrained:
        unread = initial.unread_tensors(plan.groups[0].spec, experiment, plan.seeds, plan.table)
        rest = f"; of it left out: {', '.join(unread)}" if unread else ""
        say(f"bottoms start from {experiment.model.pretrained}{rest}")
    splits, draws = recorded(plan).splits, experiment.known_draws
    arrays = split_arrays(plan.dataset.labels, splits, draws, plan.candidates)
    arrays["test"] = np.stack([split.test for split in plan.splits])  # all, as results use them
    store.write_root_arrays(workdir, "splits.npz", arrays)
    return plan


def ready(plan: Plan, workdir: pathlib.Path) -> Plan:
    """Returns the plan with teachers' scores and codebooks, which defenses read. They are trained if needed.

    Args:
      plan: of the sweep.
      workdir: where they are stored, or will be once they are trained.
    """
    taught, teacher_of = teachers.lessons(plan.groups, plan.table)
    if taught is not None:
        arrays = store.read_root_arrays(workdir, "teacher.npz")
        if arrays is None:
            reads, classes = plan.party_columns[-1].input, plan.dataset.num_classes
            scores = teachers.train_teachers(
                plan.experiment.teacher, taught, plan.table, reads, classes, plan.seeds
            )
            arrays = {"scores": scores}
            store.write_root_arrays(workdir, "teacher.npz", arrays)
        table = plan.table._replace(scores=jnp.asarray(arrays["scores"]))
        plan = plan._replace(table=table, teachers=teacher_of)
    return plan._replace(codebooks=codebooks.codebooks(plan.groups, workdir))


def progress_of(plan: Plan, todo: Sequence[Shard], done: Sequence[Shard]) -> Progress:
    """Returns the progress line of training.

    Args:
      plan: of the sweep.
      todo: the shards that are left.
      done: the shards that are finished.
    """
    every = [*todo, *done]
    steps = sum(plan.steps(shard) for shard in every)
    progress = Progress("train", sum(len(shard.trials) for shard in every), steps)
    for shard in done:
        progress.resume(len(shard.trials), plan.steps(shard))
    return progress


def train_shards(
    plan: Plan,
    workdir: pathlib.Path,
    todo: Sequence[Shard],
    done: Sequence[Shard] = (),
    attempt: Callable[[Shard], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> None:
    """Train shards one after the other in this process.

    Args:
      plan: of the sweep, as ``ready`` returns it.
      workdir: the folder of the sweep.
      todo: the shards to train.
      done: the shards that are finished, for the progress line alone.
      attempt: makes the context in which a shard is trained. By default an error ends the sweep.
    """
    progress = progress_of(plan, todo, done)
    numbers = list(dict.fromkeys(shard.group for shard in todo))
    trainers: dict[int, Trainer] = {}
    orders = Orders(plan)
    with ThreadPoolExecutor(max_workers=cores()) as pool:
        for shard in todo:
            place = numbers.index(shard.group)
            for number in numbers[:place]:
                trainers.pop(number, None)  # frees its tables, which are not needed any more
            with attempt(shard):
                for number in numbers[place : place + 1 + AHEAD]:
                    if number not in trainers:
                        first = next(s for s in todo if s.group == number)
                        width = _stored_width(plan, number, workdir)
                        trainers[number] = Trainer(plan, first, pool, orders, width)
                need = size.bytes_of(plan, shard)
                if need > free_disk(workdir):
                    raise store.full(workdir / "shards" / shard.name, need)
                while width := _try_shard(trainers[shard.group], shard, workdir, progress):
                    del trainers[shard.group]
                    trainers[shard.group] = Trainer(plan, shard, pool, orders, width)
    progress.close()


def _try_shard(trainer: Trainer, shard: Shard, workdir: pathlib.Path, progress: Progress) -> int:
    """Trains a shard. Returns 0, or a smaller width to try again with if the device's memory is exhausted."""
    try:
        train_shard(trainer, shard, workdir, progress)
        return 0
    except jax.errors.JaxRuntimeError as error:
        return batch_layout.fewer(trainer.layout, trainer.group.name, error, progress.say)


def _stored_width(plan: Plan, number: int, workdir: pathlib.Path) -> int | None:
    """Returns the width of a group's last stored shard, already reduced if memory was exhausted; None if no
    shard is stored, the config names a width, or the sweep began on another backend."""
    backend = store.read_header(workdir)["backend"]
    if plan.experiment.execution.width or backend != jax.default_backend():
        return None
    names = [shard.name for shard in reversed(plan.shards) if shard.group == number]
    return next(filter(None, (store.width_of_shard(workdir, name) for name in names)), None)
