"""LeakBench's page: a ranking and a figure for each board, and a card for each entry.

    python -m analysis.leakbench.page --out=leakbench.html
    python -m analysis.leakbench.page --out=mine.html --entries=FOLDER

The second is of the entries of another folder. Nothing is run, and the page needs no network.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence

import jinja2

from analysis.leakbench import tables
from analysis.leakbench.autoleak import autoleak
from analysis.leakbench.boards import GAINS
from analysis.leakbench.entry_files import Entry
from analysis.leakbench.ranking import overall, rankings
from vfljax.report import words
from vfljax.report.page import POLICY
from vfljax.report.templates import templates

NAME_GAP = 13.0
"""The least distance of two names beside a figure, in its units."""


def _figure(mean: float | None, limits: tuple[float, float] | None) -> str:
    """'.97 (.95 to .98)'; '-' without a figure."""
    if mean is None:
        return "-"
    lower, upper = limits or (float("nan"), float("nan"))
    return words.with_limits(mean, lower, upper)


def apart(wanted: Sequence[float], low: float, high: float, gap: float = NAME_GAP) -> list[float]:
    """Returns the heights of names beside a figure, near the wanted ones and at least ``gap`` from each other.

    Args:
      wanted: the heights of the points that are named, in any order; the results have the same order.
      low: the least height.
      high: the largest height, which gives way if there are too many names.
      gap: the least distance.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    least = low
    for i in order:
        placed[i] = max(wanted[i], least)
        least = placed[i] + gap
    most = max(high, low + gap * (len(wanted) - 1))
    for i in reversed(order):
        placed[i] = min(placed[i], most)
        most = placed[i] - gap
    return placed


def page(entries: Sequence[Entry]) -> str:
    """Returns the page as HTML, which needs no network."""
    environment = templates()
    loaders = [jinja2.FileSystemLoader(pathlib.Path(__file__).parent), environment.loader]
    environment = environment.overlay(loader=jinja2.ChoiceLoader([x for x in loaders if x]))
    boards = rankings(entries)
    return environment.get_template("leakbench.html").render(
        rankings=boards,
        overall=overall(boards),
        entries=entries,
        gains=GAINS,
        suite=autoleak(),
        apart=apart,
        zip=zip,
        figure=_figure,
        policy=POLICY,
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--entries", type=pathlib.Path, default=tables.ENTRIES)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(page(tables.stored(options.entries)), encoding="utf-8")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
