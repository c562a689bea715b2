"""Optuna's search beside a grid of as many trainings, on a data set of two parties.

    python -m analysis.search --data=UCI_Credit_Card.csv.gz --workdir=runs/search \\
        --out=analysis/results/search

A repetition divides the rows anew and trains ``BATCHES`` times ``POINTS`` operating points of every defense
twice: those of a grid, and those that ``vfljax.tune`` asks for. Either frontier is chosen by utility on
validation rows and by the leak of the strongest attack. Its area is that of utility on TEST rows and leak, as a
share of what lies between a guess and 1 on both scales. It is computed again from figures on three fresh seeds,
on which nothing was chosen. What is stored in ``workdir`` is not run again; ``search.csv`` has a line per
repetition and way, and ``frontiers.csv`` one per point of a frontier.
"""

from __future__ import annotations

import argparse
import itertools
import math
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

import vfljax
from configs.datasets import default_credit
from vfljax import store
from vfljax.library import tuning
from vfljax.report import tables
from vfljax.report.estimates import interval

REPETITIONS, BATCHES, POINTS = 5, 4, 4
RANGES: dict[str, dict[str, Any]] = {
    "noise": {"scale": (1e-5, 1.0, "log")},
    "compression": {"keep_rate": (0.01, 1.0, "log")},
    "label_dp": {"epsilon": (0.1, 10.0, "log")},
    "adversary": {"lambda_adv": (1e-3, 10.0, "log"), "learning_rate": (1e-3, 1.0, "log")},
}
GUESS = 0.5  # the AUC of a guess, of predictions and of attacks
WAYS, SEEDS = ("grid", "search"), ("searched", "fresh")
FRESH = {"first_seed": 2, "seeds": 3}
FIGURES = ("validation_utility", "test_utility", "leak")
Chains = dict[str, dict[str, dict[str, float]]]
Figures = dict[str, dict[str, Any]]  # of each method


def config(data: pathlib.Path) -> dict[str, Any]:
    """The config of every sweep but for its grid, on the rows of a file."""
    values = default_credit.get_config().to_dict()
    values["data"] |= {"dir": str(data), "train": 3000, "validation": 4000, "test": 4000}
    values["training"]["epochs"] = 5
    values["attacks"] = {
        "norm": {"epoch": "mean"},
        "mean": {"known": 40, "epoch": "mean", "scores": "distance"},
        "probe": {"known": 40, "epoch": "mean"},
        "spectral": {"signal": "embeddings"},
    }
    return values | {"name": "search", "seeds": 2, "federations": ("split",)}


def grid(points: int) -> Chains:
    """So many points of every defense with the ends of its ranges among them, each a method of its own."""
    methods = {}
    for name, ranges in RANGES.items():
        each = round(points ** (1 / len(ranges)))
        axes = [np.geomspace(low, high, each).tolist() for low, high, _ in ranges.values()]
        for number, values in enumerate(itertools.product(*axes)):
            methods[f"{name} {number}"] = {name: dict(zip(ranges, values, strict=True))}
    return methods


def searched(values: dict[str, Any], workdir: pathlib.Path, seed: int) -> tuple[Chains, Figures]:
    """The points that a search asks for, by defense as the grid's, and their figures."""
    found = tuning.tune(
        RANGES, values, workdir, batches=BATCHES, points=POINTS, confirm=0, seed=seed
    )
    chains: Chains = {}
    for name, ranges in RANGES.items():
        for point in found.points:
            if f"{name}.{next(iter(ranges))}" in point:
                chains[point["method"]] = {name: {k: point[f"{name}.{k}"] for k in ranges}}
    return chains, {point["method"]: point for point in found.points}


def frontier(figures: Figures) -> list[str]:
    """The methods that no other one dominates in validation utility and leak, the lowest leak first."""
    best, out = -math.inf, []
    known = {name: f for name, f in figures.items() if not math.isnan(f["leak"])}
    for name, f in sorted(known.items(), key=lambda p: (p[1]["leak"], -p[1]["validation_utility"])):
        if f["validation_utility"] > best:
            best = f["validation_utility"]
            out.append(name)
    return out


