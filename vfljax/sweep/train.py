"""Trains the shards of a sweep, and stores what its units share.

``vfljax.scheduling.work`` decides which shard is trained next. Attacks (``vfljax.attack_runs``) and the report
read what was trained from the sweep's folder, never from this module's memory.
"""

from __future__ import annotations

import functools
import importlib.metadata
import pathlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from typing import Any

import jax
import numpy as np

from vfljax import machine, plugins, store, switches
from vfljax.config import Config
from vfljax.datasets.core import checksum, identity
from vfljax.datasets.splits import distinct_rows, label_groups, unused
from vfljax.defenses.rows import prior_of
from vfljax.machine import free_disk
from vfljax.models import weights as pretrained
from vfljax.sweep import batch_layout, codebooks, profile, size, teachers
from vfljax.sweep.alone import Alone
from vfljax.sweep.grid import defense_values, parse
from vfljax.sweep.known import check_known_labels, most_known, split_arrays
from vfljax.sweep.plan import Plan, divided_as, make_plan, recorded
from vfljax.sweep.progress import Progress
from vfljax.sweep.shard_trainer import Orders, Trainer, train_shard
from vfljax.sweep.sharding import Shard

TEACHERS = "teachers"  # the kind of shared arrays that hold teachers' scores


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
      command: the command line that begins it.
    """
    experiment, dataset, of = plan.experiment, plan.dataset, plan.experiment.data
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
            **({"tied": plan.tied} if plan.tied else {}),
            "party_shapes": [list(x.shape[1:]) for x in plan.table.features],
            "sources": _sources(plan),
            "train": len(plan.splits[0].train),
            "recorded": len(recorded(plan).splits[0].train),
            # of these, rows of different groups, which bound how precise a leak can be
            "distinct": min(
                len(distinct_rows(dataset, split.train)) for split in recorded(plan).splits
            ),
            "validation": len(plan.splits[0].validation),
            "test": len(plan.splits[0].test),
            **({"told": plan.told} if plan.told else {}),
            "unused": unused(dataset, plan.splits[0], of.train, of.validation, of.test)._asdict(),
        },
        "checksum": values,
        "reader": dataset.reader,
        "identity": identity(dataset, values),
        "plugins": plugins.described(
            [*values_of, *experiment.attacks], values_of, prior_of(plan.balance)
        ),
        "pretrained": {part: pretrained.digest(path) for part, path in files.items() if path},
        "trials": sum(len(g.trials) for g in plan.groups),
        "earlier": [stage.stored for stage in plan.earlier],
        "shards": stored_shards(plan),
        "blocks": [],
        "attacks": {},
        "local_only": [],
        # classes are named by as many labels as the attacks of the sweep's first config know
        "naming": most_known(recorded(plan)),
    }


def _sources(plan: Plan) -> list[dict[str, Any]]:
    """Returns the columns of a user's table, each with the number of the party that owns it, or None."""
    owners = {c.name: p for p, owned in enumerate(plan.party_columns) for c in owned.columns}
    return [s._asdict() | {"owner": owners.get(s.name)} for s in plan.dataset.sources]


def stored_shards(plan: Plan) -> list[dict[str, Any]]:
    """Returns the shards of a plan as ``sweep.json`` holds them."""
    return [shard._asdict() | {"group": plan.groups[shard.group].name} for shard in plan.shards]


def plan_of(
    experiment: Config, stored: Mapping[str, Any] | None, stages: Sequence[Config] = ()
) -> Plan:
    """Returns the plan of a sweep, divided as it is stored.

    Args:
      experiment: what is trained: the sweep as it was begun, or an extension of it.
      stored: the header of the sweep, None before it is begun.
      stages: parts of the sweep, or of its extension, that are made first.
    """
    if stored is None:
        return make_plan(experiment, stages)
    every = store.stages(stored, experiment.stored, [stage.stored for stage in stages])
    earlier = [parse(stage, beyond_limits=True) for stage in every[:-1]]
    return divided_as(make_plan(experiment, earlier), stored)


def planned(
    experiment: Config, workdir: pathlib.Path, stages: Sequence[Config] = ()
) -> tuple[Plan, str]:
    """Returns the plan of a sweep, and what it needs, in words.

    Args:
      experiment: what is trained.
      stages: parts of it that are made first.

    Raises:
      UserError: before anything is written, for trials or attacks that cannot be run, or do not fit.
    """
    stored = store.header_of(workdir)
    plugins.required(defense_values(experiment), (stored or {}).get("plugins", {}), workdir)
    plan = plan_of(experiment, stored, stages)
    if stored is None:  # on a stored sweep, attacks that cannot be run are skipped
        check_known_labels(plan)
    return plan, size.needs(plan, workdir)


