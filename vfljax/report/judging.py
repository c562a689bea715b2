"""What may be said of one strength of a defense in one federation, and how surely.

What enters: the ``Candidates`` on a strength and those on undefended: the leak figures of every attack that
was run, those of the attacker who stays away, paired by seed, and the judged rows of the rarest class. What
leaves: a ``Judged`` with the worst case, its excess e over staying away, its change d to undefended, and one
verdict. Choosing is ``choosing``'s business and limits are ``intervals``'s; nothing here reads a sweep.

| verdict                        | when, the first that holds                                     |
|--------------------------------|----------------------------------------------------------------|
| nothing to protect             | undefended's own e is below .05                                |
| protects from what was tried   | e is below .05 and d below 0                                   |
| reduces                        | d is below 0                                                   |
| does nothing                   | d is above -.02 and below .02                                  |
| cannot say                     | all else, such as an attack without figures on 3 seeds         |

"Is below" and "is above" are said of limits at 95 %, one-sided, of every attack on all seeds: the
verdicts choose no attack. Where one is not true it is given about once in 20 times at most; that is not
corrected for several strengths. With fewer than 3 seeds there are figures, chosen by halves of the rows
(``choosing.by_halves``), without limits, and there is no verdict.

An attack that cannot be defined in a federation is no row here. One that was run and diverged is a row
of NaN: nothing is known of how much it reads. Every verdict on a defense needs a limit of every attack,
so "cannot say" is left, and "nothing to protect", which is about undefended. Seeds on which no attack
has a figure, because the training diverged, are left out and not counted.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vfljax.report import choosing, intervals
from vfljax.report.intervals import FEWEST_SEEDS, NO_LIMITS, Limits

Floats = NDArray[np.float64]

NOTHING_TO_PROTECT = "nothing to protect"
PROTECTS = "protects from what was tried"
REDUCES = "reduces"
DOES_NOTHING = "does nothing"
CANNOT_SAY = "cannot say"
NO_VERDICT = f"no verdict: fewer than {FEWEST_SEEDS} seeds"

EXCESS = 0.05
"""The excess over staying away that a defense may leave."""
CHANGE = 0.02
"""The change to undefended that is none."""
MEANINGS = {
    NOTHING_TO_PROTECT: f"undefended itself leaks less than {EXCESS:.2f} beyond staying away",
    PROTECTS: f"less than {EXCESS:.2f} beyond staying away, and less than undefended",
    REDUCES: "less than undefended",
    DOES_NOTHING: f"within {CHANGE:.2f} of undefended",
    CANNOT_SAY: "all else",
}
"""What each verdict says that the limits allow; of several, the first is given."""
VERDICTS = tuple(MEANINGS)
STAYING_AWAY = "staying away"
"""The name of the attacker who takes no part. He is a candidate too, so that the strongest attack
of all seeds is never below him. The figure of the folds may be, where a fold picks somebody else."""
COVERS = (
    "Limits are one-sided, at 95 % each. They cover new splits and new initial weights on this data set "
    "and the attacks that were run: no other data sets, and no other attacks."
)


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """The attacks on one strength in one federation, and the attacker who stays away.

    Figures are in [0, 1], on one scale (leak AUC, or balanced top-1), NaN where a seed has none. NaN on
    all seeds of ``away`` says that nothing is known of him.
    """

    names: tuple[str, ...]
    leaks: Floats  # [candidates, seeds]
    selects: Floats  # [candidates, seeds], of other rows; read with fewer than 3 seeds only
    away: Floats  # [seeds]
    away_selects: Floats  # [seeds]
    rows: int  # m of ``intervals.figure_limit``

    def __post_init__(self) -> None:
        shape = (len(self.names), len(self.away))
        if self.leaks.shape != shape or self.selects.shape != shape:
            raise ValueError(
                f"{shape[0]} names and {shape[1]} seeds for leaks {self.leaks.shape} and selects "
                f"{self.selects.shape}: one row a candidate, one column a seed"
            )

    @property
    def has_away(self) -> bool:
        """Whether anything is known of who stays away."""
        return bool(np.isfinite(self.away).any())

    @property
    def all_names(self) -> tuple[str, ...]:
        """Theirs and, where he is known, his."""
        return (*self.names, STAYING_AWAY) if self.has_away else self.names

    @property
    def all_leaks(self) -> Floats:
        """[candidates or one more, seeds]."""
        return _with(self.leaks, self.away) if self.has_away else self.leaks

    @property
    def all_selects(self) -> Floats:
        """[candidates or one more, seeds]."""
        return _with(self.selects, self.away_selects) if self.has_away else self.selects

    @functools.cached_property
    def worst(self) -> WorstCase:
        """``worst_case``, computed once: several tables ask for it."""
        return worst_case(self)


def candidates(
    names: Sequence[str], leaks: ArrayLike, away: ArrayLike, rows: int, selects: ArrayLike = ()
) -> Candidates:
    """``Candidates`` from anything like arrays. Without ``selects`` the figures are the same on all rows."""
    figures, his = np.asarray(leaks, np.float64), np.asarray(away, np.float64)
    chosen = figures if np.size(selects) == 0 else np.asarray(selects, np.float64)
    return Candidates(tuple(names), figures, chosen, his, his, rows)


class WorstCase(NamedTuple):
    """The strongest of the candidates. Its figure falls short of the strongest one's true mean, which is
    what the limits are of, and may lie below both where the folds pick badly."""

    leak: float  # mean over folds, unbiased for what they picked; by halves with fewer than 3 seeds
    limits: Limits  # NaN with fewer than 3 seeds
    attack: str  # its name, chosen on all seeds; "" without any figure
    place: int  # in ``all_names``, or ``choosing.NOBODY``
    folds: int  # how many folds chose it; 0 with fewer than 3 seeds
    seeds: int  # with figures
    by_seed: tuple[float, ...]  # each fold's score, NaN where there is none
    excess: float  # e, on the folds' scores; NaN where nothing is known of staying away
    excess_limits: Limits


class Judged(NamedTuple):
    """One strength in one federation."""

    worst: WorstCase
    change: float  # d, on the folds' scores of both
    change_limits: Limits
    verdict: str  # one of ``VERDICTS``, or ``NO_VERDICT``
    missing: tuple[str, ...]  # attacks with figures on too few of the seeds that were trained


def worst_case(of: Candidates) -> WorstCase:
    """The strongest of the candidates, of whom he who stays away is one; his own e is 0."""
    leaks, selects, names = of.all_leaks, of.all_selects, of.all_names
    seeds = int(np.isfinite(of.leaks).any(axis=0).sum())
    enough = seeds >= FEWEST_SEEDS
    folds = choosing.leave_one_out(leaks) if enough else choosing.by_halves(leaks, selects)
    best = int(choosing.strongest(leaks if enough else selects)) if seeds else choosing.NOBODY
    return WorstCase(
        _mean(folds.scores),
        _floats(intervals.worst_limits(leaks, of.rows)) if enough else NO_LIMITS,
        "" if best == choosing.NOBODY else names[best],
        best,
        int(np.sum(folds.picks == best)) if enough and best != choosing.NOBODY else 0,
        seeds,
        tuple(map(float, folds.scores)),
        _mean(folds.scores - of.away),
        _excess_limits(of) if enough and of.has_away else NO_LIMITS,
    )


def _excess_limits(of: Candidates) -> Limits:
    """Of the attacks' excess; where all are below him the strongest is he, whose own is 0."""
    lower, upper = _floats(intervals.excess_limits(of.leaks, of.away, of.rows))
    return Limits(lower, max(upper, 0.0))


