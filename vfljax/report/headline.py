"""The sentences and answers with which a report opens; their words are in a template.

A headline is a sentence and the four answers that a reader comes for: what leaks, to whom, what to switch on,
and how sure that is. There is one for each federation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from vfljax.report import judging
from vfljax.report.assessed import Assessed, Assessment, preference
from vfljax.report.assessment import nearest
from vfljax.report.candidates import Strongest
from vfljax.report.configurations import Reference, undefended
from vfljax.report.judging import Verdict
from vfljax.report.spread import FEWEST_SEEDS
from vfljax.report.stored_rows import FEDERATIONS
from vfljax.report.templates import paragraphs
from vfljax.report.worth import CostOutcome


class Headline(NamedTuple):
    """What the figures of one federation show, as text."""

    federation: str  # "split" or "no_split"; "" where nothing was attacked anywhere
    sentence: str
    leaks: str  # what leaks
    whom: str  # to whom
    switch_on: str  # what to do
    sure: str  # how sure that is


def headlines(assessed: Assessed) -> tuple[Headline, ...]:
    """Returns the headline of every federation, or a single one if nothing was attacked."""
    if not assessed.federations:
        return (_nothing(assessed),)
    every = [_headline(assessed, federation) for federation in assessed.federations]
    if len(every) > 1:
        every = [
            h._replace(sentence=f"{FEDERATIONS[h.federation].capitalize()}. {h.sentence}")
            for h in every
        ]
    return tuple(every)


def recommended(methods: Sequence[Assessment]) -> Assessment | None:
    """Returns the method to switch on, of those that meet the goal; None if none does. A method that protects
    is preferred to one that reduces the leak, and of equal ones the one that leaks least."""
    return min((a for a in methods if a.meets_goal), key=preference, default=None)


def attackers(strongest: Strongest, reference: Reference) -> str:
    """Returns who ran the strongest attack, 'telco and shop together'.

    Args:
      strongest: the attack; "" is returned if it is the local-only baseline.
      reference: the names of the parties.
    """
    *first, last = _parties(strongest, reference) or [""]
    return f"{', '.join(first)} and {last} together" if first else last


def _parties(strongest: Strongest, reference: Reference) -> list[str]:
    """Returns the names of the parties that ran an attack; none for the local-only baseline."""
    if strongest.is_local_only:
        return []
    identity = strongest.attack.identity
    return [reference.party_name(p) for p in (identity.attackers if identity else (0,))]


def _nothing(assessed: Assessed) -> Headline:
    """Returns the headline of a sweep without any strongest attack: diverged, or not attacked."""
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
    """Returns the headline of a federation in which something was attacked."""
    shown, reference = assessed.undefended(federation), assessed.reference
    facts = _without_undefended if shown is None else _defended
    return Headline(
        federation,
        *paragraphs(
            "headline",
            undefended=shown,
            reference=reference,
            goal=reference.goal,
            attackers=attackers,
            parties=_parties,
            fewest_seeds=FEWEST_SEEDS,
            isnan=math.isnan,
            excess=judging.EXCESS,
            CostOutcome=CostOutcome,
            **facts(assessed, federation),
        ),
    )


def _defended(assessed: Assessed, federation: str) -> dict[str, Any]:
    """Returns the template's values: which method is recommended or nearest to the goal, and the others."""
    methods = assessed.methods_on(federation)
    allowed = assessed.allowed[federation]
    rivals = [a for a in assessed.attacked_on(federation) if a.configuration.defended]
    broken = (a.broken for a in assessed.assessments if a.federation == federation)
    shown, best, near = assessed.undefended(federation), recommended(methods), None
    case: Literal["nothing", "untried", "best", "near", "unknown"]
    if shown and shown.strongest and shown.strongest.nothing_to_protect:
        case, best = "nothing", None
    elif not methods:
        case = "untried"
    elif best:
        case = "best"
    elif rivals:
        case, near = "near", nearest(rivals, allowed, assessed.reference.goal)
    else:
        case = "unknown"
    return {
        "case": case,
        "methods": methods,
        "best": best,
        "near": near,
        "rivals": len(rivals),
        "surest": best and any(a.meets_goal and a.leak.mean < best.leak.mean for a in methods),
        "outcomes": sorted({str(a.shown_as) for a in methods}),
        "broken": dict.fromkeys(name for names in broken for name in names),
        "worth": assessed.worth[federation],
        "allowed": allowed,
        "meanings": judging.MEANINGS,
        "Verdict": Verdict,
    }


def _without_undefended(assessed: Assessed, federation: str) -> dict[str, Any]:
    """Returns the template's values without figures of undefended: what leaks least and what leaks most."""
    attacked = assessed.attacked_on(federation)
    missing = undefended(assessed.configurations) is None
    return {
        "least": min(attacked, key=lambda a: a.leak.mean),
        "most": max(attacked, key=lambda a: a.leak.mean),
        "count": len(attacked),
        "why": "no method is undefended" if missing else "undefended has no figures",
    }
