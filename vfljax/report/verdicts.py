"""The rule by which verdicts are given, on arrays of leaks [..., points, attacks, seeds].

A *run* is a configuration (a point), a panel, a seed and a number K of known labels. Its **leak** is the
largest of its attacks that know at most K labels and of its attackers' local-only learners with K: what an
attacker reaches who tries everything and knows which attempt worked. An attack's **excess** is its leak less
that of the best learner of the same attackers with K labels, on the same seed and draws of known labels. With
K = 0 the learner is a guess. **e** is the largest excess of a run, at least 0. Against undefended, by seed,

    d = leak - leak_u,    c = e - e_u / 4,

where undefended keeps, on each seed, only the attacks that were scored or settled on the configuration.
Limits are mean ± t(n - 1) max(s, h) / sqrt(n), with h of ``half_row``, one-sided at 95 % each; with fewer than
3 seeds there are none.

| verdict                             | when, the first that holds                                            |
|-------------------------------------|-----------------------------------------------------------------------|
| no baseline                         | leak has figures on 3 seeds or more, and e on none: no learner has    |
| no verdict                          | e or d has figures on fewer than 3 seeds                              |
| is undefended                       | utilities and all shared leaks equal undefended's on all its seeds    |
| nothing to protect                  | the upper limit of undefended's e, over all its attacks, is below .05 |
| protects from what was tried        | upper limits: e is below .05, c below 0, and d below 0                |
| still leaks, much less              | the lower limit of e is above .05, the upper limit of d below -.10    |
| still leaks, less                   | likewise, and the upper limit of d below -.02                         |
| still leaks, as before              | the lower limit of e is above .05                                     |
| leaks less, what remains is unclear | the upper limit of d is below -.02                                    |
| cannot say                          | all else                                                              |

If one attack of a run has no learner to be compared with, the run has no e. A configuration is *incomplete* if
an attack that was planned for one of its trials has no figure although the training succeeded, and is not
settled. *Protects* and *nothing to protect* are then not said. The latter is not said either if undefended is
incomplete, because an attack that is missing there may be the one that reads something.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vfljax.report.limits import (
    FEWEST_SEEDS,
    LEVEL,
    MOST_SEEDS,
    SHOWN_LEVEL,
    Bools,
    Floats,
    Limits,
    deciding_seeds,
    limits,
    projected,
)

EXCESS = 0.05
"""The e below which a defense protects, and above which it leaks."""
SHARE = 0.25
"""The share of undefended's e that a defense may leave if it is to protect."""
LESS, MUCH_LESS = -0.02, -0.10
"""The d below which a configuration leaks less, and much less."""
LITTLE = 0.005
"""Leaks that differ by no more are treated as equal."""


class Verdict(enum.StrEnum):
    """What the limits allow to say of a configuration; of several, the first that holds."""

    NO_BASELINE = "no baseline"
    NO_VERDICT = "no verdict"
    IS_UNDEFENDED = "is undefended"
    NOTHING_TO_PROTECT = "nothing to protect"
    PROTECTS = "protects from what was tried"
    LEAKS_MUCH_LESS = "still leaks, much less"
    LEAKS_LESS = "still leaks, less"
    LEAKS_AS_BEFORE = "still leaks, as before"
    UNCLEAR = "leaks less, what remains is unclear"
    CANNOT_SAY = "cannot say"

    @property
    def helps(self) -> bool:
        """Whether the limits show that less leaks than undefended."""
        return self in (self.PROTECTS, self.LEAKS_MUCH_LESS, self.LEAKS_LESS, self.UNCLEAR)


VERDICTS = tuple(Verdict)
_MORE = "More than .05 leaks beyond what can be read without the federation"
MEANINGS = {
    Verdict.NO_BASELINE: "It is not known what can be read without the federation, and so not how much of the "
    "leak it adds: the attackers' own columns are needed.",
    Verdict.NO_VERDICT: "Fewer than three seeds can be compared.",
    Verdict.IS_UNDEFENDED: "Its utility and its leaks equal undefended's on every seed.",
    Verdict.NOTHING_TO_PROTECT: "Undefended itself adds less than .05 to what can be read without the "
    "federation.",
    Verdict.PROTECTS: "Less than .05 leaks beyond what can be read without the federation, less than a "
    "quarter of what undefended adds to that, and less than undefended.",
    Verdict.LEAKS_MUCH_LESS: f"{_MORE}, but at least .10 less than undefended.",
    Verdict.LEAKS_LESS: f"{_MORE}, but at least .02 less than undefended.",
    Verdict.LEAKS_AS_BEFORE: f"{_MORE}, and it cannot be shown that this is less than undefended.",
    Verdict.UNCLEAR: "At least .02 less leaks than undefended, but the limits leave open whether more than .05 "
    "leaks beyond what can be read without the federation.",
    Verdict.CANNOT_SAY: "The limits are too wide to say anything.",
}
"""What each verdict means, in a sentence."""


