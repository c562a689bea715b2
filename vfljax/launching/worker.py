"""A worker: another process that makes units of a sweep, started by an engine (``backends``).

It plans the sweep from the config of the command that started it, and divides it as ``sweep.json`` says, as any
other copy of the command does.
"""

from __future__ import annotations

import functools
import json
import pathlib
import platform
from typing import Any, NamedTuple

from vfljax import machine, plugins, store
from vfljax.attacking import run
from vfljax.attacking.families import Begun
from vfljax.errors import UserError
from vfljax.launching.work import work
from vfljax.sweep import train
from vfljax.sweep.grid import parse


class Worker(NamedTuple):
    """What an engine passes to a worker."""

    workdir: str
    sweep: str  # the identity of the sweep
    assignment: str  # a JSON file: the config, in which the data's folder may differ, and the units
    plugins: tuple[str, ...]  # files or modules

    def __call__(self) -> str:
        return perform(self)

    def checkpoint(self) -> Any:
        """Returns what submitit submits again after a preemption or a time limit: the same worker."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def perform(worker: Worker) -> str:
    """Makes units in this process until none is left. Returns "", or the line of a user's error."""
    try:
        _perform(worker)
    except UserError as error:
        return str(error)
    return ""


def _perform(worker: Worker) -> None:
    folder = pathlib.Path(worker.workdir)
    if not folder.is_dir() or store.sweep_id(folder) != worker.sweep:
        raise UserError(
            f"{worker.workdir} cannot be seen from {platform.node()}: choose a --workdir on a file system that "
            "all workers share."
        )
    _set_up(folder)
    for source in worker.plugins:
        plugins.use(source)
    assignment = json.loads(pathlib.Path(worker.assignment).read_text())
    plan, _ = train.planned(parse(assignment["config"], beyond_limits=True), folder)
    header, units = store.read_header(folder), set(assignment["units"])
    run.check_attacks(header, folder)
    work(Begun(plan, folder, header), may=lambda unit: unit.name in units)


@functools.cache
def _set_up(workdir: pathlib.Path) -> None:
    """Gives JAX as many host devices as the sweep was planned for. Only the same program on as many devices
    gives the same figures to the last bit."""
    header = store.read_header(workdir)
    devices = header["devices"] if header["backend"] == "cpu" else None
    machine.use_this_machine(min_compile_seconds=0.1, devices=devices)
