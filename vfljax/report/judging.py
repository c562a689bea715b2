"""Verdicts on one configuration of a defense in one federation, from arrays of figures.

| verdict                        | when, the first that holds                                     |
|--------------------------------|----------------------------------------------------------------|
| nothing to protect             | undefended's own e is below .05                                |
| protects from what was tried   | e is below .05 and d below 0                                   |
| reduces                        | d is below 0                                                   |
| does nothing                   | d is above -.02 and below .02                                  |
| cannot say                     | all else, such as an attack without figures on 3 seeds         |

e is the excess of the strongest attack over the local-only baseline (the passive party without the
federation), and d its change to undefended. "Below" and "above" hold for limits at 95 %, one-sided, of every
attack on all seeds: the verdicts choose no attack. A false verdict comes about once in 20 times at most,
which is not corrected for several operating points. With fewer than 3 seeds figures are chosen by halves of
the rows (``choosing.by_halves``), without limits, and there is no verdict.

An attack that cannot be defined in a federation is no row here. One that was run and diverged is a row of
NaN: nothing is known of how much it reads, so "cannot say" is left, and "nothing to protect", which is about
undefended. Seeds on which no attack has a figure, because the training diverged, are left out and not
counted.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vfljax.report import choosing, intervals
from vfljax.report.candidates import Candidate, Candidates, with_local_only
from vfljax.report.intervals import FEWEST_SEEDS, NO_LIMITS, Estimate, Limits

Floats = NDArray[np.float64]

EXCESS = 0.05
"""The excess over the local-only baseline that a defense may leave."""
CHANGE = 0.02
"""The largest change to undefended that counts as none."""


class Verdict(enum.Enum):
    """What the limits allow to conclude; of several, the first holds."""

    NOTHING_TO_PROTECT = "nothing to protect"
    PROTECTS = "protects from what was tried"
    REDUCES = "reduces"
    DOES_NOTHING = "does nothing"
    CANNOT_SAY = "cannot say"
    NO_VERDICT = f"no verdict: fewer than {FEWEST_SEEDS} seeds"

    def __str__(self) -> str:
        return self.value

    @property
    def rank(self) -> int:
        """0 of a verdict that recommends a defense, 1 of one that half does, 2 of any other."""
        return {Verdict.PROTECTS: 0, Verdict.REDUCES: 1}.get(self, 2)


MEANINGS = {
    Verdict.NOTHING_TO_PROTECT: f"undefended itself leaks less than {EXCESS:.2f} beyond local-only",
    Verdict.PROTECTS: f"less than {EXCESS:.2f} beyond local-only, and less than undefended",
    Verdict.REDUCES: "less than undefended",
    Verdict.DOES_NOTHING: f"within {CHANGE:.2f} of undefended",
    Verdict.CANNOT_SAY: "all else",
}
"""What the limits show where a verdict holds."""
VERDICTS = tuple(MEANINGS)
COVERS = (
    "Limits are one-sided, at 95 % each. They cover new splits and new initial weights on this data set "
    "and the attacks that were run: no other data sets, and no other attacks."
)


@dataclasses.dataclass(frozen=True, eq=False)
class Strongest:
    """The strongest of the candidates.

    Its figure falls short of the strongest one's true mean, for which the limits are, and may lie below both
    where the folds pick badly.
    """

    candidates: Candidates
    attack: Candidate  # chosen on all seeds
    leak: Estimate  # mean over folds, unbiased for what they picked; by halves with fewer than 3 seeds
    excess: Estimate  # e; NaN where the local-only baseline was not scored
    scores: Floats  # [seeds], of each fold, NaN where there is none
    folds: int  # how many folds chose the attack; 0 with fewer than 3 seeds
    seeds: int  # number of seeds with figures

    @property
    def name(self) -> str:
        """The attack's name."""
        return self.attack.name

    @property
    def is_local_only(self) -> bool:
        """Whether no attack leaks more than the local-only baseline."""
        return self.attack is self.candidates.baseline

    @property
    def local_only(self) -> float:
        """What the local-only baseline reaches on the same rows; NaN where it was not scored."""
        return self.leak.mean - self.excess.mean

    @property
    def by_seed(self) -> dict[int, float]:
        """Its leak on the seeds that have one."""
        pairs = zip(self.candidates.seeds, self.scores, strict=True)
        return {seed: float(leak) for seed, leak in pairs if not math.isnan(leak)}

    @property
    def enough(self) -> bool:
        """Whether there are seeds enough for limits."""
        return self.seeds >= FEWEST_SEEDS

    @property
    def nothing_to_protect(self) -> bool:
        """Whether the limits show that it leaks next to nothing beyond the local-only baseline."""
        return self.enough and bool(self.excess.limits.upper < EXCESS)

    @property
    def informative(self) -> bool:
        """Whether it leaks more than scores without information do."""
        return self.leak.mean > self.attack.null

    @property
    def chosen(self) -> str:
        """How the attack was chosen: '3 of 5 folds', or that there were too few seeds for folds."""
        return f"{self.folds} of {self.seeds} folds" if self.enough else "halves of the rows"


