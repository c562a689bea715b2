"""Which rows of the data set are read, and in how many runs: a leak is an average over rows, and hides these.

For up to ``store.attack_rows.MARKED`` rows of the data set, the same in all runs, ``attack_runs.scoring``
stores whether an attack names the row rightly in every draw of known labels. With two classes an attack names
as many rows of the positive class as there are. A run scores the rows of its own training part, but for those
whose labels the attack knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from vfljax.report.judged_sweep import Judged
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER
from vfljax.store.attack_rows import marked_rows

FEWEST = 100  # rows that two runs score, without which no share of them is given
COLUMNS = ("configuration", "label", "panel", "attack", "row", "runs", "read")


def rows_of(judged: Judged, verdict: dict[str, Any], leader: str) -> pd.DataFrame:
    """Returns the stored rows of who reads a configuration, one for each seed.

    Args:
      judged: of a sweep.
      verdict: of the configuration, a row of the verdict frame.
      leader: the label of an attack. ``verdict_frame.LOCAL_ONLY_LEADER``: of the learners of those who attack
        the configuration, of each seed the one that reads most.
    """
    rows = judged.rows[judged.rows["right"].notna()]
    attacked = rows[is_on(rows, verdict)]
    if leader == LOCAL_ONLY_LEADER:
        learned = rows[(rows["role"] == "learner") & (rows["known"] == verdict["known"])]
        attackers = learned["attackers"].isin(attacked["attackers"])
        learned = learned[attackers & learned["leak"].notna()]
        return learned.loc[learned.groupby("seed")["leak"].idxmax()]
    return attacked[attacked["label"] == leader].sort_values("seed")


def is_on(rows: pd.DataFrame, verdict: dict[str, Any]) -> pd.Series:
    """Returns which rows are of attacks on a verdict's configuration and panel."""
    same = rows["configuration"] == verdict["configuration"]
    return same & (rows["panel"] == verdict["panel"])


def counts(right: Sequence[str] | pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Returns in how many runs each row is scored, and in how many it is read [rows].

    Args:
      right: for each run a mark for each row: "1", "0", or "-" if the run does not score it.
    """
    marks = np.array([list(of_run) for of_run in right])  # [runs, rows]
    return (marks != "-").sum(axis=0), (marks == "1").sum(axis=0)


def share_in_every_run(right: Sequence[str] | pd.Series) -> float:
    """Returns the share of rows read in every run that scores them, of rows that two or more score; NaN if
    these are fewer than ``FEWEST``.

    Runs differ in their training rows, so that few rows are scored in all of many runs. The more runs score a
    row, the more often it must be read.

    Args:
      right: as of ``counts``.
    """
    if not len(right):
        return math.nan
    scored, read = counts(right)
    often = scored > 1
    return float((read == scored)[often].mean()) if often.sum() >= FEWEST else math.nan


def records(judged: Judged, numbers: np.ndarray) -> pd.DataFrame:
    """Returns a row for each configuration, panel and scored row of the data set, as ``Sweep.records`` says.

    Args:
      judged: of a sweep.
      numbers: of the rows of its data set, ``store.attack_rows.numbers_of_rows``.
    """
    parts = [pd.DataFrame(columns=[*COLUMNS])]
    if "right" not in judged.rows:
        return parts[0]
    for verdict in judged.leading[judged.leading["leader"] != ""].to_dict("records"):
        leading = rows_of(judged, verdict, verdict["leader"])
        if not len(leading):
            continue
        scored, read = counts(leading["right"])
        about = {name: verdict[name] for name in ("configuration", "label", "panel")}
        about["attack"] = verdict["leader"]
        frame = pd.DataFrame({"row": marked_rows(numbers), "runs": scored, "read": read})
        parts.append(frame[scored > 0].sort_values("row").assign(**about)[[*COLUMNS]])
    return pd.concat(parts[1:] or parts, ignore_index=True)
