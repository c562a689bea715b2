"""A card a defense and federation: what it does, what it costs, and who broke it.

What enters: the points of a sweep and ``About`` it. What leaves: ``Card`` records, the best first. All that
is judged or chosen is ``strengths``'s and ``verdicts``'s; a card puts it beside each other. Leak, excess and
change are the shown strength's own, as in the table of worst cases; the cost is that of the folds' choices,
as in the table of strengths that keep the accuracy.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from vfljax import store
from vfljax.report import choosing, judging, summary
from vfljax.report.confidence import Interval, interval
from vfljax.report.strengths import Choice, choices
from vfljax.report.summary import Point
from vfljax.report.verdicts import Verdict, verdicts
from vfljax.report.worst import AWAY, FEDERATIONS, Figure, Worst
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.records import Goal

NONE_KEEPS = "no strength keeps the accuracy"
NOT_ATTACKED = "not attacked"
DIVERGED = "diverged on every seed"
NOT_COMPARED = "not compared: nothing undefended"
NOTHING = Figure(math.nan, judging.NO_LIMITS)


class About(NamedTuple):
    """What is known of a sweep beside its points."""

    base: Mapping[str, Any]  # ``summary.baseline``
    goal: Goal
    name_of: Callable[[int], str]  # of a party, by its number
    known: int  # how many labels an attacker may know: the leading budget

    @property
    def classes(self) -> int:
        """C"""
        return self.base["classes"]


def about(sweep: store.Sweep, experiment: Experiment) -> About:
    """What a report knows of a stored sweep."""
    return About(
        summary.baseline(sweep),
        experiment.goal,
        experiment.parties.name_of,
        next(iter(summary.budgets_of(sweep))),
    )


@dataclasses.dataclass(frozen=True)
class Card:
    """One arm in one federation."""

    arm: str
    federation: str  # "split" or "no_split"
    verdict: str  # of ``judging``, or one of this module's words
    point: Point | None  # the shown strength; None where nothing was attacked
    kept: bool  # whether it was chosen for keeping the accuracy; else it is the nearest to the goal
    change: Figure  # of the leak, to undefended
    cost: Interval  # change of test accuracy to undefended, paired by seed; below 0 is a loss
    chosen: str  # by whom: "3 of 3 folds"
    by_folds: float  # leak of what each fold chose, which is unbiased for choosing
    attack: str  # what reads most
    party: str  # who attacks; "" where nobody reads more than by staying away
    meets: bool  # the goal

    @property
    def strength(self) -> str:
        """The label of the shown strength."""
        return "" if self.point is None else self.point.label

    @property
    def worst(self) -> Worst | None:
        """Of the shown strength."""
        return None if self.point is None else self.point.worst[self.federation]

    @property
    def leak(self) -> Figure:
        """Of the strongest attack on the shown strength."""
        return NOTHING if self.worst is None else self.worst.leak

    @property
    def excess(self) -> Figure:
        """That less what staying away reaches."""
        return NOTHING if self.worst is None else self.worst.excess

    @property
    def accuracy(self) -> Interval:
        """Test accuracy of the shown strength."""
        return interval([]) if self.point is None else self.point.accuracy[self.federation]

    @property
    def auc(self) -> Interval:
        """Test AUC of the shown strength; empty for more than two classes."""
        return (
            interval([])
            if self.point is None
            else self.point.auc.get(self.federation, interval([]))
        )


def cards(points: Sequence[Point], of: About) -> tuple[Card, ...]:
    """A card for every defended arm and federation in which anything was attacked: by federation, those that
    meet the goal first, then those that keep the accuracy, each by what the worst case leaks."""
    plain = summary.undefended(points)
    judged = {(id(v.point), v.federation): v for v in verdicts(points)}
    chosen = {
        (c.arm, c.federation): c for c in choices(points, of.base["majority"], of.goal.max_cost)
    }
    out = []
    for federation in (f for f in FEDERATIONS if any(f in p.worst for p in points)):
        for arm in dict.fromkeys(p.arm for p in points if p.defended):
            members = [p for p in points if p.arm == arm and federation in p.validation]
            if members:
                choice = chosen.get((arm, federation))
                out.append(_card(members, federation, choice, plain, judged, of))
    return tuple(sorted(out, key=_order))


SUREST = (
    judging.PROTECTS,
    judging.REDUCES,
)  # the verdicts that speak for a defense, the better first


def preference(card: Card) -> tuple[int, float]:
    """Of two cards the one that protects, else the one that reduces what leaks, else any comes first; of
    equal ones the one that leaks less."""
    rank = next(
        (k for k, verdict in enumerate(SUREST) if card.verdict.startswith(verdict)), len(SUREST)
    )
    return rank, math.inf if math.isnan(card.leak.mean) else card.leak.mean


def _order(card: Card) -> tuple[Any, ...]:
    place = list(FEDERATIONS).index(card.federation)
    return place, not card.meets, not card.kept, *preference(card)


def _card(
    members: Sequence[Point],
    federation: str,
    choice: Choice | None,
    plain: Point | None,
    judged: Mapping[tuple[int, str], Verdict],
    of: About,
) -> Card:
    arm = members[0].arm
    attacked = [p for p in members if federation in p.worst]
    if not attacked:
        lost = all(p.diverged == p.settings for p in members)
        return _blank(arm, federation, DIVERGED if lost else NOT_ATTACKED)
    if choice is None:  # nothing to compare with: the strength that leaks least
        point = min(attacked, key=lambda p: p.worst[federation].leak.mean)
        return _shown(_blank(arm, federation, NOT_COMPARED), point, of)
    if choice.point is None:
        point = nearest(attacked, plain, federation, of)
        card = _blank(arm, federation, NONE_KEEPS)
        card = dataclasses.replace(card, cost=cost(point, plain, federation, of))
    else:
        point = choice.point
        card = dataclasses.replace(
            _blank(arm, federation, judged[id(point), federation].text),
            kept=True,
            cost=choice.accuracy_change,
            chosen=choice.chosen,
            by_folds=choice.leak,
            meets=leaks_at_most(point.worst[federation].leak) <= of.goal.max_leak + 1e-12
            and -choice.accuracy_change.mean <= of.goal.max_cost + 1e-12,
        )
    verdict = judged.get((id(point), federation))
    change = NOTHING if verdict is None else verdict.change
    return _shown(dataclasses.replace(card, change=change), point, of)


def _blank(arm: str, federation: str, verdict: str) -> Card:
    unknown = interval([])
    return Card(
        *(arm, federation, verdict, None, False, NOTHING, unknown, "", math.nan, "", "", False)
    )


def _shown(card: Card, point: Point, of: About) -> Card:
    """The card with this strength, and who reads most there."""
    worst = point.worst[card.federation]
    return dataclasses.replace(
        card, point=point, attack=attack_of(worst), party=attacker(worst, of.name_of)
    )


def leaks_at_most(leak: Figure) -> float:
    """The upper limit, or the figure where there are too few seeds for limits."""
    upper = float(leak.limits.upper)
    return leak.mean if math.isnan(upper) else upper


def cost(point: Point, plain: Point | None, federation: str, of: About) -> Interval:
    """The change of one strength's test accuracy to undefended, paired by seed; empty without any."""
    if plain is None or federation not in plain.by_seed or federation not in point.by_seed:
        return interval([])
    ours, theirs = point.by_seed[federation], plain.by_seed[federation]
    shared = [seed for seed in ours if seed in theirs]
    losses = choosing.accuracy_losses(
        [ours[seed] for seed in shared], [theirs[seed] for seed in shared], of.base["majority"]
    )
    return interval(-losses)


