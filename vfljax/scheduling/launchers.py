"""Starts copies of a call in other processes, and waits for them: by submitit here or on SLURM, or by Ray.

Copies work in one folder and divide its units by themselves (``work``), so that nothing is told to them but the
call. A launcher queues, places and requeues them. One that dies is not replaced: the others make what it left,
and so does the next command. Both packages are optional extras.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import pathlib
import platform
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from vfljax import machine, plugins, store
from vfljax.errors import UserError, imported, unknown, user_path
from vfljax.report.words import count
from vfljax.scheduling.work import POLL, Outcome, Say
from vfljax.sweep.progress import heartbeat

# minutes: local processes have no limit; SLURM requeues jobs that have reached theirs
FOREVER, LIMIT = 60 * 24 * 365, 240
REQUEUES = 1000  # how often a job may be requeued; it continues where it was
SEVERAL = ("nodes", "tasks_per_node", "ntasks_per_node")  # must be 1: a copy is one process
ARRAY = 16  # tasks of a SLURM array, if --jobs is not given
GRACE = 10  # seconds for copies to save what they have, when they are canceled
Options = Mapping[str, Any]


class Copy(NamedTuple):
    """A call that works in the folder of a sweep, as another process makes it."""

    call: Callable[[], Sequence[Outcome]]  # of a module, or its partial, so that a process finds it
    workdir: str
    sweep: str  # the identity of the sweep there
    plugins: tuple[str, ...]  # files or modules

    def __call__(self) -> dict[str, str] | str:
        """Makes the call. Returns why units were given up, by unit, or the line of a user's error."""
        try:
            return self._made()
        except UserError as error:
            return str(error)

    def _made(self) -> dict[str, str]:
        folder = pathlib.Path(self.workdir)
        if not folder.is_dir() or store.sweep_id(folder) != self.sweep:
            raise UserError(
                f"{self.workdir} cannot be seen from {platform.node()}: choose a --workdir on a file system "
                "that all copies share."
            )
        _set_up(folder)
        for source in self.plugins:
            plugins.use(source)
        given_up: dict[str, str] = {}
        for outcome in self.call():
            given_up |= outcome.given_up
        return given_up

    def checkpoint(self) -> Any:
        """Returns what submitit submits again after a preemption or a time limit: the same call."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@functools.cache
def _set_up(workdir: pathlib.Path) -> None:
    """Gives JAX as many host devices as the sweep was planned for. Only the same program on as many devices
    gives the same figures to the last bit."""
    header = store.read_header(workdir)
    devices = header["devices"] if header["backend"] == "cpu" else None
    machine.use_this_machine(min_compile_seconds=0.1, devices=devices)


class Died(Exception):
    """A copy ended before its call did. The message says why."""


class Handle(NamedTuple):
    """A copy that was started."""

    ended: Callable[[], bool]  # whether it has ended, or its launcher has taken it away
    result: Callable[[], dict[str, str] | str]  # of one that has ended; raises ``Died``
    cancel: Callable[[], object]


Start = Callable[[Copy, pathlib.Path], contextlib.AbstractContextManager[list[Handle]]]


def opened(name: str, jobs: int, options: Options) -> Start | None:
    """Returns the function that starts copies; None for "inline", which starts none.

    Args:
      name: "inline" or a key of ``LAUNCHERS``.
      jobs: how many copies; 0: as many as the launcher has room for.
      options: of the launcher.

    Raises:
      UserError: for an unknown launcher, and for options that it does not have.
    """
    if name == "inline":
        if options or jobs:
            raise UserError(
                "--jobs and --launcher_options are for --launcher=local, slurm or ray: inline uses all that "
                "this process has."
            )
        return None
    if name not in LAUNCHERS:
        raise unknown("launcher", name, ["inline", *LAUNCHERS])
    for key, value in options.items():
        if key.removeprefix("slurm_") in SEVERAL and value != 1:
            raise UserError(
                f"--launcher_options={key}={value}: a copy is one process; choose how many there are by --jobs."
            )
    return functools.partial(LAUNCHERS[name], jobs, options)


def copy_of(
    call: Callable[[], Sequence[Outcome]], workdir: pathlib.Path, sources: Sequence[str]
) -> Copy:
    """Returns a call for copies, with the folder of its sweep and the plugins in use."""
    folder = workdir.absolute()
    named = (str(user_path(name, "plugin")) if name.endswith(".py") else name for name in sources)
    return Copy(call, str(folder), store.sweep_id(folder), tuple(named))


def launched(start: Start, copy: Copy, say: Say = print) -> Outcome:
    """Starts copies of a call, and waits until all have ended.

    Args:
      start: what ``opened`` returned.
      copy: the call.
      say: is told of copies that died.

    Returns:
      The units that were given up.

    Raises:
      UserError: for a launcher whose package is not installed or which refuses its options, an error of the
        user in a copy, and if all copies died.
    """
    folder, given_up, died, why = _private_folder(pathlib.Path(copy.workdir)), {}, 0, ""
    with start(copy, folder) as handles:
        running = [*handles]
        with heartbeat(say, lambda: f"{count(len(running), 'copy')} at work"), _ended(running):
            while running:
                for handle in [handle for handle in running if handle.ended()]:
                    running.remove(handle)
                    try:
                        found = handle.result()
                    except Died as error:
                        died, why = died + 1, str(error)
                        say(f"a copy died: {why}")
                        continue
                    if isinstance(found, str):
                        raise UserError(found)
                    given_up |= found
                time.sleep(POLL)
    if died == len(handles):
        remedy = "the same command goes on"
        raise UserError(f"all copies died ({why}); their logs are in {folder}", remedy=remedy)
    return Outcome(given_up)


@contextlib.contextmanager
def _ended(running: Sequence[Handle]) -> Iterator[None]:
    """Ends the copies that still run when the block ends, and waits for them to save what they have."""
    try:
        yield
    finally:
        left = [handle for handle in running if not handle.ended()]
        for handle in left:
            with contextlib.suppress(Exception):  # it has ended
                handle.cancel()
        end = time.monotonic() + GRACE
        while time.monotonic() < end and not all(handle.ended() for handle in left):
            time.sleep(POLL / 5)


def _private_folder(workdir: pathlib.Path) -> pathlib.Path:
    """Makes a folder for the files of copies, which only this user may enter."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S-%f")
    folder = workdir / "launcher" / f"{stamp}-{os.getpid()}"
    for private in (folder.parent, folder):
        private.mkdir(mode=0o700, exist_ok=True)
        private.chmod(0o700)
    return folder