def strongest_of(among: Candidates) -> Strongest | None:
    """Returns the strongest candidate, None without any figure; the baseline's own excess is 0."""
    leaks, selects = among.all_leaks, among.all_selects
    seeds = int(np.isfinite(among.leaks).any(axis=0).sum())
    enough = seeds >= FEWEST_SEEDS
    folds = choosing.leave_one_out(leaks) if enough else choosing.by_halves(leaks, selects)
    best = int(choosing.strongest(leaks if enough else selects)) if seeds else choosing.NOBODY
    if best == choosing.NOBODY:
        return None
    limits = _floats(intervals.worst_limits(leaks, among.rows)) if enough else NO_LIMITS
    excess = _excess_limits(among) if enough and among.has_local_only else NO_LIMITS
    return Strongest(
        candidates=among,
        attack=among.everyone[best],
        leak=Estimate(_mean(folds.scores), limits),
        excess=Estimate(_mean(folds.scores - among.local_only), excess),
        scores=folds.scores,
        folds=int(np.sum(folds.picks == best)) if enough else 0,
        seeds=seeds,
    )


def _excess_limits(among: Candidates) -> Limits:
    """Of the attacks' excess; where all are below the baseline it is the strongest, whose own is 0."""
    lower, upper = _floats(intervals.excess_limits(among.leaks, among.local_only, among.rows))
    return Limits(lower, max(upper, 0.0))


class Comparison(NamedTuple):
    """One configuration compared with undefended."""

    change: Estimate  # d, on the folds' scores of both
    verdict: Verdict
    missing: tuple[str, ...]  # attacks with figures on too few of the seeds that were trained


def judge(worst: Strongest, undefended: Strongest) -> Comparison:
    """Returns the verdict on a configuration, given its strongest attack and undefended's.

    Column s of both is the same seed; undefended's attacks may be others. A shift of all figures leaves d, e
    and the verdict as they are.

    Raises:
      ValueError: if the two have different numbers of seeds.
    """
    those, others = worst.candidates, undefended.candidates
    if those.leaks.shape[-1] != others.leaks.shape[-1]:
        raise ValueError(
            f"seeds differ: leaks {those.leaks.shape}, undefended {others.leaks.shape}"
        )
    counts = np.isfinite(those.leaks).sum(axis=1)
    needed = min(FEWEST_SEEDS, max(worst.seeds, 1))
    missing = tuple(attack.name for attack, count in zip(those.attacks, counts) if count < needed)
    change = _mean(worst.scores - undefended.scores)
    if not worst.enough:
        return Comparison(Estimate(change, NO_LIMITS), Verdict.NO_VERDICT, missing)
    evidence = evidence_on(those.leaks, others.leaks, those.local_only, those.rows)
    verdict = VERDICTS[int(verdict_codes(evidence))]
    return Comparison(Estimate(change, _floats(evidence.change)), verdict, missing)


def beyond(worst: Strongest, fewer: Strongest) -> Estimate:
    """Returns how much more the strongest attack reads than the strongest of ``fewer`` candidates.

    Both are of the same seeds. The limits are as of a change, NaN with fewer than 3 seeds.
    """
    more = _mean(worst.scores - fewer.scores)
    if not worst.enough:
        return Estimate(more, NO_LIMITS)
    leaks, others = worst.candidates.all_leaks, fewer.candidates.all_leaks
    return Estimate(more, _floats(intervals.change_limits(leaks, others, worst.candidates.rows)))


class VerdictLimits(NamedTuple):
    """What a verdict rests on; floats, or arrays [...] of repetitions."""

    undefended_excess: float | Floats  # upper limit
    excess: Limits
    change: Limits


def evidence_on(leaks: Floats, undefended: Floats, local_only: Floats, rows: int) -> VerdictLimits:
    """Returns the evidence on a configuration; leading axes are repetitions.

    Args:
      leaks: [..., attacks, seeds].
      undefended: [..., other attacks, seeds].
      local_only: [..., seeds], NaN where the baseline was not scored.
      rows: judged rows of the rarest class.
    """
    change = (
        (with_local_only(leaks, local_only), with_local_only(undefended, local_only))
        if np.isfinite(local_only).any()
        else (leaks, undefended)
    )
    return VerdictLimits(
        undefended_excess=intervals.excess_limits(undefended, local_only, rows).upper,
        excess=intervals.excess_limits(leaks, local_only, rows),
        change=intervals.change_limits(*change, rows),
    )


def verdict_codes(evidence: VerdictLimits) -> NDArray[np.intp]:
    """Returns the places in ``VERDICTS`` of the verdicts that the evidence allows, [...]."""
    reduces = np.asarray(evidence.change.upper) < 0
    holds = {
        Verdict.NOTHING_TO_PROTECT: np.asarray(evidence.undefended_excess) < EXCESS,
        Verdict.PROTECTS: (np.asarray(evidence.excess.upper) < EXCESS) & reduces,
        Verdict.REDUCES: reduces,
        Verdict.DOES_NOTHING: (np.asarray(evidence.change.lower) > -CHANGE)
        & (np.asarray(evidence.change.upper) < CHANGE),
    }
    codes = [VERDICTS.index(verdict) for verdict in holds]
    return np.select(list(holds.values()), codes, VERDICTS.index(Verdict.CANNOT_SAY))


def _mean(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _floats(pair: Limits) -> Limits:
    return Limits(float(pair.lower), float(pair.upper))
