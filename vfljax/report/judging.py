"""Verdicts on the configurations of a sweep in one federation, from arrays of figures.

| verdict                             | when, the first that holds                                      |
|-------------------------------------|-----------------------------------------------------------------|
| is undefended                       | every figure of it equals undefended's bit for bit on every seed |
| nothing to protect                  | e_u is below .05, at two thirds of the risk                     |
| protects from what was tried        | e is below .05, e - e_u / 4 below 0, and d below 0              |
| still leaks, much less              | e is above .05, and d below -.10                                |
| still leaks, less                   | e is above .05, and d below -.02                                |
| still leaks, as before              | e is above .05                                                  |
| leaks less, what remains is unclear | d is below -.02                                                 |
| cannot say                          | all else, such as an attack with figures on fewer than 3 seeds  |

e is the excess of the strongest attack over the local-only baseline (the passive party without the
federation), e_u that of undefended, and d the change of the leak to undefended. "Below" means that the
upper limit is below, and "above" that the lower limit is above. Limits are one-sided, at 95 % where nothing
else is said, and hold for every attack on all seeds: no attack is chosen. About 1 verdict in 20 is false,
and this is not corrected for several operating points. With fewer than 3 seeds there are no limits and no
verdict. The cost of a configuration is judged separately (``worth``).

Attacks that are not defined in a federation, and broken attacks (``Assessment.broken``), take no part. Seeds
on which no attack has a figure, because the training diverged, are left out and not counted.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from vfljax.report import intervals
from vfljax.report.candidates import EXCESS, LOCAL_ONLY, Strongest, floats, with_baseline
from vfljax.report.estimates import NO_LIMITS, Bools, Estimate, Floats, Limits
from vfljax.report.intervals import LeakSample
from vfljax.report.spread import FEWEST_SEEDS, Means

SHARE = 0.25
"""The share of undefended's excess that a defense may leave if it is to protect."""
LESS, MUCH_LESS = -0.02, -0.10
"""The changes against undefended below which a leak is called less, and much less."""
MOST_SEEDS = 100
"""The most seeds that are named as those that would decide (``Blocking``)."""


class Verdict(enum.StrEnum):
    """The conclusion that the limits allow; of several, the first holds."""

    IS_UNDEFENDED = "is undefended"
    NOTHING_TO_PROTECT = "nothing to protect"
    PROTECTS = "protects from what was tried"
    LEAKS_MUCH_LESS = "still leaks, much less"
    LEAKS_LESS = "still leaks, less"
    LEAKS_AS_BEFORE = "still leaks, as before"
    UNCLEAR = "leaks less, what remains is unclear"
    CANNOT_SAY = "cannot say"
    NO_VERDICT = f"no verdict: fewer than {FEWEST_SEEDS} seeds"

    @property
    def helps(self) -> bool:
        """Whether the limits show that less leaks than undefended."""
        return self in HELPS

    @property
    def rank(self) -> int:
        """0 for ``PROTECTS``, 1 for other verdicts that help, and 2 for the rest."""
        return 0 if self is Verdict.PROTECTS else 2 - self.helps


HELPS = (Verdict.PROTECTS, Verdict.LEAKS_MUCH_LESS, Verdict.LEAKS_LESS, Verdict.UNCLEAR)
MEANINGS = {
    Verdict.IS_UNDEFENDED: "every figure equals undefended's on every seed",
    Verdict.NOTHING_TO_PROTECT: f"undefended itself leaks less than {EXCESS:.2f} beyond local-only",
    Verdict.PROTECTS: f"less than {EXCESS:.2f} beyond local-only, less than a quarter of undefended's excess, "
    "and less than undefended",
    Verdict.LEAKS_MUCH_LESS: f"more than {EXCESS:.2f} beyond local-only, and at least {-MUCH_LESS:.2f} less "
    "than undefended",
    Verdict.LEAKS_LESS: f"likewise, and at least {-LESS:.2f} less",
    Verdict.LEAKS_AS_BEFORE: "likewise, and no such change can be shown",
    Verdict.UNCLEAR: f"at least {-LESS:.2f} less than undefended",
    Verdict.CANNOT_SAY: "all else",
}
"""What the limits show where a verdict holds."""
VERDICTS = tuple(MEANINGS)


class Blocking(NamedTuple):
    """The attack that leaves a verdict open: that with the highest upper limit of the excess or, if this is
    below ``EXCESS``, of the contrast or the change. ``seeds`` is the number of seeds that would decide if its
    mean and spread stay: 0 if none up to ``MOST_SEEDS`` would, None if the number is not known."""

    attack: str
    seeds: int | None


class Comparison(NamedTuple):
    """One configuration compared with undefended; the fields are those of an ``Assessment``."""

    strongest: Strongest  # its excess has spreads learned from all configurations
    change: Estimate  # d
    verdict: Verdict
    missing: tuple[str, ...]  # attacks with figures on too few of the seeds that were trained
    blocking: Blocking | None = None  # None if the limits leave nothing open


