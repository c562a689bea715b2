"""Lower bounds of epsilon in each run of a sweep with label canaries.

    python -m launch.sweep --config=configs/canaries.py --workdir=runs/canaries
    python -m analysis.canaries runs/canaries

A run is one seed. In each run the strongest attack is chosen on half of the canaries and counted on the others.
The bound of all runs together adds up their guesses, and then one attack is chosen for all.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from vfljax import store
from vfljax.report.epsilon_lower_bounds import (
    Guesses,
    epsilon_at_least,
    strongest_guesses,
    told_by_columns,
)
from vfljax.report.frames import read_frames

CLAIMED = 1.0  # configs/canaries.py
LEVELS = (0.95, 0.999)
HEADER = (
    *("method", "runs", "guesses a run", "right, mean"),
    *(f"bounds at {level:g}: mean, most, above {CLAIMED:g}" for level in LEVELS),
    *("all runs at 0.95", "attack of all runs"),
)


def bounds(runs: Sequence[Guesses], level: float) -> str:
    """The lower bounds of some runs, whose labels are coins, as text: the mean, the most, and those above."""
    values = np.array([epsilon_at_least(run.guessed, run.right, level) for run in runs])
    return f"{values.mean():.2f}, {values.max():.2f}, {np.sum(values > CLAIMED)}"


def table(workdir: pathlib.Path) -> Iterable[list[str]]:
    """A row for each configuration of the sweep in ``workdir``."""
    sweep = store.load(workdir)
    rows, trials, *_ = read_frames(sweep)
    columns = told_by_columns(sweep.header["data"].get("told", {}))
    for number, method in trials.groupby("configuration")["method"].first().items():
        found = rows[rows["configuration"] == number]
        by_seed = [strongest_guesses(of_seed, columns) for _, of_seed in found.groupby("seed")]
        runs, whole = [run for run in by_seed if run], strongest_guesses(found, columns)
        assert whole is not None
        yield [
            str(method),
            f"{len(runs)}",
            f"{np.mean([run.guessed for run in runs]):.0f}",
            f"{np.mean([run.right / run.guessed for run in runs]):.3f}",
            *(bounds(runs, level) for level in LEVELS),
            f"{whole.epsilon():.2f} ({whole.right:,} of {whole.guessed:,})",
            f"{whole.label}, {whole.panel}",
        ]


if __name__ == "__main__":
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    for cells in table(pathlib.Path(sys.argv[1])):
        print(f"| {' | '.join(cells)} |")
