"""Ends copies of ``vfljax sweep`` at random moments, and compares the tables with those of one copy.

    python -m tests.kills                          # 50 sweeps by three copies, one of which is killed
    python -m tests.kills --copies=1               # each by one command after another, all but the last killed
    python -m tests.kills --signal=TERM            # or INT
    python -m tests.kills --trials=5 -- --launcher=local --jobs=2

A sweep is run by some copies of the same command, in one folder. At a moment that is uniform over the time that
the sweep takes, one copy gets a signal, with every process that it began. If it was the only one, the command
is run again, and so on. All other copies must end with status 0, and results, attacks and baselines must be
those of a sweep that nothing happened to, bit for bit but for times. No unit may be stored twice, and nothing
may be left of unfinished work. Progress is saved after every epoch and call. What follows ``--`` is given to
the command. The exit status is 0 if all is well.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa

from tests.sweeps import tiny
from vfljax import store
from vfljax.api import commands, console
from vfljax.scheduling import running
from vfljax.store import units
from vfljax.store.loading import TIMES
from vfljax.sweep import shard_trainer

# of two programs and several shards, with teachers, and attacks that know labels and that know none
CONFIG = tiny(
    data={"name": "digits", "train": 96, "validation": 64, "test": 64, "scaling": "range"},
    federations=("no_split",),
    grid={"kdk": {"kdk": {"epsilon": (0.0, 0.45), "k": 2}}, "noise": {"noise": {"scale": 0.01}}},
    attacks={"direct": {"rule": "most_negative"}, "probe": {"known": 20, "steps": 20}},
    **{"execution.shard_seconds": 0.001},
)
PROGRAM = """
from vfljax.config import ordered

def get_config():
    return ordered({config!r})
"""
MADE = "made.log"  # in the folder of a sweep: a line for each unit that a copy has moved into place
LEFT = ("partial",)


def config_file(folder: pathlib.Path) -> pathlib.Path:
    """Writes ``CONFIG`` as a config file."""
    path = folder / "small.py"
    path.write_text(PROGRAM.format(config=CONFIG))
    return path


def start(workdir: pathlib.Path, flags: Sequence[str], log: pathlib.Path | None = None) -> int:
    """Starts a copy of the command. Returns its process. What it says goes to ``log``, else to a file in
    ``workdir``."""

    def run() -> NoReturn:
        shard_trainer.SAVE_SECONDS = 0.0
        running.report = lambda workdir, verbose=False: str(workdir)  # which reads and takes long
        note_units(workdir)
        given = [f"--workdir={workdir}", *flags]
        console.start(commands.COMMANDS["sweep"], given, "vfljax sweep")

    workdir.mkdir(exist_ok=True)
    return forked(run, log or workdir / "said.log")


def forked(run: Callable[[], int], log: pathlib.Path) -> int:
    """Runs a function in another process, in a process group of its own. Returns the process.

    It is a fork, which has imported everything. Nothing may have begun to use JAX's devices before. It ends
    with the status that the function returns, and what it says is appended to ``log``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of forks
        process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.setsid()
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(said, stream)
        status = run()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status)


def note_units(workdir: pathlib.Path) -> None:
    """Lets this process note each unit that it has moved into place, or has found there and dropped."""
    new_folder, log = units.new_folder, workdir / MADE

    @contextlib.contextmanager
    def noting(workdir: pathlib.Path, unit: str, *rest: Any, **more: Any) -> Iterator[pathlib.Path]:
        with new_folder(workdir, unit, *rest, **more) as folder:
            yield folder
        with contextlib.suppress(OSError), log.open("a") as file:  # the disk may be full
            file.write(f"{unit}\n")

    units.new_folder = noting


def end(process: int, number: int) -> int:
    """Sends a signal to a copy, SIGKILL to its whole group, and waits for it. Returns its exit status."""
    with contextlib.suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(process, number)
        else:
            os.kill(process, number)
    return wait(process)