def judge(
    configurations: Sequence[Strongest], undefended: Strongest, same: Sequence[bool] = ()
) -> list[Comparison]:
    """Returns the comparison of each configuration with undefended.

    Adding a constant to all figures does not change d, e or the verdicts.

    Args:
      configurations: the strongest attack on each. Column s of all is the same seed; the attacks may differ.
      undefended: the strongest attack on it.
      same: whether each configuration is undefended bit for bit; none is by default.

    Raises:
      ValueError: if they have different numbers of seeds.
    """
    every = [undefended, *configurations]
    seeds = {s.candidates.figures.leaks.shape[-1] for s in every}
    if len(seeds) > 1:
        raise ValueError(f"seeds differ: {sorted(seeds)} of configurations and undefended")
    names, figures, local_only = _aligned(every)
    evidence = evidence_on(figures, local_only)
    everyone = with_baseline(figures, local_only)
    least = -intervals.most_changed(_first(everyone), everyone).max(-1)
    verdicts = [VERDICTS[code] for code in verdict_codes(evidence, same or False)]
    out = []
    for place, (strongest, verdict) in enumerate(zip(configurations, verdicts, strict=True), 1):
        among = strongest.candidates
        counts = np.isfinite(among.figures.leaks).sum(axis=1)
        needed = min(FEWEST_SEEDS, max(strongest.seeds, 1))
        missing = tuple(a.name for a, count in zip(among.attacks, counts) if count < needed)
        change = strongest.leak.mean - undefended.leak.mean
        if not strongest.enough:
            unlimited = Estimate(change, NO_LIMITS)
            out.append(Comparison(strongest, unlimited, Verdict.NO_VERDICT, missing))
            continue
        lower, upper = _at(evidence.excess, place)
        limits = Limits(lower, max(upper, 0.0)) if among.has_local_only else NO_LIMITS
        excess = strongest.excess._replace(limits=limits)
        out.append(
            Comparison(
                strongest=dataclasses.replace(strongest, excess=excess),
                change=Estimate(change, _at(Limits(least, evidence.change.max(-1)), place)),
                verdict=verdict,
                missing=missing,
                blocking=_blocking(evidence, place, names, len(among.seeds)),
            )
        )
    return out


def _at(limits: Limits, place: int) -> Limits:
    """Returns the limits of one point."""
    return floats(Limits(*(np.asarray(limit)[place] for limit in limits)))


def _aligned(every: Sequence[Strongest]) -> tuple[list[str], LeakSample, LeakSample]:
    """Returns the names of all attacks, their figures, and the baseline's; each configuration is a point.

    If a configuration lacks an attack, the attack was not tried on it.
    """
    names = list(dict.fromkeys(a.name for s in every for a in s.candidates.attacks))
    shape = (len(every), len(names), len(every[0].candidates.seeds))
    leaks, errors = np.full(shape, np.nan), np.full(shape[:2], 1.0)
    tried, baselines = np.zeros(shape[:2], bool), []
    for place, strongest in enumerate(every):
        among = strongest.candidates
        at = [names.index(a.name) for a in among.attacks]
        leaks[place, at], errors[place, at] = among.figures.leaks, among.figures.errors
        tried[place, at] = True
        # the baseline with each attack's draws, or its own last row for attacks that were not tried
        baseline = [x[-1:].repeat(len(names) + 1, 0) for x in among.local_only[:3]]
        for every_row, drawn in zip(baseline[:2], among.local_only[:2], strict=True):
            every_row[at] = drawn[: len(at)] if len(drawn) > 1 else drawn
        baselines.append(baseline)
    rows = every[0].candidates.figures.rows
    figures = LeakSample(leaks, errors, tried, rows)
    leaks, errors, tried = map(np.stack, zip(*baselines, strict=True))
    return names, figures, LeakSample(leaks, errors, tried, rows)


class VerdictLimits(NamedTuple):
    """The limits that verdicts rest on: arrays [..., points], whose first point is undefended."""

    excess: Limits
    contrast: Floats  # upper limit of e - SHARE e_u, [..., points, attacks]
    change: Floats  # upper limit of d, [..., points, attacks and the baseline]
    excesses: Means  # [..., points, attacks]
    nothing: Bools  # [..., 1], whether e_u is below ``EXCESS`` at two thirds of the risk


def evidence_on(
    figures: LeakSample, local_only: LeakSample, level: float = intervals.LEVEL
) -> VerdictLimits:
    """Returns what the verdicts on the points of a sweep rest on.

    Args:
      figures: [..., points, attacks, seeds]; the first point is undefended.
      local_only: the baseline (``intervals.matched``), NaN where it was not scored.
      level: of every limit.
    """
    everyone = with_baseline(figures, local_only)
    excesses = intervals.differences(figures, local_only)
    stricter = excesses.limit(intervals.UPPER, intervals.at_risk(intervals.OF_NOTHING, level))
    return VerdictLimits(
        excess=intervals.excess_limits(figures, local_only, level),
        contrast=intervals.most_beyond(figures, _first(figures), level, SHARE, local_only),
        change=intervals.most_changed(everyone, _first(everyone), level),
        excesses=excesses,
        nothing=np.where(figures.tried, stricter, -1.0).max(-1)[..., :1] < EXCESS,
    )


