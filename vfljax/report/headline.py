"""What a sweep says in one sentence a federation, on one scale, with limits.

What enters: the points of a sweep and ``About`` it. What leaves: ``Opening``, with a ``Headline`` a federation
and the ``Card`` s. A headline is a sentence and the four answers that a reader comes for: what leaks, to whom,
what to switch on, how sure that is. Nothing here reads a sweep or a page.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from vfljax.report import judging, summary
from vfljax.report.cards import About, Card, attack_of, attacker, cards, cost, nearest, preference
from vfljax.report.confidence import Interval
from vfljax.report.summary import Point
from vfljax.report.worst import FEDERATIONS, Figure, Worst


@dataclasses.dataclass(frozen=True)
class Headline:
    """What one federation's figures say."""

    federation: str  # "split" or "no_split"; "" where nothing was attacked anywhere
    sentence: str
    leaks: str  # what leaks
    whom: str  # to whom
    switch_on: str  # what to do
    sure: str  # how sure that is


class Opening(NamedTuple):
    """What a report opens with."""

    headlines: tuple[Headline, ...]
    cards: tuple[Card, ...]


def opening(points: Sequence[Point], of: About) -> Opening:
    """Headlines and cards of a sweep's points."""
    every = cards(points, of)
    federations = [f for f in FEDERATIONS if any(f in p.worst for p in points)]
    if not federations:
        return Opening((_nothing(points),), every)
    headlines = [
        _headline(points, federation, [c for c in every if c.federation == federation], of)
        for federation in federations
    ]
    if len(federations) > 1:
        headlines = [
            dataclasses.replace(
                h, sentence=f"{FEDERATIONS[h.federation].capitalize()}: {_lower(h.sentence)}"
            )
            for h in headlines
        ]
    return Opening(tuple(headlines), every)


def recommended(of_federation: Sequence[Card]) -> Card | None:
    """Of the cards that meet the goal, one that protects, else one that reduces what leaks, else any; of
    these the one whose worst case leaks least."""
    return min((c for c in of_federation if c.meets), key=preference, default=None)


def _nothing(points: Sequence[Point]) -> Headline:
    """Of a sweep without any worst case: diverged, or not attacked."""
    settings, lost = sum(p.settings for p in points), sum(p.diverged for p in points)
    if settings and lost == settings:
        said = f"All {settings} settings diverged: there is nothing to judge"
        return Headline(
            "", f"{said}.", "nothing is known", "nobody", "a lower learning rate", "not at all"
        )
    plain = summary.undefended(points)
    reached = [f"{a.mean:.3f}" for a in (plain or points[0]).accuracy.values() if a.count][:1]
    what = "undefended" if plain else points[0].label
    accuracy = f" ({what} reaches an accuracy of {reached[0]})" if reached else ""
    return Headline(
        "",
        f"No attack has any figure, so nothing is known of what leaks{accuracy}.",
        "nothing is known",
        "nobody attacked",
        "nothing yet: run `vfljax attack`",
        "not at all",
    )


def _headline(
    points: Sequence[Point], federation: str, of_federation: Sequence[Card], of: About
) -> Headline:
    plain = summary.undefended(points)
    if plain is None or federation not in plain.worst:
        return _without_undefended(points, federation, plain, of)
    worst = plain.worst[federation]
    settled = _nothing_to_protect(worst) or not of_federation
    first = f"Undefended, {_reads(worst, of)}"
    whom = attacker(worst, of.name_of)
    first += _beside(worst) if settled and whom else ""
    whom = f"{whom}, with the attack {attack_of(worst)}" if whom else "nobody, beyond staying away"
    chance = _brief(of.base["chance"])
    beside = _beside(worst) and f"{_beside(worst)} (own columns and as many known labels)"
    leaks = f"the labels: {of.base['scale']} {figure(worst.leak)}{beside}, chance {chance}"
    if _nothing_to_protect(worst):
        tail, switch = ": there is nothing to protect from what was tried.", "nothing"
        shown = worst
    elif not of_federation:
        tail, switch, shown = "; no defense was tried.", "unknown: no defense was tried", worst
    else:
        tail, switch, shown = _defended(points, federation, of_federation, of)
    known = _assumed(of)
    return Headline(federation, first + tail, leaks, whom + known, switch, _sure(shown))


