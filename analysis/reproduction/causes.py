"""Why a printed number differs from ours, and what shows it.

The first cause that applies is given: the released code, if a stored run with its settings is equivalent; the
paper or its data, if a test recomputes a contradiction from printed figures; the released code with low power,
if such a run is compatible; inferred settings, if a run with settings missing from the code does not differ;
chance, if the difference does not remain after the correction for all numbers. Otherwise the cause is open.
causes.json has the facts.
"""

from __future__ import annotations

import enum
import json
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from analysis.reproduction.agreement import Status
from analysis.reproduction.comparisons import Compared

RECORDS = json.loads(pathlib.Path(__file__).with_name("causes.json").read_text())


class Cause(enum.StrEnum):
    """Why a number differs."""

    RELEASED = "released code"  # a run with its settings is equivalent
    LIKELY = "released code, low power"  # a run with its settings does not differ
    INFERRED = "settings inferred"  # a run with settings missing from the code does not differ
    INCONSISTENT = "paper inconsistent"
    CHANCE = "chance"
    DATA = "data"
    OPEN = "open"


class Explained(NamedTuple):
    """A cause and what shows it."""

    cause: Cause
    variant: str = ""  # that of the stored run that is equivalent or compatible
    reason: str = ""  # the contradiction in the paper's own figures
    test: str = ""  # name of the test in tests/reproduction/causes_test.py that recomputes it


class Settings(NamedTuple):
    """Where the settings of a run come from, if they are not the published ones."""

    released: str  # settings that the released code states
    inferred: str  # settings that it does not state, and how they were chosen
    tries: int  # number of settings that were run before one was kept
    inferred_for: Sequence[str] = ()  # the defenses whose settings are inferred


RELEASED_RUNS = {run: Settings(**fields) for run, fields in RECORDS["runs"].items()}
"""Settings by ``--variant`` of a run. Any other variant was tried because a number differed."""
CONTRADICTIONS = {
    number: Explained(Cause(entry["cause"]), reason=entry["reason"], test=entry["test"])
    for entry in RECORDS["numbers"]
    for number in entry["ids"]
}
"""Contradictions in a paper's own figures, by the number's id."""


def explained(number: str, variants: Sequence[Compared], remains: bool) -> Explained:
    """Returns why a number differs.

    Args:
      number: the number's id.
      variants: the comparisons of the number in runs with a variant.
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
