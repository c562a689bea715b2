"""Captions that explain how a sweep was judged, with its figures; their text is in templates.

The bias of the highest mean is read from a table that ``analysis.judging`` simulated.
"""

from __future__ import annotations

import csv
import functools
import math
import pathlib
import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

from vfljax.report import choosing, judging
from vfljax.report.assessed import Assessed
from vfljax.report.spread import FEWEST_SEEDS
from vfljax.report.stored_rows import FEDERATIONS
from vfljax.report.templates import paragraphs

BIASES = pathlib.Path(__file__).with_name("biases.csv")
"""Made by ``python -m analysis.judging --biases``."""


class Bias(NamedTuple):
    """How much the highest mean exceeds the strongest attack's true leak, by simulation."""

    seeds: int
    candidates: int  # the local-only baseline included
    by_spread: dict[float, float]  # standard deviation over seeds -> bias


@functools.cache
def _stored_biases() -> tuple[Bias, ...]:
    with BIASES.open(encoding="utf-8", newline="") as file:
        first, *rows = csv.reader(file)
    spreads = [float(name.split()[-1]) for name in first[2:]]
    return tuple(
        Bias(int(seeds), int(candidates), dict(zip(spreads, map(float, figures), strict=True)))
        for seeds, candidates, *figures in rows
    )


def stored_bias(seeds: int, candidates: int) -> Bias:
    """Returns the nearest stored bias with at most ``seeds`` seeds and at least ``candidates`` candidates.

    Args:
      seeds: of the sweep; if fewer than all stored numbers, the smallest of these is used.
      candidates: with the local-only baseline; if more than all stored numbers, the largest is used.
    """
    stored = _stored_biases()
    fewest, most = min(bias.seeds for bias in stored), max(bias.candidates for bias in stored)
    fits = [
        bias
        for bias in stored
        if bias.seeds <= max(seeds, fewest) and bias.candidates >= min(candidates, most)
    ]
    return max(fits, key=lambda bias: (bias.seeds, -bias.candidates))


def strongest_attack(assessed: Assessed, permuted: float = 0.0) -> str:
    """Returns the caption of the table of strongest attacks and verdicts, in paragraphs.

    Args:
      assessed: the sweep.
      permuted: share of the training rows whose labels were permuted.
    """
    leaks = {federation: assessed.local_only(federation) for federation in assessed.federations}
    scored = {federation: leak for federation, leak in leaks.items() if not math.isnan(leak)}
    parts = paragraphs(
        "strongest_attack",
        reference=assessed.reference,
        permuted=permuted,
        local_only=_by_federation(scored),
        fewest_seeds=FEWEST_SEEDS,
        bias=_bias(assessed),
        verdicts=judging.MEANINGS,
        operating_points=operating_points(assessed),
    )
    return "\n\n".join(parts)


def _bias(assessed: Assessed) -> dict[str, Any] | None:
    """Returns the bias of the highest mean for the sweep's numbers of seeds and attacks, and the spread of its
    figures over seeds; None with too few seeds."""
    found = [a.strongest for a in assessed.attacked if a.strongest is not None]
    seeds = max((strongest.seeds for strongest in found), default=0)
    if seeds < FEWEST_SEEDS:
        return None
    stored = stored_bias(seeds, max(len(strongest.candidates.everyone) for strongest in found))
    by_seed = [list(strongest.by_seed.values()) for strongest in found]
    spreads = [statistics.stdev(leaks) for leaks in by_seed if len(leaks) > 1]
    return {
        **stored._asdict(),
        "most": ", ".join(f"{bias:.3f}" for bias in stored.by_spread.values()),
        "spreads": ", ".join(f"{spread:g}" for spread in stored.by_spread),
        "median": statistics.median(spreads),
        "largest": max(spreads),
    }


def operating_points(assessed: Assessed) -> str:
    """Returns how every method's operating point, which its card shows, is chosen."""
    allowed = {f: assessed.allowed[f] for f in assessed.federations}
    (text,) = paragraphs(
        "operating_points",
        reference=assessed.reference,
        goal=assessed.reference.goal,
        allowed=_by_federation(allowed),
        loss_level=choosing.LOSS_LEVEL,
        mean_loss=choosing.MEAN_LOSS,
    )
    return text


def _by_federation(values: Mapping[str, float]) -> str:
    """Returns the values as text with their federations, or one value if all are equal."""
    several = len(set(values.values())) > 1
    where = [f"{x:.3f} {FEDERATIONS[f]}" if several else f"{x:.3f}" for f, x in values.items()]
    return " and ".join(dict.fromkeys(where))