def _defended(
    points: Sequence[Point], federation: str, of_federation: Sequence[Card], of: About
) -> tuple[str, str, Worst]:
    """The rest of the sentence, what to switch on, and the worst case that this rests on."""
    best = recommended(of_federation)
    if best is None:
        return _none_meets(points, federation, of_federation, of)
    assert best.worst is not None
    tail = (
        f"; with {best.strength} the worst of {_attacks(best.worst)} reaches {figure(best.leak)}"
        f"{_beside(best.worst)}; accuracy {change(best.cost)}. {_verdict(best)}"
    )
    count = f"{len(of_federation)} defense{'s' * (len(of_federation) != 1)}"
    least = f"leaks least of {count} where {_limits(of)}"
    others = [c for c in of_federation if c.meets and c.leak.mean < best.leak.mean]
    if others:
        least = f"is the surest of {count} where {_limits(of)}"
    if best.verdict == judging.DOES_NOTHING:
        switch = f"nothing that was tried: even {best.strength} does nothing"
    elif best.verdict.startswith((judging.PROTECTS, judging.REDUCES)):
        switch = f"{best.strength}: it {least}; it {best.verdict} ({_meaning(best)})"
    else:
        switch = f"not settled: {best.strength} {least}, but whether it protects cannot be said"
    return tail, switch, best.worst


def _none_meets(
    points: Sequence[Point], federation: str, of_federation: Sequence[Card], of: About
) -> tuple[str, str, Worst]:
    plain = summary.undefended(points)
    attacked = [p for p in points if p.defended and federation in p.worst]
    if not attacked:
        worst = plain.worst[federation] if plain else None
        assert worst is not None
        words = {c.verdict for c in of_federation}
        return f"; of the defenses nothing is known: {', '.join(sorted(words))}.", "unknown", worst
    near = nearest(attacked, plain, federation, of)
    worst = near.worst[federation]
    tail = (
        f"; no defense that was tried meets what is asked ({_limits(of)}). Nearest is {near.label}: "
        f"the worst of {_attacks(worst)} reaches {figure(worst.leak, of.goal.max_leak)}{_beside(worst)}; "
        f"accuracy {change(cost(near, plain, federation, of))}."
    )
    his = worst.leak.mean - worst.excess.mean
    why = (
        f", and none can, as taking no part reaches {_brief(his)}" if his > of.goal.max_leak else ""
    )
    return tail, f"none meets what is asked ({_limits(of)}){why}; nearest is {near.label}", worst


def _without_undefended(
    points: Sequence[Point], federation: str, plain: Point | None, of: About
) -> Headline:
    """Where nothing says what a defense takes away: the strength that leaks least."""
    why = "no arm is undefended" if plain is None else "undefended has no figures"
    attacked = [p for p in points if federation in p.worst]
    least = min(attacked, key=lambda p: p.worst[federation].leak.mean)
    most = max(attacked, key=lambda p: p.worst[federation].leak.mean)
    worst = least.worst[federation]
    sentence = (
        f"{why.capitalize()}, so nothing says what a defense takes away. With {least.label}, the least of "
        f"{len(attacked)} settings, {_reads(worst, of)}{_beside(worst)}; accuracy "
        f"{_absolute(least.accuracy[federation])}."
    )
    who = attacker(most.worst[federation], of.name_of) or "nobody, beyond staying away"
    known = _assumed(of)
    return Headline(
        federation,
        sentence,
        f"{of.base['scale']} {_brief(worst.leak.mean)} to {_brief(most.worst[federation].leak.mean)} over "
        f"{len(attacked)} settings{_beside(worst)}, chance {_brief(of.base['chance'])}",
        who + known,
        f"{least.label} leaks least; {why} to compare it with",
        _sure(worst),
    )


