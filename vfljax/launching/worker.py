"""Does a job in the process where it runs: trains some shards of a sweep, or attacks their trials.

A worker plans the sweep from the config of the command that sent the job, and divides it as ``sweep.json``
says, as a command does that continues a sweep.
"""

from __future__ import annotations

import contextlib
import functools
import json
import pathlib
import platform
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from vfljax import machine, plugins, store
from vfljax.attacking import run
from vfljax.errors import UserError
from vfljax.sweep import train
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import Plan, Shard, divided_as


class Outcome(NamedTuple):
    """The result of a job: why shards ``failed``, by name, and the ``costs`` of attacks, by label."""

    failed: dict[str, str]
    costs: dict[str, run.Cost]


class ShardJob(NamedTuple):
    """Some shards of a sweep, and what is to be done with them: ``do(job)``."""

    do: Callable[[ShardJob], Outcome]
    workdir: str
    sweep: str  # the identity of the sweep
    leader: str  # the writer of the sweep, which sent the job
    config: str  # path of the config, in which the data's folder may differ from the stored one
    shards: tuple[str, ...]
    attacks: tuple[str, ...]  # labels of the attack variants to run; () for training
    names: tuple[str, ...] | None  # attacks that are run in place of the config's
    plugins: tuple[str, ...]
    begun: str  # a folder with a file for each shard that is in progress

    @property
    def folder(self) -> pathlib.Path:
        """The folder of the sweep."""
        return pathlib.Path(self.workdir)


class Task:
    """A job as submitit takes it. It can be requeued unchanged, because finished parts are not done again."""

    def __init__(self, job: ShardJob) -> None:
        self.job = job

    def __call__(self) -> Outcome:
        return perform(self.job)

    def checkpoint(self) -> Any:
        """Returns what submitit submits again after a preemption or a time limit."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def perform(job: ShardJob) -> Outcome:
    """Does a job in this process, which may have done others before. Raises UserError if the sweep cannot be
    seen from here, or if another command leads it now."""
    if not job.folder.is_dir() or store.identity(job.folder) != job.sweep:
        raise UserError(
            f"{job.workdir} cannot be seen from {platform.node()}: choose a --workdir on a file system that "
            "all workers share."
        )
    _set_up(job.folder)
    with store.working(job.folder, job.leader) as led:
        if not led:
            raise UserError(f"another command leads {job.workdir} now: this job is left to it.")
        return job.do(job)


@functools.cache
def _set_up(workdir: pathlib.Path) -> None:
    """Gives JAX as many host devices as the sweep was planned for. Only the same program on as many devices
    gives the same figures to the last bit."""
    header = store.read_header(workdir)
    devices = header["devices"] if header["backend"] == "cpu" else None
    machine.use_this_machine(min_compile_seconds=0.1, devices=devices)


@functools.lru_cache(maxsize=1)  # a worker of Ray does several jobs of a sweep
def _planned(workdir: str, sweep: str, text: str, sources: tuple[str, ...]) -> Plan:
    del sweep  # only part of the cache's key: another sweep may have taken the folder
    folder = pathlib.Path(workdir)
    for source in sources:
        plugins.use(source)
    plan, _ = train.planned(parse(json.loads(text), beyond_limits=True), folder)
    return divided_as(plan, store.read_header(folder))


def _plan(job: ShardJob) -> Plan:
    text = pathlib.Path(job.config).read_text()
    return _planned(job.workdir, job.sweep, text, job.plugins)


def train_shards(job: ShardJob) -> Outcome:
    """Trains the job's shards, one after the other. A shard that fails does not stop the others."""
    plan, failed = _plan(job), {}
    shards = [shard for shard in plan.shards if shard.name in job.shards]
    todo = [shard for shard in shards if not store.finished(job.folder, shard.name)]

    @contextlib.contextmanager
    def attempt(shard: Shard) -> Iterator[None]:
        with _begun(job, (shard.name,)):
            try:
                yield
            except Exception as error:  # of one shard: the next may succeed
                failed[shard.name] = reason(error)

    if todo:
        train.train_shards(train.ready(plan, job.folder), job.folder, todo, attempt=attempt)
    return Outcome(failed, {})


def attack_shards(job: ShardJob) -> Outcome:
    """Attacks the trials of the job's shards by every variant that the job names. A variant that fails does
    not stop the others."""
    failed: dict[str, str] = {}
    costs: dict[str, run.Cost] = {}
    with _begun(job, job.shards):
        for name in job.shards:
            store.verify(job.folder, name)
        planned, stored = run.planned_variants(_plan(job), job.folder, job.names)
        for variant_plan in planned:
            label = variant_plan.variant.label
            if variant_plan.skipped or label not in job.attacks:
                continue
            try:
                costs[label] = run.run_variant(variant_plan.of_shards(job.shards), stored)
            except Exception as error:  # of one attack: the next may succeed
                failed |= dict.fromkeys(job.shards, f"{label}: {reason(error)}")
    return Outcome(failed, costs)


def reason(error: BaseException) -> str:
    """Returns an error as one line. The traceback goes to the job's log, unless it is a UserError."""
    if not isinstance(error, UserError):
        traceback.print_exception(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{lines[0] if lines else ''}".removesuffix(": ")[:300]


@contextlib.contextmanager
def _begun(job: ShardJob, names: tuple[str, ...]) -> Iterator[None]:
    """Marks shards as being in progress, which is then known if this process dies."""
    marks = [pathlib.Path(job.begun) / name for name in names]
    for mark in marks:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    try:
        yield
    finally:  # SIGKILL leaves them
        for mark in marks:
            mark.unlink(missing_ok=True)
