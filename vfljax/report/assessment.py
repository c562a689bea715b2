"""One assessment per configuration and federation, which everything that is shown renders.

It holds the strongest attack with limits, its excess over the local-only baseline, its change to undefended,
the verdict on it, what the configuration costs, and whether it is the operating point chosen for its method.

The candidates for the strongest attack are all attacks that know at most K labels, and the local-only
baseline with K: what the passive party reaches from its own columns, without the federation
(``vfljax.attacking.alone``). Of several parties the one counts that reaches most; with K = 0 there is nothing
to learn from, and it reaches chance. With 3 seeds or more each fold chooses on the other seeds and scores on
one (``choosing``); with fewer the attack is chosen on one half of the rows (``leak_select``). It is always
scored on the other half (``leak_report``), on which the direction of its scores is not chosen either. Attacks
that know more than an attacker can (oracles) are kept apart.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vfljax import store
from vfljax.report import choosing, judging, stored_rows
from vfljax.report.configurations import (
    Configuration,
    Reference,
    attacks_of,
    configurations,
    knowledge,
    reference_of,
    titles,
    undefended,
)
from vfljax.report.intervals import NO_ESTIMATE, NO_INTERVAL, Estimate, Interval, interval
from vfljax.report.judging import Candidate, Candidates, Strongest, Verdict
from vfljax.report.stored_rows import (
    FEDERATIONS,
    AttackRow,
    StoredRows,
    federation_of_kind,
)
from vfljax.sweep.experiment import Experiment, experiment_of
from vfljax.types import AttackIdentity


class Outcome(enum.Enum):
    """What stands in a verdict's place where a method has no chosen operating point."""

    NONE_KEEPS = "no operating point keeps the accuracy"
    NOT_ATTACKED = "not attacked"
    DIVERGED = "diverged on every seed"
    NOT_COMPARED = "not compared: nothing undefended"

    def __str__(self) -> str:
        return self.value

    @property
    def rank(self) -> int:
        """As a verdict's that does not recommend a defense."""
        return 2


class Choice(NamedTuple):
    """How an operating point was chosen, and its figures on seeds on which nothing was chosen.

    Each fold chooses operating point and attack on the other seeds, so these figures may be of several points.
    """

    folds: int  # how many chose this operating point
    seeds: int  # number of folds; 0 where there were too few seeds for any
    leak: float
    excess: float
    change: float
    cost: Interval  # change of test accuracy to undefended

    @property
    def text(self) -> str:
        """'3 of 5 folds', or that there were too few seeds for folds."""
        return f"{self.folds} of {self.seeds} folds" if self.seeds else "halves of the rows"


@dataclasses.dataclass(frozen=True, eq=False)
class Assessment:
    """One configuration in one federation, with (split) or without (no_split) model splitting."""

    configuration: Configuration
    federation: str
    strongest: Strongest | None = None  # None where no attack has a figure
    published: Strongest | None = (
        None  # of the attacks in papers: none takes the defense into account
    )
    oracle: Strongest | None = None  # of the attacks that know more than an attacker can
    by_knowledge: Mapping[int, Strongest] = dataclasses.field(default_factory=dict)
    verdict: Verdict | None = None  # None where there is nothing to compare with, or no defense
    missing: tuple[str, ...] = ()  # attacks with figures on too few seeds
    change: Estimate = NO_ESTIMATE  # of the leak, to undefended, paired by seed
    cost: Interval = NO_INTERVAL  # change of test accuracy to undefended, paired by seed
    unpublished: Estimate = NO_ESTIMATE  # what the strongest attack reads beyond the published ones
    choice: Choice | None = None  # where it is the method's operating point
    meets_goal: bool = False
    shown_as: Verdict | Outcome | None = None  # where it represents its method

    @property
    def method(self) -> str:
        """The method of its configuration."""
        return self.configuration.method

    @property
    def label(self) -> str:
        """The label of its configuration."""
        return self.configuration.label

    @property
    def leak(self) -> Estimate:
        """What the strongest attack leaks."""
        return NO_ESTIMATE if self.strongest is None else self.strongest.leak

    @property
    def excess(self) -> Estimate:
        """What the strongest attack leaks beyond the local-only baseline."""
        return NO_ESTIMATE if self.strongest is None else self.strongest.excess

    @property
    def accuracy(self) -> Interval:
        """Test accuracy."""
        return self.configuration.accuracy.get(self.federation, NO_INTERVAL)

    @property
    def auc(self) -> Interval:
        """Test AUC; empty for more than two classes."""
        return self.configuration.auc.get(self.federation, NO_INTERVAL)

    @property
    def shown_cost(self) -> Interval:
        """The cost: that of the folds' choices for a chosen operating point, else its own."""
        return self.cost if self.choice is None else self.choice.cost


