"""Lower limits of epsilon, from the coins of label canaries that the strongest attack guesses.

Of r guesses, a number fixed before, v are right. The limit is the largest epsilon with P[Binomial(r, p) >= v]
<= .05 for p = e^epsilon / (1 + e^epsilon), because epsilon-label-DP keeps v below that binomial for any guesses
(Steinke, Nasr, Jagielski 2023). Seeds are independent runs, so counts add up. A weak attack gives a low limit.

The candidates are all attacks in every federation, in two directions, with several shares of the surest
guesses. The one that reaches most on half of the canaries is counted on the other half. This needs no
correction: given the exchange and the coins of one half, the odds of the others are still at most e^epsilon.
Bonferroni's would cost more. A seed's noise is the same in all federations, so these are no second query.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import special

from vfljax.report import stored_rows
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import attacks_of, configurations
from vfljax.report.stored_rows import AttackFigures
from vfljax.report.strongest import Run, run_of
from vfljax.sweep.canaries import HALVES, PREFIX, SHARES
from vfljax.types import HostArray

FOLDER = "canaries"  # within an audit's folder, of the sweep that was trained with canaries


class Guesses(NamedTuple):
    """The guesses of the chosen attack, on the half on which nothing was chosen."""

    run: Run
    guessed: int  # r
    right: int  # v

    @property
    def text(self) -> str:
        """The guesses as text, such as 'direct/votes: 366 of 500'."""
        return f"{self.run.identity.label}: {self.right} of {self.guessed}"

    def epsilon(self, level: float = 0.95) -> float:
        """Returns the lower limit of epsilon."""
        return epsilon_at_least(self.guessed, self.right, level)


def epsilon_at_least(guessed: int, right: int, level: float = 0.95) -> float:
    """Returns the lower limit of epsilon, at least 0, if ``right`` of ``guessed`` guesses are right.

    >>> round(epsilon_at_least(500, 366), 2), epsilon_at_least(500, 250)
    (0.84, 0.0)
    """
    if not right:
        return 0.0
    # P[Binomial(r, p) >= v] is the regularized incomplete beta function I_p(v, r - v + 1)
    p = special.betaincinv(right, guessed - right + 1, 1 - level)
    return max(0.0, float(special.logit(p)))


def strongest_guesses(rows: Iterable[AttackFigures]) -> Guesses | None:
    """Returns the guesses of the strongest attack on a configuration, summed over the rows' seeds; None
    without canaries. Oracles and attacks that diverged do not count."""
    names = [
        f"{half}{count}_{n}" for n in SHARES for half in HALVES for count in ("guessed", "right")
    ]
    totals: dict[Run, HostArray] = {}
    for row in rows:
        counts = np.array([row.figures.get(name) for name in names], float)  # NaN: none
        if not row.oracle and np.isfinite(counts).all():
            totals[run_of(row)] = totals.get(run_of(row), 0) + counts
    found = []
    for run, total in totals.items():
        for guessed, right, r, v in total.astype(int).reshape(-1, 4).tolist():
            for chosen, counted in [(right, v), (guessed - right, r - v)]:  # in both directions
                reached = epsilon_at_least(guessed, chosen), chosen / max(guessed, 1)
                found.append((reached, Guesses(run, r, counted)))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def lower_limits(assessed: Assessed) -> dict[int, Guesses]:
    """Returns the guesses on each configuration, by its number, from the sweep or its folder of canaries."""
    rows = assessed.rows
    if f"{PREFIX}right_100" not in rows.sweep.attacks.column_names:
        folder = rows.sweep.workdir / FOLDER
        if not (folder / "sweep.json").exists():
            return {}
        rows = stored_rows.load(folder)
    number = {(c.method, *c.knobs.items()): c.number for c in assessed.configurations}
    trained = {c.number: number.get((c.method, *c.knobs.items())) for c in configurations(rows)}
    attacked = attacks_of(rows).items()
    found = ((trained[place], strongest_guesses(figures)) for place, figures in attacked)
    return {place: guesses for place, guesses in found if place is not None and guesses}
