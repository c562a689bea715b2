"""What a job does where it runs: train some shards of a sweep, or attack their trials.

A worker plans the sweep as a resume does, from the config of the command that sent the job, and divides it as
``sweep.json`` says.
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
from vfljax.sweep.experiment import parse_stored
from vfljax.sweep.plan import Plan, Shard, divided_as


class Outcome(NamedTuple):
    """What a job ends with: why shards ``failed``, and the ``costs`` of attacks by their labels."""

    failed: dict[str, str]
    costs: dict[str, run.Cost]


class ShardJob(NamedTuple):
    """Some shards of a sweep, and what is to be done with them: ``do(job)``."""

    do: Callable[[ShardJob], Outcome]
    workdir: str
    sweep: str  # its identity
    leader: str  # the writer of the sweep who sent it
    config: str  # a file: its config, in which the data's folder may differ from the stored one
    shards: tuple[str, ...]
    attacks: tuple[str, ...]  # labels of forms, where they are attacked
    names: tuple[str, ...] | None  # attacks that are asked for in place of the config's
    plugins: tuple[str, ...]
    begun: str  # a folder that says what is being done: a file a shard

    @property
    def folder(self) -> pathlib.Path:
        """The sweep."""
        return pathlib.Path(self.workdir)


class Task:
    """A job as submitit takes it. It can be requeued as it is: whatever is finished is not done again."""

    def __init__(self, job: ShardJob) -> None:
        self.job = job

    def __call__(self) -> Outcome:
        return perform(self.job)

    def checkpoint(self) -> Any:
        """What submitit's handler of a preemption or a time limit submits again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def perform(job: ShardJob) -> Outcome:
    """Do a job in this process, which may have done others before. Raises UserError where the sweep cannot be
    seen from here."""
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
    """Give JAX as many host devices as the sweep was planned for: the same program on as many devices gives the
    same figures to the last bit."""
    header = store.read_header(workdir)
    devices = header["devices"] if header["backend"] == "cpu" else None
    machine.use_this_machine(min_compile_seconds=0.1, devices=devices)


@functools.lru_cache(maxsize=1)  # a worker of Ray does several jobs of a sweep
def _planned(workdir: str, sweep: str, text: str, sources: tuple[str, ...]) -> Plan:
    del sweep  # it tells a sweep from another that took its folder
    folder = pathlib.Path(workdir)
    for source in sources:
        plugins.use(source)
    plan, _ = train.planned(parse_stored(json.loads(text)), folder)
    return divided_as(plan, store.read_header(folder))


def _plan(job: ShardJob) -> Plan:
    text = pathlib.Path(job.config).read_text()
    return _planned(job.workdir, job.sweep, text, job.plugins)


def train_shards(job: ShardJob) -> Outcome:
    """Train the job's shards, one after the other; one that fails does not keep the others from it."""
    plan, failed = _plan(job), {}
    shards = [shard for shard in plan.shards if shard.name in job.shards]
    todo = [shard for shard in shards if not store.finished(job.folder, shard.name)]
    if not todo:
        return Outcome(failed, {})

    @contextlib.contextmanager
    def attempt(shard: Shard) -> Iterator[None]:
        with _begun(job, (shard.name,)):
            try:
                yield
            except Exception as error:  # of one shard: the next may do
                failed[shard.name] = reason(error)

    train.train_shards(train.ready(plan, job.folder), job.folder, todo, attempt=attempt)
    return Outcome(failed, {})


def attack_shards(job: ShardJob) -> Outcome:
    """Attack the trials of the job's shards by every variant it names; one that fails does not keep the
    others from it."""
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
            except Exception as error:  # of one attack: the next may do
                failed |= dict.fromkeys(job.shards, f"{label}: {reason(error)}")
    return Outcome(failed, costs)


def reason(error: BaseException) -> str:
    """An error in a line; the whole of one that is not the user's goes to the job's log."""
    if not isinstance(error, UserError):
        traceback.print_exception(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{kind}{lines[0] if lines else ''}".removesuffix(": ")[:300]


@contextlib.contextmanager
def _begun(job: ShardJob, names: tuple[str, ...]) -> Iterator[None]:
    """Mark what is being done, so that it is known if this process dies."""
    marks = [pathlib.Path(job.begun) / name for name in names]
    for mark in marks:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    try:
        yield
    finally:  # SIGKILL leaves them
        for mark in marks:
            mark.unlink(missing_ok=True)