def area(points: Iterable[tuple[float, float]]) -> float:
    """The share of the utilities and leaks from a guess to 1 that points (utility, leak) dominate.

    >>> area([(0.75, 0.75), (0.6, 0.75), (1.0, 1.0)])
    0.25
    """
    total, reached = 0.0, GUESS
    # the lowest leak first: each adds its utilities beyond those of all that leak less
    for utility, leak in sorted(points, key=lambda point: point[1]):
        total += max(0.0, utility - reached) * (1 - max(leak, GUESS))
        reached = max(reached, utility)
    return total / (1 - GUESS) ** 2


def compared(
    data: pathlib.Path, workdir: pathlib.Path, repetition: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Both ways of one repetition: a record of each with its areas, and of each point of their frontiers."""
    folder = workdir / str(repetition)
    folder.mkdir(parents=True, exist_ok=True)
    rows = folder / "rows.csv"
    if not rows.exists():
        # seeds divide rows by their places: in another order they are divided anew, and programs stay
        pd.read_csv(data).sample(frac=1, random_state=repetition).to_csv(rows, index=False)
    records, points, values = [], [], config(rows)
    for way in WAYS:
        if way == "grid":
            chains = grid(BATCHES * POINTS)
            _, figures = tuning.judge({**values, "grid": chains}, folder / way, print)
        else:
            chains, figures = searched(values, folder / way, repetition)
        # all points, not the frontier alone: sweeps of one structure share their programs
        again = {**values, **FRESH, "grid": chains}
        _, fresh = tuning.judge(again, folder / f"{way}-fresh", print)
        best = frontier(figures)
        areas = {
            f"area_{seeds}": area(
                (of[m]["test_utility"], of[m]["leak"])
                for m in best
                if not math.isnan(of[m]["test_utility"] + of[m]["leak"])
            )
            for seeds, of in zip(SEEDS, (figures, fresh), strict=True)
        }
        about = {"repetition": repetition, "way": way, "points": len(chains)}
        about["diverged"] = sum(math.isnan(f["leak"]) for f in figures.values())
        records.append({**about, "frontier": len(best), **areas})
        for method in best:
            (knobs,) = chains[method].values()
            shown = {"method": method, "knobs": " ".join(f"{k}={x:.3g}" for k, x in knobs.items())}
            shown |= {name: figures[method][name] for name in FIGURES}
            shown |= {f"fresh_{name}": fresh[method][name] for name in FIGURES}
            points.append({"repetition": repetition, "way": way, **shown})
    return records, points


def text(frame: pd.DataFrame) -> str:
    """The areas as tables, and their differences paired by repetition."""
    lines = ["# Area above the frontier", ""]
    for seeds in SEEDS:
        pairs = frame.pivot(index="repetition", columns="way", values=f"area_{seeds}")
        change = pairs["search"] - pairs["grid"]
        rows = [
            [str(repetition), *(f"{row[way]:.3f}" for way in WAYS), f"{change[repetition]:+.3f}"]
            for repetition, row in pairs.iterrows()
        ]
        mean = interval(change)
        means = [str(interval(pairs[way])) for way in WAYS]
        rows.append(["mean", *means, f"{mean.mean:+.3f} ± {mean.half:.3f}"])
        header = ["repetition", *WAYS, "search - grid"]
        lines += [f"## On the {seeds} seeds", "", *tables.markdown(header, rows), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare Optuna's search with a grid.")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="UCI_Credit_Card.csv.gz")
    parser.add_argument("--workdir", type=pathlib.Path, required=True, help="folder of all sweeps")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the tables")
    arguments = parser.parse_args()
    vfljax.use_this_machine()
    records, points = [], []
    for repetition in range(REPETITIONS):
        of_ways, of_points = compared(arguments.data, arguments.workdir, repetition)
        records += of_ways
        points += of_points
    shown = text(pd.DataFrame(records))
    arguments.out.mkdir(parents=True, exist_ok=True)
    store.write_text(arguments.out / "tables.md", shown)
    for name, rows in {"search": records, "frontiers": points}.items():
        lines = pd.DataFrame(rows).to_csv(index=False, float_format="%.4f")
        store.write_text(arguments.out / f"{name}.csv", lines)
    print(shown)


if __name__ == "__main__":
    main()
