"""Assesses every configuration of a sweep in every federation, once."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from vfljax import defenses, store
from vfljax.report import choosing, judging, stored_rows, worth
from vfljax.report.assessed import Assessed, Assessment, MethodOutcome
from vfljax.report.configurations import (
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
from vfljax.report.stored_rows import FEDERATIONS, StoredRows, federation_of_kind
from vfljax.report.strongest import Tried, run_names
from vfljax.sweep.experiment import Experiment, experiment_of

Utilities = Mapping[int, float]
"""By seed."""
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
    base = undefended(every)
    on_test = {f: _worth(base, f, reference, test=True) for f in FEDERATIONS}
    allowed = {
        f: _worth(base, f, reference, test=False).allowed(reference.goal) for f in FEDERATIONS
    }
    judged = list(found)
    for federation in FEDERATIONS:
        places = [n for n, a in enumerate(found) if a.federation == federation]
        members = [
            _with_cost(found[n], plain[federation], on_test[federation], reference) for n in places
        ]
        for place, a in zip(places, _judged(members, plain[federation]), strict=True):
            judged[place] = a
    groups: dict[tuple[str, str], list[int]] = {}
    for place, a in enumerate(judged):
        # where a method is not trained nothing was to be chosen
        if a.configuration.defended and a.federation in a.configuration.validation:
            groups.setdefault((a.method, a.federation), []).append(place)
    attacked = draft.federations
    for (_, federation), places in groups.items():
        if federation in attacked:
            members = [judged[place] for place in places]
            shown, representative = _representative(
                members, plain[federation], reference, allowed[federation]
            )
            judged[places[shown]] = representative
    judged = _corrected(judged, plain, allowed, reference)
    return dataclasses.replace(draft, assessments=tuple(judged), worth=on_test, allowed=allowed)


def _worth(
    base: ConfigurationSummary | None, federation: str, reference: Reference, test: bool
) -> worth.Worth:
    """What undefended gains over the label party alone; a label party without columns guesses."""
    if base is None:
        return worth.Worth({}, {})
    by_kind, of_alone = (
        (base.test, base.alone_test) if test else (base.validation, base.alone_validation)
    )
    ours = by_kind.get(federation, {})
    alone = of_alone.get(federation, {})
    if not alone and not reference.label_columns:
        alone = dict.fromkeys(ours, reference.guess)
    return worth.worth(alone, ours)


def _with_cost(
    a: Assessment, plain: Assessment | None, of: worth.Worth, reference: Reference
) -> Assessment:
    """The assessment with what the configuration costs on test rows, paired by seed."""
    if plain is None or not a.configuration.defended:
        return a
    base, ours = (x.configuration.test.get(a.federation, {}) for x in (plain, a))
    kept = worth.kept(ours, of, reference.goal)
    cost = interval(-_losses(base, ours, reference))
    return dataclasses.replace(a, cost=cost, kept=kept)


def _judged(members: Sequence[Assessment], plain: Assessment | None) -> list[Assessment]:
    """The assessments of a federation with their verdicts and changes to undefended."""
    out = list(members)
    if plain is None or plain.strongest is None:
        return out
    places = [n for n, a in enumerate(out) if a.configuration.defended and a.strongest is not None]
    strongest = [a.strongest for n in places if (a := out[n]).strongest is not None]
    same = [_is_undefended(out[n], plain) for n in places]
    comparisons = judging.judge(strongest, plain.strongest, same)
    for place, of, comparison in zip(places, strongest, comparisons, strict=True):
        a = out[place]
        if a.published is not None and a.published.name != of.name:
            a = dataclasses.replace(a, unpublished=judging.beyond(of, a.published))
        out[place] = dataclasses.replace(
            a,
            strongest=dataclasses.replace(of, excess=comparison.excess),
            verdict=comparison.verdict,
            missing=comparison.missing,
            change=comparison.change,
            blocking=comparison.blocking,
        )
    for place, a in enumerate(out):
        if not a.configuration.defended and a.strongest is not None:
            nothing = a.strongest.nothing_to_protect
            verdict = Verdict.NOTHING_TO_PROTECT if nothing else None
            out[place] = dataclasses.replace(a, verdict=verdict)
    return out


def _is_undefended(a: Assessment, plain: Assessment) -> bool:
    """Whether every figure of both equals the other's bit for bit: utility, and each attack on both."""
    federation = a.federation
    for by_kind in ("test", "validation"):
        ours, others = (getattr(x.configuration, by_kind).get(federation) for x in (a, plain))
        if ours is None or ours != others:
            return False
    assert a.strongest is not None
    assert plain.strongest is not None
    ours, others = (
        {c.name: leaks for c, leaks in zip(x.attacks, x.leaks, strict=True)}
        for x in (a.strongest.candidates, plain.strongest.candidates)
    )
    shared = [name for name in ours if name in others]
    return bool(shared) and all(np.array_equal(ours[n], others[n]) for n in shared)


