"""The ruler of a panel: what leaks, from a guess to everything, before and after; and the gain that is kept."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import SHOWN_LEVEL, Limits, half_row, limits
from vfljax.report.verdicts import LITTLE
from vfljax.types import federation_of


class Mark(NamedTuple):
    """A leak on the ruler, with its limits; NaN without any."""

    name: str
    kind: str  # "without", "undefended", "deviating" or "defended": how it is drawn
    mean: float
    lower: float = math.nan
    upper: float = math.nan


class Ruler(NamedTuple):
    """What is drawn of a panel."""

    guess: float  # the leak of a guess, where the ruler begins; it ends at 1
    marks: tuple[Mark, ...]
    kept: float = math.nan  # the share of the gain that is kept

    def place(self, leak: float) -> float:
        """Returns where a leak is, in percent of the ruler; below a guess and above 1 it is cut."""
        return 100 * min(max((leak - self.guess) / (1 - self.guess), 0.0), 1.0)


class Conduct(NamedTuple):
    """The leaks of one configuration to honest and to deviating attackers; NaN where there are none."""

    honest: Limits
    deviating: Limits

    @property
    def blamed(self) -> bool:
        """Whether those who deviate read more, on average."""
        honest, deviating = float(self.honest.mean), float(self.deviating.mean)
        return deviating > honest + LITTLE or (math.isnan(honest) and not math.isnan(deviating))


def by_conduct(judged: Judged, panel: str, label: str) -> Conduct:
    """Returns what is read of a configuration in each run, by those who keep to the protocol and by those who
    deviate, with limits over seeds.

    Args:
      judged: the sweep.
      panel: of the federations.
      label: of the configuration.
    """
    of = judged.leading[(judged.leading["label"] == label) & (judged.leading["panel"] == panel)]
    if not len(of):
        return Conduct(_of(judged, pd.DataFrame(), {}), _of(judged, pd.DataFrame(), {}))
    (verdict,) = of.head(1).to_dict("records")
    rows, known = judged.rows, judged.facts.known
    attacked = rows[
        (rows["configuration"] == verdict["configuration"])
        & (rows["panel"] == panel)
        & (rows["role"] == "attack")
        & (rows["known"] <= known)
        & ~rows["label"].isin(verdict["broken"].split(", "))
    ]
    learned = rows[(rows["role"] == "learner") & (rows["known"] == known)]
    learned = learned[learned["attackers"].isin(attacked["attackers"])]
    alone = learned.groupby("seed")["leak"].max().to_dict()
    malicious = attacked["federation"].map(lambda name: bool(federation_of(name).malicious))
    return Conduct(
        _of(judged, attacked[~malicious.astype(bool)], alone),
        _of(judged, attacked[malicious.astype(bool)], alone),
    )


def _of(judged: Judged, rows: pd.DataFrame, alone: dict[int, float]) -> Limits:
    leaks = rows.groupby("seed")["leak"].max().dropna() if len(rows) else pd.Series(dtype=float)
    run = [max(leak, alone.get(seed, leak)) for seed, leak in leaks.items()]
    found = limits(np.array(run, float), half_row(judged.facts.scored_rows), SHOWN_LEVEL)
    lower, upper = (np.clip(side, 0, 1) for side in (found.lower, found.upper))
    return found._replace(lower=lower, upper=upper)


def mark(name: str, kind: str, found: Limits) -> list[Mark]:
    """Returns the mark of a mean with limits; [] where there is none."""
    if math.isnan(found.mean):
        return []
    return [Mark(name, kind, float(found.mean), float(found.lower), float(found.upper))]