@dataclasses.dataclass(frozen=True, eq=False)
class Assessed:
    """A whole sweep, assessed."""

    reference: Reference
    configurations: tuple[Configuration, ...]
    assessments: tuple[Assessment, ...]  # by configuration, then by federation
    rows: StoredRows | None = None

    @property
    def federations(self) -> list[str]:
        """The federations in which any attack has a figure."""
        attacked = {a.federation for a in self.attacked}
        return [federation for federation in FEDERATIONS if federation in attacked]

    @property
    def attacked(self) -> list[Assessment]:
        """The assessments with a strongest attack, federation by federation."""
        return [
            a
            for federation in FEDERATIONS
            for a in self.assessments
            if a.federation == federation and a.strongest is not None
        ]

    @property
    def methods(self) -> list[Assessment]:
        """One assessment per defense and federation, by federation.

        Those that meet the goal come first, then those that keep the accuracy, each by verdict and leak.
        """
        return sorted((a for a in self.assessments if a.shown_as is not None), key=_order)

    def undefended(self, federation: str) -> Assessment | None:
        """The undefended configuration in a federation, None where it has no strongest attack there."""
        plain = undefended(self.configurations)
        found = (a for a in self.attacked if a.configuration is plain)
        return next((a for a in found if a.federation == federation), None)


def _order(shown: Assessment) -> tuple[object, ...]:
    place = list(FEDERATIONS).index(shown.federation)
    return place, not shown.meets_goal, shown.choice is None, *preference(shown)


def preference(shown: Assessment) -> tuple[int, float]:
    """Sorts the assessments that represent methods: by verdict, and of equal ones by leak."""
    assert shown.shown_as is not None
    leak = shown.leak.mean
    return shown.shown_as.rank, math.inf if math.isnan(leak) else leak


def assess_sweep(workdir: pathlib.Path) -> Assessed:
    """Reads the sweep in ``workdir`` and assesses it."""
    sweep = store.load(workdir)
    return assess(stored_rows.read(sweep), experiment_of(sweep))


def assess(rows: StoredRows, experiment: Experiment | None = None) -> Assessed:
    """Returns the assessment of a stored sweep.

    Args:
      rows: of the sweep.
      experiment: the sweep's, for its goal and the names of its parties; default ones without it.
    """
    reference = reference_of(rows, experiment)
    every = configurations(rows)
    attacks, names = attacks_of(rows), run_names(rows.attacks)
    counts = knowledge(rows)
    found = []
    for configuration in every:
        for federation in FEDERATIONS:
            candidates = [
                row
                for row in attacks.get(configuration.number, ())
                if federation_of_kind(row.identity.federation) == federation
            ]
            tried = _Tried(candidates, names, rows, reference)
            strongest = {known: tried.strongest(known) for known in counts}
            if federation not in configuration.validation and not any(strongest.values()):
                continue
            found.append(
                Assessment(
                    configuration=configuration,
                    federation=federation,
                    strongest=strongest[counts[0]],
                    published=tried.strongest(counts[0], published=True),
                    oracle=tried.strongest(counts[0], oracle=True),
                    by_knowledge={k: v for k, v in strongest.items() if v is not None},
                )
            )
    return compare(every, found, reference, rows)


class Run(NamedTuple):
    """An attack at one point of its numeric knobs."""

    identity: AttackIdentity
    point: int

    @property
    def panel(self) -> str:
        """The entry of ``FEDERATIONS`` that it was run in."""
        return federation_of_kind(self.identity.federation)