def _reads(worst: Worst, of: About) -> str:
    """'telco ranks the labels with leak AUC .97 (.95 to .98)'"""
    who = attacker(worst, of.name_of)
    plural = who.endswith(" together")
    if not who:
        scale = f"{of.base['scale']} {figure(worst.leak)}"
        return f"the worst of {_attacks(worst)} reads no more than staying away does, {scale}"
    if of.classes == 2:
        verb = "rank" if plural else "ranks"
        return f"{who} {verb} the labels with leak AUC {figure(worst.leak)}"
    verb = "name" if plural else "names"
    return (
        f"{who} {verb} the right one of {of.classes} classes for {figure(worst.leak)} of the rows, classes "
        f"weighed alike"
    )


def _beside(worst: Worst) -> str:
    """', taking no part .53'; '' where nothing is known of that."""
    away = worst.leak.mean - worst.excess.mean
    return "" if math.isnan(away) else f", taking no part {_brief(away)}"


def _meaning(card: Card) -> str:
    """What the verdict says that the limits allow."""
    return next(
        said for verdict, said in judging.MEANINGS.items() if card.verdict.startswith(verdict)
    )


def _assumed(of: About) -> str:
    """How many labels an attacker is assumed to know."""
    return f"; assumed to know {of.known or 'no'} labels" + " at most" * bool(of.known)


def _attacks(worst: Worst) -> str:
    count = len(worst.candidates.names)
    return f"{count} attack{'s' * (count != 1)}"


def _nothing_to_protect(worst: Worst) -> bool:
    enough = worst.case.seeds >= judging.FEWEST_SEEDS
    return enough and bool(worst.case.excess_limits.upper < judging.EXCESS)


def _verdict(card: Card) -> str:
    if card.verdict == judging.NO_VERDICT:
        return f"N{judging.NO_VERDICT[1:]}."
    return f"Verdict: {card.verdict}."


def _limits(of: About) -> str:
    """What the goal asks, as a clause."""
    costs = f"accuracy falls by at most {100 * of.goal.max_cost:g} points"
    return costs if of.goal.max_leak >= 1 else f"{costs} and leak is at most {of.goal.max_leak:g}"


def _sure(worst: Worst) -> str:
    """On how much it rests."""
    seeds, tried = worst.case.seeds, _attacks(worst)
    if seeds < judging.FEWEST_SEEDS:
        return (
            f"not sure: {seeds} seed{'s' * (seeds != 1)} allow no limits and no verdict, "
            f"{judging.FEWEST_SEEDS} do; {tried} tried"
        )
    lost = len(worst.seeds) - seeds
    diverged = f" ({lost} more diverged)" if lost else ""
    return (
        f"limits are 95 % each, one-sided, over {seeds} seeds{diverged} of this data set; "
        f"{tried} tried, and nothing is said of others"
    )


def figure(of: Figure, bound: float | None = None) -> str:
    """'.97 (.95 to .98)'; without limits the mean alone. Three digits where two would hide that it is
    beyond the bound."""
    lower, upper = (float(limit) for limit in of.limits)
    highest = of.mean if math.isnan(upper) else upper
    hidden = bound is not None and round(highest, 2) <= bound < highest
    digits = 3 if hidden else 2
    between = "" if math.isnan(lower) else f" ({_brief(lower, digits)} to {_brief(upper, digits)})"
    return f"{_brief(of.mean, digits)}{between}"


def _brief(value: float, digits: int = 2) -> str:
    """'.97', '1.00'; '-' of what is not known."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}".removeprefix("0")


def change(of: Interval) -> str:
    """A change of accuracy: '-0.4 points (-0.9 to +0.1)'."""
    if not of.count:
        return "change unknown"
    between = ""
    if not math.isnan(of.half):
        between = f" ({_points(of.mean - of.half)} to {_points(of.mean + of.half)})"
    return f"{_points(of.mean)} points{between}"


def _points(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _absolute(of: Interval) -> str:
    between = (
        ""
        if math.isnan(of.half)
        else f" ({_brief(of.mean - of.half)} to {_brief(of.mean + of.half)})"
    )
    return f"{_brief(of.mean)}{between}"


def _lower(sentence: str) -> str:
    """The sentence after a colon."""
    return sentence[0].lower() + sentence[1:] if sentence[:1].isupper() else sentence
