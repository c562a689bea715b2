"""The command ``python -m launch.benchmark``."""

from __future__ import annotations

import json
import pathlib

from vfljax.api.arguments import Path, Whole, checked
from vfljax.api.flags import Command
from vfljax.errors import UserError, argument, check_choice

RESULTS = pathlib.Path("analysis/results/benchmark")
SUITES = ("grid", "defenses", "convolutions", "gpu")


@checked
def run(
    suite: str = "grid",
    *,
    out: Path | None = None,
    write: bool = False,
    repeats: Whole = 0,
    width: Whole = 0,
    only: str = "",
) -> None:
    """Measure what a trial costs when many are trained in one program.

        python -m launch.benchmark --suite=grid --out=runs/benchmark
        python -m launch.benchmark --suite=defenses --out=runs/benchmark
        python -m launch.benchmark --suite=convolutions --out=runs/benchmark
        python -m launch.benchmark --suite=gpu --write

    The docstrings of the modules in ``analysis.benchmark`` describe what each suite measures and how. It writes
    SUITE.json and SUITE.md to the folder of --out, or with --write among the stored results of a checkout.

    Args:
      suite: what to measure: grid, defenses, convolutions, gpu.
      out: folder for the JSON and the table.
      write: write to analysis/results/benchmark, in a checkout's folder, and not to --out.
      repeats: times each size is measured, in turn; 0: 5, and 9 on a GPU.
      width: trials mapped at once on a device; 0: by backend.
      only: suite defenses: one defense's row.
    """
    import jax

    from analysis.benchmark import convolutions, defense_cost, gpu, grid_speed
    from analysis.benchmark.measuring import machine
    from analysis.benchmark.peers.comparison import eager

    check_choice(argument("suite"), suite, SUITES)
    if write and not RESULTS.is_dir():
        raise UserError(f"--write: there is no {RESULTS} here", remedy="run it in a checkout")
    if write and suite == "gpu" and jax.default_backend() == "cpu":
        raise UserError("--write: JAX finds no GPU", remedy="install .[cuda], or choose --out=DIR")
    if out is None and not write:
        remedy = "give a folder for JSON and table"
        raise UserError("is needed", field=argument("out"), remedy=remedy)
    folder = RESULTS if write else pathlib.Path(out or "")
    networks = 2 * jax.device_count() if jax.default_backend() == "cpu" else 16
    suites = {
        "grid": lambda: grid_speed.measured(repeats or 5, width or None),
        "defenses": lambda: defense_cost.measured(repeats or 5, width or None, only),
        "convolutions": lambda: convolutions.measured(repeats or 5, networks),
        "gpu": lambda: gpu.measured(repeats or 9, eager=eager),
    }
    result, text = suites[suite]()
    described = json.dumps({**machine(suite), **result}, indent=1)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{suite}.json").write_text(described)
    (folder / f"{suite}.md").write_text(text + "\n")
    print(text)


COMMAND = Command(run)
