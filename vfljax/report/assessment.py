"""Assesses every configuration of a sweep in every federation, once."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax import defenses, store
from vfljax.report import choosing, judging, stored_rows, worth
from vfljax.report.assessed import Assessed, Assessment, MethodOutcome
from vfljax.report.configurations import (
    BySeed,
    ConfigurationSummary,
    Reference,
    attacks_of,
    configurations,
    knowledge,
    reference_of,
    undefended,
)
from vfljax.report.estimates import interval
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import FEDERATIONS, StoredRows, federation_of_kind, grouped
from vfljax.report.strongest import Tried, run_names
from vfljax.report.worth import Worth
from vfljax.sweep.experiment import Experiment, experiment_of
from vfljax.sweep.records import Goal

CONFIRMED = "confirmed"
"""The folder within an audit's folder that has the sweep of what it recommends, on fresh seeds."""
CORRECTED_SEEDS = 5
"""With fewer seeds a verdict is not corrected for choosing the best of several operating points."""


def assess_sweep(workdir: pathlib.Path) -> Assessed:
    """Reads the sweep in ``workdir`` and assesses it."""
    sweep = store.load(workdir)
    return assess(stored_rows.read(sweep), experiment_of(sweep))


def assess(rows: StoredRows, experiment: Experiment | None = None) -> Assessed:
    """Returns the assessment of a stored sweep.

    Args:
      rows: of the sweep.
      experiment: the sweep's, for its goal and the names of its parties; None gives default ones.
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
            tried = Tried(candidates, names, rows, reference)
            strongest = {k: best for k in counts if (best := tried.strongest(k)) is not None}
            if federation not in configuration.validation and not strongest:
                continue
            run = [row.identity for row in candidates]
            found.append(
                Assessment(
                    configuration=configuration,
                    federation=federation,
                    broken=tried.broken,
                    known=all(
                        defenses.TABLE[name].known_to(federation, run)
                        for name in configuration.defenses
                        if defenses.TABLE[name].known_by.get(federation)
                    ),
                    strongest=strongest.get(counts[0]),
                    published=tried.strongest(counts[0], published=True),
                    oracle=tried.strongest(counts[0], oracle=True),
                    by_knowledge=strongest,
                )
            )
    return _with_fresh(compare(every, found, reference, rows), rows.sweep.workdir / CONFIRMED)


def _with_fresh(assessed: Assessed, folder: pathlib.Path) -> Assessed:
    """Returns ``assessed`` with the assessments on fresh seeds, if ``folder`` has a finished sweep of them."""
    if not (folder / "sweep.json").exists() or store.load(folder).unfinished:
        return assessed

    def point(a: Assessment) -> tuple[Any, ...]:
        return a.federation, a.method, *a.configuration.knobs.items()

    fresh = {point(a): a for a in assess_sweep(folder).assessments}
    changes = {a: {"fresh": fresh.get(point(a))} for a in assessed.assessments}
    return dataclasses.replace(assessed, assessments=tuple(_changed(assessed.assessments, changes)))


def _changed(
    members: Iterable[Assessment], changes: Mapping[Assessment, Mapping[str, Any]]
) -> list[Assessment]:
    """Returns the assessments in their order, each with its fields in ``changes`` replaced."""
    return [dataclasses.replace(a, **changes.get(a, {})) for a in members]


def compare(
    every: Sequence[ConfigurationSummary],
    found: Sequence[Assessment],
    reference: Reference,
    rows: StoredRows,
) -> Assessed:
    """Compares every configuration with undefended, and chooses the operating point of every method.

    Args:
      every: the configurations, in grid order.
      found: their assessments with strongest attacks, but without verdicts and choices.
      reference: what figures are compared with.
      rows: of the sweep; the result keeps them.
    """
    draft = Assessed(reference, tuple(every), tuple(found), rows)
    bases = {federation: _base(draft, federation) for federation in FEDERATIONS}
    compared = {}
    for federation, base in bases.items():
        members = [_with_cost(a, base) for a in found if a.federation == federation]
        members = _judged(members, base)
        if federation in draft.federations:
            members = _with_representatives(members, base)
        compared[federation] = iter(_corrected(members, base))
    return dataclasses.replace(
        draft,
        assessments=tuple(next(compared[a.federation]) for a in found),
        worth={federation: base.worth for federation, base in bases.items()},
        allowed={federation: base.allowed for federation, base in bases.items()},
    )


class _Base(NamedTuple):
    """What the configurations of one federation are compared with."""

    undefended: Assessment | None  # None where it has no strongest attack
    worth: Worth  # what undefended gains over the label party alone, on test rows
    allowed: float  # utility on validation rows that may be lost
    reference: Reference

    def lost(self, a: Assessment, test: bool = False) -> np.ndarray:
        """Returns the utility [seeds] lost against undefended on shared seeds, on validation or test rows."""
        assert self.undefended is not None
        base, ours = (
            (x.configuration.test if test else x.configuration.validation).get(a.federation, {})
            for x in (self.undefended, a)
        )
        seeds = [seed for seed in base if seed in ours]
        return choosing.accuracy_losses(
            [ours[seed] for seed in seeds], [base[seed] for seed in seeds], self.reference.guess
        )

    def keeps(self, a: Assessment) -> bool:
        """Returns whether a configuration keeps the utility on validation rows."""
        return bool(choosing.keeps_accuracy(self.lost(a), self.allowed))


def _base(draft: Assessed, federation: str) -> _Base:
    bare, reference = undefended(draft.configurations), draft.reference

    def gain(ours: BySeed, alone: BySeed) -> Worth:
        of_federation, by_alone = ours.get(federation, {}), alone.get(federation, {})
        if not by_alone and not reference.label_columns:  # without columns the label party guesses
            by_alone = dict.fromkeys(of_federation, reference.guess)
        return worth.worth(by_alone, of_federation)

    on_test = on_validation = Worth({}, {})
    if bare is not None:
        on_test = gain(bare.test, bare.alone_test)
        on_validation = gain(bare.validation, bare.alone_validation)
    allowed = on_validation.allowed(reference.goal)
    return _Base(draft.undefended(federation), on_test, allowed, reference)


def _with_cost(a: Assessment, base: _Base) -> Assessment:
    """Returns the assessment with the configuration's cost on test rows, paired by seed, if it is known."""
    unknown = not a.utility.count and not a.configuration.diverged
    if base.undefended is None or not a.configuration.defended or unknown:
        return a
    ours = a.configuration.test.get(a.federation, {})
    kept = worth.kept(ours, base.worth, base.reference.goal)
    return dataclasses.replace(a, cost=interval(-base.lost(a, test=True)), kept=kept)