@functools.lru_cache(maxsize=4096)  # several parts of a report ask for it
def judge(of: Candidates, undefended: Candidates) -> Judged:
    """The verdict on one strength in one federation, whose column s is the same seed as undefended's.

    Undefended's attacks may be others. A shift of all figures leaves d, e and the verdict as they are.
    """
    if of.leaks.shape[-1] != undefended.leaks.shape[-1]:
        raise ValueError(
            f"seeds differ: leaks {of.leaks.shape}, undefended {undefended.leaks.shape}"
        )
    worst, plain = of.worst, undefended.worst
    count = np.isfinite(of.leaks).sum(axis=1)
    judged = Judged(
        worst,
        _mean(np.array(worst.by_seed) - np.array(plain.by_seed)),
        NO_LIMITS,
        NO_VERDICT,
        tuple(
            name for name, n in zip(of.names, count) if n < min(FEWEST_SEEDS, max(worst.seeds, 1))
        ),
    )
    if worst.seeds < FEWEST_SEEDS:
        return judged
    evidence = evidence_on(of.leaks, undefended.leaks, of.away, of.rows)
    return judged._replace(change_limits=_floats(evidence.change), verdict=str(verdicts(evidence)))


def beyond(of: Candidates, fewer: Candidates) -> tuple[float, Limits]:
    """How much more the strongest of the candidates reads than the strongest of ``fewer`` of them, on the
    same seeds: the mean, and limits as of a change."""
    worst, other = of.worst, fewer.worst
    more = _mean(np.array(worst.by_seed) - np.array(other.by_seed))
    if worst.seeds < FEWEST_SEEDS:
        return more, NO_LIMITS
    return more, _floats(intervals.change_limits(of.all_leaks, fewer.all_leaks, of.rows))


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


def _mean(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _floats(pair: Limits) -> Limits:
    return Limits(float(pair.lower), float(pair.upper))
