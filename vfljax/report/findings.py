"""What the figures of a sweep mean, in sentences; their text is in a template."""

from __future__ import annotations

import math

from vfljax import defenses
from vfljax.report import guarantees, judging
from vfljax.report.assessed import Assessed, Assessment
from vfljax.report.configurations import ConfigurationSummary
from vfljax.report.estimates import Estimate
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import FEDERATIONS, grouped
from vfljax.report.templates import paragraphs
from vfljax.types import NO_SPLIT


def findings(assessed: Assessed) -> list[str]:
    """Returns what the figures mean, in sentences."""
    every = assessed.configurations
    bounds = (
        defenses.TABLE[name].remarks.bound_sentence(c.values_of(name)[1])
        for c in every
        for name in c.defenses
    )
    untrained = dict.fromkeys(
        (c.method, name) for c in every for name in c.defenses if defenses.TABLE[name].needs_top
    )
    return paragraphs(
        "findings",
        understated=_understated(assessed),
        excess=judging.EXCESS,
        federations=FEDERATIONS,
        more_in_words=more_in_words,
        bounds=list(dict.fromkeys(filter(None, bounds))),
        warnings=guarantees.warnings(assessed),
        turned=_turned(every),
        # methods that are not trained in a federation of the sweep
        untrained=untrained if any(NO_SPLIT in c.accuracy for c in every) else (),
        diverged=sum(c.diverged for c in every),
        trials=sum(c.trials for c in every),
    )


def more_in_words(more: Estimate) -> str:
    """Returns a difference in words: 'at least 0.050 more', 'no more', 'cannot say' or no verdict."""
    lower, upper = (float(limit) for limit in more.limits)
    if math.isnan(lower):
        return str(Verdict.NO_VERDICT)
    if lower > 0:
        return f"at least {lower:.3f} more"
    return "no more" if upper < -judging.LESS else str(Verdict.CANNOT_SAY)


def _understated(assessed: Assessed) -> list[tuple[str, Assessment, int]]:
    """Returns the methods on which another attack leaks more than the published ones, by more than
    ``judging.EXCESS`` at the lower limit. Each comes with the assessment of the highest limit and the number
    of such assessments."""
    found = (a for a in assessed.assessments if a.unpublished.limits.lower > judging.EXCESS)
    return [
        (method, max(shown, key=lambda a: a.unpublished.limits.lower), len(shown))
        for method, shown in grouped(found, lambda a: a.method).items()
    ]


def _turned(every: tuple[ConfigurationSummary, ...]) -> list[tuple[str, int, int]]:
    """Returns methods that learned two classes inverted, with the number of such trials and of all."""
    counts = (
        (method, sum(c.inverted for c in members), sum(c.trials for c in members))
        for method, members in grouped(every, lambda c: c.method).items()
    )
    return [count for count in counts if count[1]]
