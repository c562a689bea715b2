"""How often a verdict is false, by simulation: ``python -m analysis.judging`` writes the table.

Each line is of one number of seeds, attacks and local-only learners. ``ordinary`` is the largest rate of a
false verdict over all simulated truths, in the ten worlds in which the rule is meant to hold, and ``median``
that of one simulated case of these. ``failing`` is
that in the world whose strongest attack fails on one seed in eight, which few seeds do not show. ``noise`` is
the rate of *still leaks* if no attack reads more than the learners, and only trying all of them does.
"""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import pandas as pd

FALSE_RATES = pathlib.Path(__file__).with_name("false_rates.csv")


@functools.cache
def stored() -> pd.DataFrame:
    """Returns the table: seeds, attacks, learners, and each largest rate with its standard error, such as
    ``ordinary`` and ``ordinary_error``."""
    return pd.read_csv(FALSE_RATES)


def false_rate(seeds: int, attacks: int, learners: int) -> Any | None:
    """Returns the line for the numbers of a sweep, a named tuple; None with fewer seeds than any line has.

    If the numbers are between lines, fewer seeds and learners and more attacks count. Beyond the largest stored
    number of attacks, and below the smallest of learners, these are taken.
    """
    lines = stored()
    fits = lines[
        (lines["seeds"] <= seeds)
        & (lines["attacks"] >= min(attacks, lines["attacks"].max()))
        & (lines["learners"] <= max(learners, lines["learners"].min()))
    ].sort_values(["seeds", "attacks", "learners"], ascending=[False, True, False])
    return next(fits.itertuples(index=False), None)
