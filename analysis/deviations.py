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

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import argparse
import csv
import io
import pathlib
from typing import Any

import numpy as np
import pandas as pd

from vfljax import store
from vfljax.report import tables
from vfljax.report.frames import read_frames
from vfljax.types import MALICIOUS, SPLIT, federation_of

Row = dict[str, Any]


def _mean(rows: pd.DataFrame, name: str) -> float:
    """The mean of a figure, of one by epoch that of the last."""
    if name not in rows:
        return float("nan")
    values = [np.ravel(value)[-1] for value in rows[name] if value is not None]
    return float(np.mean(values)) if values else float("nan")


def _strongest(attacks: pd.DataFrame) -> tuple[float, str]:
    """The highest mean leak over trials, and the attack's label."""
    means = attacks.groupby("label")["leak"].mean().dropna()
    return (float(means.max()), str(means.idxmax())) if len(means) else (float("nan"), "-")


def lines(workdir: pathlib.Path) -> list[Row]:
    """A line for every configuration of a sweep."""
    sweep = store.load(workdir)
    rows, trials, facts, _ = read_frames(sweep)
    name = sweep.header["config"]["name"].removeprefix("deviations_")
    data, _, upload = name.rpartition("_")
    utility = "auc" if facts.classes == 2 else "accuracy"
    learners = rows[
        (rows["role"] == "learner") & (rows["known"] == 40) & (rows["attackers"] == "0")
    ]
    alone, _ = _strongest(learners)
    # lists by epoch, of the training, are not in the frame of trials
    results = sweep.results.to_pandas().set_index("trial")
    out = []
    for _, of in trials.groupby("configuration"):
        line: Row = {"data": data, "method": of["method"].iloc[0], "upload": upload}
        line["strength"] = float(of["strength"].iloc[0])
        line["local_only"] = alone
        for kind, prefix in ((SPLIT, "honest"), (MALICIOUS, "deviating")):
            kinds = of["federation"].map(lambda federation: federation_of(federation).kind)
            here = of[(kinds == kind) & ~of["diverged"]]
            attacks = rows[rows["trial"].isin(here["trial"]) & (rows["role"] == "attack")]
            leak, attack = _strongest(attacks)
            figures = results.loc[here["trial"]]
            line |= {
                f"{prefix}_leak": leak,
                f"{prefix}_attack": attack,
                f"{prefix}_test_{utility}": _mean(figures, f"test_{utility}"),
                f"{prefix}_validation_{utility}": _mean(figures, f"validation_{utility}"),
                f"{prefix}_training_accuracy": _mean(figures, "train_accuracy"),
                f"{prefix}_loss": _mean(figures, "loss"),
            }
            swapping, attack = _strongest(attacks[attacks["attack"] == "swapping"])
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
    return tables.markdown(pd.DataFrame(body, columns=header)) + "\n"


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
