"""The attacks among which the strongest is looked for, as figures by seed, and the strongest."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vfljax.report import choosing, intervals
from vfljax.report.estimates import NO_LIMITS, Estimate, Limits
from vfljax.report.intervals import LeakSample
from vfljax.report.spread import FEWEST_SEEDS
from vfljax.types import AttackIdentity

Floats = NDArray[np.float64]


EXCESS = 0.05
"""The excess over the local-only baseline that a defense may leave."""
BELOW_CHANCE = 4.0
"""An attack is far below chance by so many standard deviations of its rows."""


class Candidate(NamedTuple):
    """One of the attacks among which the strongest is looked for."""

    name: str  # with what tells it from the others: federation and knobs
    brief: str = ""  # without who attacked
    identity: AttackIdentity | None = None  # None of the local-only baseline
    null: float = math.nan  # what its scores reach under permuted labels, 95 % of the time


LOCAL_ONLY = Candidate(name="local-only baseline", brief="local-only baseline")


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """The attacks on one configuration in one federation, and the local-only baseline.

    Figures are in [0, 1], on one scale (leak AUC, or balanced top-1), NaN where a seed has none. The baseline
    is a candidate too, so that the strongest attack of all seeds is never below it. NaN on all seeds of
    ``local_only`` means that it was not scored.
    """

    attacks: tuple[Candidate, ...]
    leaks: Floats  # [attacks, seeds]
    local_only: Floats  # [seeds]
    rows: int  # m of ``intervals.row_errors``
    seeds: tuple[int, ...]
    baseline: Candidate = LOCAL_ONLY
    errors: Floats | None = None  # [attacks, seeds], what rows alone let figures spread
    local_only_errors: Floats | None = None  # [1, seeds]

    def __post_init__(self) -> None:
        shape = (len(self.attacks), len(self.seeds))
        if self.leaks.shape != shape:
            raise ValueError(
                f"{shape[0]} attacks and {shape[1]} seeds for leaks {self.leaks.shape}: one row an attack, one "
                "column a seed"
            )

    @property
    def has_local_only(self) -> bool:
        """Whether the local-only baseline was scored."""
        return bool(np.isfinite(self.local_only).any())

    @property
    def everyone(self) -> tuple[Candidate, ...]:
        """The attacks and, where it was scored, the local-only baseline."""
        return (*self.attacks, self.baseline) if self.has_local_only else self.attacks

    @property
    def all_leaks(self) -> Floats:
        """[attacks or one more, seeds]."""
        return with_local_only(self.leaks, self.local_only) if self.has_local_only else self.leaks

    @property
    def sample(self) -> LeakSample:
        """The attacks' figures, [attacks, seeds]."""
        return intervals.sample(self.leaks, self.rows, self.errors)

    @property
    def local_only_sample(self) -> LeakSample:
        """The baseline's, [1, seeds]."""
        return intervals.sample(self.local_only[None], self.rows, self.local_only_errors)

    @property
    def all_sample(self) -> LeakSample:
        """The figures of ``everyone``."""
        return (
            with_baseline(self.sample, self.local_only_sample)
            if self.has_local_only
            else self.sample
        )


def with_local_only(leaks: Floats, local_only: Floats) -> Floats:
    """The attacks and, last, the local-only baseline; it is no candidate where the training diverged."""
    trained = np.isfinite(leaks).any(axis=-2)
    row = np.where(trained, local_only, np.nan)[..., None, :]
    return np.concatenate([leaks, row], axis=-2)


def with_baseline(figures: LeakSample, local_only: LeakSample) -> LeakSample:
    """``with_local_only`` of samples [..., attacks, seeds] and [..., 1, seeds], whose points may be one."""
    shape = (*figures.errors.shape[:-1], 1)
    errors = np.broadcast_to(local_only.errors, shape)
    tried = np.broadcast_to(local_only.tried, shape)
    return LeakSample(
        with_local_only(figures.leaks, local_only.leaks[..., 0, :]),
        np.concatenate([figures.errors, errors], axis=-1),
        np.concatenate([figures.tried, tried], axis=-1),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Strongest:
    """The strongest of the candidates.

    Its leak is the highest mean over seeds of any candidate, the local-only baseline included, which choosing
    biases upward; ``fold_leak`` is chosen on other seeds than it is scored on, and may lie below every attack.
    """

    candidates: Candidates
    attack: Candidate  # of the highest mean
    leak: Estimate  # its mean over the seeds
    excess: Estimate  # e; NaN where the local-only baseline was not scored
    fold_leak: float  # mean over folds, unbiased for what they picked
    folds: int  # how many folds chose the attack
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
        leaks = self.candidates.all_leaks[self.candidates.everyone.index(self.attack)]
        pairs = zip(self.candidates.seeds, leaks, strict=True)
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
        """How many folds would have chosen it: '3 of 5 folds'."""
        return f"{self.folds} of {self.seeds} folds"


def strongest_of(among: Candidates) -> Strongest | None:
    """Returns the strongest candidate, None without any figure; the baseline's own excess is 0."""
    leaks = among.all_leaks
    seeds = int(np.isfinite(among.leaks).any(axis=0).sum())
    enough = seeds >= FEWEST_SEEDS
    if not seeds:
        return None
    folds, best = choosing.leave_one_out(leaks), int(choosing.strongest(leaks))
    highest = _mean(leaks[best])
    local_only = _mean(leaks[-1]) if among.has_local_only else math.nan
    limits, excess = NO_LIMITS, NO_LIMITS
    if enough:
        limits = floats(intervals.worst_limits(among.all_sample, among.rows))
        if among.has_local_only:
            excess = excess_limits(among)
    return Strongest(
        candidates=among,
        attack=among.everyone[best],
        leak=Estimate(highest, limits),
        excess=Estimate(highest - local_only, excess),
        fold_leak=_mean(folds.scores),
        folds=int(np.sum(folds.picks == best)),
        seeds=seeds,
    )


def excess_limits(among: Candidates) -> Limits:
    """Of the attacks' excess; where all are below the baseline it is the strongest, whose own is 0."""
    pair = among.sample, among.local_only_sample
    lower, upper = floats(intervals.excess_limits(*pair, among.rows))
    return Limits(lower, max(upper, 0.0))


def broken_attacks(leaks: Floats, chance: float, rows: int) -> NDArray[np.bool_]:
    """Returns which attacks, with ``leaks`` [..., seeds], show nothing but that they failed, [...].

    These have no figure on any seed that was trained, exactly chance on each (the same score for every row),
    or a figure far below chance on each, of which a defense would seem to protect.
    """
    margin = BELOW_CHANCE * math.sqrt(chance * (1 - chance) / rows)
    missing = np.isnan(leaks)
    constant = missing | (np.abs(leaks - chance) < 1e-6)
    return np.logical_or(constant.all(-1), (missing | (leaks < chance - margin)).all(-1))


def _mean(values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def floats(pair: Limits) -> Limits:
    """Returns limits that are numbers."""
    return Limits(float(pair.lower), float(pair.upper))
