"""The leak of each run, a configuration and a seed: that of the strongest attack or local-only learner."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vfljax.report.frames import Facts

RUN = ["configuration", "panel", "seed"]


def by_run(rows: pd.DataFrame, facts: Facts, known: int) -> pd.Series:
    """Returns the leak of each run of which an attack has a figure, indexed by ``RUN``.

    A learner counts in the runs that its own attackers attack. If no attacker knows a label, what they read
    without the federation is chance.

    Args:
      rows: of ``report.frames``.
      facts: of the sweep.
      known: the most labels that an attack may know, and the number that learners know.
    """
    attacks = rows[(rows["role"] == "attack") & rows["leak"].notna() & (rows["known"] <= known)]
    learners = rows[(rows["role"] == "learner") & (rows["known"] == known)]
    most = learners.groupby(["seed", "attackers"])["leak"].max()
    matched = pd.MultiIndex.from_frame(attacks[["seed", "attackers"]])
    local = most.reindex(matched).to_numpy() if known else facts.chance
    leaks = attacks.assign(leak=np.fmax(attacks["leak"], local))
    return leaks.groupby(RUN)["leak"].max()
