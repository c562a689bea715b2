"""The rules of judging in words, for the captions of tables; constants are printed from where they are used.

The bias of the highest mean is read from a table that ``analysis.judging`` simulated.
"""

from __future__ import annotations

import csv
import functools
import math
import pathlib
import statistics
from collections.abc import Mapping
from typing import NamedTuple

from vfljax.report import choosing, judging
from vfljax.report.assessed import Assessed
from vfljax.report.spread import FEWEST_SEEDS
from vfljax.report.stored_rows import FEDERATIONS

BIASES = pathlib.Path(__file__).with_name("biases.csv")
"""Made by ``python -m analysis.judging --biases``."""
OTHER_SEEDS = (
    "The figure is the highest mean over seeds of any candidate, which is named. By folds: for each seed the "
    "candidate is chosen on the other seeds and scored on that one, and the figure is the mean of the folds; "
    "nothing is chosen there where it is scored, but a fold may pick a candidate that reads less."
)
FEW_SEEDS = (
    f"This sweep has fewer than {FEWEST_SEEDS} seeds: the figure is the highest mean of any candidate, which "
    "is named and flatters. There are no limits and no verdicts."
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
    chosen = OTHER_SEEDS if _seeds(assessed) >= FEWEST_SEEDS else FEW_SEEDS
    parts = [
        control(permuted),
        _leaks(assessed),
        " ".join(filter(None, (chosen, judging.COVERS, bias(assessed)))),
        "Verdicts, the first that holds by the limits of every attack: "
        + "; ".join(f"{verdict} ({meaning})" for verdict, meaning in judging.MEANINGS.items())
        + ". Each is wrong about once in 20 times at most, configuration by configuration.",
        operating_points(assessed),
        "Null band: what the same scores reach when labels are permuted, 95 times of 100. Of two classes the "
        "attacker is granted which way its scores point, one bit. Oracles know more than an attacker can: they "
        "have a column of their own and are no candidates.",
    ]
    return "\n\n".join(part for part in parts if part)


def _leaks(assessed: Assessed) -> str:
    reference = assessed.reference
    of_federations = {f: assessed.local_only(f) for f in assessed.federations}
    scored = {f: leak for f, leak in of_federations.items() if not math.isnan(leak)}
    local_only = f", which reaches {_by_federation(scored)}" if scored else ""
    return (
        f"Leaks: the {reference.scale} of the strongest attack on rows whose labels it does not know; chance "
        f"is {reference.chance:.2f}, certainty 1. Candidates are all attacks of attackers who know at most "
        f"{reference.known} labels, and the local-only baseline: what the strongest of several learners "
        f"makes of as many labels and the passive party's own columns{local_only}. In brackets: what the "
        "strongest attack leaks at least and at most. Excess: the leak less that of the local-only baseline. "
        "Change: the leak less that of undefended."
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


class Bias(NamedTuple):
    """By how much the highest mean exceeds what the strongest attack truly leaks, simulated."""

    seeds: int
    candidates: int
    by_spread: dict[float, float]  # standard deviation over seeds -> bias


@functools.cache
def _stored_biases() -> dict[tuple[int, int], Bias]:
    with BIASES.open(encoding="utf-8", newline="") as file:
        first, *rows = csv.reader(file)
    spreads = [float(name.split()[-1]) for name in first[2:]]
    return {
        (int(seeds), int(candidates)): Bias(
            int(seeds), int(candidates), dict(zip(spreads, map(float, figures), strict=True))
        )
        for seeds, candidates, *figures in rows
    }


def stored_bias(seeds: int, candidates: int) -> Bias:
    """Returns the simulated bias for the next smaller stored number of seeds and next larger one of candidates
    (the local-only baseline included)."""
    rows = _stored_biases()
    of_seeds, of_candidates = (sorted(set(numbers)) for numbers in zip(*rows, strict=True))
    fewer = max((n for n in of_seeds if n <= seeds), default=of_seeds[0])
    more = min((n for n in of_candidates if n >= candidates), default=of_candidates[-1])
    return rows[fewer, more]


def bias(assessed: Assessed) -> str:
    """By how much the highest mean is biased upward, simulated for as many seeds and attacks; '' with too few
    seeds."""
    found = [a.strongest for a in assessed.attacked if a.strongest is not None]
    seeds = _seeds(assessed)
    if seeds < FEWEST_SEEDS:
        return ""
    candidates = max(len(strongest.candidates.everyone) for strongest in found)
    by_seed = [list(strongest.by_seed.values()) for strongest in found]
    spreads = [statistics.stdev(leaks) for leaks in by_seed if len(leaks) > 1]
    stored = stored_bias(seeds, candidates)
    figures = ", ".join(f"{most:.3f}" for most in stored.by_spread.values())
    return (
        f"The highest mean is biased upward by at most {figures} where figures spread over seeds by "
        f"{', '.join(f'{s:g}' for s in stored.by_spread)} (simulated for {stored.seeds} seeds and "
        f"{stored.candidates} candidates; the figures below spread by {statistics.median(spreads):.3f} in the "
        f"median and {max(spreads):.3f} at most). No verdict rests on it."
    )


def keeps_utility(assessed: Assessed) -> str:
    """When an operating point keeps the utility, in words."""
    allowed = {f: assessed.allowed.get(f, choosing.MEAN_LOSS) for f in assessed.federations}
    goal = assessed.reference.goal
    share = f"{1 - goal.keep_gain:.0%} of what the federation gains over the label party alone"
    return (
        f"its {assessed.reference.utility} on validation rows is at most {_by_federation(allowed)} "
        "below undefended's in the mean over seeds, and at most twice that by the upper limit of the loss at "
        f"{choosing.LOSS_LEVEL:.0%} ({share}, or config.goal.max_cost where that is less; "
        f"{choosing.MEAN_LOSS:g} where the label party alone is not known); a seed that diverged counts as a "
        "guess"
    )


def _by_federation(values: Mapping[str, float]) -> str:
    """The values of federations, one value where all are equal."""
    several = len(set(values.values())) > 1
    where = [f"{x:.3f} {FEDERATIONS[f]}" if several else f"{x:.3f}" for f, x in values.items()]
    return " and ".join(dict.fromkeys(where))


def operating_points(assessed: Assessed) -> str:
    """How the operating point of every method is chosen, which its card shows."""
    goal = assessed.reference.goal
    leak = "" if goal.max_leak >= 1 else f" Asked for: leak at most {goal.max_leak:g}."
    return (
        f"An operating point keeps the utility if {keeps_utility(assessed)}. Of those that do, the one "
        "whose strongest attack leaks least is chosen, of equal ones the most useful. Gain kept: the share of "
        "the gain over the label party alone, on test rows, with Fieller's limits; the cost rests on the "
        f"contrast to that share, not on the share.{leak}"
    )


def _seeds(assessed: Assessed) -> int:
    """The number of seeds with figures, at most configurations."""
    return max((a.strongest.seeds for a in assessed.attacked if a.strongest), default=0)
