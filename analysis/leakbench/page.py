"""LeakBench's page: a ranking and a figure for each board, and a card for each entry.

    python -m analysis.leakbench.page --out=leakbench.html
    python -m analysis.leakbench.page --out=mine.html --entries=FOLDER

The second is of the entries of another folder. Nothing is run, and the page needs no network.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence
from typing import NamedTuple, get_args

import jinja2

from analysis.leakbench import entry_files
from analysis.leakbench.boards import BOARDS, GAINS, UNDEFENDED, Board, autoleak
from analysis.leakbench.entry_files import Break, Data, Entry, Reading, Score
from vfljax.report import words
from vfljax.report.page import POLICY
from vfljax.report.templates import templates
from vfljax.report.verdicts import EXCESS

ENTRIES = pathlib.Path(__file__).with_name("entries")


class Standing(NamedTuple):
    """An entry on a board at a share of the gain."""

    entry: Entry
    score: Score
    best: tuple[Reading, Break | None] | None  # what reads most of it; None without a figure

    @property
    def leak(self) -> float:
        """The most that is known to be read, by which entries are ranked; 2 without a figure."""
        return self.best[0].leak if self.best else 2.0


class Ranking(NamedTuple):
    """A board of a data set, with its entries in order: undefended first, then by their leaks."""

    data: Data
    board: Board
    lines: tuple[tuple[Standing, ...], ...]  # of each entry, by ``GAINS``

    @property
    def points(self) -> list[tuple[Standing, bool]]:
        """Everything with figures, and whether nothing is as useful and leaks less."""
        every = [(s.score.utility, -s.leak, s) for line in self.lines for s in line if s.best]
        return [
            (s, not any(u >= x and v >= y and (u, v) != (x, y) for u, v, _ in every))
            for x, y, s in every
        ]

    @property
    def reads(self) -> bool:
        """Whether undefended leaks beyond the local-only baseline, without which ranks say nothing."""
        first = self.lines[0][0]
        known = not first.entry.method and first.best and first.score.local_only is not None
        return not known or first.leak > (first.score.local_only or 0.0) + EXCESS

    def rank(self, line: tuple[Standing, ...]) -> int | None:
        """The place of an entry, by what leaks at the first share; None of what is not ranked."""
        others = [x[0].leak for x in self.lines if x[0].entry.method]
        ranked = self.reads and line[0].best and line[0].entry.method
        return 1 + sum(leak < line[0].leak for leak in others) if ranked else None


def _figure(mean: float | None, limits: tuple[float, float] | None) -> str:
    """'.97 (.95 to .98)'; '-' without a figure."""
    if mean is None:
        return "-"
    lower, upper = limits or (float("nan"), float("nan"))
    return words.with_limits(mean, lower, upper)


def rankings(entries: Sequence[Entry]) -> list[Ranking]:
    """Returns every board that any entry was run on, data set by data set."""
    out = []
    for data in get_args(Data):
        of_data = [entry for entry in entries if data in entry.results]
        for board in BOARDS if of_data else ():
            lines = []
            for entry in of_data:
                scores = [entry.score(data, board, gain) for gain in GAINS]
                standings = tuple(
                    Standing(entry, score, entry.best_known(data, *score.place))
                    for score in scores
                    if score is not None
                )
                if len(standings) == len(GAINS):
                    lines.append(standings)
            lines.sort(key=lambda line: (line[0].entry.name != UNDEFENDED, *(s.leak for s in line)))
            if lines:
                out.append(Ranking(data, board, tuple(lines)))
    return out


def page(entries: Sequence[Entry]) -> str:
    """Returns the page as HTML, which needs no network."""
    environment = templates()
    loaders = [jinja2.FileSystemLoader(pathlib.Path(__file__).parent), environment.loader]
    environment = environment.overlay(loader=jinja2.ChoiceLoader([x for x in loaders if x]))
    return environment.get_template("leakbench.html").render(
        rankings=rankings(entries),
        entries=entries,
        gains=GAINS,
        suite=autoleak(),
        figure=_figure,
        policy=POLICY,
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--entries", type=pathlib.Path, default=ENTRIES)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    entries = [entry_files.read(path) for path in sorted(options.entries.glob("*.json"))]
    options.out.write_text(page(entries), encoding="utf-8")
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
