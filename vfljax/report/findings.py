"""Sentences on what the figures of a sweep mean, rendered from assessments."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vfljax import defenses
from vfljax.report import guarantees, judging
from vfljax.report.assessed import Assessed, Assessment
from vfljax.report.configurations import ConfigurationSummary
from vfljax.report.estimates import Estimate
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import FEDERATIONS
from vfljax.types import NO_SPLIT

NAMES = {federation: name.capitalize() for federation, name in FEDERATIONS.items()}


def findings(assessed: Assessed) -> list[str]:
    """What the figures mean, in sentences."""
    out = [*_unpublished(assessed)]
    out += _bounds(assessed)
    out += guarantees.warnings(assessed)
    out += _inverted(assessed.configurations)
    out += _untrained(assessed)
    every = assessed.configurations
    diverged, trials = sum(c.diverged for c in every), sum(c.trials for c in every)
    if diverged:
        out.append(f"{diverged} of {trials} trials diverged; their figures are left out, not zero.")
    return out


def more_in_words(more: Estimate) -> str:
    """Whether a difference is anything: 'at least .050 more', 'no more', or nothing that can be said."""
    lower, upper = (float(limit) for limit in more.limits)
    if math.isnan(lower):
        return str(Verdict.NO_VERDICT)
    if lower > 0:
        return f"at least {lower:.3f} more"
    return "no more" if upper < -judging.LESS else str(Verdict.CANNOT_SAY)


def _unpublished(assessed: Assessed) -> Iterator[str]:
    """Methods whose published figures hold against published attacks only: by the limits, another attack
    reads more by as much as a defense may leave over the local-only baseline."""
    methods: dict[str, list[Assessment]] = {}
    for a in assessed.assessments:
        if a.unpublished.limits.lower > judging.EXCESS:
            methods.setdefault(a.method, []).append(a)
    for method, found in methods.items():
        most = max(found, key=lambda a: a.unpublished.limits.lower)
        assert most.published is not None
        assert most.strongest is not None
        yield (
            f"{method}: published attacks understate what leaks, by more than {judging.EXCESS:.2f} at "
            f"{len(found)} of its configurations and federations, most of all at {most.label}, "
            f"{FEDERATIONS[most.federation]}: the strongest published attack run here, or the local-only "
            f"baseline ({most.published.name}), reads {most.published.leak}, {most.strongest.name} "
            f"{most.leak}, {more_in_words(most.unpublished)}. Published figures show how that attack fails, "
            "not that labels are safe."
        )


def _bounds(assessed: Assessed) -> list[str]:
    sentences = (
        defenses.TABLE[name].remarks.bound_sentence(c.values_of(name)[1])
        for c in assessed.configurations
        for name in c.defenses
    )
    return list(dict.fromkeys(sentence for sentence in sentences if sentence))


def _inverted(every: tuple[ConfigurationSummary, ...]) -> Iterator[str]:
    for method in dict.fromkeys(c.method for c in every):
        members = [c for c in every if c.method == method]
        count = sum(c.inverted for c in members)
        if count:
            yield (
                f"{method}: {count} of {sum(c.trials for c in members)} runs learned the two classes the "
                "wrong way round (training AUC below 1/2). The label party sees that on its own "
                "training labels and turns its predictions: accuracies here are after that; the "
                "results hold both (test_accuracy, test_oriented_accuracy)."
            )


def _untrained(assessed: Assessed) -> list[str]:
    """Methods that are not trained in a federation of the sweep."""
    every = assessed.configurations
    if not any(NO_SPLIT in c.accuracy for c in every):
        return []
    needed = dict.fromkeys(
        (c.method, name) for c in every for name in c.defenses if defenses.TABLE[name].needs_top
    )
    return [
        f"{method} is not trained without model splitting, and not attacked there: the top model is "
        f"part of {name}."
        for method, name in needed
    ]
