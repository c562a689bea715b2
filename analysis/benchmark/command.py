"""Measure what a trial costs when many are trained in one program.

    python -m launch.benchmark --suite=grid --out=runs/benchmark
    python -m launch.benchmark --suite=defenses --out=runs/benchmark
    python -m launch.benchmark --suite=convolutions --out=runs/benchmark
    python -m launch.benchmark --suite=gpu --write

The docstrings of the modules in ``analysis.benchmark`` describe what each suite measures and how. It writes
SUITE.json and SUITE.md to the folder of --out, or with --write among the stored results of a checkout.
"""

from __future__ import annotations

import json
import pathlib

from vfljax.cli.common import Flag, Options
from vfljax.errors import UserError

RESUMES = False
RESULTS = pathlib.Path("analysis/results/benchmark")
SUITES = ("grid", "defenses", "convolutions", "gpu")
FLAGS = (
    Flag("suite", f"what to measure: {', '.join(SUITES)}", "grid"),
    Flag("out", "folder for the JSON and the table", path=True),
    Flag("write", f"write to {RESULTS}, in a checkout's folder, and not to --out", False),
    Flag("repeats", "times each size is measured, in turn; 0: 5, and 9 on a GPU", 0, least=0),
    Flag("width", "trials mapped at once on a device; 0: by backend", 0),
    Flag("only", "suite defenses: one defense's row", ""),
)


def run(options: Options) -> None:
    """Measure a suite, and write and print its table."""
    import jax

    from analysis.benchmark import convolutions, defense_cost, gpu, grid_speed
    from analysis.benchmark.measuring import machine
    from analysis.benchmark.peers.comparison import eager

    if options.suite not in SUITES:
        raise UserError(f"--suite={options.suite!r} is unknown: choose {', '.join(SUITES)}.")
    if options.write and not RESULTS.is_dir():
        raise UserError(f"--write: there is no {RESULTS} here", remedy="run it in a checkout")
    if options.write and options.suite == "gpu" and jax.default_backend() == "cpu":
        raise UserError("--write: JAX finds no GPU", remedy="install .[cuda], or choose --out=DIR")
    out = RESULTS if options.write else options.required("out", "a folder for JSON and table")
    out = pathlib.Path(out)
    repeats, width = options.repeats or 5, options.width or None
    networks = 2 * jax.device_count() if jax.default_backend() == "cpu" else 16
    suites = {
        "grid": lambda: grid_speed.measured(repeats, width),
        "defenses": lambda: defense_cost.measured(repeats, width, options.only),
        "convolutions": lambda: convolutions.measured(repeats, networks),
        "gpu": lambda: gpu.measured(options.repeats or 9, eager=eager),
    }
    result, text = suites[options.suite]()
    described = json.dumps({**machine(options.suite), **result}, indent=1)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{options.suite}.json").write_text(described)
    (out / f"{options.suite}.md").write_text(text + "\n")
    print(text)
