"""Measure what a setting costs when many are trained in one program.

    python -m launch.benchmark --suite=grid --out=runs/benchmark
    python -m launch.benchmark --suite=defenses --out=runs/benchmark
    python -m launch.benchmark --suite=convolutions --out=runs/benchmark
    python -m launch.benchmark --suite=reading --out=runs/benchmark
    python -m launch.benchmark --suite=gpu --out=runs/benchmark

Each suite is a module of ``vfljax.benchmark``, whose docstring says what is measured and how. It writes
SUITE.json and SUITE.md to the folder of --out. What is compared with PyTorch needs the extra "parity"; suite
convolutions then needs the repository's root as working directory.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from absl import flags

from launch import common
from vfljax.errors import UserError

_SUITE = flags.DEFINE_string(
    "suite", "grid", "what to measure: grid, defenses, convolutions, reading or gpu"
)
_OUT = flags.DEFINE_string("out", None, "folder for the JSON and the table")
_REPEATS = flags.DEFINE_integer(
    "repeats",
    None,
    "times each size is measured, in turn; 5 by default, and 9 where peers are compared",
    lower_bound=1,
)
_WIDTH = flags.DEFINE_integer("width", 0, "settings mapped at once on a device; 0: by backend")
_ONLY = flags.DEFINE_string("only", "", "suite defenses: one defense's row")

REPEATS, TURNS = 5, 9
SUITES = ("grid", "defenses", "convolutions", "reading", "gpu")


def run() -> None:
    from vfljax import store
    from vfljax.benchmark.measuring import machine

    if _SUITE.value not in SUITES:
        raise UserError(f"--suite={_SUITE.value!r} is unknown: choose {', '.join(SUITES)}.")
    if not _OUT.value:
        raise UserError("--out is needed: a folder for the JSON and the table.")
    result, text = _measured(_SUITE.value)
    out, described = pathlib.Path(_OUT.value), machine(_SUITE.value)
    store.write_text(out / f"{_SUITE.value}.json", json.dumps({**described, **result}, indent=1))
    store.write_text(out / f"{_SUITE.value}.md", text + "\n")
    print(text)


def _measured(suite: str) -> tuple[dict[str, Any], str]:
    import jax

    from vfljax.benchmark import convolutions, defense_cost, disk, gpu, grid_speed

    repeats, width = _REPEATS.value or REPEATS, _WIDTH.value or None
    if suite == "grid":
        return grid_speed.measured(repeats, width, _REPEATS.value or TURNS)
    if suite == "defenses":
        return defense_cost.measured(repeats, width, _ONLY.value)
    if suite == "convolutions":
        return convolutions.measured(repeats, 2 * jax.device_count())
    if suite == "gpu":
        return gpu.measured(_REPEATS.value or TURNS)
    return disk.measured(repeats)


if __name__ == "__main__":
    common.start(run)
