"""AutoLeak, the frozen suite of attacks that LeakBench's entries are attacked with.

``autoleak.json`` stores the suite: its version, each attack with its rule number and options, and the rule
number of the learners without the federation, beside which attacks are judged. The attacks are a copy of an
audit's (``vfljax.auditing.suite.ATTACKS``), so that a change of these changes no board. Whoever edits the file
writes the next version into it (CONTRIBUTING).
"""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from vfljax.attacks import TABLE, learners
from vfljax.errors import UserError

SUITE = pathlib.Path(__file__).with_name("autoleak.json")


class Suite(NamedTuple):
    """A version of AutoLeak."""

    version: str
    attacks: Mapping[str, Mapping[str, Any]]  # options by attack, as ``config.attacks`` has them
    rules: Mapping[str, int]  # rule numbers by attack
    learners: int  # the rule number of the learners without the federation

    def require_current(self) -> None:
        """Raises a UserError if an attack, or the learners, have another rule now: figures of two rules are not
        comparable."""
        changed = [
            name
            for name, rule in self.rules.items()
            if name not in TABLE or TABLE[name].rule != rule
        ]
        changed += ["learners"] * (self.learners != learners.RULE)
        if changed:
            what = f"AutoLeak {self.version} was frozen with other rules of {', '.join(changed)}"
            raise UserError(
                what, remedy=f"give {SUITE.name} the present rules and the next version"
            )


@functools.cache
def autoleak() -> Suite:
    """Returns the suite of this version of vfljax."""
    stored = json.loads(SUITE.read_text())
    rows: dict[str, dict[str, Any]] = stored["attacks"]
    options = {
        name: {k: tuple(v) if isinstance(v, list) else v for k, v in row["options"].items()}
        for name, row in rows.items()
    }
    rules = {name: row["rule"] for name, row in rows.items()}
    return Suite(stored["version"], options, rules, stored["learners"])
