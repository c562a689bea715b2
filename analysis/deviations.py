"""What a party that deviates in what it sends reads, and what the label party could notice.

    python -m analysis.deviations --out=analysis/results/knowers/deviations WORKDIR ...

Each WORKDIR is a finished sweep of configs/deviations.py. ``deviations.csv`` and ``tables.md`` have a line for
each defense, upload and strength: the attack with the highest mean leak over the seeds in the honest and in the
deviating federation, the best learner of the local-only baseline, and of both federations the utility on test
rows, and what the label party sees: the utility on validation rows, and of the last epoch the accuracy and the
loss while training, under the deviation. At predictions every party sends its embeddings as they are. An attack
that is chosen as the highest of many is biased upward, in both federations alike. VILLAIN's own reading of the
swap (``swapping``) has a column. Lines that OUT/deviations.csv has of other sweeps are kept.
"""

from __future__ import annotations

import argparse
import csv
import io
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from vfljax import store
from vfljax.report import stored_rows, tables
from vfljax.types import MALICIOUS, SPLIT

Row = dict[str, Any]
LEAK = "leak_crossed"


def _mean(rows: Iterable[Mapping[str, Any]], name: str) -> float:
    """The mean of a figure, of one by epoch that of the last."""
    values = [np.ravel(row[name])[-1] for row in rows if row.get(name) is not None]
    return float(np.mean(values)) if values else float("nan")


def _strongest(rows: stored_rows.StoredRows, trials: set[int], only: str = "") -> tuple[float, str]:
    """The highest mean leak over these trials, of all attacks or ``only`` one, and the attack's label."""
    by_attack: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for row in rows.attacks:
        if row.trial in trials and not row.oracle and only in ("", row.identity.attack):
            by_attack.setdefault((row.identity.label, row.point), []).append(row.figures)
    means = [(_mean(found, LEAK), label) for (label, _), found in by_attack.items()]
    return max((mean for mean in means if not np.isnan(mean[0])), default=(float("nan"), "-"))


def lines(workdir: pathlib.Path) -> list[Row]:
    """A line for every configuration of a sweep."""
    rows = stored_rows.load(workdir)
    name = rows.sweep.header["config"]["name"].removeprefix("deviations_")
    data, _, upload = name.rpartition("_")
    utility = "auc" if len(rows.balance) == 2 else "accuracy"
    learners = rows.learners.get((40, (0,)), {})
    alone = [
        _mean((row.figures for row in found), LEAK)
        for by_draws in learners.values()
        for found in by_draws.values()
    ]
    out = []
    for number in sorted({trial.configuration for trial in rows.trials}):
        trials = [trial for trial in rows.trials if trial.configuration == number]
        line: Row = {"data": data, "method": trials[0].method, "upload": upload}
        line["strength"] = trials[0].figures["strength"]
        line["local_only"] = max(alone, default=float("nan"))
        for kind, prefix in ((SPLIT, "honest"), (MALICIOUS, "deviating")):
            here = [trial for trial in trials if trial.federation == kind and not trial.diverged]
            leak, attack = _strongest(rows, {trial.trial for trial in here})
            figures = [trial.figures for trial in here]
            line |= {
                f"{prefix}_leak": leak,
                f"{prefix}_attack": attack,
                f"{prefix}_test_{utility}": _mean(figures, f"test_{utility}"),
                f"{prefix}_validation_{utility}": _mean(figures, f"validation_{utility}"),
                f"{prefix}_training_accuracy": _mean(figures, "train_accuracy"),
                f"{prefix}_loss": _mean(figures, "loss"),
            }
            swapping, attack = _strongest(rows, {trial.trial for trial in here}, "swapping")
            if not np.isnan(swapping):
                line |= {"swapping_leak": swapping, "swapping_attack": attack}
        out.append(line)
    return out


def stored_lines(path: pathlib.Path) -> list[Row]:
    """The lines of a ``deviations.csv``; none where there is no such file."""

    def value(cell: str) -> float | str:
        try:
            return float(cell)
        except ValueError:
            return cell

    if not path.exists():
        return []
    with path.open() as file:
        return [{k: value(v) for k, v in row.items() if v} for row in csv.DictReader(file)]


def text(every: list[Row]) -> str:
    """The table of all sweeps, as Markdown."""
    header = [
        "data",
        "method",
        "upload",
        "local-only",
        "leak: honest",
        "deviating",
        "strongest",
        "swapping",
    ]
    header += ["test utility: honest", "deviating", "validation: honest", "deviating"]
    header += ["training accuracy: honest", "deviating", "loss: honest", "deviating"]
    body = []
    for line in every:
        utility = next(x.removeprefix("honest_test_") for x in line if x.startswith("honest_test_"))
        pairs = [f"test_{utility}", f"validation_{utility}", "training_accuracy", "loss"]
        figures = [line[f"{kind}_{x}"] for x in pairs for kind in ("honest", "deviating")]
        leaks = [line["local_only"], line["honest_leak"], line["deviating_leak"]]
        cells = [f"{figure:.3f}" for figure in [*leaks, *figures]]
        upload = f"{line['upload']} {line['strength']:g}"
        attack = line["deviating_attack"]
        swapping = f"{line['swapping_leak']:.3f}" if "swapping_leak" in line else "-"
        first = [line["data"], line["method"], upload, *cells[:3], attack, swapping]
        body.append([*first, *cells[3:]])
    return "\n".join(tables.markdown(header, body)) + "\n"


def as_csv(every: list[Row]) -> str:
    """One line a configuration, with all figures."""
    out = io.StringIO()
    names = dict.fromkeys(name for line in every for name in line)
    writer = csv.DictWriter(out, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in line.items()} for line in every
    )
    return out.getvalue()


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("workdirs", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    by_sweep: dict[tuple[str, str], list[Row]] = {}
    for line in stored_lines(arguments.out / "deviations.csv"):
        by_sweep.setdefault((line["data"], line["upload"]), []).append(line)
    for new in map(lines, arguments.workdirs):
        by_sweep[new[0]["data"], new[0]["upload"]] = new
    every = [line for found in by_sweep.values() for line in found]
    arguments.out.mkdir(parents=True, exist_ok=True)
    store.write_text(arguments.out / "deviations.csv", as_csv(every))
    store.write_text(arguments.out / "tables.md", text(every))
    print(text(every))


if __name__ == "__main__":
    main()