def run_of(row: AttackRow) -> Run:
    """The run that a row is of."""
    return Run(row.identity, row.point)


def run_names(rows: Iterable[AttackRow]) -> dict[Run, Candidate]:
    """What runs are called where their federation is clear: with the knobs that vary, and the federation's
    kind where both honest and malicious parties ran them."""
    runs = {run_of(row): row.knobs for row in rows}
    texts: dict[AttackIdentity, str] = {}
    for federation in FEDERATIONS:
        texts |= titles(_any(run) for run in runs if run.panel == federation)
    points: dict[AttackIdentity, list[dict[str, float]]] = {}
    for run, knobs in runs.items():
        points.setdefault(_any(run), []).append(knobs)
    out = {}
    for run, knobs in runs.items():
        values = points[_any(run)]
        varying = [k for k in values[0] if any(v.get(k) != values[0][k] for v in values)]
        name = " ".join([texts[_any(run)], *(f"{k}={knobs[k]:g}" for k in varying)])
        brief = stored_rows.brief(run.identity) + name.removeprefix(run.identity.label)
        out[run] = Candidate(name=name, brief=brief, identity=run.identity)
    return out


def _any(run: Run) -> AttackIdentity:
    """The run's attack with any number of known labels."""
    return run.identity._replace(known=0)


class _LocalOnly(NamedTuple):
    """The local-only baseline by seed; NaN where it was not scored."""

    leaks: np.ndarray  # [seeds]
    selects: np.ndarray  # [seeds]
    null: float = math.nan


class _Tried:
    """The attacks on one configuration in one federation, and whom to compare them with."""

    def __init__(
        self,
        attacked: Sequence[AttackRow],
        names: Mapping[Run, Candidate],
        rows: StoredRows,
        reference: Reference,
    ) -> None:
        self._names, self._rows, self._reference = names, rows, reference
        self._seeds = tuple(sorted({trial.seed for trial in rows.trials}))
        self._local_only = rows.attackers()
        self._runs: dict[Run, list[AttackRow]] = {}
        for row in attacked:
            self._runs.setdefault(run_of(row), []).append(row)

    def strongest(
        self, known: int, published: bool = False, oracle: bool = False
    ) -> Strongest | None:
        """The strongest of the attacks that know at most so many labels; None where none has a figure.

        ``published`` leaves out attacks that are in no paper. ``oracle`` takes those that know more than an
        attacker can instead of the others, and compares them with nobody.
        """
        runs = {run: rows for run, rows in self._runs.items() if run.identity.known <= known}
        fair = {run: rows for run, rows in runs.items() if not rows[0].oracle}
        candidates = {
            run: rows
            for run, rows in runs.items()
            if (run not in fair if oracle else run in fair) and not (published and rows[0].adaptive)
        }
        figures = [row.figures["leak_select"] for rows in candidates.values() for row in rows]
        if not any(map(math.isfinite, figures)):
            return None
        blank = np.full(len(self._seeds), np.nan)
        away = _LocalOnly(blank, blank) if oracle else self._baseline(fair, known)
        by_seed = [{row.seed: row.figures for row in rows} for rows in candidates.values()]
        nulls = (_mean(row.figures["leak_null"] for row in rows) for rows in candidates.values())
        return judging.strongest_of(
            Candidates(
                attacks=tuple(
                    self._names[run]._replace(null=null) for run, null in zip(candidates, nulls)
                ),
                leaks=np.array([self._by_seed(rows, "leak_report") for rows in by_seed]),
                selects=np.array([self._by_seed(rows, "leak_select") for rows in by_seed]),
                local_only=away.leaks,
                local_only_selects=away.selects,
                rows=self._reference.rows,
                seeds=self._seeds,
                baseline=judging.LOCAL_ONLY._replace(null=away.null),
            )
        )

    def _baseline(self, fair: Mapping[Run, Sequence[AttackRow]], known: int) -> _LocalOnly:
        """The local-only baseline with so many labels, the best of the parties who attack."""
        chance = self._reference.chance
        if not known:
            level = np.full(len(self._seeds), chance)
            return _LocalOnly(level, level, chance)
        reached = self._local_only.get(known, {})
        attackers = dict.fromkeys(run.identity.attackers for run in fair)
        every = []
        for rows in (reached[who] for who in attackers if who in reached):
            figures = {seed: row.figures for seed, row in rows.items()}
            leaks, selects = (
                self._by_seed(figures, name) for name in ("leak_report", "leak_select")
            )
            null = _mean(row["leak_null"] for row in figures.values())
            every.append(_LocalOnly(leaks, selects, null))
        blank = np.full(len(self._seeds), np.nan)
        return max(every, key=lambda x: _mean(x.selects), default=_LocalOnly(blank, blank))

    def _by_seed(self, rows: Mapping[int, Mapping[str, float]], figure: str) -> np.ndarray:
        """[seeds], NaN where there is none."""
        return np.array([rows[s][figure] if s in rows else math.nan for s in self._seeds])


