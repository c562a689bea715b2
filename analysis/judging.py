"""Simulate how often verdicts are false, and write ``analysis/results/judging``.

    python -m analysis.judging  # 15 minutes on two cores

``simulation`` draws attacks of known leak, and the report's own functions judge them. Every cell (world, truth,
seeds, attacks, learners, spread) is one line of verdicts.csv. Of many cells the highest rate is too high by
chance. So for each number of seeds, attacks and learners, the cells of the highest rates are drawn once more,
by five times as many sweeps (again.csv). The largest of these second rates is what a report prints of its own
numbers (``vfljax.report.false_rates``). NumPy alone; the draws of a cell depend on nothing else.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import pathlib
import statistics
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from analysis import simulation
from analysis.simulation import Cell
from vfljax import store
from vfljax.report import false_rates

SEEDS, ATTACKS, LEARNERS, SPREADS = (3, 5), (5, 20, 80), (1, 12), (0.02, 0.05)
RESULTS = pathlib.Path(__file__).parent / "results" / "judging"
RUNS = 60  # sweeps of a cell
AGAIN, MORE = 4, 5  # cells that are drawn again, and by how many times as many sweeps
FAILING = "leader fails on one seed in eight"
"""The world in which no rule that reads few seeds can hold; its rates are told apart."""
NOISE = "noise"
"""World and truth in which many attacks that read nothing are taken each by itself; also told apart."""
Row = dict[str, str | float]


def cells() -> list[Cell]:
    """Returns every combination of the numbers that are varied."""
    return [Cell(*values) for values in itertools.product(SEEDS, ATTACKS, LEARNERS, SPREADS)]


def rates(world: str, truth: str, cell: Cell, runs: int, draws: int = 0) -> Row:
    """Returns the line of a cell; ``draws`` numbers its draws."""
    worlds = {**simulation.WORLDS, NOISE: simulation.SINGLE}
    truths = {**simulation.TRUTHS, NOISE: simulation.NOISE}
    places = [[*of].index(name) for of, name in ((worlds, world), (truths, truth))]
    numbers = (cell.seeds, cell.attacks, cell.learners, round(1000 * cell.spread))
    random = np.random.default_rng([draws, *places, *numbers])
    pair = worlds[world], truths[truth]
    found = simulation.rates(cell, *pair, runs, random)
    return {"world": world, "truth": truth, **cell._asdict(), **found}


def simulated(runs: int, workers: int = 2) -> list[Row]:
    """Returns the line of every cell, made by as many processes."""
    pairs = [*itertools.product(simulation.WORLDS, simulation.TRUTHS), (NOISE, NOISE)]
    every = [(*pair, cell) for pair in pairs for cell in cells()]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(rates, *zip(*every), itertools.repeat(runs), chunksize=8))


def of_numbers(rows: Iterable[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Returns the lines by numbers of seeds, attacks and learners, and the column of ``FALSE_RATES``."""
    kinds = {FAILING: "failing", NOISE: "noise"}
    out: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        numbers = (str(row[name]) for name in ("seeds", "attacks", "learners"))
        out.setdefault((*numbers, kinds.get(str(row["world"]), "ordinary")), []).append(row)
    return out


def again(rows: Iterable[Row], runs: int, workers: int = 2) -> list[Row]:
    """Returns the cells of the highest rates with new draws, and the ``first`` rate of each."""
    highest = [
        row
        for group in of_numbers(rows).values()
        for row in sorted(group, key=lambda row: -float(row["false"]))[:AGAIN]
    ]
    every = [
        (row["world"], row["truth"], Cell(*(row[name] for name in Cell._fields)))  # type: ignore[arg-type]
        for row in highest
    ]
    with ProcessPoolExecutor(workers) as pool:
        made = pool.map(rates, *zip(*every), itertools.repeat(MORE * runs), itertools.repeat(1))
        return [{**row, "first": old["false"]} for row, old in zip(made, highest, strict=True)]


def largest(first: Iterable[Row], rows: Iterable[Row]) -> list[Row]:
    """Returns the lines of ``false_rates.FALSE_RATES``: the largest rates of the lines of ``again``, and the
    ``median`` of the ordinary worlds' cells in those of ``simulated``."""
    every = of_numbers(first)
    out: dict[tuple[str, ...], Row] = {}
    for (*numbers, kind), group in of_numbers(rows).items():
        row = out.setdefault(tuple(numbers), dict(zip(("seeds", "attacks", "learners"), numbers)))
        most = max(group, key=lambda row: float(row["false"]))
        row |= {kind: most["false"], f"{kind}_error": most["error"]}
        if kind == "ordinary":
            cells = [float(of["false"]) for of in every[*numbers, kind]]
            row["median"] = statistics.median(cells)
    return list(out.values())


def as_csv(rows: Sequence[Row]) -> str:
    """Returns the rows as CSV, figures with three digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([f"{v:.3g}" if isinstance(v, float) else v for v in row.values()])
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate how often verdicts are false.")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS, help="folder of the cells")
    parser.add_argument("--rates", type=pathlib.Path, default=false_rates.FALSE_RATES)
    parser.add_argument("--runs", type=int, default=RUNS, help="sweeps of a cell")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    rows = simulated(arguments.runs, arguments.workers)
    store.write_text(arguments.out / "verdicts.csv", as_csv(rows))
    second = again(rows, arguments.runs, arguments.workers)
    store.write_text(arguments.out / "again.csv", as_csv(second))
    table = as_csv(largest(rows, second))
    store.write_text(arguments.rates, table)
    print(table)


if __name__ == "__main__":
    main()
