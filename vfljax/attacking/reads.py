"""What an attack reads and a recording lacks."""

from __future__ import annotations

from vfljax.attacks.core import READS, Attack
from vfljax.datasets.core import Recording


def lacking(attack: Attack, recording: Recording) -> list[str]:
    """Returns what an attack reads and a recording lacks, as messages name it.

    Columns that were not recorded do not count: they are zeros, from which an attack learns nothing, and it
    still reads the exchange. Nor do the encrypted gradients of trees, if the attack reads embeddings too, which
    are the paths of rows.

    Args:
      attack: whose declarations are compared.
      recording: what was recorded.
    """
    missing = {*recording.missing} - {"columns"}
    if not recording.trees:
        missing.add("nodes")
    elif "embeddings" in attack.reads:
        missing.discard("gradients")
    lacks = [READS[name] for name in READS if name in attack.reads and name in missing]
    return lacks + ["the weights of all parties"] * bool(attack.diagnostic)
