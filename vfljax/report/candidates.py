"""The candidates for the strongest attack, as figures by seed, and the strongest of them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from vfljax.report import choosing, intervals
from vfljax.report.estimates import NO_LIMITS, Estimate, Limits, interval
from vfljax.report.intervals import LeakSample
from vfljax.report.spread import FEWEST_SEEDS
from vfljax.types import AttackIdentity

EXCESS = 0.05
"""The excess over the local-only baseline that a defense may leave."""


class Candidate(NamedTuple):
    """A candidate for the strongest attack."""

    name: str  # unique: with federation and knobs where needed
    brief: str = ""  # the name without the attackers
    identity: AttackIdentity | None = None  # None for the local-only baseline
    null: float = math.nan  # 95 % quantile of its leak under permuted labels
    rows: tuple[Any, ...] = ()  # one per seed: its stored figures by column


LOCAL_ONLY = Candidate(name="local-only baseline", brief="local-only baseline")


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """The attacks on one configuration in one federation, and the local-only baseline.

    Figures are in [0, 1], on one scale (leak AUC, or balanced top-1), and NaN where a seed has none. The
    baseline is a candidate too, so the strongest attack over all seeds is never below it. If ``local_only`` is
    NaN on all seeds, the baseline was not scored. Its last row has the baseline's own figures. If there are
    more rows, those before it have the baseline's figures with each attack's draws of known labels.
    """

    attacks: tuple[Candidate, ...]
    figures: LeakSample  # [attacks, seeds]
    local_only: LeakSample  # [1 or attacks + 1, seeds]
    seeds: tuple[int, ...]
    baseline: Candidate = LOCAL_ONLY

    def __post_init__(self) -> None:
        shape = (len(self.attacks), len(self.seeds))
        if self.figures.leaks.shape != shape:
            raise ValueError(
                f"{shape[0]} attacks and {shape[1]} seeds for leaks {self.figures.leaks.shape}: one row an "
                "attack, one column a seed"
            )

    @property
    def has_local_only(self) -> bool:
        """Whether the local-only baseline was scored."""
        return bool(np.isfinite(self.local_only.leaks).any())

    @property
    def everyone(self) -> tuple[Candidate, ...]:
        """The attacks and, where it was scored, the local-only baseline."""
        return (*self.attacks, self.baseline) if self.has_local_only else self.attacks

    @property
    def all_figures(self) -> LeakSample:
        """The figures of ``everyone``."""
        return with_baseline(self.figures, self.local_only)


def with_baseline(figures: LeakSample, local_only: LeakSample) -> LeakSample:
    """Returns the figures of the attacks and then, if it was scored, of the local-only baseline.

    The baseline is no candidate on seeds where the training diverged.

    Args:
      figures: of the attacks, [..., attacks, seeds].
      local_only: of the baseline, [..., 1 or attacks + 1, seeds], at one point or all; its last row is used.
    """
    if not np.isfinite(local_only.leaks).any():
        return figures
    trained = np.isfinite(figures.leaks).any(axis=-2, keepdims=True)
    shape = (*figures.errors.shape[:-1], 1)
    return LeakSample(
        np.append(figures.leaks, np.where(trained, local_only.leaks[..., -1:, :], np.nan), axis=-2),
        np.append(figures.errors, np.broadcast_to(local_only.errors[..., -1:], shape), axis=-1),
        np.append(figures.tried, np.broadcast_to(local_only.tried[..., -1:], shape), axis=-1),
        figures.rows,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Strongest:
    """The strongest of the candidates.

    Its leak is the highest mean over seeds of any candidate, the local-only baseline included. The choice
    biases it upward. ``fold_leak`` scores seeds by choices on the other seeds; it may be below every attack.
    """

    candidates: Candidates
    attack: Candidate  # the candidate with the highest mean
    by_seed: dict[int, float]  # its leak on the seeds that have one
    leak: Estimate  # its mean over the seeds
    excess: Estimate  # e, over the local-only baseline; NaN if that was not scored
    fold_leak: float  # mean score of the folds, unbiased for their picks
    folds: int  # how many folds chose the attack
    seeds: int  # number of seeds with figures
    nothing_to_protect: bool  # whether its excess is below ``EXCESS`` at ``OF_NOTHING`` of the risk

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
        """The leak of the local-only baseline on the same rows; NaN if it was not scored."""
        return self.leak.mean - self.excess.mean

    @property
    def enough(self) -> bool:
        """Whether there are enough seeds for limits."""
        return self.seeds >= FEWEST_SEEDS

    @property
    def informative(self) -> bool:
        """Whether it leaks more than scores without information (``Candidate.null``)."""
        return self.leak.mean > self.attack.null


def strongest_of(among: Candidates) -> Strongest | None:
    """Returns the strongest candidate; None if no attack has a figure."""
    everyone = among.all_figures
    leaks = everyone.leaks
    seeds = int(np.isfinite(among.figures.leaks).any(axis=0).sum())
    if not seeds:
        return None
    folds = choosing.leave_one_out(leaks, intervals.certain(everyone.rows))
    best = int(choosing.strongest(leaks))
    highest = interval(leaks[best]).mean
    local_only = interval(leaks[-1]).mean if among.has_local_only else math.nan
    limits, excess, nothing = NO_LIMITS, NO_LIMITS, False
    if seeds >= FEWEST_SEEDS:
        limits = floats(intervals.worst_limits(everyone))
        if among.has_local_only:
            lower, upper = floats(intervals.excess_limits(among.figures, among.local_only))
            level = intervals.at_risk(intervals.OF_NOTHING)
            stricter = intervals.excess_limits(among.figures, among.local_only, level)
            nothing = bool(stricter.upper < EXCESS)
            # if all attacks are below the baseline, it is the strongest itself, with an excess of 0
            excess = Limits(lower, max(upper, 0.0))
    pairs = zip(among.seeds, leaks[best].tolist(), strict=True)
    return Strongest(
        candidates=among,
        attack=among.everyone[best],
        by_seed={seed: leak for seed, leak in pairs if not math.isnan(leak)},
        leak=Estimate(highest, limits),
        excess=Estimate(highest - local_only, excess),
        fold_leak=interval(folds.scores).mean,
        folds=int(np.sum(folds.picks == best)),
        seeds=seeds,
        nothing_to_protect=nothing,
    )


def floats(pair: Limits) -> Limits:
    """Returns the limits as floats."""
    return Limits(float(pair.lower), float(pair.upper))
