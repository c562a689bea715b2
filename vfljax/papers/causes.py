"""Why a printed number differs from ours, and what shows it.

The cause is the released code only if a stored run with its settings is equivalent, inferred settings if a run
does not differ whose settings the code does not all state, and the paper or its data only if a test recomputes
the contradiction from printed figures. It is chance only if the difference does not remain after the correction
for all numbers. What is left is open. causes.json has the facts.
"""

from __future__ import annotations

import enum
import json
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from vfljax.papers.agreement import Status
from vfljax.papers.comparisons import Compared

RECORDS = json.loads(pathlib.Path(__file__).with_name("causes.json").read_text())


class Cause(enum.StrEnum):
    """Why a number differs."""

    RELEASED = "released code"  # a run with its settings is equivalent
    LIKELY = "released code, low power"  # a run with its settings does not differ
    INFERRED = "settings inferred"  # a run does not differ whose settings are not all in the code
    INCONSISTENT = "paper inconsistent"
    CHANCE = "chance"
    DATA = "data"
    OPEN = "open"


class Explained(NamedTuple):
    """A cause and what shows it."""

    cause: Cause
    variant: str = ""  # the stored run that is equivalent
    reason: str = ""  # what the paper's own figures show
    test: str = ""  # that recomputes it, in tests/papers/causes_test.py


class Settings(NamedTuple):
    """Where the settings of a run come from that is not at the published setting."""

    released: str  # what is of the released code
    inferred: str  # what is not written there, and how it was chosen
    tries: int  # settings that were run before one was kept
    inferred_for: Sequence[str] = ()  # the defenses whose settings are inferred


RELEASED_RUNS = {run: Settings(**fields) for run, fields in RECORDS["runs"].items()}
"""By ``--variant`` of a run; any other was tried because a number differed."""
CONTRADICTIONS = {
    number: Explained(Cause(entry["cause"]), reason=entry["reason"], test=entry["test"])
    for entry in RECORDS["numbers"]
    for number in entry["ids"]
}
"""What the paper's own figures show, by number."""


def explained(number: str, variants: Sequence[Compared], remains: bool) -> Explained:
    """Returns why a number differs.

    Args:
      number: its id.
      variants: its runs under named rules.
      remains: whether the difference remains after the correction for all numbers.
    """
    released, inferred = {}, {}
    for v in variants:
        if v.agreement and v.run in RELEASED_RUNS:
            stated = v.number.defense not in RELEASED_RUNS[v.run].inferred_for
            (released if stated else inferred)[v.agreement.status] = v.variant
    if Status.EQUIVALENT in released:
        return Explained(Cause.RELEASED, variant=released[Status.EQUIVALENT])
    if number in CONTRADICTIONS:
        return CONTRADICTIONS[number]
    if Status.COMPATIBLE in released:
        return Explained(Cause.LIKELY, variant=released[Status.COMPATIBLE])
    if inferred_run := inferred.get(Status.EQUIVALENT) or inferred.get(Status.COMPATIBLE):
        return Explained(Cause.INFERRED, variant=inferred_run)
    return Explained(Cause.OPEN if remains else Cause.CHANCE)
