"""Measures what a trial costs when many are trained in one program: a suite of ``python -m launch.benchmark``.

8, 50 and 1,000 trials of one two-party MLP structure (32 columns per party, hidden 64-64, cut 16, top 64, 10
classes, batch 256, SGD with momentum) are each one compiled program. The sizes are timed in turn. Read the
ratios and the spread, because single times drift with the machine. The useful rate is 6 operations per weight
and row, divided by the time of a step. It is compared with the rate at which the same devices multiply
1024 x 1024 float32 matrices. ``python -m analysis.benchmark.peers`` compares 50 trials with their peers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax

from analysis.benchmark.measuring import TimedStep, in_turn, markdown, matmul_rate, ratios, times
from vfljax.models import MLP
from vfljax.types import Spec

SIZES = (8, 50, 1000)
COLUMNS = 32
GRID = Spec(
    bottoms=(MLP((64, 64), 16),) * 2,
    top=MLP((64,), 10),
    passive=1,
    num_classes=10,
    num_rows=4096,
    batch_size=256,
    epochs=2,
    optimizers=("sgd",) * 3,
)
# a small step: the quickstart's, but with plain layers in place of the head's batch normalization, so that the
# peers of GRID train it too
SMALL = dataclasses.replace(
    GRID, bottoms=(MLP((64,), 10),) * 2, top=MLP((20,), 10), num_rows=1088, batch_size=32
)


HEADER = (
    "trials",
    "µs per trial and step (median; range)",
    "compiles",
    "first call, s",
    "peak, GiB",
    "useful GFLOP/s",
    "of the matmul rate",
)


def measured(repeats: int, width: int | None) -> tuple[dict[str, Any], str]:
    """Returns the figures and the table of every size.

    Args:
      repeats: turns in which the sizes are measured.
      width: trials mapped at once on a device; None for that of the backend.
    """
    sizes = {str(n): TimedStep(GRID, n, COLUMNS, {}, width) for n in SIZES}
    every = in_turn({name: size.measure for name, size in sizes.items()}, repeats)
    rate = matmul_rate()
    rows, cells = [], []
    for name, size in sizes.items():
        spread = times(every[name])
        useful = 6 * size.weights * GRID.batch_size / spread.median / 1e3
        rows.append(
            {
                "trials": size.trials,
                "microseconds_a_trial_and_step": spread.median,
                "lowest": spread.lowest,
                "highest": spread.highest,
                "compiles": size.program.traces,
                "first_call_seconds": size.first,
                "peak_gib": size.memory,
                "useful_gflops": useful,
            }
        )
        first, memory = f"{size.first:.1f}", f"{size.memory:.2f}"
        cost = [spread.shown(".1f"), str(size.program.traces), first, memory]
        cells.append([f"{size.trials:,}", *cost, f"{useful:.0f}", f"{useful / rate:.0%}"])
    ratio = ratios(every[str(SIZES[-1])], every[str(SIZES[1])]).median
    note = (
        f"1,000 against 50 trials, median of {repeats} pairs: {ratio:.2f}. Matrix multiply: {rate:.0f} "
        f"GFLOP/s on {jax.device_count()} {jax.default_backend()} device(s)."
    )
    result = {
        "width": sizes[str(SIZES[-1])].program.layout.width,
        "matmul_gflops": rate,
        "ratio_1000_to_50": ratio,
        "rows": rows,
    }
    return result, f"{markdown(HEADER, cells)}\n\n{note}"