def _judged(members: list[Assessment], base: _Base) -> list[Assessment]:
    """Returns a federation's assessments with verdicts and changes against undefended."""
    if base.undefended is None or base.undefended.strongest is None:
        return members
    attacked = {a: a.strongest for a in members if a.strongest is not None}
    defended = {a: strongest for a, strongest in attacked.items() if a.configuration.defended}
    same = [_is_undefended(a, base.undefended) for a in defended]
    judged = judging.judge([*defended.values()], base.undefended.strongest, same)
    changes = {a: comparison._asdict() for a, comparison in zip(defended, judged, strict=True)}
    for a, strongest in attacked.items():
        if a not in defended:
            nothing = strongest.nothing_to_protect
            changes[a] = {"verdict": Verdict.NOTHING_TO_PROTECT if nothing else None}
        elif a.published is not None and a.published.name != strongest.name:
            changes[a]["unpublished"] = judging.beyond(strongest, a.published)
    return _changed(members, changes)


def _is_undefended(a: Assessment, reference: Assessment) -> bool:
    """Returns whether utility and the leaks of shared attacks are equal bit for bit on every seed."""
    ours, theirs = a.configuration, reference.configuration
    for x, y in (ours.test, theirs.test), (ours.validation, theirs.validation):
        utility = x.get(a.federation)
        if utility is None or utility != y.get(a.federation):
            return False
    assert a.strongest is not None
    assert reference.strongest is not None
    leaks, by_undefended = (
        {c.name: leaks for c, leaks in zip(x.attacks, x.figures.leaks, strict=True)}
        for x in (a.strongest.candidates, reference.strongest.candidates)
    )
    shared = [name for name in leaks if name in by_undefended]
    return bool(shared) and all(np.array_equal(leaks[n], by_undefended[n]) for n in shared)


