"""A user's defenses and attacks: rows of a Python file that a config names as ``"mine:shuffle"``.

``use("mine")`` imports the module ``mine`` and adds each of its ``DefenseRow``s and ``AttackRow``s to the
tables, under the names of the module and of the row: ``shuffle = DefenseRow(...)`` in ``mine.py`` is
``"mine:shuffle"``. From then on the row is trained, attacked, judged and reported as the rows of this library
are, and ``vfljax.testing.check("mine:shuffle")`` checks that it keeps the contract.

A stored sweep has descriptions of the plugins' rows with which it was made, their version, and the SHA-256 of
their files. Reading and reporting the sweep use the descriptions and import nothing (``stand_in``): a report
prints the texts that are stored. Training or attacking needs the same file again, by its SHA-256
(``required``).
"""

from __future__ import annotations

from vfljax.plugins.described import (
    check_in_use,
    described,
    is_recorded,
    recorded,
    required,
    stand_in,
)
from vfljax.plugins.use import use

__all__ = ["use"]
