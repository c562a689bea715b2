"""What may be said of one strength of a defense in one federation, and how surely.

What enters: the leak figures of every attack that was run on it, those of undefended, those of the
attacker who stays away, paired by seed, and the judged rows of the rarest class. What leaves: a
``Judged`` with the worst case, its excess e over staying away, its change d to undefended, and one
verdict. Choosing is ``choosing``'s business and limits are ``intervals``'s; nothing here reads a sweep.

| verdict              | when, the first that holds                                           |
|----------------------|----------------------------------------------------------------------|
| nothing to protect   | undefended's own e is below .05                                      |
| protects from ...    | e is below .05 and d below 0                                         |
| reduces              | d is below 0                                                         |
| does nothing         | d is above -.02 and below .02                                        |
| cannot say           | all else, such as an attack without figures on 3 seeds               |

"Is below" and "is above" are said of limits at 95 %, one-sided, of every attack on all seeds: the
verdicts choose no attack. Where one is not true it is given about once in 20 times at most; that is not
corrected for several strengths. With fewer than 3 seeds there is no verdict.

An attack that cannot be defined in a federation is no row here. One that was run and diverged is a row
of NaN: nothing is known of how much it reads. Every verdict on a defense needs a limit of every attack,
so "cannot say" is left, and "nothing to protect", which is about undefended. Seeds on which no attack
has a figure, because the training diverged, are left out and not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vfljax.report import choosing, intervals
from vfljax.report.intervals import FEWEST_SEEDS, NO_LIMITS, Limits

NOTHING_TO_PROTECT = "nothing to protect"
PROTECTS = "protects from what was tried"
REDUCES = "reduces"
DOES_NOTHING = "does nothing"
CANNOT_SAY = "cannot say"
NO_VERDICT = f"no verdict: fewer than {FEWEST_SEEDS} seeds"
VERDICTS = (NOTHING_TO_PROTECT, PROTECTS, REDUCES, DOES_NOTHING, CANNOT_SAY)

EXCESS = 0.05
"""The excess over staying away that a defense may leave."""
CHANGE = 0.02
"""The change to undefended that is none."""
TAKING_NO_PART = "taking no part"
"""The name of the attacker who stays away. He is a candidate too: no worst case is below him."""
COVERS = (
    "Limits are one-sided, at 95 % each. They cover new splits and new initial weights on this data set "
    "and the attacks that were run: no other data sets, and no other attacks."
)


class WorstCase(NamedTuple):
    """The strongest of the candidates. Its figure falls short of the strongest one's true mean, which is
    what the limits are of, and may lie below both where the folds pick badly."""

    leak: float  # mean over folds, unbiased for what they picked; of one seed the highest figure
    limits: Limits  # NaN with fewer than 3 seeds
    attack: str  # chosen on all seeds; "" without any figure
    folds: int  # how many folds chose it; 0 with one seed
    seeds: int  # with figures
    by_seed: tuple[float, ...]  # each fold's score, NaN where there is none


class Judged(NamedTuple):
    """One strength in one federation."""

    worst: WorstCase
    excess: float  # e, on the folds' scores; NaN where nothing is known of staying away
    excess_limits: Limits
    change: float  # d, on the folds' scores of both
    change_limits: Limits
    verdict: str  # one of ``VERDICTS``, or ``NO_VERDICT``
    missing: tuple[str, ...]  # attacks with figures on too few of the seeds that were trained


def worst_case(names: Sequence[str], leaks: ArrayLike, rows: int) -> WorstCase:
    """Of the candidates ``names``, with figures ``leaks`` [candidates, seeds], the strongest."""
    leaks = _named(names, leaks)
    folds = choosing.leave_one_out(leaks)
    best = int(choosing.strongest(leaks))
    seeds = int(np.isfinite(leaks).any(axis=0).sum())
    by_seed = folds.scores if seeds > 1 else _highest(leaks)
    return WorstCase(
        _mean(by_seed),
        _floats(intervals.worst_limits(leaks, rows)) if seeds >= FEWEST_SEEDS else NO_LIMITS,
        "" if best == choosing.NOBODY else names[best],
        int(np.sum(folds.picks == best)) if best != choosing.NOBODY else 0,
        seeds,
        tuple(map(float, by_seed)),
    )


def judge(
    names: Sequence[str], leaks: ArrayLike, undefended: ArrayLike, away: ArrayLike, rows: int
) -> Judged:
    """The verdict on one strength in one federation.

    ``leaks`` [candidates, seeds] are the figures of the attacks ``names``, in [0, 1], on one scale (leak
    AUC, or balanced top-1). ``undefended`` [others, seeds] are those of undefended, whose attacks may
    be others, and ``away`` [seeds] those of who stays away; NaN for him says that nothing is known of
    him. Column s of all three is the same seed. ``rows`` is m of ``intervals.figure_limit``.

    He joins the candidates of both, so that no worst case is below him; his own e is 0 and has no
    limit. A shift of all figures leaves d, e and the verdict as they are.
    """
    leaks = _named(names, leaks)
    undefended, away = np.asarray(undefended, np.float64), np.asarray(away, np.float64)
    if undefended.shape[-1] != leaks.shape[-1] or away.shape != leaks.shape[-1:]:
        raise ValueError(
            f"seeds differ: leaks {leaks.shape}, undefended {undefended.shape}, away {away.shape}"
        )
    both = [leaks, undefended]
    names = list(names)
    if np.isfinite(away).any():
        both = [_with(some, away) for some in both]
        names.append(TAKING_NO_PART)
    worst = worst_case(names, both[0], rows)
    scores, of_undefended = np.array(worst.by_seed), _scores(both[1])
    count = np.isfinite(leaks).sum(axis=1)
    judged = Judged(
        worst,
        _mean(scores - away),
        NO_LIMITS,
        _mean(scores - of_undefended),
        NO_LIMITS,
        NO_VERDICT,
        tuple(name for name, n in zip(names, count) if n < min(FEWEST_SEEDS, max(worst.seeds, 1))),
    )
    if worst.seeds < FEWEST_SEEDS:
        return judged
    evidence = evidence_on(leaks, undefended, away, rows)
    return judged._replace(
        excess_limits=_floats(evidence.excess),
        change_limits=_floats(evidence.change),
        verdict=str(verdicts(evidence)),
    )


class Evidence(NamedTuple):
    """What a verdict rests on; floats, or arrays [...] of repetitions."""

    undefended_excess: float | NDArray[np.float64]  # upper limit
    excess: Limits
    change: Limits


def evidence_on(
    leaks: NDArray[np.float64],
    undefended: NDArray[np.float64],
    away: NDArray[np.float64],
    rows: int,
) -> Evidence:
    """The evidence on a strength, from ``judge``'s arguments with leading axes of repetitions."""
    change = (
        (_with(leaks, away), _with(undefended, away))
        if np.isfinite(away).any()
        else (leaks, undefended)
    )
    return Evidence(
        intervals.excess_limits(undefended, away, rows).upper,
        intervals.excess_limits(leaks, away, rows),
        intervals.change_limits(*change, rows),
    )