def _corrected(members: list[Assessment], base: _Base) -> list[Assessment]:
    """Returns the assessments with whether "protects" holds if the best of all operating points is chosen.

    The choice is among the configurations that keep the utility on validation rows, whatever they leak. With
    fewer than ``CORRECTED_SEEDS`` seeds nothing is corrected.
    """
    undefended_attack = base.undefended.strongest if base.undefended else None
    if undefended_attack is None or undefended_attack.seeds < CORRECTED_SEEDS:
        return members
    rivals = {
        a: a.strongest
        for a in members
        if a.strongest is not None and a.configuration.defended and base.keeps(a)
    }
    protecting = judging.still_protecting([*rivals.values()], undefended_attack).tolist()
    pairs = zip(rivals, protecting, strict=True)
    return _changed(members, {a: {"corrected": protects} for a, protects in pairs})


def _with_representatives(members: list[Assessment], base: _Base) -> list[Assessment]:
    """Returns the assessments, with the one that represents each method marked."""
    # a method that was not trained in this federation has nothing to choose
    trained = (a for a in members if a.federation in a.configuration.validation)
    methods = grouped((a for a in trained if a.configuration.defended), lambda a: a.method)
    return _changed(members, dict(_representative(m, base) for m in methods.values()))


def _representative(
    members: Sequence[Assessment], base: _Base
) -> tuple[Assessment, Mapping[str, Any]]:
    """Returns the assessment that represents a method in a federation, and the fields that mark it.

    That is the chosen operating point. If none keeps the utility, it is the nearest to the goal, and if
    undefended was not attacked, the one that leaks least.
    """
    attacked = [a for a in members if a.strongest is not None]
    if not attacked:
        lost = all(a.configuration.diverged == a.configuration.trials for a in members)
        outcome = MethodOutcome.DIVERGED if lost else MethodOutcome.NOT_ATTACKED
        return members[0], {"shown_as": outcome}
    if base.undefended is None:
        least = min(attacked, key=lambda a: a.leak.mean)
        return least, {"shown_as": MethodOutcome.NOT_COMPARED}
    # an operating point that is undefended bit for bit counts only if there is no other
    attacked = [a for a in attacked if a.verdict is not Verdict.IS_UNDEFENDED] or attacked
    keeping = [a for a in attacked if base.keeps(a)]
    goal = base.reference.goal
    if not keeping:
        return nearest(attacked, base.allowed, goal), {"shown_as": MethodOutcome.NONE_KEEPS}
    # if the local-only baseline is the strongest on several, their leaks are equal, and the loss decides
    shown = min(keeping, key=lambda a: (a.leak.mean, np.mean(base.lost(a))))
    meets = (
        shown.leak.at_most <= goal.max_leak + 1e-12
        and shown.known
        and shown.kept.cost is not worth.CostOutcome.TOO_MUCH
    )
    return shown, {"chosen": True, "meets_goal": meets, "shown_as": shown.verdict}


def nearest(attacked: Iterable[Assessment], allowed: float, goal: Goal) -> Assessment:
    """Returns the assessment that exceeds the goal by least; of equal ones, the one that leaks least.

    Args:
      attacked: assessments with a strongest attack.
      allowed: the utility that may be lost. The larger of the excess of the loss and of the leak counts.
      goal: the leak may be its ``max_leak``.
    """

    def excess(a: Assessment) -> tuple[float, float]:
        over = -a.cost.mean - allowed if a.cost.count else 0.0
        return max(0.0, a.leak.at_most - goal.max_leak, over), a.leak.mean

    return min(attacked, key=excess)
