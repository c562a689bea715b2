"""Compare vfljax's time for a step with that of its peers, on one machine and in turns.

    python -m analysis.benchmark.peers --suite=grid --out=runs/benchmark
    python -m analysis.benchmark.peers --suite=small --out=runs/benchmark
    python -m analysis.benchmark.peers --suite=convolutions --out=runs/benchmark

It runs in the root of a checkout; PyTorch's rows need the extra "parity".
"""

import argparse
import json
import pathlib

import jax

import vfljax
from analysis.benchmark import convolutions, measuring
from analysis.benchmark.grid_speed import COLUMNS, GRID, SMALL
from analysis.benchmark.peers import comparison, workers
from analysis.benchmark.peers.convolutions import torch_step

STRUCTURES = {"grid": GRID, "small": SMALL}


def main() -> None:
    """Measure a suite, and write and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", choices=(*STRUCTURES, "convolutions"), default="grid")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the files")
    parser.add_argument("--turns", type=int, default=9, help="times each program is measured")
    parser.add_argument("--trials", type=int, default=50, help="trials; 1,024 on a GPU")
    asked = parser.parse_args()
    vfljax.use_this_machine(min_compile_seconds=0.1)
    if asked.suite in STRUCTURES:
        spec = STRUCTURES[asked.suite]
        case = measuring.TimedStep(spec, asked.trials, COLUMNS, {}, None)
        problem = comparison.problem_of(spec, COLUMNS, asked.trials)
        result, text = comparison.measured(case, problem, asked.turns)
    else:
        reference = None if workers.absent() else torch_step
        count = 2 * jax.device_count()
        result, text = convolutions.measured(asked.turns, count, reference=reference)
    asked.out.mkdir(parents=True, exist_ok=True)
    described = {**measuring.machine(asked.suite), **result}
    name = f"{asked.suite}_peers"
    (asked.out / f"{name}.json").write_text(json.dumps(described, indent=1))
    (asked.out / f"{name}.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
