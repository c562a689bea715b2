"""The records of an assessed sweep: one ``Assessment`` per configuration and federation.

An assessment has the strongest attack with limits, its excess over the local-only baseline, its change to
undefended, the verdict, what the configuration costs, and whether it is the operating point of its method.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import NamedTuple

from vfljax.report.configurations import ConfigurationSummary, Reference, undefended
from vfljax.report.intervals import NO_ESTIMATE, NO_INTERVAL, Estimate, Interval
from vfljax.report.judging import Strongest, Verdict
from vfljax.report.stored_rows import FEDERATIONS, StoredRows


class MethodOutcome(enum.Enum):
    """What stands in a verdict's place where a method has no chosen operating point."""

    NONE_KEEPS = "no operating point keeps the accuracy"
    NOT_ATTACKED = "not attacked"
    DIVERGED = "diverged on every seed"
    NOT_COMPARED = "not compared: nothing undefended"

    def __str__(self) -> str:
        return self.value

    @property
    def rank(self) -> int:
        """As a verdict's that does not recommend a defense."""
        return 2


class Choice(NamedTuple):
    """How an operating point was chosen, and its figures on seeds on which nothing was chosen.

    Each fold chooses operating point and attack on the other seeds, so these figures may be of several points.
    """

    folds: int  # how many chose this operating point
    seeds: int  # number of folds; 0 where there were too few seeds for any
    leak: float
    excess: float
    change: float
    cost: Interval  # change of test accuracy to undefended

    @property
    def text(self) -> str:
        """'3 of 5 folds', or that there were too few seeds for folds."""
        return f"{self.folds} of {self.seeds} folds" if self.seeds else "halves of the rows"


@dataclasses.dataclass(frozen=True, eq=False)
class Assessment:
    """One configuration in one federation, with (split) or without (no_split) model splitting."""

    configuration: ConfigurationSummary
    federation: str
    strongest: Strongest | None = None  # None where no attack has a figure
    published: Strongest | None = (
        None  # of the attacks in papers: none takes the defense into account
    )
    oracle: Strongest | None = None  # of the attacks that know more than an attacker can
    by_knowledge: Mapping[int, Strongest] = dataclasses.field(default_factory=dict)
    verdict: Verdict | None = None  # None where there is nothing to compare with, or no defense
    missing: tuple[str, ...] = ()  # attacks with figures on too few seeds
    change: Estimate = NO_ESTIMATE  # of the leak, to undefended, paired by seed
    cost: Interval = NO_INTERVAL  # change of test accuracy to undefended, paired by seed
    unpublished: Estimate = NO_ESTIMATE  # what the strongest attack reads beyond the published ones
    choice: Choice | None = None  # where it is the method's operating point
    meets_goal: bool = False
    shown_as: Verdict | MethodOutcome | None = None  # where it represents its method

    @property
    def method(self) -> str:
        """The method of its configuration."""
        return self.configuration.method

    @property
    def label(self) -> str:
        """The label of its configuration."""
        return self.configuration.label

    @property
    def leak(self) -> Estimate:
        """What the strongest attack leaks."""
        return NO_ESTIMATE if self.strongest is None else self.strongest.leak

    @property
    def excess(self) -> Estimate:
        """What the strongest attack leaks beyond the local-only baseline."""
        return NO_ESTIMATE if self.strongest is None else self.strongest.excess

    @property
    def accuracy(self) -> Interval:
        """Test accuracy."""
        return self.configuration.accuracy.get(self.federation, NO_INTERVAL)

    @property
    def auc(self) -> Interval:
        """Test AUC; empty for more than two classes."""
        return self.configuration.auc.get(self.federation, NO_INTERVAL)

    @property
    def shown_cost(self) -> Interval:
        """The cost: that of the folds' choices for a chosen operating point, else its own."""
        return self.cost if self.choice is None else self.choice.cost


@dataclasses.dataclass(frozen=True, eq=False)
class Assessed:
    """A whole sweep, assessed."""

    reference: Reference
    configurations: tuple[ConfigurationSummary, ...]
    assessments: tuple[Assessment, ...]  # by configuration, then by federation
    rows: StoredRows | None = None

    @property
    def federations(self) -> list[str]:
        """The federations in which any attack has a figure."""
        attacked = {a.federation for a in self.attacked}
        return [federation for federation in FEDERATIONS if federation in attacked]

    @property
    def attacked(self) -> list[Assessment]:
        """The assessments with a strongest attack, federation by federation."""
        return [
            a
            for federation in FEDERATIONS
            for a in self.assessments
            if a.federation == federation and a.strongest is not None
        ]

    @property
    def methods(self) -> list[Assessment]:
        """One assessment per defense and federation, by federation.

        Those that meet the goal come first, then those that keep the accuracy, each by verdict and leak.
        """
        return sorted((a for a in self.assessments if a.shown_as is not None), key=_order)

    def undefended(self, federation: str) -> Assessment | None:
        """The undefended configuration in a federation, None where it has no strongest attack there."""
        plain = undefended(self.configurations)
        found = (a for a in self.attacked if a.configuration is plain)
        return next((a for a in found if a.federation == federation), None)


def _order(shown: Assessment) -> tuple[object, ...]:
    place = list(FEDERATIONS).index(shown.federation)
    return place, not shown.meets_goal, shown.choice is None, *preference(shown)


def preference(shown: Assessment) -> tuple[int, float]:
    """Sorts the assessments that represent methods: by verdict, and of equal ones by leak."""
    assert shown.shown_as is not None
    leak = shown.leak.mean
    return shown.shown_as.rank, math.inf if math.isnan(leak) else leak