def wait(process: int) -> int:
    """Waits for a copy. Returns its exit status, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def figures(workdir: pathlib.Path) -> dict[str, pa.Table]:
    """Returns the tables of a finished sweep without times. Raises UserError as the report does."""
    sweep = store.load(workdir)
    sweep.require_finished()
    tables = {n: getattr(sweep, n) for n in ("results", "attacks", "local_only")}
    return {n: t.drop_columns([c for c in TIMES if c in t.column_names]) for n, t in tables.items()}


def bits(tables: dict[str, pa.Table]) -> dict[str, bytes]:
    """Returns each table as bytes; NaN equals itself."""
    out = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        whole = table.combine_chunks().replace_schema_metadata()
        with pa.ipc.new_stream(sink, whole.schema) as stream:
            stream.write_table(whole)
        out[name] = sink.getvalue().to_pybytes()
    return out


def faults(workdir: pathlib.Path, expected: dict[str, bytes]) -> list[str]:
    """Returns what is wrong with a sweep that has ended."""
    found = bits(figures(workdir))
    lines = [f"other {name}" for name in expected if found[name] != expected[name]]
    lines += [f"{f.unit}: {f.state}, {f.why}" for f in store.inspect(workdir) if f.state != "sound"]
    names = [unit.name for unit in store.units_of(store.read_header(workdir))]
    made = collections.Counter((workdir / MADE).read_text().split())
    lines += [f"{name} was made {made[name]} times" for name in names if made[name] > 1]
    return lines + left_over(workdir)


def left_over(workdir: pathlib.Path) -> list[str]:
    """Returns lines on what is left of unfinished work."""
    files = [path for folder in LEFT for path in (workdir / folder).rglob("*") if path.is_file()]
    return [f"left: {path}" for path in (*files, *workdir.rglob(".*.tmp"))]


def trial(
    workdir: pathlib.Path,
    flags: Sequence[str],
    copies: int,
    number: int,
    seconds: float,
    rng: random.Random,
) -> tuple[list[int], list[int]]:
    """Runs a sweep by copies of a command of which one gets a signal.

    Returns:
      The exit statuses of the copies that got a signal, and those of the others.
    """
    processes = [start(workdir, flags) for _ in range(copies)]
    struck = []
    while True:
        time.sleep(rng.uniform(0.0, seconds * (1 + len(struck) / 4)))  # it must end some time
        victim = processes.pop(rng.randrange(len(processes)))
        struck.append(end(victim, number))
        if processes:
            return struck, [wait(process) for process in processes]
        if struck[-1] == 0:  # the only one, and it was done before
            return struck[:-1], struck[-1:]
        processes = [start(workdir, flags)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--signal", choices=("KILL", "TERM", "INT"), default="KILL")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, help="keeps the sweeps; must be absent")
    parser.add_argument("flags", nargs="*", help="of the command")
    given = parser.parse_args()
    number, rng, bad = signal.Signals[f"SIG{given.signal}"], random.Random(given.seed), 0
    with contextlib.ExitStack() as stack:
        folder = given.folder or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=not given.folder)
        flags = [f"--config={config_file(folder)}", *given.flags]
        whole = folder / "whole"
        if status := wait(start(whole, flags)):
            raise SystemExit(f"the sweep ended with {status}: {(whole / 'said.log').read_text()}")
        expected, began = bits(figures(whole)), time.monotonic()
        wait(start(folder / "warm", flags))  # with all programs in the cache
        seconds, struck = time.monotonic() - began, collections.Counter[int]()
        print(f"one copy takes {seconds:.0f} s", flush=True)
        for place in range(given.trials):
            workdir = folder / f"{place:03d}"
            ends, others = trial(workdir, flags, given.copies, number, seconds, rng)
            lines = [f"a copy ended with {status}" for status in others if status]
            try:
                lines += faults(workdir, expected)
            except Exception as error:
                lines.append(repr(error))
            struck.update(ends)
            print(
                f"{workdir.name}: signaled {ends}, others {others}: {lines or 'well'}", flush=True
            )
            bad += bool(lines)
    print(
        f"{bad} of {given.trials} sweeps went wrong; what got the signal ended with {dict(struck)}"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
