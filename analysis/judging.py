"""Simulate how well leaks are judged, and write the tables of ``analysis/results/judging``.

    python -m analysis.judging --out=analysis/results/judging --runs=2000  # 45 minutes on two cores
    python -m analysis.judging --again --out=analysis/results/judging --runs=10000  # two minutes
    python -m analysis.judging --biases  # vfljax/report/biases.csv, five minutes

``simulation`` draws attacks of known leak, and the report's own functions judge them. Every cell (seeds,
attacks, spread, world, truth) is one line of a CSV file, and tables.md holds the least favorable ones. Of many
cells the highest rate is too high by chance, so that ``--again`` draws those above .065 once more. The
report prints the bias of its highest means from the third command's table. NumPy alone, one fixed seed a cell.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import pathlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from analysis import simulation
from analysis.simulation import CORRELATIONS, SPREADS, Cell
from vfljax import store
from vfljax.report import captions, tables

SEEDS = (3, 5, 10)
ATTACKS = (5, 15, 40)
JUDGED_SEEDS, JUDGED_ATTACKS, JUDGED_SPREADS = (3, 5), (5, 20), (0.02, 0.05)
BIAS_SEEDS = (*range(3, 11), 12, 15, 20)
BIAS_ATTACKS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
RESULTS = pathlib.Path(__file__).parent / "results" / "judging"
ABOVE = 0.065  # false rates above it are drawn once more
Row = dict[str, str | float]


def cells(attacks: Sequence[int]) -> list[Cell]:
    """Every combination of what is varied."""
    return [Cell(*values) for values in itertools.product(SEEDS, attacks, CORRELATIONS, SPREADS)]


def _choosing(cell: Cell, runs: int) -> dict[str, list[Row]]:
    """Choosing an attack, and limits of the strongest. Choosing is cheap, so it is run more often."""
    random = np.random.default_rng(0)
    out: dict[str, list[Row]] = {"choosing": [], "limits": []}
    for profile, means in simulation.profiles(cell).items():
        at = {"attack_means": profile, **cell._asdict()}
        out["choosing"].append(at | simulation.choices(cell, means, 6 * runs, random))
        out["limits"].append(at | simulation.coverage(cell, means, 2 * runs, random))
    return out


def _verdicts(cell: Cell, world: str, runs: int) -> dict[str, list[Row]]:
    """The rates of verdicts in one world."""
    rows: list[Row] = []
    for truth in simulation.TRUTHS:
        random = np.random.default_rng(0)
        pair = simulation.WORLDS[world], simulation.TRUTHS[truth]
        rates = simulation.rates(cell, *pair, runs, random)
        rows.append({"world": world, "truth": truth, **cell._asdict()} | rates)
    return {"verdicts": rows}


def simulated(runs: int, workers: int = 2) -> dict[str, list[Row]]:
    """The rows of every file, by as many processes."""
    judged = itertools.product(JUDGED_SEEDS, JUDGED_ATTACKS, (0.5,), JUDGED_SPREADS)
    jobs = [
        *(
            (_verdicts, Cell(*values), world, max(1, runs // 5))
            for values, world in itertools.product(judged, simulation.WORLDS)
        ),
        *((_choosing, cell, runs) for cell in cells(ATTACKS)),
    ]
    out: dict[str, list[Row]] = {"choosing": [], "limits": [], "verdicts": []}
    with ProcessPoolExecutor(workers) as pool:
        for found in [pool.submit(*job) for job in jobs]:
            for name, rows in found.result().items():
                out[name] += rows
    return out


def again(stored: Iterable[Row], runs: int, workers: int = 2) -> list[Row]:
    """The cells of verdicts whose false rate is above ``ABOVE``, with other draws.

    Args:
      stored: the lines of verdicts.csv.
      runs: of each cell, as for ``simulated``.
      workers: processes.

    Returns:
      The cells, with both rates.
    """
    high = [row for row in stored if float(row["false"]) > ABOVE]
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(_again, high, [max(1, runs // 5)] * len(high)))
    names = ("world", "truth", *Cell._fields)
    return [
        {**{name: row[name] for name in names}, "false": float(row["false"]), "again": rate}
        for row, rate in zip(high, found, strict=True)
    ]


def _again(row: Row, runs: int) -> float:
    numbers = {name: float(row[name]) for name in Cell._fields}
    cell = Cell(**{**numbers, "seeds": int(numbers["seeds"]), "attacks": int(numbers["attacks"])})
    pair = simulation.WORLDS[str(row["world"])], simulation.TRUTHS[str(row["truth"])]
    return simulation.rates(cell, *pair, runs, np.random.default_rng(1))["false"]


def extreme(rows: Iterable[Row], name: str, most: Callable = max, **at: str | float) -> str:
    """The most or least of a column, over the rows that have these values."""
    values = [float(row[name]) for row in rows if all(row[k] == v for k, v in at.items())]
    return f"{most(values):.3f}"


def text(out: dict[str, list[Row]]) -> str:
    """Every table as Markdown."""
    spreads = [f"spread {spread:g}" for spread in SPREADS]
    profiles = list(dict.fromkeys(row["attack_means"] for row in out["limits"]))
    at = [(seeds, attacks) for seeds in JUDGED_SEEDS for attacks in JUDGED_ATTACKS]
    of_world = ["world / truth", *(f"{seeds} seeds, {attacks} attacks" for seeds, attacks in at)]

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

    def rates(column: str, names: Iterable[str], rate: str, most: Callable) -> list[list[str]]:
        return [
            [
                name,
                *(
                    extreme(out["verdicts"], rate, most, seeds=n, attacks=k, **{column: name})
                    for n, k in at
                ),
            ]
            for name in names
        ]

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
            "Rate of the false verdict that falls most often, highest over truths and spreads (nominal .05)",
            of_world,
            rates("world", simulation.WORLDS, "false", max),
        ),
        (
            "The same by truth, highest over worlds and spreads",
            of_world,
            rates("truth", simulation.TRUTHS, "false", max),
        ),
        *(
            (
                f"Rate of the verdict to be hoped for where spreads are equal, spread {spread:g}",
                of_world,
                [
                    [
                        f"{name}: {truth.right}",
                        *(
                            extreme(
                                out["verdicts"],
                                "right",
                                min,
                                seeds=n,
                                attacks=k,
                                spread=spread,
                                truth=name,
                                world="equal spreads",
                            )
                            for n, k in at
                        ),
                    ]
                    for name, truth in simulation.TRUTHS.items()
                ],
            )
            for spread in JUDGED_SPREADS
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


def bias_rows(seeds: Sequence[int], attacks: Sequence[int], runs: int) -> list[Row]:
    """The rows of the report's stored table of biases: one for each number of seeds and attacks."""
    out: list[Row] = []
    for count, candidates in itertools.product(seeds, attacks):
        found = simulation.biases(count, candidates, runs)
        figures = {f"spread {spread:g}": figure for spread, figure in found.items()}
        out.append({"seeds": str(count), "candidates": str(candidates), **figures})
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate how well leaks are judged.")
    group = parser.add_mutually_exclusive_group()
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS, help="folder of the tables")
    group.add_argument("--again", action="store_true", help="draw cells of high rates once more")
    group.add_argument("--biases", action="store_true", help="write the report's table instead")
    parser.add_argument("--runs", type=int, default=1000, help="runs of a verdict's cell")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    if arguments.biases:
        rows = bias_rows(BIAS_SEEDS, BIAS_ATTACKS, simulation.BIAS_RUNS)
        store.write_text(captions.BIASES, as_csv(rows))
        return
    if arguments.again:
        with (arguments.out / "verdicts.csv").open() as lines:
            rows = again(list(csv.DictReader(lines)), arguments.runs, arguments.workers)
        store.write_text(arguments.out / "again.csv", as_csv(rows))
        return
    out = simulated(arguments.runs, arguments.workers)
    for name, rows in out.items():
        store.write_text(arguments.out / f"{name}.csv", as_csv(rows))
    store.write_text(arguments.out / "tables.md", text(out))
    print(text(out))


if __name__ == "__main__":
    main()