def _mean(values: Iterable[float]) -> float:
    finite = [v for v in values if not math.isnan(v)]
    return sum(finite) / len(finite) if finite else -math.inf


def compare(
    every: Sequence[Configuration],
    found: Sequence[Assessment],
    reference: Reference,
    rows: StoredRows | None = None,
) -> Assessed:
    """Compares every configuration with undefended, and chooses the operating point of every method.

    Args:
      every: the configurations, in grid order.
      found: their assessments as far as attacks go: strongest attacks without verdicts and choices.
      reference: what figures are compared with.
      rows: of the sweep, for those who list them.
    """
    draft = Assessed(reference, tuple(every), tuple(found), rows)
    plain = {federation: draft.undefended(federation) for federation in FEDERATIONS}
    judged = [_judged(a, plain[a.federation], reference) for a in found]
    groups: dict[tuple[str, str], list[int]] = {}
    for place, a in enumerate(judged):
        # where a method is not trained nothing was to be chosen
        if a.configuration.defended and a.federation in a.configuration.validation:
            groups.setdefault((a.method, a.federation), []).append(place)
    attacked = draft.federations
    for (_, federation), places in groups.items():
        if federation in attacked:
            members = [judged[place] for place in places]
            shown, representative = _representative(members, plain[federation], reference)
            judged[places[shown]] = representative
    return dataclasses.replace(draft, assessments=tuple(judged))


def _judged(a: Assessment, plain: Assessment | None, reference: Reference) -> Assessment:
    """The assessment with its verdict, its change to undefended and its cost."""
    strongest = a.strongest
    if strongest is None:
        return a
    if not a.configuration.defended:
        nothing = strongest.nothing_to_protect
        return dataclasses.replace(a, verdict=Verdict.NOTHING_TO_PROTECT if nothing else None)
    if a.published is not None and a.published.name != strongest.name:
        a = dataclasses.replace(a, unpublished=judging.beyond(strongest, a.published))
    if plain is None or plain.strongest is None:
        return a
    comparison = judging.judge(strongest, plain.strongest)
    return dataclasses.replace(
        a,
        verdict=comparison.verdict,
        missing=comparison.missing,
        change=comparison.change,
        cost=_cost(a, plain, reference),
    )


def _cost(a: Assessment, plain: Assessment, reference: Reference) -> Interval:
    """The change of test accuracy to undefended, paired by seed; empty where either was not trained."""
    ours = a.configuration.test.get(a.federation, {})
    others = plain.configuration.test.get(a.federation, {})
    shared = [seed for seed in ours if seed in others]
    losses = choosing.accuracy_losses(
        [ours[seed] for seed in shared], [others[seed] for seed in shared], reference.majority
    )
    return interval(-losses)


