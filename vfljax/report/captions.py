"""The rules of judging in words, for the captions of tables; constants are printed from where they are used.

The shortfall of the strongest attack's figure is read from a table that ``analysis.judging`` simulated.
"""

from __future__ import annotations

import csv
import functools
import math
import pathlib
import statistics
from typing import NamedTuple

from vfljax.report import choosing, judging
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import Reference
from vfljax.report.intervals import FEWEST_SEEDS
from vfljax.sweep.records import Goal

SHORTFALLS = pathlib.Path(__file__).with_name("shortfalls.csv")
"""Made by ``python -m analysis.judging --shortfalls``."""
OTHER_SEEDS = (
    "Nothing is chosen where it is scored: for each seed (a fold) the choice is made on the other seeds and "
    "scored on that one, and a figure is the mean of the folds. The name is chosen on all seeds; how many "
    "folds chose it is printed too."
)
HALVES = (
    f"This sweep has fewer than {FEWEST_SEEDS} seeds: attack and operating point are chosen on one half of "
    "the rows and scored on the other, which flatters. There are no limits and no verdicts."
)
UNPUBLISHED = (
    "Where the strongest attack is in no paper: it takes the defense into account, or learns from what "
    "crossed the wire. Published: the strongest of the published attacks run here, or the local-only baseline. "
    "What the strongest reads more has limits as the change to undefended has."
)


def strongest_attack(assessed: Assessed, permuted: float = 0.0) -> str:
    """Returns the caption of the table of strongest attacks and verdicts, in paragraphs.

    Args:
      assessed: the sweep.
      permuted: share of the training rows whose labels were permuted.
    """
    reference = assessed.reference
    parts = [
        control(permuted),
        _leaks(reference),
        " ".join(filter(None, (how_chosen(assessed), judging.COVERS, shortfall(assessed)))),
        "Verdicts, the first that holds by the limits of every attack: "
        + "; ".join(f"{verdict} ({meaning})" for verdict, meaning in judging.MEANINGS.items())
        + ". Each is wrong about once in 20 times at most, configuration by configuration.",
        "Null band: what the same scores reach when labels are permuted, 95 times of 100. Of two classes the "
        "attacker is granted which way its scores point, one bit. Oracles know more than an attacker can: they "
        "have a column of their own and are no candidates.",
    ]
    return "\n\n".join(part for part in parts if part)


def _leaks(reference: Reference) -> str:
    reached = reference.local_only
    local_only = "" if math.isnan(reached) else f", which reaches {reached:.3f}"
    return (
        f"Leaks: the {reference.scale} of the strongest attack on rows whose labels it does not know; chance "
        f"is {reference.chance:.2f}, certainty 1. Candidates are all attacks of attackers who know at most "
        f"{reference.known} labels, and the local-only baseline: what the passive party fits to as many "
        f"labels from its own columns, without the federation{local_only}. In brackets: what the strongest "
        "attack leaks at least and at most. Excess: the leak less that of the local-only baseline. Change: the "
        "leak less that of undefended."
    )


def control(permuted: float) -> str:
    """That labels were permuted, and what a leak means then; '' where none were."""
    if not permuted:
        return ""
    rest = (
        "Columns tell nothing of labels, so that what is read above chance came through the federation."
        if permuted == 1
        else "Of these rows columns tell nothing, and what is read above chance came through the federation."
    )
    return (
        f"Control: the labels of {permuted:.0%} of the rows were permuted before the split. {rest}"
    )


def how_chosen(assessed: Assessed) -> str:
    """Where attacks were chosen: on other seeds, or on halves of the rows."""
    return OTHER_SEEDS if _seeds(assessed) >= FEWEST_SEEDS else HALVES


class Shortfall(NamedTuple):
    """By how much the folds' figure falls short of the strongest attack's, simulated."""

    seeds: int
    candidates: int
    by_spread: dict[float, float]  # standard deviation over seeds -> shortfall


