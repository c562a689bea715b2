"""Measure what a trial costs when many are trained in one program.

    vfljax benchmark --suite=grid --out=runs/benchmark
    vfljax benchmark --suite=defenses --out=runs/benchmark
    vfljax benchmark --suite=convolutions --out=runs/benchmark
    vfljax benchmark --suite=gpu --out=runs/benchmark

The docstrings of the modules in ``vfljax.benchmark`` describe what each suite measures and how. It writes
SUITE.json and SUITE.md to the folder of --out.
"""

from __future__ import annotations

from typing import Any

from vfljax.cli import common
from vfljax.errors import UserError

RESUMES = False
SUITES = ("grid", "defenses", "convolutions", "gpu")


def define(options: common.Options) -> None:
    """Define the flags of the command."""
    options.add("suite", f"what to measure: {', '.join(SUITES)}", "grid")
    options.add("out", "folder for the JSON and the table")
    options.add("repeats", "times each size is measured, in turn; 0: 5, and 9 on a GPU", 0, least=0)
    options.add("width", "trials mapped at once on a device; 0: by backend", 0)
    options.add("only", "suite defenses: one defense's row", "")


def run(options: common.Options) -> None:
    """Measure a suite, and write and print its table."""
    import json
    import pathlib

    from vfljax.benchmark.measuring import machine

    if options.suite not in SUITES:
        raise UserError(f"--suite={options.suite!r} is unknown: choose {', '.join(SUITES)}.")
    out = pathlib.Path(options.required("out", "a folder for the JSON and the table"))
    result, text = _measured(options)
    described = json.dumps({**machine(options.suite), **result}, indent=1)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{options.suite}.json").write_text(described)
    (out / f"{options.suite}.md").write_text(text + "\n")
    print(text)


def _measured(options: common.Options) -> tuple[dict[str, Any], str]:
    import jax

    from vfljax.benchmark import convolutions, defense_cost, gpu, grid_speed

    repeats, width = options.repeats or 5, options.width or None
    if options.suite == "grid":
        return grid_speed.measured(repeats, width)
    if options.suite == "defenses":
        return defense_cost.measured(repeats, width, options.only)
    if options.suite == "convolutions":
        return convolutions.measured(repeats, 2 * jax.device_count())
    return gpu.measured(options.repeats or 9)
