"""How many labels an attacker may know, and what he reaches with them who takes no part at all.

What enters: a stored sweep's rows. What leaves: a ``Budget`` for every number of known labels K. The
attacker who stays away (``vfljax.attacking.alone``) depends on K, on his columns and on the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from vfljax.store import Sweep

Away = Mapping[str, Mapping[int, Mapping[str, Any]]]
"""The rows of the attacker who stays away with one number of known labels, by parties ("[0, 1]") and seed."""


def known_of(row: Mapping[str, Any]) -> int:
    """How many labels a stored attack knew; 0 of one that is given none."""
    return row["known"]


def parties_of(row: Mapping[str, Any]) -> str:
    """Who attacked, "[0, 1]"."""
    return row["attackers"]


class Budget(NamedTuple):
    """How many labels an attacker may know, and what he reaches with them who stays away."""

    known: int
    away: Away

    def reached(self, outcome: Mapping[str, Any], figure: str, chance: float) -> float | None:
        """His figure on the seed of an attack's ``outcome``, from its parties' columns: chance without a
        label, None where he was not scored."""
        if not self.known:
            return chance
        row = self.away.get(parties_of(outcome), {}).get(outcome["seed"])
        return None if row is None else row[figure]

    def excess(self, outcome: Mapping[str, Any], chance: float) -> float | None:
        """The leak of an attack's ``outcome`` less his."""
        leak = self.reached(outcome, "leak", chance)
        return None if leak is None else outcome["leak"] - leak

    @property
    def scored(self) -> bool:
        """Whether he is known of: old sweeps have no rows of him."""
        return not self.known or bool(self.away)


def budgets(
    sweep: Sweep, rows: Iterable[Mapping[str, Any]], attack_point: int
) -> dict[int, Budget]:
    """A budget for every number of labels that some of the attacks' ``rows`` know, ascending after the
    first, which the report leads with: the most that any attack knows at ``attack_point``."""
    rows = list(rows)
    leading = max((known_of(row) for row in rows if row["point"] == attack_point), default=0)
    away: dict[int, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for row in sweep.alone.to_pylist():
        away.setdefault(known_of(row), {}).setdefault(parties_of(row), {})[row["seed"]] = row
    others = sorted({known_of(row) for row in rows} - {leading})
    return {known: Budget(known, away.get(known, {})) for known in (leading, *others)}
