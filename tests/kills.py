"""Kill a sweep at random moments, resume it until it ends, and compare its tables.

    python -m tests.kills --config=configs/quickstart.py --workdir=runs/kills --kills=50 --seed=0 \\
        -- --config.seeds=60

The sweep runs once uninterrupted, unless ``--reference`` names one that did. It then runs again, is ended by
SIGKILL, with every process that it began, and is resumed by the same command until it ends by itself. The
moments of the kills that are still to come are uniform over the time that the sweep is expected to take yet,
so they strike imports, training, saving, attacks and the report. Kills that a sweep leaves over, because it
ended sooner than expected, strike another one. All that follows ``--`` is given to ``launch.sweep``. The exit
status is 0 where results, attacks and the report's text equal those of the uninterrupted sweep, but for
times, and 1 otherwise.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.damage import Figures, figures
from vfljax import store
from vfljax.store.units import SHARD

ROOT = pathlib.Path(__file__).parents[1]
POLL = 0.01  # seconds between two looks at a process
BEGUN = " trials in "  # what a sweep says when it is planned
RESTART = 8.0  # seconds of imports and planning, where no uninterrupted run was watched
MARK = "VFLJAX_KILLS"  # in the environment of all that a command begins, sessions of their own too


class Run(NamedTuple):
    """A process that has ended: its exit status, None where it was killed, its seconds and what it said."""

    status: int | None
    seconds: float
    text: str


def run_until(
    command: list[str], log: pathlib.Path, when: Callable[[], bool], **environment: str
) -> Run:
    """Run a command until it ends, or kill it as soon as ``when()`` holds; what it says goes to ``log``."""
    mark, began = f"{MARK}={uuid.uuid4().hex}", time.monotonic()
    variables = os.environ | environment | {"PYTHONUNBUFFERED": "1", MARK: mark.split("=")[1]}
    with log.open("w") as said:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=variables,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None and not when():
                time.sleep(POLL)
            status = process.poll()
        finally:
            if process.poll() is None:
                kill_all(process, mark)
    return Run(status, time.monotonic() - began, log.read_text())


def kill_all(process: subprocess.Popen[Any], mark: str) -> None:
    """SIGKILL a process, its group, and whatever else was begun with ``mark`` in its environment."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while alive := list(marked(mark)):
        for number in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(POLL)


def marked(mark: str) -> Iterator[int]:
    """The processes with ``mark`` in their environment; none where there is no /proc."""
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            if mark.encode() in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def phase_of(workdir: pathlib.Path, text: str) -> str:
    """What a process that was killed was doing, from what is stored and what it had said."""
    writing = " (writing)" if any(workdir.rglob(".*.tmp")) else ""
    if BEGUN not in text:
        return f"start{writing}"
    units = store.units_of(store.read_header(workdir))
    if not all(store.finished(workdir, unit.name) for unit in units if unit.kind == SHARD):
        return f"training{writing}"
    return f"{'report' if (workdir / 'attacks.parquet').exists() else 'attacks'}{writing}"


def next_kill(left: float, kills: int, rng: random.Random) -> float:
    """The first of ``kills`` moments that are uniform over the ``left`` seconds."""
    return left * (1 - rng.random() ** (1 / kills))


class Whole(NamedTuple):
    """An uninterrupted sweep: what it found, its seconds, and those of them before it was planned."""

    figures: Figures
    seconds: float
    start: float


def killed_sweep(
    command: list[str], workdir: pathlib.Path, whole: Whole, kills: int, rng: random.Random
) -> list[str]:
    """Run a sweep until it ends by itself, with up to ``kills`` kills on the way; returns the phases they
    struck. What a process did before the sweep was planned, its successor does again."""
    phases, left = [], whole.seconds
    log = workdir.with_name(f"{workdir.name}.log")
    while True:
        more = kills - len(phases)
        delay = next_kill(left, more, rng) if more else float("inf")
        moment = time.monotonic() + delay
        run = run_until(command, log, lambda moment=moment: time.monotonic() >= moment)
        if run.status is not None:
            require_success(run)
            return phases
        phases.append(phase_of(workdir, run.text))
        print(f"kill {len(phases)} after {run.seconds:.1f} s: {phases[-1]}", flush=True)
        left = max(left - max(0.0, run.seconds - whole.start), 2 * whole.start)