def _corrected(
    judged: list[Assessment],
    plain: Mapping[str, Assessment | None],
    allowed: Mapping[str, float],
    reference: Reference,
) -> list[Assessment]:
    """The assessments with whether "protects" holds when the best of all operating points is chosen.

    Competitors are the configurations that keep the utility on validation rows, whatever they leak; of fewer
    than 5 seeds nothing is corrected.
    """
    out = list(judged)
    for federation, base in plain.items():
        if base is None or base.strongest is None or base.strongest.seeds < CORRECTED_SEEDS:
            continue
        places = [
            n
            for n, a in enumerate(out)
            if a.federation == federation
            and a.strongest is not None
            and a.configuration.defended
            and _keeps(a, base, reference, allowed[federation])
        ]
        strongest = [s for n in places if (s := out[n].strongest) is not None]
        if not strongest:
            continue
        holds = judging.protecting(strongest, base.strongest)
        for place, corrected in zip(places, judging.holm(holds, len(places)), strict=True):
            out[place] = dataclasses.replace(out[place], corrected=bool(corrected))
    return out


def _keeps(a: Assessment, plain: Assessment, reference: Reference, allowed: float) -> bool:
    """Whether a configuration keeps the utility on validation rows."""
    return bool(choosing.keeps_accuracy(_lost(a, plain, reference), allowed))


def _lost(a: Assessment, plain: Assessment, reference: Reference) -> np.ndarray:
    """What a configuration loses to undefended on validation rows, by seed."""
    base, ours = (x.configuration.validation.get(a.federation, {}) for x in (plain, a))
    return _losses(base, ours, reference)


def _losses(base: Utilities, ours: Utilities, reference: Reference) -> np.ndarray:
    """What a configuration loses to undefended on the seeds of both."""
    seeds = [seed for seed in base if seed in ours]
    return choosing.accuracy_losses(
        [ours[seed] for seed in seeds], [base[seed] for seed in seeds], reference.guess
    )


def _representative(
    members: Sequence[Assessment], plain: Assessment | None, reference: Reference, allowed: float
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
    # what is undefended bit for bit is no defense, unless there is nothing else
    attacked = [a for a in attacked if a.verdict is not Verdict.IS_UNDEFENDED] or attacked
    keeping = [a for a in attacked if _keeps(a, plain, reference, allowed)]
    if not keeping:
        shown = nearest(attacked, allowed, reference)
        return members.index(shown), dataclasses.replace(shown, shown_as=MethodOutcome.NONE_KEEPS)
    # where the local-only baseline is the strongest of several, they leak the same to the last bit
    shown = min(keeping, key=lambda a: (a.leak.mean, np.mean(_lost(a, plain, reference))))
    goal = reference.goal
    meets = (
        shown.leak.at_most <= goal.max_leak + 1e-12
        and shown.known
        and shown.kept.cost is not worth.CostOutcome.TOO_MUCH
    )
    representative = dataclasses.replace(
        shown, chosen=True, meets_goal=meets, shown_as=shown.verdict
    )
    return members.index(shown), representative


def nearest(attacked: Iterable[Assessment], allowed: float, reference: Reference) -> Assessment:
    """Returns the assessment that is beyond the goal by least: by the larger of what it leaks and what it
    costs more than is ``allowed``. Of equal ones it is the one that leaks least."""

    def excess(a: Assessment) -> tuple[float, float]:
        over = -a.cost.mean - allowed if a.cost.count else 0.0
        return max(0.0, a.leak.at_most - reference.goal.max_leak, over), a.leak.mean

    return min(attacked, key=excess)
