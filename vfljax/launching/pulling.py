"""Lets workers of an engine make the units of a sweep, and starts others for those that die."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vfljax import store
from vfljax.attacking.families import Begun
from vfljax.errors import UserError, user_path
from vfljax.launching.backends import Engine, Handle, opened
from vfljax.launching.work import POLL, May, Outcome, Queue, Say, Work, work
from vfljax.launching.worker import Worker
from vfljax.sweep.progress import Progress

GRACE = 10  # seconds for workers to save what they have, when they are canceled
FRUITLESS = 3  # rounds of workers that ended without making a unit, after which no more are started


def pulled(engine: Engine, plugins: Sequence[str] = ()) -> Work:
    """Returns a function that makes the units of a sweep as ``work.work`` does, by workers of an engine.

    Args:
      engine: starts the workers.
      plugins: files or modules of plugins that workers use too.
    """

    def pull(begun: Begun, say: Say, may: May) -> Outcome:
        queue, folder = Queue(begun, partly=False), _private_folder(begun.workdir)
        queue.look()
        worker = _worker(begun, plugins, folder, [unit.name for unit in queue.left(may)])
        progress = Progress("units", len(queue.units), len(queue.units))
        progress.resume(len(queue.done), len(queue.done))
        handles: list[Handle] = []
        fruitless, turn, made, why = 0, 0, len(queue.done), ""
        with _ended(lambda: handles):
            while queue.left(may) and fruitless < FRUITLESS * engine.jobs:
                if len(queue.done) > made:
                    progress.update(len(queue.done) - made, len(queue.done) - made)
                    fruitless, made = 0, len(queue.done)
                ended = [handle for handle in handles if handle.ended()]
                handles = [handle for handle in handles if handle not in ended]
                failures = list(filter(None, (handle.why() for handle in ended)))
                for why in failures:
                    progress.say(f"a worker ended: {why}")
                if not handles:
                    queue.find_given_up()
                missing = len(failures) if handles else engine.jobs
                if missing and queue.left(may):
                    fruitless, turn = fruitless + missing * bool(turn), turn + 1
                    handles += engine.start(worker, missing, folder / str(turn))
                time.sleep(POLL)
        progress.close()
        queue.find_given_up()
        if left := queue.left(may):
            how = why or "all of them ended"
            raise UserError(f"no worker makes {left[0].name} ({how}): their logs are in {folder}.")
        return Outcome(queue.given_up)

    return pull


@contextlib.contextmanager
def _ended(handles: Callable[[], Sequence[Handle]]) -> Iterator[None]:
    """Ends the workers that are left when the block ends, and waits for them to save what they have.

    If all units are made, these are workers that wait in a queue, or are about to end by themselves.
    """
    try:
        yield
    finally:
        left = [handle for handle in handles() if not handle.ended()]
        for handle in left:
            with contextlib.suppress(Exception):  # it has ended
                handle.cancel()
        end = time.monotonic() + GRACE
        while time.monotonic() < end and not all(handle.ended() for handle in left):
            time.sleep(POLL / 5)


def _private_folder(workdir: pathlib.Path) -> pathlib.Path:
    """Makes a folder for the files of workers, which only this user may enter."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-%f")
    folder = workdir.absolute() / "launcher" / f"{stamp}-{os.getpid()}"
    for private in (folder.parent, folder):
        private.mkdir(mode=0o700, exist_ok=True)
        private.chmod(0o700)
    return folder


def _worker(
    begun: Begun, plugins: Sequence[str], folder: pathlib.Path, units: Sequence[str]
) -> Worker:
    """Returns the worker that an engine starts. Plugins in files are copied to the workers' folder."""
    assignment = folder / "assignment.json"
    assignment.write_text(json.dumps({"config": begun.plan.experiment.stored, "units": units}))
    sources = []
    for name in plugins:
        if name.endswith(".py"):
            path = user_path(name, "plugin")
            name = shutil.copy(path, folder / path.name)
        sources.append(str(name))
    workdir = begun.workdir.absolute()
    return Worker(str(workdir), store.sweep_id(workdir), str(assignment), tuple(sources))


@contextlib.contextmanager
def chosen(
    name: str, jobs: int, options: Mapping[str, Any], plugins: Sequence[str] = ()
) -> Iterator[Work]:
    """Opens a launcher, and yields the function that makes the units of a sweep.

    Args:
      name: "inline" or a name of ``backends.ENGINES``.
      jobs: workers at once, 0 for as many as there is room for.
      options: of the launcher.
      plugins: files or modules of plugins that workers use too.

    Raises:
      UserError: for invalid options.
    """
    if name == "inline":
        if options or jobs:
            raise UserError(
                "--jobs and --launcher_options are for --launcher=local, slurm or ray: inline uses all that "
                "this process has."
            )
        yield work
        return
    with opened(name, jobs, options) as engine:
        yield pulled(engine, plugins)
