"""What the verdicts of a panel allow to decide. The first of these that holds:

| action             | when                                                                     |
|--------------------|--------------------------------------------------------------------------|
| undecided          | no attack has a figure, or nothing undefended was attacked               |
| do not federate    | the gain is below a point on average, its lower limit at or below 0      |
| nothing to protect | the upper limit of undefended's excess is below .05, no figure missing   |
| switch on X at Y   | a point is recommended (``judged``), and fresh seeds do not contradict   |
| undecided          | fewer than three seeds, no defense was tried, or limits leave it open    |
| do not federate yet| all else: no defense that was tried meets the goal                       |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from vfljax.report.costs import SHOWN_GAIN, Cost
from vfljax.report.judged import Judged
from vfljax.report.limits import FEWEST_SEEDS
from vfljax.report.rows import PANELS, Facts
from vfljax.report.verdicts import EXCESS, Verdict
from vfljax.report.words import count

Row = Mapping[str, Any]
"""A row of the verdict frame."""


class Panel(NamedTuple):
    """What is decided on, of one panel."""

    name: str  # a key of ``rows.PANELS``
    judged: Judged
    facts: Facts
    every: pd.DataFrame  # its verdicts, at the headline's K
    bare: Row | None  # undefended's
    best: Row | None  # what is recommended
    fresh: Row | None  # what is recommended, on fresh seeds
    rows: tuple[Row, ...]  # the verdict that represents each method; none for undefended

    @property
    def seeds(self) -> int:
        """The number of seeds of the recommended point, else of undefended, else of the first of ``rows``."""
        return int((self.best or self.bare or self.rows[0])["seeds"])


def panels(judged: Judged) -> list[Panel]:
    """Returns the panels in which an attack has a figure."""
    every = {name: judged.leading[judged.leading["panel"] == name] for name in PANELS}
    return [_panel(judged, name, of) for name, of in every.items() if of["leak"].notna().any()]


def _panel(judged: Judged, name: str, every: pd.DataFrame) -> Panel:
    def first(rows: pd.DataFrame) -> Row | None:
        return next(iter(rows.to_dict("records")), None)

    best, fresh = first(every[every["recommended"]]), None
    if best is not None:
        of = judged.confirmed
        fresh = first(of[(of["panel"] == name) & (of["configuration"] == best["configuration"])])
    bare = first(every[every["undefended"] & every["leak"].notna()])
    rows = every[every["representative"] & ~every["undefended"]].to_dict("records")
    return Panel(name, judged, judged.facts, every, bare, best, fresh, tuple(rows))


def action(p: Panel) -> tuple[str, bool]:
    """Returns the decision, and whether it leaves nothing open that a defense could change."""
    if p.bare is None:
        return "Undecided: without undefended nothing shows what a defense takes away.", False
    if gains_nothing(p.bare):
        return "Do not federate: it gains nothing.", True
    if nothing_to_protect(p.bare):
        return "Nothing to protect from what was tried: no defense is needed.", True
    if p.best is not None:
        name, method = p.best["label"], p.best["method"]
        knobs = name.removeprefix(method).strip()
        if p.fresh is not None and not p.fresh["confirms"]:
            return f"Undecided: fresh seeds do not confirm {name}.", False
        unknown = p.best["cost"] == Cost.UNKNOWN
        provided = " if its cost, which is not known, is acceptable" if unknown else ""
        unproven = p.best["verdict"] != Verdict.PROTECTS
        found = (
            f". It is the best that was found; its verdict is not '{Verdict.PROTECTS}'"
            if unproven
            else ""
        )
        return f"Switch on {method}{f' at {knobs}' if knobs else ''}{provided}{found}.", False
    if p.seeds < FEWEST_SEEDS:
        return f"Undecided: {count(p.seeds, 'seed')} allow{'s' * (p.seeds == 1)} no verdict.", False
    if not p.rows:
        return "Undecided: no defense was tried.", False
    if p.bare["undefended_e_lower"] <= EXCESS:
        return "Undecided: whether more leaks than without the federation is open.", False
    one = len(p.rows) == 1
    if any(is_open(v, p.facts) for v in p.rows):
        who = p.rows[0]["label"] if one else f"one of the {len(p.rows)} defenses that were tried"
        return f"Undecided: whether {who} helps is open.", False
    who = f"{p.rows[0]['label']} does not meet" if one else f"none of {len(p.rows)} defenses meets"
    return f"Do not federate yet: {who} the goal.", False


def gains_nothing(bare: Row) -> bool:
    """Returns whether undefended gains less than ``SHOWN_GAIN`` over the label party, perhaps nothing."""
    return bare["gain"] < SHOWN_GAIN and bare["gain_lower"] <= 0


def nothing_to_protect(bare: Row) -> bool:
    """Returns whether undefended adds hardly anything to what can be read without the federation."""
    return bare["undefended_e_upper"] < EXCESS and not bare["incomplete"]


def is_open(v: Row, facts: Facts) -> bool:
    """Returns whether more seeds, or an attack that knows it, may lead to a recommendation of a point."""
    if v["verdict"] in (Verdict.CANNOT_SAY, Verdict.NO_VERDICT):
        return True
    able = Verdict(v["verdict"]).helps and v["cost"] != Cost.TOO_MUCH and v["chosen"]
    return able and not (v["known_by"] and v["leak_upper"] > facts.goal.max_leak)
