"""Runs attacks, those that have read the most first, until a share of an audit's budget is spent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from vfljax.attacking.batching import Stored
from vfljax.attacking.jobs import VariantPlan
from vfljax.attacking.run import RunVariants, run_variants

# share of the budget after which only ``ALWAYS`` attacks are begun on the undefended federation
SHARE = 0.3
LEADING = ("reader", "probe", "ranks", "spectral", "mean", "posterior", "surrogate", "joint")
"""The attacks that run first: those that read the most in the stored audits, and one that knows label DP."""
ALWAYS = LEADING[:2]


def until(end: float, left_out: set[str]) -> RunVariants:
    """Returns a runner that begins attack variants, those of ``LEADING`` first, until a moment.

    A variant that has begun, now or earlier (rows of it are stored), is finished. If one variant of an attack
    is not begun in time, the attack's later variants are left out too.

    Args:
      end: the moment, by ``time.monotonic``; ``ALWAYS`` are run at any time.
      left_out: names of attacks that are not run; attacks that are not begun in time are added.
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
