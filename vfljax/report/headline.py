"""The sentences and answers with which a report opens, rendered from assessments.

A headline is a sentence and the four answers that a reader comes for: what leaks, to whom, what to switch on,
and how sure that is. There is one for each federation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from vfljax.report import judging
from vfljax.report.assessed import Assessed, Assessment, preference
from vfljax.report.assessment import nearest
from vfljax.report.configurations import Reference, undefended
from vfljax.report.intervals import FEWEST_SEEDS, Estimate, Interval
from vfljax.report.judging import Strongest, Verdict
from vfljax.report.stored_rows import FEDERATIONS


class Headline(NamedTuple):
    """What the figures of one federation show, as text."""

    federation: str  # "split" or "no_split"; "" where nothing was attacked anywhere
    sentence: str
    leaks: str  # what leaks
    whom: str  # to whom
    switch_on: str  # what to do
    sure: str  # how sure that is


def headlines(assessed: Assessed) -> tuple[Headline, ...]:
    """The headline of every federation; a single one where nothing was attacked."""
    if not assessed.federations:
        return (_nothing(assessed),)
    every = [_headline(assessed, federation) for federation in assessed.federations]
    if len(every) > 1:
        every = [
            h._replace(sentence=f"{FEDERATIONS[h.federation].capitalize()}: {_lower(h.sentence)}")
            for h in every
        ]
    return tuple(every)


def methods_on(assessed: Assessed, federation: str) -> list[Assessment]:
    """The assessments that represent the methods in a federation, the best first."""
    return [a for a in assessed.methods if a.federation == federation]


def recommended(methods: Sequence[Assessment]) -> Assessment | None:
    """Of the methods that meet the goal the one to switch on, None where none does: one that protects comes
    before one that reduces what leaks, and of equal ones the one that leaks least."""
    return min((a for a in methods if a.meets_goal), key=preference, default=None)


def _nothing(assessed: Assessed) -> Headline:
    """Of a sweep without any strongest attack: diverged, or not attacked."""
    every = assessed.configurations
    trials, lost = sum(c.trials for c in every), sum(c.diverged for c in every)
    if trials and lost == trials:
        return Headline(
            federation="",
            sentence=f"All {trials} trials diverged: there is nothing to judge.",
            leaks="nothing is known",
            whom="nobody",
            switch_on="a lower learning rate",
            sure="not at all",
        )
    shown = undefended(every) or every[0]
    name = shown.label if shown.defended else "undefended"
    reached = [f"{a.mean:.3f}" for a in shown.accuracy.values() if a.count][:1]
    accuracy = f" ({name} reaches an accuracy of {reached[0]})" if reached else ""
    return Headline(
        federation="",
        sentence=f"No attack has any figure, so nothing is known of what leaks{accuracy}.",
        leaks="nothing is known",
        whom="nobody attacked",
        switch_on="nothing yet: run `vfljax attack`",
        sure="not at all",
    )


def _headline(assessed: Assessed, federation: str) -> Headline:
    plain, reference = assessed.undefended(federation), assessed.reference
    if plain is None or plain.strongest is None:
        return _without_undefended(assessed, federation)
    methods, strongest = methods_on(assessed, federation), plain.strongest
    settled = strongest.nothing_to_protect or not methods
    who = attackers(strongest, reference)
    first = f"Undefended, {_reads(strongest, reference)}"
    first += _local_only(strongest) if settled and who else ""
    whom = (
        f"{who}, with the attack {strongest.attack.brief}"
        if who
        else "nobody, beyond the local-only baseline"
    )
    local_only = _local_only(strongest)
    local_only += " (own columns and as many known labels)" if local_only else ""
    shown = strongest
    if strongest.nothing_to_protect:
        tail, switch = ": there is nothing to protect from what was tried.", "nothing"
    elif not methods:
        tail, switch = "; no defense was tried.", "unknown: no defense was tried"
    else:
        tail, switch, shown = _defended(assessed, plain, methods)
    return Headline(
        federation=federation,
        sentence=first + tail,
        leaks=f"the labels: {reference.scale} {figure(strongest.leak)}{local_only}, "
        f"chance {brief(reference.chance)}",
        whom=whom + _assumed(reference),
        switch_on=switch,
        sure=_sure(shown),
    )


def _defended(
    assessed: Assessed, plain: Assessment, methods: Sequence[Assessment]
) -> tuple[str, str, Strongest]:
    """The rest of the sentence, what to switch on, and the strongest attack that this rests on."""
    best, asked = recommended(methods), _asked(assessed.reference)
    if best is None or best.strongest is None:
        return _none_meets(assessed, plain, methods)
    tail = (
        f"; with {best.label} the strongest of {_attacks(best.strongest)} reaches {figure(best.leak)}"
        f"{_local_only(best.strongest)}; accuracy {change(best.shown_cost)}. {_verdict(best)}"
    )
    count = f"{len(methods)} defense{'s' * (len(methods) != 1)}"
    others = [a for a in methods if a.meets_goal and a.leak.mean < best.leak.mean]
    least = f"{'is the surest' if others else 'leaks least'} of {count} where {asked}"
    if best.verdict is Verdict.DOES_NOTHING:
        switch = f"nothing that was tried: even {best.label} does nothing"
    elif best.verdict in (Verdict.PROTECTS, Verdict.REDUCES):
        meaning = judging.MEANINGS[best.verdict]
        switch = f"{best.label}: it {least}; it {best.verdict} ({meaning})"
    else:
        switch = f"not settled: {best.label} {least}, but whether it protects cannot be said"
    return tail, switch, best.strongest


def _none_meets(
    assessed: Assessed, plain: Assessment, methods: Sequence[Assessment]
) -> tuple[str, str, Strongest]:
    assert plain.strongest is not None
    reference, federation = assessed.reference, plain.federation
    attacked = [
        a for a in assessed.attacked if a.federation == federation and a.configuration.defended
    ]
    if not attacked:
        outcomes = sorted({str(a.shown_as) for a in methods})
        return (
            f"; of the defenses nothing is known: {', '.join(outcomes)}.",
            "unknown",
            plain.strongest,
        )
    near = nearest(attacked, reference)
    strongest, asked = near.strongest, _asked(reference)
    assert strongest is not None
    tail = (
        f"; no defense that was tried meets what is asked ({asked}). Nearest is {near.label}: "
        f"the strongest of {_attacks(strongest)} reaches {figure(strongest.leak, reference.goal.max_leak)}"
        f"{_local_only(strongest)}; accuracy {change(near.cost)}."
    )
    why = ""
    if strongest.local_only > reference.goal.max_leak:
        why = f", and none can, as the local-only baseline reaches {brief(strongest.local_only)}"
    return tail, f"none meets what is asked ({asked}){why}; nearest is {near.label}", strongest


def _without_undefended(assessed: Assessed, federation: str) -> Headline:
    """Where nothing shows what a defense takes away: the configuration that leaks least."""
    reference = assessed.reference
    plain = undefended(assessed.configurations)
    why = "no method is undefended" if plain is None else "undefended has no figures"
    attacked = [a for a in assessed.attacked if a.federation == federation]
    least = min(attacked, key=lambda a: a.leak.mean)
    most = max(attacked, key=lambda a: a.leak.mean)
    assert least.strongest is not None
    assert most.strongest is not None
    count = f"{len(attacked)} configurations"
    local_only = _local_only(least.strongest)
    who = attackers(most.strongest, reference) or "nobody, beyond the local-only baseline"
    return Headline(
        federation=federation,
        sentence=f"{why.capitalize()}, so nothing shows what a defense takes away. With {least.label}, "
        f"the least of {count}, {_reads(least.strongest, reference)}{local_only}; accuracy "
        f"{_absolute(least.accuracy)}.",
        leaks=f"{reference.scale} {brief(least.leak.mean)} to {brief(most.leak.mean)} over "
        f"{count}{local_only}, chance {brief(reference.chance)}",
        whom=who + _assumed(reference),
        switch_on=f"{least.label} leaks least; {why} to compare it with",
        sure=_sure(least.strongest),
    )


def attackers(strongest: Strongest, reference: Reference) -> str:
    """Who ran the strongest attack, 'telco and shop together'; "" where it is the local-only baseline."""
    if strongest.is_local_only:
        return ""
    identity = strongest.attack.identity
    parties = [reference.party_name(p) for p in (identity.attackers if identity else (0,))]
    together = " together" if len(parties) > 1 else ""
    return f"{', '.join(parties[:-1])} and {parties[-1]}{together}" if together else parties[0]


def _reads(strongest: Strongest, reference: Reference) -> str:
    """'telco ranks the labels with leak AUC .97 (.95 to .98)'"""
    who, leak = attackers(strongest, reference), figure(strongest.leak)
    if not who:
        return (
            f"the strongest of {_attacks(strongest)} reads no more than the local-only baseline does, "
            f"{reference.scale} {leak}"
        )
    several = who.endswith(" together")
    if reference.classes == 2:
        return f"{who} {'rank' if several else 'ranks'} the labels with leak AUC {leak}"
    return (
        f"{who} {'name' if several else 'names'} the right one of {reference.classes} classes for {leak} of "
        "the rows, classes weighed alike"
    )


def _local_only(strongest: Strongest) -> str:
    """', local-only .53'; '' where the baseline was not scored."""
    reached = strongest.local_only
    return "" if math.isnan(reached) else f", local-only {brief(reached)}"


def _assumed(reference: Reference) -> str:
    """How many labels an attacker is assumed to know."""
    most = " at most" if reference.known else ""
    return f"; assumed to know {reference.known or 'no'} labels{most}"


def _attacks(strongest: Strongest) -> str:
    count = len(strongest.candidates.attacks)
    return f"{count} attack{'s' * (count != 1)}"


def _verdict(shown: Assessment) -> str:
    if shown.verdict is Verdict.NO_VERDICT:
        return f"{str(shown.verdict).capitalize()}."
    return f"Verdict: {verdict_text(shown)}."


def verdict_text(a: Assessment) -> str:
    """The verdict on a configuration, '-' without one, and why none can be given where attacks have too few
    figures."""
    if a.verdict is not Verdict.CANNOT_SAY or not a.missing:
        return "-" if a.verdict is None else str(a.verdict)
    return f"{a.verdict}: {', '.join(a.missing)} on fewer than {FEWEST_SEEDS} seeds"


def outcome_text(shown: Assessment) -> str:
    """What is concluded on the method that an assessment represents."""
    return verdict_text(shown) if shown.choice is not None else str(shown.shown_as)


def _asked(reference: Reference) -> str:
    """What the goal asks, as a clause."""
    goal = reference.goal
    costs = f"accuracy falls by at most {100 * goal.max_cost:g} points"
    return costs if goal.max_leak >= 1 else f"{costs} and leak is at most {goal.max_leak:g}"


def _sure(strongest: Strongest) -> str:
    """On how much a headline rests."""
    seeds, tried = strongest.seeds, _attacks(strongest)
    if not strongest.enough:
        return (
            f"not sure: {seeds} seed{'s' * (seeds != 1)} allow no limits and no verdict, "
            f"{FEWEST_SEEDS} do; {tried} tried"
        )
    lost = len(strongest.candidates.seeds) - seeds
    diverged = f" ({lost} more diverged)" if lost else ""
    return (
        f"limits are 95 % each, one-sided, over {seeds} seeds{diverged} of this data set; "
        f"{tried} tried, and nothing is known of others"
    )


def figure(estimate: Estimate, bound: float | None = None) -> str:
    """Returns '.97 (.95 to .98)'; without limits the mean alone.

    Args:
      estimate: to be shown.
      bound: three digits are shown where two would hide that the estimate is beyond it.
    """
    lower, upper = (float(limit) for limit in estimate.limits)
    highest = estimate.at_most
    hidden = bound is not None and round(highest, 2) <= bound < highest
    digits = 3 if hidden else 2
    between = "" if math.isnan(lower) else f" ({brief(lower, digits)} to {brief(upper, digits)})"
    return f"{brief(estimate.mean, digits)}{between}"


def brief(value: float, digits: int = 2) -> str:
    """'.97', '1.00'; '-' of what is not known."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}".removeprefix("0")


def change(cost: Interval) -> str:
    """A change of accuracy: '-0.4 points (-0.9 to +0.1)'."""
    if not cost.count:
        return "change unknown"
    between = ""
    if not math.isnan(cost.half):
        between = f" ({_points(cost.mean - cost.half)} to {_points(cost.mean + cost.half)})"
    return f"{_points(cost.mean)} points{between}"


def _points(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _absolute(accuracy: Interval) -> str:
    if math.isnan(accuracy.half):
        return brief(accuracy.mean)
    low, high = accuracy.mean - accuracy.half, accuracy.mean + accuracy.half
    return f"{brief(accuracy.mean)} ({brief(low)} to {brief(high)})"


def _lower(sentence: str) -> str:
    """The sentence after a colon."""
    return sentence[0].lower() + sentence[1:] if sentence[:1].isupper() else sentence