def shared(plan: Plan, workdir: pathlib.Path) -> None:
    """Stores what several units read: the splits of all seeds, teachers' scores, and codebooks.

    Teachers and codebooks are found by what they depend on. A sweep that is extended therefore trains only
    those that it has not yet.

    Args:
      workdir: the folder of the sweep, whose lock the caller holds.
    """
    splits, draws = recorded(plan).splits, plan.experiment.known_draws
    arrays = split_arrays(
        plan.dataset.labels, splits, draws, plan.candidates, label_groups(plan.dataset)
    )
    arrays["test"] = np.stack([split.test for split in plan.splits])  # all, as results use them
    store.write_shared(workdir, store.splits_name(store.read_header(workdir)), arrays)
    taught, _ = teachers.lessons(plan.groups, plan.table)
    if taught is not None:
        names, there = teachers.identities(taught), store.read_keyed(workdir, TEACHERS)
        new = [place for place, name in enumerate(names) if name not in there]
        if new:
            reads, classes = plan.party_columns[-1].input, plan.dataset.num_classes
            some = jax.tree.map(lambda a: a[new], taught)
            scores = teachers.train_teachers(
                plan.experiment.teacher, some, plan.table, reads, classes, plan.seeds
            )
            arrays = {names[place]: of for place, of in zip(new, scores, strict=True)}
            store.write_keyed(workdir, TEACHERS, arrays)
    codebooks.train(plan.groups, workdir)


def ready(plan: Plan, workdir: pathlib.Path) -> Plan:
    """Returns the plan with the stored teachers' scores and codebooks, which defenses read.

    Args:
      workdir: the folder of the sweep, where ``shared`` has stored them.
    """
    taught, teacher_of = teachers.lessons(plan.groups, plan.table)
    if taught is not None:
        there = store.read_keyed(workdir, TEACHERS)
        scores = np.stack([there[name] for name in teachers.identities(taught)])
        table = plan.table._replace(scores=jax.device_put(scores))
        plan = plan._replace(table=table, teachers=teacher_of)
    return plan._replace(codebooks=codebooks.codebooks(plan.groups, workdir))


def _program(shard: Shard) -> tuple[int, int]:
    """Returns what decides the programs of a shard."""
    return shard.group, shard.capacity


class Training:
    """Trains shards in this process, one after the other, and keeps the programs of the present group.

    While a shard trains, the programs of another group may be traced and compiled on other cores.
    """

    def __init__(self, plan: Plan, workdir: pathlib.Path, pool: Executor) -> None:
        """``plan`` is as ``ready`` returns it."""
        self.plan, self.workdir, self._pool = plan, workdir, pool
        self._alone, self._orders, self._trainers = (
            Alone(plan),
            Orders(plan),
            dict[tuple[int, int], Trainer](),
        )
        self._ahead: dict[tuple[int, int], Future[Trainer | None]] = {}  # at most one

    @profile.span("training, the host's work")
    def train(self, shard: Shard, following: Shard | None, progress: Progress) -> None:
        """Trains a shard and stores it.

        Args:
          shard: one of the plan's.
          following: a shard that will probably be trained next, whose programs are made meanwhile.
          progress: counts steps and trials.
        """
        program = _program(shard)
        for key in self._trainers.keys() - {program}:
            del self._trainers[key]  # frees its tables, which are not needed any more
        if program not in self._trainers:
            trainer = self._made_ahead(program)
            self._trainers[program] = trainer or self._trainer(
                shard, self._stored_width(shard.group)
            )
        if following is not None and _program(following) not in self._ahead:
            self.close()
            self._make_ahead(following)
        need = size.bytes_of(self.plan, shard)
        if need > free_disk(self.workdir):
            raise store.full(self.workdir / "shards" / shard.name, need)
        while width := self._try(shard, progress):
            del self._trainers[program]
            self._trainers[program] = self._trainer(shard, width)

    def close(self) -> None:
        """Gives up what is made ahead, unless it has begun."""
        for future in self._ahead.values():
            future.cancel()
        self._ahead = {}

    def _trainer(self, shard: Shard, width: int | None) -> Trainer:
        return Trainer(self.plan, shard, self._pool, self._orders, width)

    def _make_ahead(self, shard: Shard) -> None:
        """Begins to make the trainer of another group in the background."""
        width, expected = self._stored_width(shard.group), switches.changed()

        def make() -> Trainer | None:
            # contexts such as ``jax.default_matmul_precision`` hold for one thread
            return self._trainer(shard, width) if switches.changed() == expected else None

        future = self._ahead[_program(shard)] = self._pool.submit(make)
        if not machine.offered().cpu:
            wait([future])  # it needs memory of the devices while it traces

    def _made_ahead(self, program: tuple[int, int]) -> Trainer | None:
        """Returns the trainer of a program that was made in the background, None if none was or it failed: what
        a defense's code raises then, it raises again in the shard's own turn."""
        future = self._ahead.pop(program, None)
        if future is None:
            return None
        with profile.span("wait for a trace"):
            return None if future.exception() else future.result()

    def _try(self, shard: Shard, progress: Progress) -> int:
        """Trains a shard. Returns 0, or a smaller width to try again with if a device's memory is exhausted."""
        trainer = self._trainers[_program(shard)]
        try:
            train_shard(trainer, shard, self.workdir, progress, self._alone)
            return 0
        except jax.errors.JaxRuntimeError as error:
            return batch_layout.halved(trainer.layout, trainer.group.name, error, progress.say)

    def _stored_width(self, number: int) -> int | None:
        """Returns the width of a group's last stored shard, already reduced if memory was exhausted; None if no
        shard is stored, the config names a width, or the sweep began on another backend."""
        plan, workdir = self.plan, self.workdir
        backend = store.read_header(workdir)["backend"]
        if plan.experiment.execution.width or backend != jax.default_backend():
            return None
        names = [shard.name for shard in reversed(plan.shards) if shard.group == number]
        return next(filter(None, (store.width_of_shard(workdir, name) for name in names)), None)