@contextlib.contextmanager
def _local(jobs: int, options: Options, copy: Copy, folder: pathlib.Path) -> Iterator[list[Handle]]:
    """Processes of this machine, by submitit's local executor; they share its cores."""
    submitit = imported("submitit", extra="launch", needed_by="--launcher=local")
    if jax.default_backend() != "cpu":
        raise UserError(
            f"--launcher=local divides the cores of a machine without accelerators; this one has "
            f"{jax.device_count()} {jax.default_backend()} devices, all of which --launcher=inline uses."
        )
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # a shell's background job ignores SIGINT, by which submitit cancels. Processes would
        # inherit that; a handler is not inherited
        signal.signal(signal.SIGINT, lambda number, frame: None)

    def executor() -> Any:
        local = submitit.LocalExecutor(folder, max_num_timeout=REQUEUES)
        local.update_parameters(**{"timeout_min": FOREVER, **options})
        return local

    yield _submitted(submitit, executor, copy, jobs or machine.cores(), "local")


@contextlib.contextmanager
def _slurm(jobs: int, options: Options, copy: Copy, folder: pathlib.Path) -> Iterator[list[Handle]]:
    """A job array of a SLURM cluster, by submitit. ``options`` are those of submitit's executor, such as
    ``slurm_partition``, ``timeout_min``, ``gpus_per_node``, ``cpus_per_task`` and ``mem_gb``."""
    submitit = imported("submitit", extra="launch", needed_by="--launcher=slurm")

    def executor() -> Any:
        try:
            cluster = submitit.AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=REQUEUES)
        except RuntimeError as error:  # there is no srun
            raise UserError(
                "--launcher=slurm: this machine has no srun: start it where sbatch works, or choose "
                "--launcher=local or ray."
            ) from error
        cluster.update_parameters(**{"timeout_min": LIMIT, "name": "vfljax", **options})
        return cluster

    yield _submitted(submitit, executor, copy, jobs or ARRAY, "slurm")


