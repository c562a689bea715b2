"""Ranks of entries: on each board by what is known to be read, and over all boards by the mean of these ranks.

Entries whose leaks are not shown to differ share a rank. On a board they are ordered by their leak; each shares
the rank of the first one of its group, until one is shown to leak more than that first one and begins the next
group. Two leaks are compared seed by seed, because all entries have the same splits: the second is shown to be
larger if the one-sided 95 % limit of the mean difference is above 0. That may be so by any reading of the
second, of AutoLeak or of a break: a break that reads more, but less evenly over seeds, does not better an
entry's rank. Results that did not store their leaks by seed are compared by their limits, which must not
overlap. Without limits either, an entry has no rank.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np

from analysis.leakbench.autoleak import autoleak
from analysis.leakbench.boards import BOARDS, GAINS, UNDEFENDED, Board
from analysis.leakbench.entry_files import NOT_KEPT, Break, Data, Entry, Reading, Score
from vfljax.report.limits import half_row, limits
from vfljax.report.verdicts import EXCESS


class Standing(NamedTuple):
    """An entry on a board at a share of the gain."""

    entry: Entry
    score: Score
    known: tuple[tuple[Reading, Break | None], ...]  # all that is read of it; () without a figure

    @property
    def best(self) -> tuple[Reading, Break | None] | None:
        """What reads most of it; None without a figure."""
        return max(self.known, key=lambda pair: pair[0].leak, default=None)

    @property
    def leak(self) -> float:
        """The most that is known to be read, by which entries are ordered; 2 without a figure."""
        return self.best[0].leak if self.best else 2.0


Line = tuple[Standing, ...]  # of an entry, by ``GAINS``


class Ranking(NamedTuple):
    """A board of a data set, with its entries in order: undefended first, then by their leaks."""

    data: Data
    board: Board
    lines: tuple[Line, ...]

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

    @property
    def ranks(self) -> dict[str, int]:
        """The rank of each entry that has one, by its name, at the first share of the gain."""
        ranks: dict[str, int] = {}
        first: tuple[Reading, int] | None = None
        for standing in (line[0] for line in self.lines if self.reads):
            best = standing.best
            if not standing.entry.method or not best or not _comparable(best[0]):
                continue
            if first is None or any(leaks_more(first[0], each) for each, _ in standing.known):
                first = best[0], len(ranks) + 1
            ranks[standing.entry.name] = first[1]
        return ranks


def _comparable(reading: Reading) -> bool:
    return bool(reading.by_seed) or reading.limits is not None


def leaks_more(first: Reading, second: Reading) -> bool:
    """Returns whether the second of two readings on the same board is shown to be larger.

    Args:
      first, second: each with leaks by seed or limits.
    """
    if first.by_seed and len(first.by_seed) == len(second.by_seed):
        before, after = (np.array(reading.by_seed, float) for reading in (first, second))
        rows = min(first.rows, second.rows)
        return bool(limits(after - before, half_row(rows) if rows else 0.0).lower > 0)
    return bool(first.limits and second.limits and second.limits[0] > first.limits[1])


def rankings(entries: Sequence[Entry]) -> list[Ranking]:
    """Returns every board that any entry was run on by this version of AutoLeak, data set by data set."""
    out = []
    for data in get_args(Data):
        results = ((entry, entry.results.get(data)) for entry in entries)
        of_data = [e for e, result in results if result and result.autoleak == autoleak().version]
        for board in BOARDS if of_data else ():
            lines = []
            for entry in of_data:
                scores = [entry.score(data, board, gain) for gain in GAINS]
                standings = tuple(
                    Standing(entry, score, tuple(entry.known(data, *score.place)))
                    for score in scores
                    if score is not None
                )
                if len(standings) == len(GAINS):
                    lines.append(standings)
            lines.sort(key=lambda line: (line[0].entry.name != UNDEFENDED, *(s.leak for s in line)))
            if lines:
                out.append(Ranking(data, board, tuple(lines)))
    return out


class Missing(NamedTuple):
    """Boards of a data set on which an entry has no rank, and why."""

    data: Data
    boards: int
    why: str


class Overall(NamedTuple):
    """An entry over all boards on which anything is ranked."""

    entry: Entry
    mean_rank: float
    ranked: int  # boards with a rank of its own
    last: int  # boards on which no strength keeps enough, which count as the last rank
    missing: tuple[Missing, ...]  # boards that the mean lacks


def overall(boards: Sequence[Ranking]) -> list[Overall]:
    """Returns the entries that are counted on any board: those that lack none first, then by their mean rank.

    A board counts if it ranks any entry. An entry without a strength that keeps half of the gain there is
    counted behind all that are ranked. All else that is missing is said, and not counted.

    Args:
      boards: all boards.
    """
    counted = [(ranking, ranks) for ranking in boards if (ranks := ranking.ranks)]
    entries = {s.entry.name: s.entry for ranking, _ in counted for s, *_ in ranking.lines}
    out = []
    for name, entry in entries.items():
        of_entry: list[int] = []
        last, missing = 0, dict[tuple[Data, str], int]()
        for ranking, ranks in counted if entry.method else ():
            outcome = next((s.score.outcome for s, *_ in ranking.lines if s.entry is entry), "")
            if name in ranks:
                of_entry.append(ranks[name])
            elif outcome == NOT_KEPT:
                of_entry.append(len(ranks) + 1)
                last += 1
            else:
                place = ranking.data, outcome or "not run"
                missing[place] = missing.get(place, 0) + 1
        if of_entry:
            lacks = tuple(Missing(data, count, why) for (data, why), count in missing.items())
            mean = statistics.fmean(of_entry)
            out.append(Overall(entry, mean, len(of_entry) - last, last, lacks))
    return sorted(out, key=lambda each: (bool(each.missing), each.mean_rank))