@functools.cache
def _stored_shortfalls() -> dict[tuple[int, int], Shortfall]:
    with SHORTFALLS.open(encoding="utf-8", newline="") as file:
        rows = [
            Shortfall(
                seeds=int(row.pop("seeds")),
                candidates=int(row.pop("candidates")),
                by_spread={float(name.split()[-1]): float(x) for name, x in row.items()},
            )
            for row in csv.DictReader(file)
        ]
    return {(row.seeds, row.candidates): row for row in rows}


def stored_shortfall(seeds: int, candidates: int) -> Shortfall:
    """Returns the simulated shortfall for at least so many seeds and candidates.

    Args:
      seeds: number of seeds of a sweep.
      candidates: number of attacks to choose from, the local-only baseline included.

    Returns:
      The row of the next larger stored numbers, or of the largest ones.
    """
    rows = _stored_shortfalls()
    places = []
    for wanted, stored in zip((seeds, candidates), zip(*rows), strict=True):
        places.append(min((n for n in stored if n >= wanted), default=max(stored)))
    return rows[places[0], places[1]]


def shortfall(assessed: Assessed) -> str:
    """By how much a figure falls short of the strongest attack's, simulated for as many seeds and attacks;
    '' with too few seeds."""
    found = [a.strongest for a in assessed.attacked if a.strongest is not None]
    seeds = _seeds(assessed)
    if seeds < FEWEST_SEEDS:
        return ""
    candidates = max(len(strongest.candidates.everyone) for strongest in found)
    by_seed = [list(strongest.by_seed.values()) for strongest in found]
    spreads = [statistics.stdev(leaks) for leaks in by_seed if len(leaks) > 1]
    stored = stored_shortfall(seeds, candidates)
    figures = ", ".join(f"{short:.3f}" for short in stored.by_spread.values())
    return (
        f"The figure is unbiased for what the folds chose, and falls short of the strongest attack's: by up "
        f"to {figures} where figures spread over seeds by {', '.join(f'{s:g}' for s in stored.by_spread)} "
        f"(simulated for {stored.seeds} seeds and {stored.candidates} candidates; the figures below spread by "
        f"{statistics.median(spreads):.3f} in the median and {max(spreads):.3f} at most)."
    )


def keeps_accuracy(max_cost: float) -> str:
    """When an operating point keeps the accuracy, in words."""
    return (
        f"its accuracy on validation rows is at most {_cost(max_cost)} below undefended's in the mean over "
        f"seeds, and at most {_cost(2 * max_cost)} by the upper limit of that loss at "
        f"{choosing.LOSS_LEVEL:.0%}; a seed that diverged counts as the majority guess"
    )


def _cost(value: float) -> str:
    """'0.02', and every digit where there are more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:g}"


def operating_points(max_cost: float = choosing.MEAN_LOSS) -> str:
    """The caption of the table of chosen operating points that may cost so much accuracy."""
    return (
        f"An operating point keeps the accuracy if {keeps_accuracy(max_cost)}. Of those that do, the one "
        "whose strongest attack leaks least is chosen, by each fold on the other seeds: leak, excess and both "
        "changes are means of the folds, each by what it chose. The verdict is on the point that is named, and "
        "is not corrected for choosing it."
    )


def chosen(goal: Goal, compared: bool) -> str:
    """Returns the caption of the cards.

    Args:
      goal: what the config asks of a defense.
      compared: whether there is anything undefended.
    """
    if not compared:
        return "Shown is the operating point that leaks least: nothing undefended was trained to compare with."
    leak = "" if goal.max_leak >= 1 else f", and leak at most {goal.max_leak:g}"
    return (
        "Shown is the operating point that leaks least of those that keep the accuracy. One keeps it if "
        f"{keeps_accuracy(goal.max_cost)}. Leak, limits and verdict are this point's own; the change of "
        "accuracy is that of what each fold chose. Asked for: accuracy may fall by "
        f"{goal.max_cost:g} at most{leak}."
    )


def _seeds(assessed: Assessed) -> int:
    """The number of seeds with figures, at most configurations."""
    return max((a.strongest.seeds for a in assessed.attacked if a.strongest), default=0)
