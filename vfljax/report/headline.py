"""The sentences and answers with which a report opens, rendered from assessments.

A headline is a sentence and the four answers that a reader comes for: what leaks, to whom, what to switch on,
and how sure that is. There is one for each federation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from vfljax.report import choosing, judging, words
from vfljax.report.assessed import Assessed, Assessment, preference
from vfljax.report.assessment import nearest
from vfljax.report.candidates import Strongest
from vfljax.report.configurations import Reference, undefended
from vfljax.report.judging import Verdict
from vfljax.report.spread import FEWEST_SEEDS
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
    shown = undefended(every) or every[0]
    name = shown.label if shown.defended else "undefended"
    reached = [f"{a.mean:.3f}" for a in shown.accuracy.values() if a.count][:1]
    accuracy = f" ({name} reaches an accuracy of {reached[0]})" if reached else ""
    sentence = f"No attack has any figure, so nothing is known of what leaks{accuracy}."
    whom, switch_on = "nobody attacked", "nothing yet: run `vfljax attack`"
    if trials and lost == trials:
        sentence = f"All {trials} trials diverged: there is nothing to judge."
        whom, switch_on = "nobody", "a lower learning rate"
    return Headline("", sentence, "nothing is known", whom, switch_on, "not at all")


def _headline(assessed: Assessed, federation: str) -> Headline:
    plain, reference = assessed.undefended(federation), assessed.reference
    if plain is None or plain.strongest is None:
        return _without_undefended(assessed, federation)
    methods, strongest = methods_on(assessed, federation), plain.strongest
    settled = strongest.nothing_to_protect or not methods
    who = attackers(strongest, reference)
    first = f"{words.gain_text(assessed, federation)}Undefended, {_reads(strongest, reference)}"
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
        sentence=first + tail + _broken(assessed, federation),
        leaks=f"the labels: {reference.scale} {words.figure(strongest.leak)}{local_only}, "
        f"chance {words.brief(reference.chance)}",
        whom=whom + _assumed(reference),
        switch_on=switch,
        sure=_sure(shown),
    )


def _defended(
    assessed: Assessed, plain: Assessment, methods: Sequence[Assessment]
) -> tuple[str, str, Strongest]:
    """The rest of the sentence, what to switch on, and the strongest attack that this rests on."""
    best, asked = recommended(methods), _asked(assessed, plain.federation)
    if best is None or best.strongest is None:
        return _none_meets(assessed, plain, methods)
    tail = (
        f"; with {best.label} the strongest of {_attacks(best.strongest)} reaches {words.figure(best.leak)}"
        f"{_local_only(best.strongest)}; {assessed.reference.utility} {words.change(best.cost)}{_kept(best)}. "
        f"{_verdict(best)}{_chosen_among(assessed, best)}"
    )
    count = f"{len(methods)} defense{'s' * (len(methods) != 1)}"
    others = [a for a in methods if a.meets_goal and a.leak.mean < best.leak.mean]
    least = f"{'is the surest' if others else 'leaks least'} of {count} where {asked}"
    if best.verdict in (Verdict.LEAKS_AS_BEFORE, Verdict.IS_UNDEFENDED):
        switch = f"nothing that was tried: {best.label} {best.verdict}"
    elif best.verdict is not None and best.verdict.helps:
        meaning = judging.MEANINGS[best.verdict]
        switch = f"{best.label}: it {least}; verdict: {best.verdict} ({meaning})"
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
    near = nearest(attacked, assessed.allowed.get(federation, choosing.MEAN_LOSS), reference.goal)
    strongest, asked = near.strongest, _asked(assessed, federation)
    assert strongest is not None
    tail = (
        f"; no defense that was tried meets what is asked ({asked}). Nearest is {near.label}: "
        f"the strongest of {_attacks(strongest)} reaches "
        f"{words.figure(strongest.leak, reference.goal.max_leak)}{_local_only(strongest)}; "
        f"{reference.utility} {words.change(near.cost)}{_kept(near)}."
    )
    why = ""
    if strongest.local_only > reference.goal.max_leak:
        why = f", and none can, as the local-only baseline reaches {words.brief(strongest.local_only)}"
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
        f"{words.absolute(least.accuracy)}.",
        leaks=f"{reference.scale} {words.brief(least.leak.mean)} to {words.brief(most.leak.mean)} over "
        f"{count}{local_only}, chance {words.brief(reference.chance)}",
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
    who, leak = attackers(strongest, reference), words.figure(strongest.leak)
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
    return "" if math.isnan(reached) else f", local-only {words.brief(reached)}"


def _assumed(reference: Reference) -> str:
    """How many labels an attacker is assumed to know."""
    most = " at most" if reference.known else ""
    return f"; assumed to know {reference.known or 'no'} labels{most}"


def _attacks(strongest: Strongest) -> str:
    count = len(strongest.candidates.attacks)
    return f"{count} attack{'s' * (count != 1)}"


def _kept(a: Assessment) -> str:
    """', 62 % of the gain kept (51 to 73)'; the outcome alone where the share says nothing."""
    share = a.kept.share
    if math.isnan(share.mean):
        return f", {a.kept.cost}"
    lower, upper = (float(limit) for limit in share.limits)
    between = "" if math.isnan(lower) else f" ({100 * lower:.0f} to {100 * upper:.0f})"
    return f", {100 * share.mean:.0f} % of the gain kept{between}: {a.kept.cost}"


def _chosen_among(assessed: Assessed, best: Assessment) -> str:
    """Whether the verdict stands although the best of several operating points was chosen."""
    if best.verdict is not Verdict.PROTECTS:
        return ""
    rivals = [
        a for a in assessed.attacked if a.federation == best.federation and a.configuration.defended
    ]
    if len(rivals) < 2:
        return ""
    if best.corrected is None:
        return f" The verdict is not corrected for choosing among {len(rivals)} operating points."
    if best.corrected:
        return " The verdict holds also corrected for choosing among the operating points (Holm)."
    return " Corrected for choosing among the operating points (Holm), it cannot be shown."


def _broken(assessed: Assessed, federation: str) -> str:
    """Attacks that failed, on the first screen."""
    names = dict.fromkeys(
        name for a in assessed.assessments if a.federation == federation for name in a.broken
    )
    if not names:
        return ""
    return f" Broken on some configuration, and counted nowhere there: {', '.join(names)}."


def _verdict(shown: Assessment) -> str:
    if shown.verdict is Verdict.NO_VERDICT:
        return f"{str(shown.verdict).capitalize()}."
    return f"Verdict: {words.verdict_text(shown)}."


def _asked(assessed: Assessed, federation: str) -> str:
    """What the goal asks, as a clause."""
    goal, utility = assessed.reference.goal, assessed.reference.utility
    of = assessed.worth.get(federation)
    allowed = assessed.allowed.get(federation, choosing.MEAN_LOSS)
    costs = f"{utility} falls by at most {100 * allowed:.3g} points"
    if of is not None and of.known and goal.keep_gain:
        costs += f", so that {100 * goal.keep_gain:g} % of the gain is kept"
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


def _lower(sentence: str) -> str:
    """The sentence after a colon."""
    return sentence[0].lower() + sentence[1:] if sentence[:1].isupper() else sentence
