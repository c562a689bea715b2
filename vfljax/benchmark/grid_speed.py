"""What a setting costs when many are trained in one program: a suite of ``vfljax benchmark``.

8, 50 and 1,000 settings of one two-party MLP structure (32 columns a party, hidden 64-64, cut 16, top
64, 10 classes, batch 256, SGD with momentum), each size one compiled program. The sizes are timed in
turn; read the ratios and the spread, single times drift with the machine. Useful rate: 6 operations a
weight and row over the time of a step, beside the rate at which the same devices multiply
1024 x 1024 float32 matrices. ``python -m analysis.benchmark_peers`` compares 50 of them with their peers.
"""

from __future__ import annotations

import statistics
from typing import Any

import jax

from vfljax.benchmark.measuring import TimedStep, matmul_rate
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


def measured(repeats: int, width: int | None) -> tuple[dict[str, Any], str]:
    """Figures and table: every size in turn, ``repeats`` times."""
    sizes = [TimedStep(GRID, n, COLUMNS, {}, width) for n in SIZES]
    for _ in range(repeats):
        for size in sizes:
            size.measure()
    rate = matmul_rate()
    rows = []
    for size in sizes:
        median = statistics.median(size.microseconds)
        rows.append(
            {
                "settings": size.settings,
                "microseconds_a_setting_and_step": median,
                "lowest": min(size.microseconds),
                "highest": max(size.microseconds),
                "compiles": size.program.traces,
                "first_call_seconds": size.first,
                "peak_gib": size.memory,
                "useful_gflops": 6 * size.weights * GRID.batch_size / median / 1e3,
            }
        )
    pairs = zip(sizes[-1].microseconds, sizes[1].microseconds, strict=True)
    result = {
        "width": sizes[-1].program.layout.width,
        "matmul_gflops": rate,
        "ratio_1000_to_50": statistics.median(a / b for a, b in pairs),
        "rows": rows,
    }
    lines = [
        "| settings | us a setting and step (median; range) | compiles | first call, s | peak, GiB | "
        "useful GFLOP/s | of the matmul rate |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['settings']:,} | {r['microseconds_a_setting_and_step']:.1f} ({r['lowest']:.1f} to "
            f"{r['highest']:.1f}) | {r['compiles']} | {r['first_call_seconds']:.1f} | "
            f"{r['peak_gib']:.2f} | {r['useful_gflops']:.0f} | {r['useful_gflops'] / rate:.0%} |"
        )
    lines.append(
        f"\n1,000 against 50 settings, median of {repeats} pairs: "
        f"{result['ratio_1000_to_50']:.2f}. Matrix multiply: {rate:.0f} GFLOP/s on "
        f"{jax.device_count()} {jax.default_backend()} device(s)."
    )
    return result, "\n".join(lines)
