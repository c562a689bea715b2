"""Skips attacks that read what a recording lacks."""

from __future__ import annotations

from collections.abc import Collection

from vfljax.attacking.batching import Stored
from vfljax.attacking.jobs import VariantPlan
from vfljax.attacks.core import READS, Attack


def lacking(attack: Attack, missing: Collection[str]) -> list[str]:
    """Returns what an attack reads and a recording lacks, as messages name it.

    Columns that were not recorded do not count: they are zeros, from which an attack learns nothing, and it
    still reads the exchange.

    Args:
      attack: whose declarations are compared.
      missing: ``Recording.missing``, names in ``READS``.
    """
    lacks = [name for name in READS if name in attack.reads and name in missing]
    shown = [READS[name] for name in lacks if name != "columns"]
    return shown + ["the weights of all parties"] * bool(attack.diagnostic)


def as_recorded(planned: VariantPlan, stored: Stored) -> VariantPlan:
    """Returns the plan of a variant, without jobs if the attack reads what was not recorded.

    Args:
      planned: the variant and its jobs.
      stored: the sweep, of a recording or of a federation that was trained here.
    """
    recording = stored.plan.dataset.recording
    if recording is None or not planned.every_job:
        return planned
    if lacks := ", ".join(lacking(planned.attack, recording.missing)):
        return planned._replace(jobs={}, skipped=f"it reads what this recording lacks: {lacks}")
    return planned
