"""What an attack reads and a recording lacks."""

from __future__ import annotations

from collections.abc import Collection

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
    phrases = [READS[name] for name in lacks if name != "columns"]
    return phrases + ["the weights of all parties"] * bool(attack.diagnostic)
