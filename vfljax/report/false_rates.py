"""How often a verdict is false, by simulation: ``python -m analysis.judging`` writes the table.

Each line is of one number of seeds, attacks and local-only learners. ``ordinary`` is the largest rate of a
false verdict over all simulated truths, in the ten worlds in which the rule is meant to hold. ``failing`` is
that in the world whose strongest attack fails on one seed in eight, which few seeds do not show. ``noise`` is
the rate of *still leaks* if no attack reads more than the learners, and only trying all of them does.
"""

from __future__ import annotations

import csv
import functools
import pathlib
from typing import NamedTuple

FALSE_RATES = pathlib.Path(__file__).with_name("false_rates.csv")
NUMBERS = ("seeds", "attacks", "learners")
RATES = ("ordinary", "ordinary_error", "failing", "failing_error", "noise", "noise_error")


class FalseRate(NamedTuple):
    """The largest simulated rates of false verdicts, with their standard errors."""

    seeds: int
    attacks: int
    learners: int
    ordinary: float
    ordinary_error: float
    failing: float
    failing_error: float
    noise: float
    noise_error: float


@functools.cache
def stored() -> tuple[FalseRate, ...]:
    """Returns the lines of the table."""
    with FALSE_RATES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        FalseRate(*(int(row[k]) for k in NUMBERS), *(float(row[k]) for k in RATES)) for row in rows
    )


def false_rate(seeds: int, attacks: int, learners: int) -> FalseRate | None:
    """Returns the line for the numbers of a sweep; None with fewer seeds than any line has.

    If the numbers are between lines, fewer seeds and learners and more attacks count. Beyond the largest stored
    number of attacks, and below the smallest of learners, these are taken.
    """
    lines = stored()
    most, fewest = max(line.attacks for line in lines), min(line.learners for line in lines)
    fits = [
        line
        for line in lines
        if line.seeds <= seeds
        and line.attacks >= min(attacks, most)
        and line.learners <= max(learners, fewest)
    ]
    return max(fits, key=lambda x: (x.seeds, -x.attacks, x.learners), default=None)
