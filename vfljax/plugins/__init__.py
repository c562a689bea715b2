"""A user's defenses and attacks: rows of a Python file that a config names as ``"mine:shuffle"``.

``use("mine")`` imports the module ``mine`` and adds every ``DefenseRow`` and ``AttackRow`` of it to the
tables under the module's name and its own: ``shuffle = DefenseRow(...)`` in ``mine.py`` is
``"mine:shuffle"``. From then on it is trained, attacked, judged and reported as the rows of this library
are, and ``vfljax.contract.check("mine:shuffle")`` checks that it keeps the contract.

A stored sweep describes the rows of plugins that it was made with, and names their version and the
SHA-256 of their files and of these files' syntax trees. Reading and reporting it use the description and
import nothing (``stand_in``). Training or attacking needs the plugin again, from a file of the same text or
the same code: comments and docstrings may change (``required``).
"""

from __future__ import annotations

from vfljax.plugins.described import described, required, stand_in
from vfljax.plugins.use import Plugin, use

__all__ = ["Plugin", "described", "required", "stand_in", "use"]
