"""Lower bounds of epsilon, from the coins of label canaries that the strongest attack guesses.

Of r guesses, a number fixed before, v are right. The bound is the largest epsilon with P[Binomial(r, p) >= v]
<= .05 for p = e^epsilon / (1 + e^epsilon), because epsilon-label-DP keeps v below that binomial for any guesses
(Steinke, Nasr, Jagielski 2023). Seeds are independent runs, so counts add up. A weak attack gives a low bound.

The candidates are all attacks in every federation, in two directions, with several shares of the surest
guesses. The one that reaches most on half of the canaries is counted on the other half. This needs no
correction: given the exchange and the coins of one half, the odds of the others are still at most e^epsilon.
Bonferroni's would cost more. A seed's noise is the same in all federations, so these are no second query.

Where labels were not replaced by coins but stand beside counterfactual ones (``sweep.counterfactuals``),
columns alone may tell the pairs, at a rate of at most M. The bound is then lower by logit M. M is a limit
itself, so that each of the two is taken at .975, and both hold with .95.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd
from scipy import special

from vfljax import store
from vfljax.report.frames import read_frames
from vfljax.report.judged_sweep import Judged
from vfljax.report.points import same_points
from vfljax.report.words import figure
from vfljax.sweep.canaries import GUESSED_PERCENTS, HALVES, PREFIX

HALF_THE_ERROR = (
    0.975  # the level of each of two limits that hold together with a confidence of 95 %
)
COIN = 0.5  # the rate at which anybody guesses a coin
FOLDER = "canaries"  # within an audit's folder, of the sweep that was trained with canaries


class Guesses(NamedTuple):
    """The guesses of the chosen attack, on the half on which nothing was chosen."""

    panel: str
    label: str  # of the attack
    guessed: int  # r
    right: int  # v
    columns: float = COIN  # M, the rate at which columns alone may tell the labels; 1/2 for coins

    @property
    def text(self) -> str:
        """The guesses as text, such as 'direct/votes: 366 of 500'."""
        text = f"{self.label}: {self.right} of {self.guessed}"
        return f"{text}; assumed: {self.assumed}" if self.assumed else text

    @property
    def assumed(self) -> str:
        """What is assumed of columns alone, as text; "" for coins."""
        if self.columns == COIN:
            return ""
        return f"columns alone tell at most {figure(self.columns, 3)}"

    def epsilon(self) -> float:
        """Returns the lower bound of epsilon, with a confidence of 95 %."""
        level = 0.95 if self.columns == COIN else HALF_THE_ERROR
        found = epsilon_at_least(self.guessed, self.right, level)
        return max(0.0, found - float(special.logit(self.columns)))


def epsilon_at_least(guessed: int, right: int, level: float = 0.95) -> float:
    """Returns the lower bound of epsilon, at least 0, if ``right`` of ``guessed`` guesses are right.

    >>> round(epsilon_at_least(500, 366), 2), epsilon_at_least(500, 250)
    (0.84, 0.0)
    """
    if not right:
        return 0.0
    # P[Binomial(r, p) >= v] is the regularized incomplete beta function I_p(v, r - v + 1)
    p = special.betaincinv(right, guessed - right + 1, 1 - level)
    return max(0.0, float(special.logit(p)))


def told_by_columns(
    told: Mapping[str, Mapping[str, float]], level: float = HALF_THE_ERROR
) -> dict[int, float]:
    """Returns M by the share of the pairs that are guessed: the largest upper limit of the rate at which an
    opponent of the proxy tells its surest guesses; {} for coins.

    Args:
      told: of the header of a sweep, ``canaries.Told``.
      level: of the upper limits.
    """
    if not told:
        return {}
    return {
        n: max(
            COIN,
            *(
                _rate_at_most(of[f"{PREFIX}guessed_{n}"], of[f"{PREFIX}right_{n}"], level)
                for of in told.values()
            ),
        )
        for n in GUESSED_PERCENTS
    }


def _rate_at_most(guessed: float, right: float, level: float) -> float:
    """Returns the upper limit of a rate of which ``right`` of ``guessed`` are a sample (Clopper-Pearson)."""
    if right >= guessed:
        return 1.0
    return float(special.betaincinv(right + 1, guessed - right, level))


def strongest_guesses(
    rows: pd.DataFrame, columns: Mapping[int, float] | None = None
) -> Guesses | None:
    """Returns the guesses of the strongest attack on a configuration, summed over seeds.

    Oracles, attacks that diverged, and attacks that are settled on a seed do not count. Without canaries the
    result is None.

    Args:
      rows: of ``report.frames``, of one configuration.
      columns: of ``told_by_columns``.
    """
    names = [
        f"{half}{count}_{n}"
        for n in GUESSED_PERCENTS
        for half in HALVES
        for count in ("guessed", "right")
    ]
    if not {*names} <= {*rows.columns}:
        return None
    # which seeds of an attack are settled depends on the coins, so it is left out on all of them
    settled = rows.loc[rows["settled_by"] != "", "label"]
    counted = (rows["role"] == "attack") & ~rows["label"].isin(settled)
    counted = rows[counted & rows[names].notna().all(axis=1)]
    found = []
    for (panel, label), total in (
        counted.groupby(["panel", "label"], sort=False)[names].sum().iterrows()
    ):
        by_share = total.to_numpy(int).reshape(-1, 4).tolist()
        for share, (guessed, right, r, v) in zip(GUESSED_PERCENTS, by_share, strict=True):
            most = (columns or {}).get(share, COIN)
            for chosen, count in [(right, v), (guessed - right, r - v)]:  # in both directions
                select = Guesses(panel, label, guessed, chosen, most)
                reached = select.epsilon(), chosen / max(guessed, 1)
                found.append((reached, Guesses(panel, label, r, count, most)))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def epsilon_lower_bounds(judged: Judged) -> dict[int, Guesses]:
    """Returns the guesses on each configuration, by its number, from the sweep or its folder of canaries."""
    rows, number = judged.rows, {c: c for c in judged.trials["configuration"].unique()}
    header = judged.sweep.header
    if f"{PREFIX}right_100" not in rows:
        folder = judged.sweep.workdir / FOLDER
        if not (folder / "sweep.json").exists():
            return {}
        planted = store.load(folder)
        header, (rows, trials, *_) = planted.header, read_frames(planted)
        number = same_points(judged.trials, trials)
    columns = told_by_columns(header["data"].get("told", {}))
    attacked = rows[rows["role"] == "attack"].groupby("configuration")
    found = {number[c]: strongest_guesses(of, columns) for c, of in attacked if c in number}
    return {c: guesses for c, guesses in found.items() if guesses}
