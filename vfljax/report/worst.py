"""The worst case: the strongest attack at a point, chosen on other seeds than it is scored on.

What enters: the rows of every attack on one point's settings, by attack, federation and point of its
knobs. What leaves: a ``Worst`` a panel of the report. With 3 seeds or more each fold chooses on the other
seeds and scores on one (``choosing``); with fewer the attack is chosen on one half of the rows
(``leak_select``). It is always scored on the half (``leak_report``) on which the direction of its scores is
not chosen either; oracle attacks stay out.

A worst case belongs to a budget of K known labels. Its candidates are all attacks that know at most K, and
the attacker who stays away with K: what he reaches (``vfljax.attacking.alone``) is nothing that taking part
has told anybody. A worst case's ``excess`` over him is. Of several parties he is the one who reaches most.
With K = 0 he has nothing to learn from, and reaches chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax import store
from vfljax.report import judging
from vfljax.report.intervals import Limits
from vfljax.report.judging import Candidates, WorstCase
from vfljax.report.knowledge_table import Budget, known_of, parties_of
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT, AttackIdentity, federation_of

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
    return AttackOn(row["label"], federation_of(row["federation"]).kind)


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


class Figure(NamedTuple):
    """A mean over seeds, and between which limits the strongest candidate's true mean lies."""

    mean: float  # NaN without any figure
    limits: Limits  # NaN with fewer than 3 seeds

    def __str__(self) -> str:
        return self.text("")

    @property
    def signed(self) -> str:
        """As a difference: '+0.050 (-0.010 to +0.120)'."""
        return self.text("+")

    def text(self, sign: str) -> str:
        """'0.750 (0.600 to 0.850)'; without limits the mean alone, and '-' without that."""
        if math.isnan(self.mean):
            return "-"
        lower, upper = (float(limit) for limit in self.limits)
        between = "" if math.isnan(lower) else f" ({lower:{sign}.3f} to {upper:{sign}.3f})"
        return f"{self.mean:{sign}.3f}{between}"


class Worst(NamedTuple):
    """The strongest attack of a panel at a point."""

    attack: str  # its label, chosen on all seeds
    federation: str  # the kind of federation that it was run on
    name: str  # its label, with what tells it from others of the panel: federation and knobs
    identity: AttackIdentity
    case: WorstCase
    seeds: tuple[int, ...]  # of ``case.by_seed`` and of the candidates' columns
    null: float  # what its scores reach under permuted labels, 95 % of the time; mean over seeds
    advantage: float  # (leak - chance) / (1 - chance)
    candidates: Candidates

    @property
    def leak(self) -> Figure:
        """What it leaks on seeds that it was not chosen on."""
        return Figure(self.case.leak, self.case.limits)

    @property
    def excess(self) -> Figure:
        """That less what staying away reaches, paired by seed; NaN where nothing is known of that."""
        return Figure(self.case.excess, self.case.excess_limits)

    @property
    def by_seed(self) -> dict[int, float]:
        """Its leak on the seeds that have one."""
        pairs = zip(self.seeds, self.case.by_seed, strict=True)
        return {seed: leak for seed, leak in pairs if not math.isnan(leak)}

    @property
    def chosen(self) -> str:
        """By whom the name was chosen: '3 of 5 folds', or that there were too few seeds for folds."""
        enough = self.case.seeds >= judging.FEWEST_SEEDS
        return f"{self.case.folds} of {self.case.seeds} folds" if enough else "halves of the rows"

    @property
    def tells(self) -> bool:
        """Whether it leaks more than scores without information do."""
        return self.case.leak > self.null


class WorstCases(NamedTuple):
    """Of one point, by panel of the report: the worst of ..."""

    worst: dict[str, Worst]  # ... all attacks that an attacker can run
    published: dict[str, Worst]  # ... those in the papers: nobody who knows the defense
    oracle: dict[str, Worst]  # ... those that know more than an attacker can


class Scale(NamedTuple):
    """What the figures of a sweep have in common."""

    chance: float
    seeds: tuple[int, ...]
    rows: int  # judged ones of the rarest class


