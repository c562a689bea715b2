"""vfljax's time for a trial's step beside that of its peers, on one machine and in turns.

The peers train what vfljax trains: the same network, batch and update (``problem``). They are the least
JAX program that records the same (``minimal``), and PyTorch's ways (``torch_peers``): one trial at a time
on one thread, the same in a process a core, all trials by ``torch.func`` on all cores, and that
compiled, its gradient alone or the whole step. Every turn times each of them once; a ratio is one of the
same turn. Where PyTorch is not installed, its rows are left out and a line says so.
"""

from __future__ import annotations

import contextlib
import functools
import statistics
from collections.abc import Callable, Iterator
from typing import Any

import jax

from analysis.benchmark.measuring import TimedStep, in_turn, markdown, ratios, times
from analysis.benchmark.peers import workers
from analysis.benchmark.peers.minimal import Least
from analysis.benchmark.peers.problem import Problem
from analysis.benchmark.peers.workers import Failed, Worker
from vfljax.models import MLP
from vfljax.types import Spec

SECONDS = 1.0  # of training, each turn
OURS, LEAST = "vfljax", "the least JAX program"
MOST_OF_LEAST, LEAST_OF_TORCH = 1.1, 1.5  # the aims
ENSEMBLES = (
    ("ensemble", "eager"),
    ("gradient", "compiled gradient"),
    ("compiled", "compiled step"),
)
HEADER = ("program", "µs per trial and step (median; range)", "to vfljax's (median; range)")
Measures = dict[str, Callable[[], float]]  # by the program's name: microseconds a trial and step


def problem_of(spec: Spec, columns: int, trials: int) -> Problem:
    """What the peers of ``trials`` trials of a structure of two MLPs train."""
    first, top = spec.bottoms[0], spec.top
    assert isinstance(first, MLP)
    assert isinstance(top, MLP)
    return Problem(
        bottom=(columns, *first.hidden, first.out),
        top=(2 * first.out, *top.hidden, top.out),
        rows=spec.num_rows,
        batch=spec.batch_size,
        trials=trials,
    )


def cores() -> int:
    """Cores for PyTorch: as many as JAX has CPU devices (``vfljax.use_this_machine``), also beside a GPU."""
    return len(jax.devices("cpu"))


def device() -> str:
    """Where PyTorch is to train: on the device that JAX uses."""
    return "cuda" if jax.default_backend() == "gpu" else "cpu"


def torch_rows(problem: Problem, alive: contextlib.ExitStack) -> tuple[Measures, list[str]]:
    """PyTorch's rows, whose processes live as long as ``alive``, and notes: its version, what is left out."""
    if workers.absent():
        return {}, [f"PyTorch's rows are left out. {workers.absent()} brings them."]
    count, where = cores(), device()
    pool = [Worker("eager", problem, k % problem.trials, 1, where) for k in range(count)]
    all_at_once = f"torch.func, {problem.trials} trials at once"
    groups: list[tuple[list[Worker], list[tuple[str, int]]]] = [
        (pool, [("eager, one thread", 1), (f"eager, {count} processes", count)])
    ]
    for form, name in ENSEMBLES:
        worker = Worker(form, problem, 0, count, where)
        groups.append(([worker], [(f"{all_at_once}, {name}", 1)]))
    rows: Measures = {}
    version, left_out = "", []
    for group, names in groups:
        try:
            version = alive.enter_context(workers.started(group))
        except Failed as failed:
            left_out += [f"Left out: PyTorch {name}. {failed}" for name, _ in names]
            continue
        for name, first in names:
            measure = functools.partial(workers.measure, group[:first], SECONDS)
            rows[f"PyTorch {name}"] = measure
    return rows, [*([f"PyTorch is {version}."] if version else []), *left_out]


@contextlib.contextmanager
def eager(
    spec: Spec, columns: int, trials: int
) -> Iterator[tuple[Callable[[], float] | None, str]]:
    """Gives ``measure() -> microseconds a trial and step`` of eager PyTorch, which trains one trial at a
    time on JAX's device, and a note: PyTorch's version. Where it cannot, it gives None and why."""
    with contextlib.ExitStack() as alive:
        measure, note = None, workers.absent()
        if not note:
            pool = [Worker("eager", problem_of(spec, columns, trials), 0, 1, device())]
            try:
                note = f"PyTorch is {alive.enter_context(workers.started(pool))}."
                measure = functools.partial(workers.measure, pool, SECONDS)
            except Failed as failed:
                note = str(failed)
        yield measure, note


def measured(case: TimedStep, problem: Problem, turns: int) -> tuple[dict[str, Any], str]:
    """Figures and table: ``case`` and its peers, ``turns`` times."""
    least = Least(problem)
    least.epoch()  # compiles
    rows: Measures = {
        name: functools.partial(measure, SECONDS)
        for name, measure in ((OURS, case.measure), (LEAST, least.measure))
    }
    with contextlib.ExitStack() as alive:
        torch, notes = torch_rows(problem, alive)
        every = in_turn({**rows, **torch}, turns)
    to_ours = {name: ratios(each, every[OURS]) for name, each in every.items()}
    cells = [
        [name, times(each).shown(".0f"), "1" if name == OURS else to_ours[name].shown(".2f")]
        for name, each in every.items()
    ]
    lines = [markdown(HEADER, cells), "", *(f"- {line}" for line in (*_verdicts(every), *notes))]
    result = {
        "trials": problem.trials,
        "turns": turns,
        "least_width": least.width,
        "rows": [
            {"name": name, "all": each, **times(each)._asdict(), "ratio": to_ours[name]._asdict()}
            for name, each in every.items()
        ],
        "notes": notes,
    }
    return result, "\n".join(lines)


def _verdicts(every: dict[str, list[float]]) -> list[str]:
    """The two ratios that have an aim, each with it."""
    to_least = ratios(every[OURS], every[LEAST])
    lines = [
        f"vfljax takes {to_least.shown('.2f')} times as long as {LEAST}; the aim is at most "
        f"{MOST_OF_LEAST}."
    ]
    torch = [name for name in every if name not in (OURS, LEAST)]
    if torch:
        best = min(torch, key=lambda name: statistics.median(every[name]))
        of_best = ratios(every[best], every[OURS])
        lines.append(
            f"PyTorch's best, {best.removeprefix('PyTorch ')}, takes {of_best.shown('.2f')} times as "
            f"long as vfljax; the aim is at least {LEAST_OF_TORCH}."
        )
    return lines