def runs(leaks: Floats, matched: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Returns leak and e of each run, [..., points, seeds] both; NaN where no attack has a figure.

    Args:
      leaks: of attacks, [..., points, attacks, seeds]; NaN without a figure.
      matched: of the best learner with each attack's attackers and draws, [..., 1, attacks, seeds].
      most: of the best learner with each attack's attackers and any draws, likewise.
    """
    scored = np.isfinite(leaks)
    leak = np.where(scored, np.fmax(leaks, most), -np.inf).max(-2, initial=-np.inf)
    # an attack without a learner has an excess of NaN, which the maximum keeps
    excess = np.where(scored, leaks - matched, -np.inf).max(-2, initial=-np.inf)
    any_figure = scored.any(-2)
    return np.where(any_figure, leak, np.nan), np.where(any_figure, np.maximum(excess, 0), np.nan)


class Compared(NamedTuple):
    """The limits that verdicts rest on, [..., points]; the first point is undefended."""

    leak: Limits
    excess: Limits  # e
    change: Limits  # d
    rest: Limits  # c
    undefended: Limits  # e of undefended with all its attacks, [..., 1]


def compare(
    leaks: Floats, had: Bools, matched: Floats, most: Floats, least: float, level: float = LEVEL
) -> Compared:
    """Returns the limits of all points of a panel for one K.

    Args:
      leaks: [..., points, attacks, seeds], the first point is undefended; see ``runs``.
      had: which attacks were scored or settled, likewise.
      matched, most: see ``runs``.
      least: ``half_row`` of the scored rows.
      level: of each limit; those of the leak are at least of ``SHOWN_LEVEL``.
    """
    leak, excess = runs(leaks, matched, most)
    beside = np.where(had, leaks[..., :1, :, :], np.nan)
    undefended, excess_u = runs(beside, matched, most)
    of_leak = limits(leak, least, max(level, SHOWN_LEVEL))
    return Compared(
        leak=of_leak._replace(
            lower=np.clip(of_leak.lower, 0, 1), upper=np.clip(of_leak.upper, 0, 1)
        ),
        excess=limits(excess, least, level),
        change=limits(leak - undefended, least, level),
        rest=limits(excess - SHARE * excess_u, least, level),
        undefended=limits(excess[..., :1, :], least, level),
    )


def verdict_codes(
    compared: Compared, same: Bools | bool = False, complete: Bools | bool = True
) -> NDArray[np.intp]:
    """Returns the place in ``VERDICTS`` of each point's verdict, [..., points].

    Args:
      compared: see ``compare``.
      same: which points equal undefended.
      complete: which points are not incomplete.
    """
    lower, upper, change = compared.excess.lower, compared.excess.upper, compared.change.upper
    shape = upper.shape
    same, complete = np.broadcast_to(same, shape), np.broadcast_to(complete, shape)
    leaks = lower > EXCESS
    protects = (upper < EXCESS) & (compared.rest.upper < 0) & (change < 0)
    nothing = (compared.undefended.upper < EXCESS) & complete[..., :1]
    unmatched = (compared.excess.count == 0) & (compared.leak.count >= FEWEST_SEEDS)
    holds = {
        Verdict.NO_BASELINE: unmatched,
        Verdict.NO_VERDICT: np.isnan(upper) | np.isnan(change),
        Verdict.IS_UNDEFENDED: same,
        Verdict.NOTHING_TO_PROTECT: nothing & complete,
        Verdict.PROTECTS: protects & complete,
        Verdict.LEAKS_MUCH_LESS: leaks & (change < MUCH_LESS),
        Verdict.LEAKS_LESS: leaks & (change < LESS),
        Verdict.LEAKS_AS_BEFORE: leaks,
        Verdict.UNCLEAR: change < LESS,
    }
    codes = [VERDICTS.index(verdict) for verdict in holds]
    return np.select(list(holds.values()), codes, VERDICTS.index(Verdict.CANNOT_SAY))


def verdict_seeds(compared: Compared, codes: NDArray[np.intp], level: float = LEVEL) -> Floats:
    """Returns the numbers of seeds [points] that would decide the verdicts that are open, if means and spreads
    stay; NaN where the verdict is not open, or ``MOST_SEEDS`` would not decide it.

    Args:
      compared: see ``compare``, of one panel.
      codes: of ``verdict_codes``.
      level: of the limits.
    """
    more = np.arange(FEWEST_SEEDS, MOST_SEEDS + 1)
    of_excess, of_change, of_rest = (
        projected(x, more, level) for x in (compared.excess, compared.change, compared.rest)
    )
    protects = (of_excess[1] < EXCESS) & (of_rest[1] < 0) & (of_change[1] < 0)
    decided = (of_excess[0] > EXCESS) | protects
    decided &= more > compared.excess.count[..., None]
    still_open = np.isin(codes, [VERDICTS.index(v) for v in (Verdict.UNCLEAR, Verdict.CANNOT_SAY)])
    return np.where(still_open, deciding_seeds(decided, more), np.nan)
