"""Measures the programs of attacks on a stored sweep, compiled with each level of ``programs.LEVELS``.

    python -m analysis.benchmark.attack_effort --workdir=runs/quickstart --levels=1,2,full

prints for each program of a bundle of variants the CPU seconds of tracing it, and at each level those of
compiling it and the CPU milliseconds of a trial, from a second call on as many trials as the program takes.
CPU seconds are those of all threads, which other work on the machine moves little. A program that the compile
cache holds is read and not compiled, so name an empty one (``JAX_COMPILATION_CACHE_DIR``).
"""

from __future__ import annotations

import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import jax
import numpy as np

from analysis.benchmark.measuring import markdown
from analysis.readers import protocol
from vfljax import store
from vfljax.api.arguments import Path, checked
from vfljax.api.console import start
from vfljax.api.flags import Command
from vfljax.attack_runs import batching, bundles, run
from vfljax.attack_runs.jobs import UNTRAINED, jobs_of
from vfljax.store.units import ATTACK, shard_unit
from vfljax.sweep import programs

FULL = "full"
HEADER = ("attack", "variants", "trials", "tracing, s", "level", "compiling, s", "a trial, ms")


class Measured(NamedTuple):
    """A program of attacks at a level, with CPU seconds."""

    attack: str
    variants: int
    trials: int  # and baselines of trials, that the sweep has
    tracing: float  # and lowering
    level: str
    compiling: float
    running: float  # of a trial


def measured(
    workdir: pathlib.Path, levels: Sequence[str], only: Sequence[str] = ()
) -> Iterator[Measured]:
    """Yields each program at each level.

    Args:
      workdir: the folder of a sweep that is trained.
      levels: places in ``programs.LEVELS``, or "full".
      only: names of attacks; () for all.
    """
    stored = protocol.opened(workdir, None)
    units = [unit for unit in store.units_of(stored.begun.header) if unit.kind == ATTACK]
    named = (shard["name"] for shard in stored.begun.header["shards"])
    shards = [name for name in named if store.finished(workdir, shard_unit(name))]
    trained = store.read_results(workdir, shards).select(run.TRIAL).to_pylist()
    for name in dict.fromkeys(unit.program for unit in units if not only or unit.program in only):
        keys = dict.fromkeys(unit.of for unit in units if unit.program == name)
        planned = [of for of in (stored.variants[key] for key in keys) if of is not None]
        for bundle in bundles.bundles_of(
            [(of, jobs_of(of, stored.plan, trained)) for of in planned]
        ):
            for level in levels:
                yield _measured(bundle, stored, level)


def _measured(bundle: bundles.Bundle, stored: bundles.Stored, level: str) -> Measured:
    number = None if level == FULL else int(level)
    batch = batching.make_attack_batch(bundle, stored)
    capacity = batch.layout.capacity
    members = [member for member in bundle.members if member.what != UNTRAINED][:capacity]
    inputs: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *map(batch.load, members))
    arguments = batch.layout.pad(inputs), batch.common
    program, compiler = (
        programs.Program(batching.make_attack_member(batch.static), batch.layout, number),
        _Compiler(),
    )
    seconds = _cpu_seconds(lambda: program.compile(*arguments, pool=compiler))

    def call() -> None:
        jax.block_until_ready(program(*arguments, count=capacity))

    call()
    counts = len(bundle.variants), len(bundle.members)
    return Measured(
        batch.static.name,
        *counts,
        seconds - compiler.seconds,
        level,
        compiler.seconds,
        _cpu_seconds(call) / capacity,
    )


class _Compiler(Executor):
    """Does what is submitted at once, and keeps the CPU seconds that it took."""

    seconds = 0.0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        self.seconds = _cpu_seconds(lambda: done.set_result(fn(*args, **kwargs)))
        return done


def _cpu_seconds(do: Callable[[], Any]) -> float:
    began = time.process_time()
    do()
    return time.process_time() - began


@checked
def report(
    workdir: Path, *, levels: Sequence[str] = ("1", "2", FULL), only: Sequence[str] = ()
) -> None:
    """Measure the programs of attacks on a stored sweep by the level with which they are compiled.

        python -m analysis.benchmark.attack_effort --workdir=runs/quickstart

    It prints a row for each program and level, with the CPU seconds of tracing and compiling it and the CPU
    milliseconds of attacking a trial.

    Args:
      workdir: the folder of a sweep that is trained.
      levels: 0 for least effort, 1 for quick, 2 for plain, and full, between commas.
      only: names of attacks, between commas; all by default.
    """
    rows = [
        (
            *(of.attack, f"{of.variants}", f"{of.trials}", f"{of.tracing:.2f}", of.level),
            *(f"{of.compiling:.2f}", f"{1e3 * of.running:.1f}"),
        )
        for of in measured(pathlib.Path(workdir), levels, only)
    ]
    print(markdown(HEADER, rows))


COMMAND = Command(report)

if __name__ == "__main__":
    start(COMMAND, sys.argv[1:], "python -m analysis.benchmark.attack_effort")
