"""The records of an assessed sweep: one ``Assessment`` per configuration and federation.

An assessment has the strongest attack with limits, its excess over the local-only baseline, its change to
undefended, the verdict, what the configuration costs, and whether it is the operating point of its method.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping

from vfljax.report.candidates import Strongest
from vfljax.report.configurations import ConfigurationSummary, Reference, undefended
from vfljax.report.estimates import NO_ESTIMATE, NO_INTERVAL, Estimate, Interval, interval
from vfljax.report.judging import HELPS, Blocking, Verdict
from vfljax.report.stored_rows import FEDERATIONS, StoredRows
from vfljax.report.worth import NOT_KNOWN, Kept, Worth


class MethodOutcome(enum.StrEnum):
    """What stands in a verdict's place where a method has no chosen operating point."""

    NONE_KEEPS = "no operating point keeps the accuracy"
    NOT_ATTACKED = "not attacked"
    DIVERGED = "diverged on every seed"
    NOT_COMPARED = "not compared: nothing undefended"

    @property
    def rank(self) -> int:
        """As a verdict's that does not recommend a defense."""
        return 2


@dataclasses.dataclass(frozen=True, eq=False)
class Assessment:
    """One configuration in one federation, with (split) or without (no_split) model splitting."""

    configuration: ConfigurationSummary
    federation: str
    strongest: Strongest | None = None  # None where no attack has a figure
    published: Strongest | None = None  # of the attacks in papers, which know no defense
    oracle: Strongest | None = None  # of the attacks that know more than an attacker can
    by_knowledge: Mapping[int, Strongest] = dataclasses.field(default_factory=dict)
    verdict: Verdict | None = None  # None where there is nothing to compare with, or no defense
    missing: tuple[str, ...] = ()  # attacks with figures on too few seeds
    broken: tuple[str, ...] = ()  # attacks that failed on every seed, and count nowhere
    known: bool = True  # whether an attack that knows its defenses was run; not a number of labels
    blocking: Blocking | None = None  # what leaves open whether it leaks
    # whether "protects" holds for the best of several; None: not asked
    corrected: bool | None = None
    change: Estimate = NO_ESTIMATE  # of the leak, to undefended, paired by seed
    cost: Interval = NO_INTERVAL  # change of utility on test rows to undefended, paired by seed
    kept: Kept = NOT_KNOWN  # of what the federation gains over the label party alone
    unpublished: Estimate = NO_ESTIMATE  # what the strongest attack reads beyond the published ones
    chosen: bool = False  # whether it is the method's operating point: it keeps the utility
    meets_goal: bool = False
    shown_as: Verdict | MethodOutcome | None = None  # where it represents its method
    fresh: Assessment | None = None  # the same on seeds on which nothing was chosen, if any

    @property
    def confirmed(self) -> bool:
        """Whether the fresh seeds alone allow a verdict as strong, and meet the goal."""
        if self.fresh is None or self.verdict not in HELPS:
            return False
        as_strong = HELPS[: HELPS.index(self.verdict) + 1]
        return self.fresh.meets_goal and self.fresh.verdict in as_strong

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
    def utility(self) -> Interval:
        """What counts on test rows, over seeds: accuracy, or AUC where a class is rare."""
        return interval(self.configuration.test.get(self.federation, {}).values())

    @property
    def accuracy(self) -> Interval:
        """Test accuracy."""
        return self.configuration.accuracy.get(self.federation, NO_INTERVAL)

    @property
    def auc(self) -> Interval:
        """Test AUC; empty for more than two classes."""
        return self.configuration.auc.get(self.federation, NO_INTERVAL)


@dataclasses.dataclass(frozen=True, eq=False)
class Assessed:
    """A whole sweep, assessed."""

    reference: Reference
    configurations: tuple[ConfigurationSummary, ...]
    assessments: tuple[Assessment, ...]  # by configuration, then by federation
    rows: StoredRows
    worth: Mapping[str, Worth] = dataclasses.field(default_factory=dict)  # by federation, test rows
    # by federation, the utility on validation rows that may be lost
    allowed: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def federations(self) -> list[str]:
        """The federations in which any attack has a figure."""
        return [federation for federation in FEDERATIONS if self.attacked_on(federation)]

    @property
    def attacked(self) -> list[Assessment]:
        """The assessments with a strongest attack, federation by federation."""
        return [a for federation in FEDERATIONS for a in self.attacked_on(federation)]

    def attacked_on(self, federation: str) -> list[Assessment]:
        """The assessments of one federation with a strongest attack."""
        found = (a for a in self.assessments if a.federation == federation)
        return [a for a in found if a.strongest is not None]

    @property
    def methods(self) -> list[Assessment]:
        """One assessment per defense and federation, federation by federation."""
        return [a for federation in FEDERATIONS for a in self.methods_on(federation)]

    def methods_on(self, federation: str) -> list[Assessment]:
        """One assessment per defense, of one federation.

        Those that meet the goal come first, then those that keep the accuracy, each by verdict and leak.
        """
        found = (a for a in self.assessments if a.federation == federation)
        shown = [a for a in found if a.shown_as is not None]
        return sorted(shown, key=lambda a: (not a.meets_goal, not a.chosen, *preference(a)))

    def undefended(self, federation: str) -> Assessment | None:
        """The undefended configuration in a federation, None where it has no strongest attack there."""
        bare = undefended(self.configurations)
        return next((a for a in self.attacked_on(federation) if a.configuration is bare), None)

    def local_only(self, federation: str) -> float:
        """The leak of the local-only baseline there, undefended's if it is known; NaN if none was scored."""
        found = sorted(self.attacked_on(federation), key=lambda a: a.configuration.defended)
        reached = (a.strongest.local_only for a in found if a.strongest)
        return next((leak for leak in reached if not math.isnan(leak)), math.nan)


def preference(shown: Assessment) -> tuple[int, float]:
    """Sorts the assessments that represent methods: by verdict, and of equal ones by leak."""
    assert shown.shown_as is not None
    leak = shown.leak.mean
    return shown.shown_as.rank, math.inf if math.isnan(leak) else leak
