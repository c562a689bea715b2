"""The worst case: the strongest attack at a point, chosen on one half of the rows, scored on the other.

What enters: the rows of every attack on one point's settings, by attack, federation and point of its
knobs. What leaves: a ``Worst`` a panel of the report. The attack is chosen by ``leak_select`` and scored by
``leak_report``, so that picking the best of many does not flatter it; oracle attacks stay out.

A worst case belongs to a budget of K known labels. Its candidates are all attacks that know at most K, and
the attacker who stays away with K: what he reaches (``vfljax.attacking.alone``) is nothing that taking part
has told anybody. A worst case's ``excess`` over him is. With K = 0 he has nothing to learn from, is no
candidate, and reaches chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vfljax import metrics
from vfljax.report.budgets import Budget, known_of, parties_of
from vfljax.report.seeds import Interval, interval, paired
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT, federation_of

FEDERATIONS = {"split": "with model splitting", "no_split": "without model splitting"}
"""What a report compares: honest and malicious parties with a top model are one panel of it."""
WORDS = {SPLIT: "split", MALICIOUS: "malicious", NO_SPLIT: "no split"}

Outcomes = Sequence[Mapping[str, Any]]  # stored rows of one attack, a seed each


AWAY = "no federation"  # in place of a federation's kind: of whoever stays away


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


class Run(NamedTuple):
    """An attack on a kind of federation, at one point of its knobs."""

    on: AttackOn
    point: int


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
    name: str  # its label, with what tells it from others of the panel: federation and knobs
    leak: Interval  # on the half it was not chosen on
    by_seed: dict[int, float]
    select: float  # mean leak on the half it was chosen on: what strengths are compared by
    null: float  # what its scores reach under permuted labels, 95 % of the time; mean over seeds
    advantage: Interval  # (leak - chance) / (1 - chance)
    excess: (
        Interval  # leak less that of staying away, paired by seed; of no seed where it is not known
    )

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
    attacked: Mapping[Run, Outcomes],
    marked: Marked,
    names: Mapping[Run, str],
    budget: Budget,
    chance: float,
) -> WorstCases:
    """The worst cases of a point with a budget, whose attacks have these outcomes; ``names`` of
    ``names_by_panel``."""
    cases = WorstCases({}, {}, {})
    for federation in FEDERATIONS:
        candidates = {
            run: outcomes
            for run, outcomes in attacked.items()
            if run.on.panel == federation
            and known_of(outcomes[0]) <= budget.known
            # an attack that diverged on every seed says nothing: it is no candidate
            and any(math.isfinite(outcome["leak_select"]) for outcome in outcomes)
        }
        fair = {run: x for run, x in candidates.items() if run.on.attack not in marked.oracle}
        away = _staying_away(fair, budget)
        shown = {**names, **{run: f"{run.on.attack}, {AWAY}" for run in away}}
        known = {run: x for run, x in fair.items() if run.on.attack not in marked.adaptive}
        oracle = {run: x for run, x in candidates.items() if run not in fair}
        for worst_of, chosen_from in (
            (cases.worst, {**fair, **away} if fair else {}),
            (cases.published, {**known, **away} if known else {}),
            (cases.oracle, oracle),
        ):
            if chosen_from:
                worst_of[federation] = _worst(chosen_from, shown, budget, chance)
    return cases


def _staying_away(fair: Mapping[Run, Outcomes], budget: Budget) -> dict[Run, Outcomes]:
    """Whoever attacks, had he stayed away, on the same seeds; he knows as many labels as the budget has."""
    seeds = {outcome["seed"] for outcomes in fair.values() for outcome in outcomes}
    parties = {parties_of(x[0]) for x in fair.values()}
    rows = {
        who: [row for seed, row in budget.away.get(who, {}).items() if seed in seeds]
        for who in parties
    }
    return {
        Run(AttackOn(some[0]["attack"], AWAY), 0): some
        for some in rows.values()
        if any(math.isfinite(row["leak_select"]) for row in some)
    }


def names_by_panel(rows: Iterable[Mapping[str, Any]]) -> dict[Run, str]:
    """What the runs of these stored rows are called where their panel is said anyway."""
    runs = {Run(attack_on(row), row["point"]): row for row in rows}
    names: dict[AttackOn, str] = {}
    for federation in FEDERATIONS:
        names |= titles(run.on for run in runs if run.on.panel == federation)
    points: dict[AttackOn, list[dict[str, Any]]] = {}
    for run, row in runs.items():
        knobs = {k: v for k, v in row.items() if k.startswith("attack.") and v is not None}
        points.setdefault(run.on, []).append(knobs)
    out = {}
    for run, row in runs.items():
        values = points[run.on]
        varying = [k for k in values[0] if any(v.get(k) != values[0][k] for v in values)]
        words = [f"{k.removeprefix('attack.')}={row[k]:g}" for k in varying]
        out[run] = " ".join([names[run.on], *words])
    return out


def _worst(
    candidates: Mapping[Run, Outcomes], names: Mapping[Run, str], budget: Budget, chance: float
) -> Worst:
    """Chosen on one half of the rows, scored on the other."""
    run = max(candidates, key=lambda a: _nanmean([x["leak_select"] for x in candidates[a]]))
    outcomes = candidates[run]
    seeds = {x["seed"]: x["leak_report"] for x in outcomes}
    away = {x["seed"]: budget.reached(x, "leak_report", chance) for x in outcomes}
    return Worst(
        run.on.attack,
        run.on.federation,
        names[run],
        interval(seeds.values()),
        seeds,
        _nanmean([x["leak_select"] for x in outcomes]),
        _nanmean([x["leak_null"] for x in outcomes]),
        interval(float(metrics.advantage(v, chance)) for v in seeds.values()),
        paired(seeds, away),
    )


def _nanmean(values: Sequence[float]) -> float:
    finite = [v for v in values if not math.isnan(v)]
    return sum(finite) / len(finite) if finite else -math.inf