def _first(every: LeakSample) -> LeakSample:
    """Returns the first point, with its axis."""
    leaks, errors, tried, rows = every
    return LeakSample(leaks[..., :1, :, :], errors[..., :1, :], tried[..., :1, :], rows)


def verdict_codes(evidence: VerdictLimits, same: ArrayLike = False) -> NDArray[np.intp]:
    """Returns the place in ``VERDICTS`` of each verdict, of all points but undefended, [..., points - 1].

    Args:
      evidence: arrays [..., points], whose first point is undefended.
      same: which of the other points equal undefended bit for bit.
    """
    lower, upper = (np.asarray(limit)[..., 1:] for limit in evidence.excess)
    contrast, change = (x.max(-1)[..., 1:] for x in (evidence.contrast, evidence.change))
    holds = {
        Verdict.IS_UNDEFENDED: np.broadcast_to(same, change.shape),
        Verdict.NOTHING_TO_PROTECT: np.broadcast_to(evidence.nothing, change.shape),
        Verdict.PROTECTS: (upper < EXCESS) & (contrast < 0) & (change < 0),
        Verdict.LEAKS_MUCH_LESS: (lower > EXCESS) & (change < MUCH_LESS),
        Verdict.LEAKS_LESS: (lower > EXCESS) & (change < LESS),
        Verdict.LEAKS_AS_BEFORE: lower > EXCESS,
        Verdict.UNCLEAR: change < LESS,
    }
    codes = [VERDICTS.index(verdict) for verdict in holds]
    return np.select(list(holds.values()), codes, VERDICTS.index(Verdict.CANNOT_SAY))


def holm(rejects: Callable[[float], Bools], number: int) -> Bools:
    """Returns which hypotheses Holm's step-down procedure rejects (Holm 1979).

    Args:
      rejects: returns which hypotheses are rejected, each by itself, by limits at a level.
      number: of hypotheses.
    """
    done = np.zeros(number, bool)
    while not done.all():
        left = number - int(done.sum())
        more = rejects(1 - (1 - intervals.LEVEL) / left) & ~done
        if not more.any():
            break
        done |= more
    return done


def still_protecting(configurations: Sequence[Strongest], undefended: Strongest) -> Bools:
    """Returns which configurations protect, corrected for choosing the best of all (``holm``).

    Args:
      configurations: the strongest attack on each.
      undefended: the strongest attack on it.
    """
    _, figures, local_only = _aligned([undefended, *configurations])
    place = VERDICTS.index(Verdict.PROTECTS)

    def protects(level: float) -> Bools:
        return verdict_codes(evidence_on(figures, local_only, level)) == place

    return holm(protects, len(configurations))


def _blocking(
    evidence: VerdictLimits, place: int, names: Sequence[str], seeds: int
) -> Blocking | None:
    """Returns the attack that leaves the excess open, or else the contrast or change; None if none does."""
    lower, upper = _at(evidence.excess, place)
    if lower > EXCESS:
        return None
    if upper < EXCESS:
        for limits in (evidence.contrast[place], evidence.change[place]):
            if limits.max() >= 0:
                return Blocking([*names, LOCAL_ONLY.name][int(np.argmax(limits))], None)
        return None
    each = Means(*(x[place] for x in evidence.excesses))
    limit = np.where(np.isfinite(each.error), each.limit(intervals.UPPER, intervals.LEVEL), -1.0)
    most = int(np.argmax(limit))
    value, error, freedom = (float(x[most]) for x in each)
    for more in range(seeds + 1, MOST_SEEDS + 1):
        t = special.stdtrit(freedom + more - seeds, intervals.LEVEL)
        if abs(value - EXCESS) > t * error * math.sqrt(seeds / more):
            return Blocking(names[most], more)
    return Blocking(names[most], 0)


def beyond(worst: Strongest, fewer: Strongest) -> Estimate:
    """Returns how much more ``worst`` leaks than ``fewer``, with limits as of a change.

    Args:
      worst: the strongest of all candidates; with fewer than 3 seeds there are no limits.
      fewer: the strongest of some of them, on the same seeds.
    """
    more = worst.leak.mean - fewer.leak.mean
    if not worst.enough:
        return Estimate(more, NO_LIMITS)
    ours, others = (strongest.candidates.all_figures for strongest in (worst, fewer))
    lower, upper = -intervals.most_changed(others, ours), intervals.most_changed(ours, others)
    return Estimate(more, floats(Limits(lower.min(-1), upper.max(-1))))
