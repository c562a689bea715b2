"""Measure what a trial costs when many are trained in one program.

    vfljax benchmark --suite=grid --out=runs/benchmark
    vfljax benchmark --suite=defenses --out=runs/benchmark
    vfljax benchmark --suite=convolutions --out=runs/benchmark
    vfljax benchmark --suite=gpu --out=runs/benchmark

The docstrings of the modules in ``vfljax.benchmark`` describe what each suite measures and how. It writes
SUITE.json and SUITE.md to the folder of --out.
"""

from __future__ import annotations

import json
import pathlib

from vfljax.cli.common import Flag, Options
from vfljax.errors import UserError

RESUMES = False
SUITES = ("grid", "defenses", "convolutions", "gpu")
FLAGS = (
    Flag("suite", f"what to measure: {', '.join(SUITES)}", "grid"),
    Flag("out", "folder for the JSON and the table"),
    Flag("repeats", "times each size is measured, in turn; 0: 5, and 9 on a GPU", 0, least=0),
    Flag("width", "trials mapped at once on a device; 0: by backend", 0),
    Flag("only", "suite defenses: one defense's row", ""),
)


def run(options: Options) -> None:
    """Measure a suite, and write and print its table."""
    import jax

    from vfljax.benchmark import convolutions, defense_cost, gpu, grid_speed
    from vfljax.benchmark.measuring import machine

    if options.suite not in SUITES:
        raise UserError(f"--suite={options.suite!r} is unknown: choose {', '.join(SUITES)}.")
    out = pathlib.Path(options.required("out", "a folder for the JSON and the table"))
    repeats, width = options.repeats or 5, options.width or None
    suites = {
        "grid": lambda: grid_speed.measured(repeats, width),
        "defenses": lambda: defense_cost.measured(repeats, width, options.only),
        "convolutions": lambda: convolutions.measured(repeats, 2 * jax.device_count()),
        "gpu": lambda: gpu.measured(options.repeats or 9),
    }
    result, text = suites[options.suite]()
    described = json.dumps({**machine(options.suite), **result}, indent=1)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{options.suite}.json").write_text(described)
    (out / f"{options.suite}.md").write_text(text + "\n")
    print(text)