def _submitted(
    submitit: Any, executor: Callable[[], Any], copy: Copy, jobs: int, name: str
) -> list[Handle]:
    """Starts copies by submitit."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            submitted = executor().submit_array([copy] * jobs)
    except UserError:  # it is a ValueError, which is caught below
        raise
    except submitit.core.utils.FailedJobError as error:  # sbatch refuses it
        raise UserError(f"--launcher={name}: {_last_line(str(error))}") from error
    except submitit.core.utils.FailedSubmissionError as error:
        # submitit does not understand the answer of sbatch
        raise UserError(f"--launcher={name}: {str(error).splitlines()[0]}") from error
    except (ValueError, TypeError, NameError) as error:
        raise UserError(f"--launcher_options: {str(error).splitlines()[0]}") from error

    def handle(job: Any) -> Handle:
        def ended() -> bool:
            # submitit waits for jobs in these states, which SLURM does not start again by itself
            return job.done() or str(job.state).upper().startswith(("PREEMPTED", "TIMEOUT"))

        def result() -> Any:
            if not job.done():
                raise Died(f"{job.state}, its log is {job.paths.stderr}")
            try:
                return job.result()
            except submitit.core.utils.UncompletedJobError as error:  # failed jobs too
                trace = str(error).partition("with trace:")[2].split("You can check full logs")[0]
                why = _last_line(trace) if trace else " ".join(str(error).split())[:300]
                raise Died(f"{why}, its log is {job.paths.stderr}") from error

        return Handle(ended, result, lambda: job.cancel(check=False))

    return [handle(job) for job in submitted]


@contextlib.contextmanager
def _ray(jobs: int, options: Options, copy: Copy, folder: pathlib.Path) -> Iterator[list[Handle]]:
    """Tasks of the Ray cluster at ``address``, else of the cluster that $RAY_ADDRESS names or that runs here,
    else of a new one. Each task takes ``num_cpus`` (1) and ``num_gpus`` (0). Ray does not retry a task whose
    process or node dies: the other copies make what it left."""
    del folder
    module = imported("ray", extra="ray", needed_by="--launcher=ray")
    needs = {"num_cpus": 1, **options}
    address = needs.pop("address", None)
    running = module.is_initialized()
    if not running:
        try:
            module.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            why = str(error).splitlines()[0]
            raise UserError(f"--launcher=ray: no cluster could be reached ({why}).") from error
    try:
        task = module.remote(Copy.__call__).options(**needs, max_retries=0)
    except (TypeError, ValueError) as error:
        raise UserError(f"--launcher_options: {str(error).splitlines()[0]}") from error

    def handle(reference: Any) -> Handle:
        def result() -> Any:
            try:
                return module.get(reference)
            except module.exceptions.RayError as error:
                why = _last_line(str(getattr(error, "cause", None) or error))
                raise Died(why) from error

        def ended() -> bool:
            return bool(module.wait([reference], timeout=0)[0])

        return Handle(ended, result, lambda: module.cancel(reference))

    nodes = [node["Resources"] for node in module.nodes() if node["Alive"]]
    for option, name in (("num_cpus", "CPU"), ("num_gpus", "GPU")):
        most = max((node.get(name, 0) for node in nodes), default=0)
        if needs.get(option, 0) > most:  # a cluster may grow
            print(
                f"--launcher=ray: no node has {option}={needs[option]} now, {most:g} at most: waiting for one",
                file=sys.stderr,
            )
    room = int(module.cluster_resources().get("CPU", 1) / (needs["num_cpus"] or 1))
    try:
        yield [handle(task.remote(copy)) for _ in range(jobs or max(1, room))]
    finally:
        if not running:
            module.shutdown()


LAUNCHERS: Mapping[str, Callable[[int, Options, Copy, pathlib.Path], Any]] = {
    "local": _local,
    "slurm": _slurm,
    "ray": _ray,
}


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    return lines[-1][:300] if lines else "it says nothing"
