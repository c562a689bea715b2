"""The engines that start workers elsewhere: submitit on this machine or SLURM, and Ray.

An engine starts workers and gives a ``Handle`` for each; it queues, places and restarts them itself. Both
packages are optional extras.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax

from vfljax.errors import UserError, imported, unknown
from vfljax.launching.worker import Worker, perform
from vfljax.machine import cores

# minutes: local processes have no limit; SLURM requeues jobs that have reached theirs
FOREVER, LIMIT = 60 * 24 * 365, 240
REQUEUES = 1000  # how often a job may be requeued; it continues where it was
SEVERAL = ("nodes", "tasks_per_node", "ntasks_per_node")  # must be 1: a job is one process
ARRAY = 16  # tasks of a SLURM array, if --jobs is not given


class Handle(NamedTuple):
    """A worker that was started."""

    ended: Callable[[], bool]  # whether it has ended, or its engine has taken it away
    why: Callable[
        [], str
    ]  # of one that has ended: why it died, "" if it has not; raises a user's error
    cancel: Callable[[], object]


class Engine(NamedTuple):
    """Where workers run: how many run at once, and the function that starts so many."""

    jobs: int
    start: Callable[[Worker, int, pathlib.Path], list[Handle]]


Options = Mapping[str, Any]


@contextlib.contextmanager
def _local(jobs: int, options: Options) -> Iterator[Engine]:
    """Processes of this machine, through submitit's local executor; they share its cores."""
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

    def executor(folder: pathlib.Path) -> Any:
        local = submitit.LocalExecutor(folder, max_num_timeout=REQUEUES)
        local.update_parameters(**{"timeout_min": FOREVER, **options})
        return local

    yield Engine(jobs or cores(), _submitit(submitit, executor, "local"))


@contextlib.contextmanager
def _slurm(jobs: int, options: Options) -> Iterator[Engine]:
    """A job array of a SLURM cluster, through submitit. ``options`` are those of submitit's executor, such as
    ``slurm_partition``, ``timeout_min``, ``gpus_per_node``, ``cpus_per_task`` and ``mem_gb``."""
    submitit = imported("submitit", extra="launch", needed_by="--launcher=slurm")

    def executor(folder: pathlib.Path) -> Any:
        try:
            cluster = submitit.AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=REQUEUES)
        except RuntimeError as error:  # there is no srun
            raise UserError(
                "--launcher=slurm: this machine has no srun: start it where sbatch works, or choose "
                "--launcher=local or ray."
            ) from error
        cluster.update_parameters(**{"timeout_min": LIMIT, "name": "vfljax", **options})
        return cluster

    yield Engine(jobs or ARRAY, _submitit(submitit, executor, "slurm"))


@contextlib.contextmanager
def _ray(jobs: int, options: Options) -> Iterator[Engine]:
    """Tasks of the Ray cluster at ``address``, else of the cluster that $RAY_ADDRESS names or that runs here,
    else of a new one. Each task takes ``num_cpus`` (1) and ``num_gpus`` (0). Ray does not retry a task whose
    process or node dies: another worker is started (``pulling``)."""
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
        task = module.remote(perform).options(**needs, max_retries=0)
    except (TypeError, ValueError) as error:
        raise UserError(f"--launcher_options: {str(error).splitlines()[0]}") from error

    def handle(worker: Worker) -> Handle:
        reference = task.remote(worker)

        def why() -> str:
            try:
                return _checked(module.get(reference))
            except module.exceptions.RayError as error:
                return _last_line(str(getattr(error, "cause", None) or error))

        return Handle(
            lambda: bool(module.wait([reference], timeout=0)[0]),
            why,
            lambda: module.cancel(reference),
        )

    nodes = [node["Resources"] for node in module.nodes() if node["Alive"]]
    for option, name in (("num_cpus", "CPU"), ("num_gpus", "GPU")):
        most = max((node.get(name, 0) for node in nodes), default=0)
        if needs.get(option, 0) > most:  # a cluster may grow
            print(
                f"--launcher=ray: no node has {option}={needs[option]} now, {most:g} at most: waiting for one",
                file=sys.stderr,
            )
    room = module.cluster_resources().get("CPU", 1) / (needs["num_cpus"] or 1)
    try:
        yield Engine(
            jobs or max(1, int(room)), lambda worker, n, _: [handle(worker) for _ in range(n)]
        )
    finally:
        if not running:
            module.shutdown()


ENGINES: dict[str, Callable[[int, Options], contextlib.AbstractContextManager[Engine]]] = {
    "local": _local,
    "slurm": _slurm,
    "ray": _ray,
}


def opened(name: str, jobs: int, options: Options) -> contextlib.AbstractContextManager[Engine]:
    """Opens the engine of a name.

    Args:
      name: a key of ``ENGINES``.
      jobs: how many run at once; 0: as many as the engine has room for.
      options: of the engine.

    Raises:
      UserError: for an unknown engine, one whose package is not installed, and options it does not know.
    """
    if name not in ENGINES:
        raise unknown("launcher", name, ["inline", *ENGINES])
    for key, value in options.items():
        if key.removeprefix("slurm_") in SEVERAL and value != 1:
            raise UserError(
                f"--launcher_options={key}={value}: a job is one process; choose how many there are by --jobs."
            )
    return ENGINES[name](jobs, options)


def _submitit(
    submitit: Any, executor_of: Callable[[pathlib.Path], Any], name: str
) -> Callable[[Worker, int, pathlib.Path], list[Handle]]:
    """Returns a function that starts workers through submitit, whose files only this user may read."""

    def handle(job: Any) -> Handle:
        def ended() -> bool:
            # submitit waits for jobs in these states, which SLURM does not start again by itself
            return job.done() or str(job.state).upper().startswith(("PREEMPTED", "TIMEOUT"))

        def why() -> str:
            if not job.done():
                return f"{job.state} (log: {job.paths.stderr})"
            try:
                return _checked(job.result())
            except submitit.core.utils.UncompletedJobError as error:  # failed jobs too
                return f"{_reason(str(error))} (log: {job.paths.stderr})"

        return Handle(ended, why, lambda: job.cancel(check=False))

    def start(worker: Worker, count: int, folder: pathlib.Path) -> list[Handle]:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                submitted = executor_of(folder).submit_array([worker] * count)
        except UserError:  # it is a ValueError, which is caught below
            raise
        except submitit.core.utils.FailedJobError as error:  # sbatch refuses it
            raise UserError(f"--launcher={name}: {_last_line(str(error))}") from error
        except submitit.core.utils.FailedSubmissionError as error:
            # submitit does not understand the answer of sbatch
            raise UserError(f"--launcher={name}: {str(error).splitlines()[0]}") from error
        except (ValueError, TypeError, NameError) as error:
            raise UserError(f"--launcher_options: {str(error).splitlines()[0]}") from error
        return [handle(job) for job in submitted]

    return start


def _checked(line: str) -> str:
    """Returns "" for a worker that ended well. Another worker would end with the same error of a user."""
    if line:
        raise UserError(line)
    return ""


def _reason(text: str) -> str:
    """Returns why a job of submitit ended: the error of its traceback, else the first lines of submitit."""
    known, is_there, trace = text.partition("with trace:")
    if is_there:
        error = _last_line(trace.split("You can check full logs")[0])
        return error.removeprefix(f"{UserError.__module__}.{UserError.__name__}: ")
    lines = [line.strip() for line in known.splitlines() if line.strip()]
    return " ".join(lines[:2])[:300]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    return lines[-1][:300] if lines else "it says nothing"
