"""Assesses every configuration of a sweep in every federation, once."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from vfljax import store
from vfljax.report import choosing, judging, stored_rows
from vfljax.report.assessed import Assessed, Assessment, Choice, MethodOutcome
from vfljax.report.configurations import (
    ConfigurationSummary,
    Reference,
    attacks_of,
    configurations,
    knowledge,
    reference_of,
)
from vfljax.report.intervals import Interval, interval
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import FEDERATIONS, StoredRows, federation_of_kind
from vfljax.report.strongest import Tried, run_names
from vfljax.sweep.experiment import Experiment, experiment_of


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
            tried = Tried(candidates, names, rows, reference)
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


def compare(
    every: Sequence[ConfigurationSummary],
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
        outcome = MethodOutcome.DIVERGED if lost else MethodOutcome.NOT_ATTACKED
        return 0, dataclasses.replace(members[0], shown_as=outcome)
    if plain is None:
        least = min(attacked, key=lambda a: a.leak.mean)
        place = members.index(least)
        return place, dataclasses.replace(least, shown_as=MethodOutcome.NOT_COMPARED)
    chosen = _choice(attacked, plain, reference)
    if chosen is None:
        shown = nearest(attacked, reference)
        return members.index(shown), dataclasses.replace(shown, shown_as=MethodOutcome.NONE_KEEPS)
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
