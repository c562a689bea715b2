"""What training and each attack of a stored sweep took, side by side.

What enters: a stored sweep. What leaves: the header and rows of a table. Seconds are wall-clock time of the
machine that did it: those of training are what its epochs took, those of an attack are all of it, from disk
to figures, with what it compiled itself.
"""

from __future__ import annotations

from vfljax import store
from vfljax.report import rules

CAPTION = (
    "Wall-clock seconds of the machine that ran it, the slowest attack first. Runs of an attack include those "
    "on its baselines. Of the programs of training only the epochs are counted, of an attack everything."
)


def table(sweep: store.Sweep) -> tuple[list[str], list[list[str]]]:
    """A row for training and one for each attack form: seconds, runs, milliseconds a run, the seconds as a
    share of training's, and how many programs were compiled."""
    header = ["", "seconds", "runs", "ms a run", "training is 1", "compiles"]
    trained = sum(s or 0.0 for s in sweep.results["seconds"].to_pylist())
    rows = [_row("training", trained, sweep.results.num_rows, trained, "")]
    summary = store.attack_summary(sweep.workdir)
    ran = [a for a in summary.values() if a["status"] != "skipped" and a["settings"]]
    for a in sorted(ran, key=lambda a: -a["seconds"]):
        name = rules.title(a)
        rows.append(_row(name, a["seconds"], a["rows"], trained, str(a["compiles"])))
    total = sum(a["seconds"] for a in ran)
    return header, [*rows, _row("all attacks", total, sum(a["rows"] for a in ran), trained, "")]


def _row(name: str, seconds: float, runs: int, trained: float, compiles: str) -> list[str]:
    each = f"{1e3 * seconds / runs:.1f}" if runs else "-"
    share = f"{seconds / trained:.2f}" if trained else "-"
    return [name, f"{seconds:.1f}", f"{runs:,}", each, share, compiles]
