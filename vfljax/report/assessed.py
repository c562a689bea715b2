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
    """What is shown in place of a verdict if a method has no chosen operating point."""

    NONE_KEEPS = "no operating point keeps the accuracy"
    NOT_ATTACKED = "not attacked"
    DIVERGED = "diverged on every seed"
    NOT_COMPARED = "not compared: nothing undefended"

    @property
    def rank(self) -> int:
        """The rank of a verdict that does not recommend a defense (``Verdict.rank``)."""
        return 2


@dataclasses.dataclass(frozen=True, eq=False)
class Assessment:
    """One configuration in one federation, with (split) or without (no_split) model splitting."""

    configuration: ConfigurationSummary
    federation: str
    strongest: Strongest | None = None  # None if no attack has a figure
    published: Strongest | None = None  # of published attacks, which know no defense
    oracle: Strongest | None = None  # of attacks that know more than an attacker can
    by_knowledge: Mapping[int, Strongest] = dataclasses.field(default_factory=dict)
    verdict: Verdict | None = None  # None if not compared, or undefended and leaking
    missing: tuple[str, ...] = ()  # attacks with figures on too few seeds
    broken: tuple[str, ...] = ()  # attacks that failed on every seed and are left out
    known: bool = True  # whether attacks that know its defenses were run
    blocking: Blocking | None = None  # the attack that leaves the verdict open
    # whether "protects" holds after correction for choosing the best of several; None: not computed
    corrected: bool | None = None
    change: Estimate = NO_ESTIMATE  # of the leak against undefended, paired by seed
    cost: Interval = NO_INTERVAL  # change of test utility against undefended, paired by seed
    kept: Kept = NOT_KNOWN  # of the federation's gain over the label party alone
    unpublished: Estimate = NO_ESTIMATE  # leak of the strongest attack beyond the published ones
    chosen: bool = False  # whether it is its method's operating point, which keeps the utility
    meets_goal: bool = False  # whether it is chosen and meets ``config.goal``
    shown_as: Verdict | MethodOutcome | None = None  # None if it does not represent its method
    fresh: Assessment | None = None  # the same on fresh seeds, on which nothing was chosen

    @property
    def confirmed(self) -> bool:
        """Whether its verdict helps, and on fresh seeds the verdict is as strong and the goal met."""
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
        """The leak of the strongest attack."""
        return NO_ESTIMATE if self.strongest is None else self.strongest.leak

    @property
    def excess(self) -> Estimate:
        """The excess of the strongest attack over the local-only baseline."""
        return NO_ESTIMATE if self.strongest is None else self.strongest.excess

    @property
    def utility(self) -> Interval:
        """Test utility over seeds: accuracy, or AUC if a class is rare (``worth``)."""
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
    # the utility on validation rows that may be lost, by federation
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
        return [a for a in self.assessments if a.federation == federation and a.strongest]

    @property
    def methods(self) -> list[Assessment]:
        """The assessment that represents each method, federation by federation."""
        return [a for federation in FEDERATIONS for a in self.methods_on(federation)]

    def methods_on(self, federation: str) -> list[Assessment]:
        """Returns the assessment that represents each method in one federation.

        Those that meet the goal come first, then those that keep the utility, each by verdict and leak.
        """
        shown = [a for a in self.assessments if a.federation == federation and a.shown_as]
        return sorted(shown, key=lambda a: (not a.meets_goal, not a.chosen, *preference(a)))

    def undefended(self, federation: str) -> Assessment | None:
        """Returns the undefended assessment in a federation; None if it has no strongest attack there."""
        bare = undefended(self.configurations)
        return next((a for a in self.attacked_on(federation) if a.configuration is bare), None)

    def local_only(self, federation: str) -> float:
        """Returns the local-only baseline's leak, undefended's if it has one; NaN if none was scored."""
        found = sorted(self.attacked_on(federation), key=lambda a: a.configuration.defended)
        reached = (a.strongest.local_only for a in found if a.strongest)
        return next((leak for leak in reached if not math.isnan(leak)), math.nan)


def preference(shown: Assessment) -> tuple[int, float]:
    """Returns a sort key of assessments that represent methods: the verdict's rank, then the leak."""
    assert shown.shown_as is not None
    leak = shown.leak.mean
    return shown.shown_as.rank, math.inf if math.isnan(leak) else leak