def verdicts(evidence: Evidence) -> NDArray[np.str_]:
    """The verdict that the evidence allows, [...]: the first of the module's table that holds."""
    reduces = np.asarray(evidence.change.upper) < 0
    cases = {
        NOTHING_TO_PROTECT: np.asarray(evidence.undefended_excess) < EXCESS,
        PROTECTS: (np.asarray(evidence.excess.upper) < EXCESS) & reduces,
        REDUCES: reduces,
        DOES_NOTHING: (np.asarray(evidence.change.lower) > -CHANGE)
        & (np.asarray(evidence.change.upper) < CHANGE),
    }
    return np.select(list(cases.values()), list(cases), CANNOT_SAY)


def _with(leaks: NDArray[np.float64], away: NDArray[np.float64]) -> NDArray[np.float64]:
    """The candidates and, last, who stays away; where the training diverged he is not one."""
    trained = np.isfinite(leaks).any(axis=-2)
    row = np.where(trained, away, np.nan)[..., None, :]
    return np.concatenate([leaks, row], axis=-2)


def _scores(leaks: NDArray[np.float64]) -> NDArray[np.float64]:
    seeds = np.isfinite(leaks).any(axis=0).sum()
    return choosing.leave_one_out(leaks).scores if seeds > 1 else _highest(leaks)


def _highest(leaks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each seed's highest figure: chosen where it is scored, for want of another seed."""
    highest = np.max(np.where(np.isfinite(leaks), leaks, -np.inf), axis=0)
    return np.where(np.isfinite(highest), highest, np.nan)


def _named(names: Sequence[str], leaks: ArrayLike) -> NDArray[np.float64]:
    leaks = np.asarray(leaks, np.float64)
    if leaks.ndim != 2 or len(names) != len(leaks):
        raise ValueError(f"{len(names)} names for leaks {leaks.shape}; one a candidate")
    return leaks


def _mean(values: NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _floats(pair: Limits) -> Limits:
    return Limits(float(pair.lower), float(pair.upper))
