"""Attacks in the order of what they have read, until a share of an audit's budget is spent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from vfljax.attacking.batching import Stored
from vfljax.attacking.jobs import VariantPlan
from vfljax.attacking.run import RunVariants, run_variants

# of the budget, after which no attack but ``ALWAYS`` is begun on the undefended federation
SHARE = 0.3
LEADING = ("reader", "probe", "ranks", "spectral", "mean", "posterior", "surrogate", "joint")
"""The attacks that are run first: those that read most in the stored audits, and one that knows label DP."""
ALWAYS = LEADING[:2]


def until(end: float, left_out: set[str]) -> RunVariants:
    """Returns what runs attack variants until a moment, those of the attacks first that have led most often.

    A variant that is begun is finished, also one of which rows are stored. An attack one of whose variants was
    not begun is left out.

    Args:
      end: by ``time.monotonic``; ``ALWAYS`` are run whatever the time.
      left_out: names of attacks that are not run; those that are not begun in time are added to it.
    """
    places = {name: place for place, name in enumerate(LEADING)}

    def begun(todo: Sequence[VariantPlan], stored: Stored) -> Iterator[VariantPlan]:
        for variant_plan in sorted(todo, key=lambda p: places.get(p.variant.name, len(places))):
            name = variant_plan.variant.name
            new = variant_plan.every_job and not stored.keys(variant_plan.variant)
            if new and name not in ALWAYS and time.monotonic() >= end:
                left_out.add(name)
            if name not in left_out:
                yield variant_plan

    return lambda todo, stored: run_variants(begun(todo, stored), stored)
