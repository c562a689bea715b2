"""Simulate how well leaks are judged, and write the tables of ``analysis/results/judging``.

    python -m analysis.judging --out=analysis/results/judging
    python -m analysis.judging --shortfalls  # vfljax/report/shortfalls.csv, ten minutes

``simulation`` draws attacks of known leak, and the report's own functions judge them. Every cell (seeds,
attacks, correlation, spread) is one line of a CSV file, and tables.md holds the least favorable ones. The
report prints the shortfalls of its strongest attacks from the second command's table. NumPy alone, and one
fixed seed.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import pathlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from analysis import simulation
from analysis.simulation import CORRELATIONS, SPREADS, Cell
from vfljax import store
from vfljax.report import captions, tables

SEEDS = (3, 5, 10)
ATTACKS = (5, 15, 40)
SHORTFALL_SEEDS = (*range(3, 11), 12, 15, 20)
SHORTFALL_ATTACKS = (*range(1, 41), 45, 50, 60, 70, 80, 100)
Row = dict[str, str | float]


def cells(attacks: Sequence[int]) -> list[Cell]:
    """Every combination of what is varied."""
    return [Cell(*values) for values in itertools.product(SEEDS, attacks, CORRELATIONS, SPREADS)]


def simulated(runs: int) -> dict[str, list[Row]]:
    """The rows of every file. Choosing is cheap and its bias small, so it is run more often."""
    random = np.random.default_rng(0)
    out: dict[str, list[Row]] = {"choosing": [], "limits": [], "verdicts": [], "strengths": []}
    for cell in cells(ATTACKS):
        for profile, means in simulation.profiles(cell).items():
            at = {"attack_means": profile, **cell._asdict()}
            chosen = simulation.choices(cell, means, 6 * runs, random)
            out["choosing"].append(at | chosen)
            out["limits"].append(at | simulation.coverage(cell, means, 2 * runs, random))
    for cell in cells((ATTACKS[0], ATTACKS[-1])):
        for name, world in simulation.worlds(cell).items():
            rates = simulation.rates(cell, world, runs, random)
            out["verdicts"].append({"truth": name, **cell._asdict()} | rates)
    for cell in cells(ATTACKS[:2]):
        rates = simulation.strengths(cell, 2 * runs, random)
        out["strengths"].append({**cell._asdict()} | rates)
    return out


def extreme(rows: Iterable[Row], name: str, most: Callable = max, **at: str | float) -> str:
    """The most or least of a column, over the rows that have these values."""
    values = [float(row[name]) for row in rows if all(row[k] == v for k, v in at.items())]
    return f"{most(values):.3f}"


def text(out: dict[str, list[Row]]) -> str:
    """Every table as Markdown."""
    spreads = [f"spread {spread:g}" for spread in SPREADS]
    profiles = list(dict.fromkeys(row["attack_means"] for row in out["limits"]))
    truths = list(dict.fromkeys(row["truth"] for row in out["verdicts"]))

    def largest(values: Sequence[float]) -> float:
        return max(map(abs, values))

    def by_spread(key: str, name: str, most: Callable, **at: str | float) -> list[str]:
        return [extreme(out[key], name, most, spread=spread, **at) for spread in SPREADS]

    def line(key: str, column: str, names: Iterable, name: str, most: Callable) -> list[list[str]]:
        return [
            [str(value), str(seeds), *by_spread(key, name, most, seeds=seeds, **{column: value})]
            for value in names
            for seeds in SEEDS
        ]

    of_means = ["attacks' true means", "seeds", *spreads]
    of_seeds = ["figure", "seeds", *spreads]
    of_truth = ["truth", "seeds", *spreads]
    sections = [
        (
            "Choosing an attack: largest over attacks' means, their number and correlation",
            of_seeds,
            [
                [label, str(seeds), *by_spread("choosing", name, largest, seeds=seeds)]
                for label, name in (
                    ("bias for what was picked, absolute", "bias"),
                    ("shortfall of the true worst case", "shortfall"),
                    ("flattery of choosing where it is scored", "flattery"),
                )
                for seeds in SEEDS
            ],
        ),
        (
            "Choosing one of five strengths and an attack: largest, absolute",
            of_seeds,
            [
                [label, str(seeds), *by_spread("strengths", name, largest, seeds=seeds)]
                for label, name in (
                    ("bias for what was picked", "bias"),
                    ("distance to the best strength's worst case", "below"),
                )
                for seeds in SEEDS
            ],
        ),
        *(
            (title, of_means, line("limits", "attack_means", profiles, name, most))
            for title, name, most in (
                ('Coverage of "leaks at least", lowest (nominal .95)', "at_least", min),
                (
                    "The same without correction: t-limit of the folds' scores, lowest",
                    "uncorrected",
                    min,
                ),
                ('Coverage of "leaks at most", lowest (nominal .95)', "at_most", min),
                ('How far "leaks at least" lies below the truth, largest median', "margin", max),
            )
        ),
        (
            "Rate of the false verdict that falls most often, highest (nominal .05)",
            of_truth,
            line("verdicts", "truth", truths, "false", max),
        ),
        (
            "Rate of the verdict to be hoped for, lowest",
            of_truth,
            line("verdicts", "truth", truths, "right", min),
        ),
        (
            "The same, highest",
            of_truth,
            line("verdicts", "truth", truths, "right", max),
        ),
    ]
    blocks = [
        f"## {title}\n\n" + "\n".join(tables.markdown(h, rows)) for title, h, rows in sections
    ]
    return "\n\n".join(blocks) + "\n"


def as_csv(rows: list[Row]) -> str:
    """The rows as CSV, figures with four decimals."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([f"{v:.4g}" if isinstance(v, float) else v for v in row.values()])
    return file.getvalue()


def shortfall_rows(seeds: Sequence[int], attacks: Sequence[int], runs: int) -> list[Row]:
    """The rows of the report's stored table of shortfalls: one for each number of seeds and attacks."""
    out: list[Row] = []
    for count, candidates in itertools.product(seeds, attacks):
        short = simulation.shortfalls(count, candidates, runs)
        figures = {f"spread {spread:g}": figure for spread, figure in short.items()}
        out.append({"seeds": str(count), "candidates": str(candidates), **figures})
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate how well leaks are judged.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--out", type=pathlib.Path, help="folder of the tables")
    group.add_argument("--shortfalls", action="store_true", help="write the report's table instead")
    parser.add_argument("--runs", type=int, default=1000, help="runs of a verdict's cell")
    arguments = parser.parse_args()
    if arguments.shortfalls:
        runs = simulation.SHORTFALL_RUNS
        rows = shortfall_rows(SHORTFALL_SEEDS, SHORTFALL_ATTACKS, runs)
        store.write_text(captions.SHORTFALLS, as_csv(rows))
        return
    out = simulated(arguments.runs)
    for name, rows in out.items():
        store.write_text(arguments.out / f"{name}.csv", as_csv(rows))
    store.write_text(arguments.out / "tables.md", text(out))
    print(text(out))


if __name__ == "__main__":
    main()