def require_success(run: Run) -> None:
    if run.status != 0:
        raise SystemExit(f"launch.sweep ended with {run.status}:\n{run.text}")


def differences(whole: Figures, killed: Figures) -> list[str]:
    """How the tables of a killed sweep differ from those of a whole one, a line each; none where they are
    equal but for times."""
    lines = []
    for name in ("results", "attacks"):
        one, other = getattr(whole, name), getattr(killed, name)
        if len(one) != len(other):
            lines.append(f"{name}: {len(other)} rows instead of {len(one)}")
        for number, (row, another) in enumerate(zip(one, other)):
            columns = [c for c in row.keys() | another.keys() if row.get(c) != another.get(c)]
            lines += [
                f"{name}, row {number}, {column}: {another.get(column)} instead of {row.get(column)}"
                for column in sorted(columns)
            ]
    if not lines and whole.text != killed.text:
        lines.append("the report's text differs")
    return lines


def counted(phases: list[str]) -> str:
    return ", ".join(f"{n} in {phase}" for phase, n in collections.Counter(phases).most_common())


def sweep_command(config: str, workdir: pathlib.Path, rest: list[str]) -> list[str]:
    options = [f"--config={config}", f"--workdir={workdir}", *rest]
    return [sys.executable, "-m", "launch.sweep", *options]


def whole_sweep(arguments: argparse.Namespace) -> Whole:
    """The sweep that ``--reference`` names, or one that is run now."""
    if arguments.reference:
        return Whole(figures(arguments.reference), arguments.seconds, RESTART)
    workdir, log = arguments.workdir / "reference", arguments.workdir / "reference.log"
    planned: list[float] = []

    def watch() -> bool:
        if not planned and BEGUN in log.read_text():
            planned.append(time.monotonic() - began)
        return False

    began = time.monotonic()
    run = run_until(sweep_command(arguments.config, workdir, arguments.rest), log, watch)
    require_success(run)
    start = planned[0] if planned else RESTART
    print(f"uninterrupted: {run.seconds:.0f} s, of them {start:.0f} s of start", flush=True)
    return Whole(figures(workdir), run.seconds, start)


def parsed() -> argparse.Namespace:
    text = {"description": __doc__, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(
        usage="python -m tests.kills OPTIONS [-- SWEEP_OPTIONS]", **text
    )
    parser.add_argument("--config", required=True, help="a config file")
    parser.add_argument("--workdir", required=True, type=pathlib.Path, help="a new folder")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills")
    parser.add_argument("--reference", type=pathlib.Path, help="a finished sweep of this config")
    parser.add_argument("--seconds", type=float, help="that the reference took; needed with it")
    parser.add_argument("rest", nargs="*", help="options of launch.sweep")
    arguments = parser.parse_args()
    if (arguments.reference is None) != (arguments.seconds is None):
        parser.error("--reference and --seconds need each other")
    if arguments.workdir.exists():
        parser.error(f"--workdir={arguments.workdir} exists: name a new folder")
    return arguments


def main() -> int:
    arguments = parsed()
    arguments.workdir.mkdir(parents=True)
    arguments.workdir = arguments.workdir.resolve()
    whole = whole_sweep(arguments)
    rng, phases, sweeps, began = random.Random(arguments.seed), [], 0, time.monotonic()
    lines: list[str] = []
    while len(phases) < arguments.kills and not lines:
        workdir, sweeps = arguments.workdir / f"killed{sweeps}", sweeps + 1
        command = sweep_command(arguments.config, workdir, arguments.rest)
        phases += killed_sweep(command, workdir, whole, arguments.kills - len(phases), rng)
        lines = differences(whole.figures, figures(workdir))
        lines += [f"damaged: {f.unit}" for f in store.inspect(workdir) if f.state == "damaged"]
    for line in lines[:20]:
        print(line)
    took = time.monotonic() - began
    print(f"{len(phases)} kills over {sweeps} sweeps in {took:.0f} s: {counted(phases)}")
    print("other tables" if lines else "the same tables")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
