"""The worst case: the strongest attack at a point, chosen on one half of the rows, scored on the other.

What enters: the rows of every attack on one point's settings, by attack and federation. What leaves: a
``Worst`` a panel of the report. The attack is chosen by ``leak_select`` and scored by ``leak_report``, so
that picking the best of many does not flatter it; oracle attacks stay out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vfljax import metrics
from vfljax.report.seeds import Interval, interval
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT, federation_of

FEDERATIONS = {"split": "with model splitting", "no_split": "without model splitting"}
"""What a report compares: honest and malicious parties with a top model are one panel of it."""
WORDS = {SPLIT: "split", MALICIOUS: "malicious", NO_SPLIT: "no split"}

Outcomes = Sequence[Mapping[str, Any]]  # stored rows of one attack, a seed each


def panel(federation: str) -> str:
    """The entry of ``FEDERATIONS`` that the federation of that name, or kind, belongs to."""
    return "split" if federation_of(federation).split else "no_split"


class AttackOn(NamedTuple):
    """By what an attack's figures are known: its label, and the kind of federation that was attacked."""

    attack: str
    federation: str

    @property
    def panel(self) -> str:
        return panel(self.federation)


def attack_on(row: Mapping[str, Any]) -> AttackOn:
    """What a stored row of an attack is about."""
    return AttackOn(row["attack"], federation_of(row["structure"]).kind)


def titles(keys: Iterable[AttackOn]) -> dict[AttackOn, str]:
    """What each is called among these: the attack's label, with its federation where it ran on several."""
    keys = list(dict.fromkeys(keys))
    labels = [key.attack for key in keys]
    return {
        key: key.attack
        if labels.count(key.attack) == 1
        else f"{key.attack} ({WORDS[key.federation]})"
        for key in keys
    }


class Marked(NamedTuple):
    """The attacks of a sweep that ..."""

    oracle: set[str]  # ... know more than an attacker can
    adaptive: set[str]  # ... are in no paper: they know the defense


class Worst(NamedTuple):
    """The strongest attack of a panel at a point."""

    attack: str  # its label
    federation: str  # the kind of federation that it was run on
    name: str  # its label, with the federation where the panel has the attack on several
    leak: Interval  # on the half it was not chosen on
    by_seed: dict[int, float]
    select: float  # mean leak on the half it was chosen on: what strengths are compared by
    null: float  # what its scores reach under permuted labels, 95 % of the time; mean over seeds
    advantage: Interval  # (leak - chance) / (1 - chance)

    @property
    def tells(self) -> bool:
        """Whether it leaks more than scores without information do."""
        return self.leak.mean > self.null


class WorstCases(NamedTuple):
    """Of one point, by panel of the report: the worst of ..."""

    worst: dict[str, Worst]  # ... all attacks that an attacker can run
    published: dict[str, Worst]  # ... those in the papers: nobody who knows the defense
    oracle: dict[str, Worst]  # ... those that know more than an attacker can


def worst_cases(
    attacked: Mapping[AttackOn, Outcomes],
    marked: Marked,
    names: Mapping[AttackOn, str],
    chance: float,
) -> WorstCases:
    """The worst cases of a point, whose attacks have these outcomes; ``names`` of ``names_by_panel``."""
    cases = WorstCases({}, {}, {})
    for federation in FEDERATIONS:
        candidates = {
            key: outcomes
            for key, outcomes in attacked.items()
            if key.panel == federation
            # an attack that diverged on every seed says nothing: it is no candidate
            and any(math.isfinite(outcome["leak_select"]) for outcome in outcomes)
        }
        fair = {k: x for k, x in candidates.items() if k.attack not in marked.oracle}
        for worst_of, chosen_from in (
            (cases.worst, fair),
            (cases.published, {k: x for k, x in fair.items() if k.attack not in marked.adaptive}),
            (cases.oracle, {k: x for k, x in candidates.items() if k not in fair}),
        ):
            if chosen_from:
                worst_of[federation] = _worst(chosen_from, names, chance)
    return cases


def names_by_panel(keys: Iterable[AttackOn]) -> dict[AttackOn, str]:
    """What each is called where its panel is said anyway."""
    keys = list(keys)
    out: dict[AttackOn, str] = {}
    for federation in FEDERATIONS:
        out |= titles(key for key in keys if key.panel == federation)
    return out


def _worst(
    candidates: Mapping[AttackOn, Outcomes], names: Mapping[AttackOn, str], chance: float
) -> Worst:
    """Chosen on one half of the rows, scored on the other."""
    key = max(candidates, key=lambda k: _nanmean([x["leak_select"] for x in candidates[k]]))
    outcomes = candidates[key]
    seeds = {x["seed"]: x["leak_report"] for x in outcomes}
    return Worst(
        key.attack,
        key.federation,
        names[key],
        interval(seeds.values()),
        seeds,
        _nanmean([x["leak_select"] for x in outcomes]),
        _nanmean([x["leak_null"] for x in outcomes]),
        interval(float(metrics.advantage(v, chance)) for v in seeds.values()),
    )


def _nanmean(values: Sequence[float]) -> float:
    finite = [v for v in values if not math.isnan(v)]
    return sum(finite) / len(finite) if finite else -math.inf
