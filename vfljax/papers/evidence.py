"""What stored runs show of a paper's claims: comparisons with printed numbers, and what attacks read.

A difference between two figures is paired by seed and has a 95 % t-interval.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from vfljax.papers import paper_of
from vfljax.papers.comparisons import Compared
from vfljax.papers.leaks import LeakRow

SAME = ("table", "dataset", "attack", "split", "metric")  # of two numbers that are compared


class Support(enum.StrEnum):
    """What a piece of evidence is to a claim."""

    FOR = "for"
    AGAINST = "against"
    OPEN = "open"
    MEASURED = "measured"  # of what no paper claims


class Difference(NamedTuple):
    """A mean difference over seeds and its 95 % interval; NaN limits of one seed."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        limits = "" if math.isnan(self.low) else f" ({self.low:+.3f} to {self.high:+.3f})"
        return f"{self.mean:+.3f}{limits}"

    def below(self, limit: float) -> Support:
        """Returns FOR if the interval lies below ``limit``, AGAINST above it, OPEN around it."""
        if math.isnan(self.low) or self.low <= limit <= self.high:
            return Support.OPEN
        return Support.FOR if self.high < limit else Support.AGAINST


def difference(a: ArrayLike, b: ArrayLike) -> Difference:
    """Returns a - b.

    Args:
      a: [seeds] figures.
      b: [seeds] figures of the same seeds.
    """
    d = np.subtract(a, b)
    mean, half = float(d.mean()), math.nan
    if len(d) > 1:
        half = float(stats.t.ppf(0.975, len(d) - 1) * d.std(ddof=1) / math.sqrt(len(d)))
    return Difference(mean, mean - half, mean + half)


class Evidence(NamedTuple):
    """What is stored of all runs."""

    compared: Sequence[Compared]
    leaks: Mapping[str, Sequence[LeakRow]]  # by the sweep's name

    def pick(self, **fields: Any) -> list[Compared]:
        """Returns the comparisons without a variant whose numbers have these fields."""
        return [
            c
            for c in self.compared
            if not c.variant and all(getattr(c.number, f) == v for f, v in fields.items())
        ]

    def sweeps(self, *tables: str) -> Iterator[tuple[str, Sequence[LeakRow]]]:
        """Yields the name and the rows of every sweep of these tables, by name.

        Args:
          *tables: such as "kdk/8", or "kdk" for all tables of a paper.
        """
        for name, rows in sorted(self.leaks.items()):
            if rows and {rows[0].table, paper_of(rows[0].table)} & set(tables):
                yield name, rows

    def pairs(
        self, a: Mapping[str, str], b: Mapping[str, str], same: Sequence[str] = SAME
    ) -> Iterator[tuple[Compared, Compared]]:
        """Yields two comparisons each, of one scale and as many seeds.

        Args:
          a: fields of the first number.
          b: fields of the second.
          same: fields in which the two are equal.
        """
        for x in self.pick(**a):
            for y in self.pick(**b):
                alike = all(getattr(x.number, f) == getattr(y.number, f) for f in same)
                if alike and x.scale == y.scale and len(x.ours) == len(y.ours):
                    yield x, y