def worst_cases(
    attacked: Mapping[Run, Outcomes],
    marked: Marked,
    names: Mapping[Run, str],
    budget: Budget,
    scale: Scale,
) -> WorstCases:
    """The worst cases of a point with a budget, whose attacks have these outcomes; ``names`` of
    ``names_by_panel``."""
    cases = WorstCases({}, {}, {})
    for federation in FEDERATIONS:
        candidates = {
            run: outcomes
            for run, outcomes in attacked.items()
            if run.on.panel == federation and known_of(outcomes[0]) <= budget.known
        }
        fair = {run: x for run, x in candidates.items() if run.on.attack not in marked.oracle}
        known = {run: x for run, x in fair.items() if run.on.attack not in marked.adaptive}
        oracle = {run: x for run, x in candidates.items() if run not in fair}
        away = _staying_away(fair, budget, scale)
        for worst_of, chosen_from, his in (
            (cases.worst, fair, away),
            (cases.published, known, away),
            (cases.oracle, oracle, Away.unknown(scale)),
        ):
            if any(math.isfinite(x["leak_select"]) for some in chosen_from.values() for x in some):
                worst_of[federation] = _worst(chosen_from, his, names, scale)
    return cases


class Away(NamedTuple):
    """Whoever attacks, had he stayed away: his figures by seed."""

    attack: AttackIdentity
    leaks: np.ndarray  # [seeds], NaN where he was not scored
    selects: np.ndarray  # [seeds]
    null: float

    @classmethod
    def unknown(cls, scale: Scale) -> Away:
        blank = np.full(len(scale.seeds), np.nan)
        return cls(AttackIdentity(""), blank, blank, math.nan)


def _staying_away(fair: Mapping[Run, Outcomes], budget: Budget, scale: Scale) -> Away:
    """The best of the parties who attack, with as many labels as the budget has."""
    if not budget.known:
        chance = np.full(len(scale.seeds), scale.chance)
        return Away(AttackIdentity(judging.STAYING_AWAY), chance, chance, scale.chance)
    parties = dict.fromkeys(parties_of(x[0]) for x in fair.values())
    every = [
        Away(
            store.identity_of(next(iter(rows.values()))),
            _by_seed(rows, "leak_report", scale),
            _by_seed(rows, "leak_select", scale),
            _nanmean([row["leak_null"] for row in rows.values()]),
        )
        for rows in (budget.away[who] for who in parties if who in budget.away)
    ]
    return max(every, key=lambda his: _nanmean(his.selects), default=Away.unknown(scale))


def _by_seed(rows: Mapping[int, Mapping[str, Any]], figure: str, scale: Scale) -> np.ndarray:
    """[seeds], NaN where there is none."""
    return np.array([rows[s][figure] if s in rows else math.nan for s in scale.seeds])


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
    attacked: Mapping[Run, Outcomes], his: Away, names: Mapping[Run, str], scale: Scale
) -> Worst:
    """The strongest of these attacks and of who stays away."""
    runs = list(attacked)
    rows = [{outcome["seed"]: outcome for outcome in attacked[run]} for run in runs]
    candidates = Candidates(
        tuple(names[run] for run in runs),
        np.array([_by_seed(of, "leak_report", scale) for of in rows]),
        np.array([_by_seed(of, "leak_select", scale) for of in rows]),
        his.leaks,
        his.selects,
        scale.rows,
    )
    case = candidates.worst
    if case.place == len(runs):
        attack, federation, null = his.attack, AWAY, his.null
    else:
        run = runs[case.place]
        attack, federation = store.identity_of(attacked[run][0]), run.on.federation
        null = _nanmean([outcome["leak_null"] for outcome in attacked[run]])
    advantage = (case.leak - scale.chance) / (1 - scale.chance)
    return Worst(
        attack=attack.label,
        federation=federation,
        name=case.attack,
        identity=attack,
        case=case,
        seeds=scale.seeds,
        null=null,
        advantage=advantage,
        candidates=candidates,
    )


def _nanmean(values: Iterable[float]) -> float:
    values = list(values)
    finite = [v for v in values if not math.isnan(v)]
    return sum(finite) / len(finite) if finite else -math.inf