def _representative(
    members: Sequence[Assessment], plain: Assessment | None, reference: Reference
) -> tuple[int, Assessment]:
    """The assessment that represents a method in a federation, and its place among the ``members``.

    It is the chosen operating point. Without one it is the nearest to the goal, and where nothing undefended
    was attacked the one that leaks least.
    """
    attacked = [a for a in members if a.strongest is not None]
    if not attacked:
        lost = all(a.configuration.diverged == a.configuration.trials for a in members)
        outcome = Outcome.DIVERGED if lost else Outcome.NOT_ATTACKED
        return 0, dataclasses.replace(members[0], shown_as=outcome)
    if plain is None:
        least = min(attacked, key=lambda a: a.leak.mean)
        place = members.index(least)
        return place, dataclasses.replace(least, shown_as=Outcome.NOT_COMPARED)
    chosen = _choice(attacked, plain, reference)
    if chosen is None:
        shown = nearest(attacked, reference)
        return members.index(shown), dataclasses.replace(shown, shown_as=Outcome.NONE_KEEPS)
    shown, choice = chosen
    goal = reference.goal
    meets = (
        shown.leak.at_most <= goal.max_leak + 1e-12 and -choice.cost.mean <= goal.max_cost + 1e-12
    )
    representative = dataclasses.replace(
        shown, choice=choice, meets_goal=meets, shown_as=shown.verdict
    )
    return members.index(shown), representative


def nearest(attacked: Iterable[Assessment], reference: Reference) -> Assessment:
    """Returns the assessment that is beyond the goal by least: by the larger of what it leaks and what it
    costs too much. Of equal ones it is the one that leaks least."""

    def excess(a: Assessment) -> tuple[float, float]:
        over = -a.cost.mean - reference.goal.max_cost if a.cost.count else 0.0
        return max(0.0, a.leak.at_most - reference.goal.max_leak, over), a.leak.mean

    return min(attacked, key=excess)


def _choice(
    attacked: Sequence[Assessment], plain: Assessment, reference: Reference
) -> tuple[Assessment, Choice] | None:
    """The operating point that keeps the accuracy on validation rows and leaks least; None without one."""
    assert plain.strongest is not None
    federation, every_seed = plain.federation, plain.strongest.candidates.seeds
    trained = [a.configuration.validation.get(federation, {}) for a in (plain, *attacked)]
    seeds = [s for s in every_seed if all(s in by_seed for by_seed in trained)]
    places = [every_seed.index(seed) for seed in seeds]
    candidates = [a.strongest.candidates for a in attacked if a.strongest is not None]
    leaks = _stacked([x.all_leaks[:, places] for x in candidates])
    selects = _stacked([x.all_selects[:, places] for x in candidates])
    losses = _losses(trained, seeds, reference)
    enough, max_cost = choosing.enough_seeds(leaks), reference.goal.max_cost
    chosen = (
        choosing.choose_operating_point(leaks, losses, max_cost)
        if enough
        else choosing.operating_point_by_halves(leaks, selects, losses, max_cost)
    )
    if chosen.point == choosing.NOBODY:
        return None
    costs = _losses(
        [a.configuration.test[federation] for a in (plain, *attacked)], seeds, reference
    )
    picked = [(point, seed) for seed, point in enumerate(chosen.points) if point >= 0]
    local_only = plain.strongest.candidates.local_only[places]
    return attacked[int(chosen.point)], Choice(
        folds=int(chosen.folds),
        seeds=len(seeds) if enough else 0,
        leak=interval(chosen.scores).mean,
        excess=interval(chosen.scores - local_only).mean,
        change=interval(chosen.scores - plain.strongest.scores[places]).mean,
        cost=interval(-costs[pick] for pick in picked),
    )


def _losses(
    accuracies: Sequence[Mapping[int, float]], seeds: Sequence[int], reference: Reference
) -> np.ndarray:
    """What all but the first lose against the first, [points, seeds]."""
    plain, *others = ([by_seed[seed] for seed in seeds] for by_seed in accuracies)
    return choosing.accuracy_losses(np.array(others), plain, reference.majority)


def _stacked(figures: Sequence[np.ndarray]) -> np.ndarray:
    """[points, candidates, seeds]: NaN for the attacks that a point has less than others."""
    most = max(map(len, figures))
    return np.stack(
        [
            np.pad(of_point, ((0, most - len(of_point)), (0, 0)), constant_values=np.nan)
            for of_point in figures
        ]
    )