def nearest(attacked: Sequence[Point], plain: Point | None, federation: str, of: About) -> Point:
    """Of points with a worst case, the one that is beyond the goal by least: by the larger of what it leaks
    and what it costs too much. Of equal ones the one that leaks least."""

    def beyond(point: Point) -> tuple[float, float]:
        leak = point.worst[federation].leak
        lost = cost(point, plain, federation, of)
        over = -lost.mean - of.goal.max_cost if lost.count else 0.0
        return max(0.0, leaks_at_most(leak) - of.goal.max_leak, over), leak.mean

    return min(attacked, key=beyond)


def attack_of(worst: Worst) -> str:
    """The strongest attack, with what tells it from others, but without who ran it."""
    details = worst.name.removeprefix(worst.identity.label)
    return worst.identity._replace(attackers=(0,)).label + details


def attacker(worst: Worst, name_of: Callable[[int], str]) -> str:
    """Who ran the strongest attack, 'telco and shop together'; "" where it is staying away."""
    if worst.federation == AWAY:
        return ""
    parties = [name_of(party) for party in worst.identity.attackers]
    together = " together" if len(parties) > 1 else ""
    return f"{', '.join(parties[:-1])} and {parties[-1]}{together}" if together else parties[0]


def away(points: Sequence[Point], federation: str) -> float:
    """What staying away reaches, on the rows that worst cases are scored on; NaN where it is not known."""
    plain = summary.undefended(points)
    ordered = [p for p in (plain, *points) if p is not None and federation in p.worst]
    reached = [p.worst[federation].leak.mean - p.worst[federation].excess.mean for p in ordered]
    return next((leak for leak in reached if not math.isnan(leak)), math.nan)
