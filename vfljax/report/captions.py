"""What stands above the report's tables of judgments: the rules in one wording.

The words are those of ``judging`` and ``choosing``, whose constants are printed; the shortfall of the
worst case's figure is ``simulation``'s.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from vfljax.report import choosing, judging, simulation
from vfljax.report.strengths import keeps
from vfljax.report.summary import Point
from vfljax.sweep.records import Goal

OTHER_SEEDS = (
    "Nothing is chosen where it is scored: for each seed (a fold) the choice is made on the other seeds and "
    "scored on that one, and a figure is the mean of the folds. The name is chosen on all seeds; beside it "
    "stands how many folds chose it."
)
HALVES = (
    f"This sweep has fewer than {judging.FEWEST_SEEDS} seeds: attack and strength are chosen on one half of "
    "the rows and scored on the other, which flatters. There are no limits and no verdicts."
)


def worst_case(
    points: Sequence[Point], base: dict[str, Any], known: int, permuted: float = 0.0
) -> str:
    """Of the table of worst cases and verdicts, in paragraphs.

    ``known`` is the leading budget of labels, and ``permuted`` the share of rows whose labels were
    permuted.
    """
    alone = "" if math.isnan(base["alone"]) else f", and reaches {base['alone']:.3f}"
    parts = [
        control(permuted),
        f"Leaks: the {base['scale']} of the strongest attack on rows whose labels it does not know; "
        f"chance is {base['chance']:.2f}, certainty 1. Candidates are all attacks that were run by somebody "
        f"who knows at most {known} labels, and staying away: who takes no part fits his own columns to as "
        f"many labels{alone}. In brackets: what the strongest attack leaks at least and at most. Excess: the "
        "leak less that of staying away. Change: the leak less that of undefended.",
        " ".join(part for part in (how_chosen(points), judging.COVERS, shortfall(points)) if part),
        "Verdicts, the first that holds by the limits of every attack: "
        + "; ".join(f"{verdict} ({meaning})" for verdict, meaning in judging.MEANINGS.items())
        + ". Each is wrong about once in 20 times at most, strength by strength.",
        "Null band: what the same scores reach when labels are permuted, 95 times of 100. Of two classes the "
        "attacker is granted which way its scores point, one bit. Oracle forms know more than an attacker "
        "can: they stand beside the worst case, not in it.",
    ]
    return "\n\n".join(part for part in parts if part)


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


def how_chosen(points: Sequence[Point]) -> str:
    """Where attacks were chosen: on other seeds, or on halves of the rows."""
    return OTHER_SEEDS if _seeds(points) >= judging.FEWEST_SEEDS else HALVES


def shortfall(points: Sequence[Point]) -> str:
    """By how much a figure falls short of the true worst case, simulated for as many seeds and attacks;
    '' with too few seeds."""
    cases = [worst for p in points for worst in p.worst.values()]
    seeds = _seeds(points)
    if seeds < judging.FEWEST_SEEDS:
        return ""
    attacks = max(len(worst.candidates.all_names) for worst in cases)
    spreads = [
        statistics.stdev(worst.by_seed.values()) for worst in cases if len(worst.by_seed) > 1
    ]
    by_spread = simulation.shortfalls(seeds, attacks)
    figures = ", ".join(f"{short:.3f}" for short in by_spread.values())
    return (
        f"The figure is unbiased for what the folds chose, and falls short of the strongest attack's: by up "
        f"to {figures} where figures spread over seeds by {', '.join(f'{s:g}' for s in by_spread)} (simulated "
        f"for {seeds} seeds and {attacks} candidates; the figures below spread by "
        f"{statistics.median(spreads):.3f} in the median and {max(spreads):.3f} at most)."
    )


def strengths(max_cost: float = choosing.MEAN_LOSS) -> str:
    """Of the table of chosen strengths that may cost so much accuracy."""
    return (
        f"A strength keeps the accuracy if {keeps(max_cost)}. Of those that do, the one whose strongest attack "
        "leaks least is chosen, by each fold on the other seeds: leak, excess and both changes are means of "
        "the folds, each by what it chose. The verdict is on the strength that is named, and is not corrected "
        "for choosing it."
    )


def chosen(goal: Goal, compared: bool) -> str:
    """Of the cards; ``compared`` if there is anything undefended."""
    if not compared:
        return "Shown is the strength that leaks least: nothing undefended was trained to compare it with."
    leak = "" if goal.max_leak >= 1 else f", and leak at most {goal.max_leak:g}"
    return (
        f"Shown is the strength that leaks least of those that keep the accuracy. One keeps it if "
        f"{keeps(goal.max_cost)}. Leak, limits and verdict are this strength's own; the change of accuracy is "
        "that of what each fold chose. Asked "
        f"for: accuracy may fall by {goal.max_cost:g} at most{leak}."
    )


def adaptive() -> str:
    """Of the table that compares published attacks with all attacks."""
    return (
        "Where the strongest attack is in no paper: it takes the defense into account, or learns from what "
        "crossed the wire. Published: the strongest of the published attacks run here, or staying away. What "
        "the strongest reads more has limits as the change to undefended has."
    )


def _seeds(points: Sequence[Point]) -> int:
    """With figures, at most points."""
    return max((worst.case.seeds for p in points for worst in p.worst.values()), default=0)
