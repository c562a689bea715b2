"""What a pipeline requires of a sweep: how much may leak, and which verdicts are not accepted."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Collection

import pandas as pd

from vfljax.report.judged import judge_sweep
from vfljax.report.rows import PANELS, Facts
from vfljax.report.verdicts import Verdict
from vfljax.report.words import apart

NAMES = {verdict.name.lower(): verdict for verdict in Verdict}


def unmet(workdir: pathlib.Path, most: float, refused: Collection[Verdict]) -> str:
    """Checks what is recommended in each panel, or undefended if nothing is.

    Args:
      workdir: the folder of the sweep.
      most: the highest upper limit of a leak that is accepted; with too few seeds for limits, the highest
        mean. NaN accepts any leak.
      refused: verdicts that are not accepted. If there are any, something must be recommended.

    Returns:
      A sentence about the first panel that does not meet the requirements; "" if all do.
    """
    if math.isnan(most) and not refused:
        return ""
    judged = judge_sweep(workdir)
    attacked = judged.leading[judged.leading["leak"].notna()]
    if not len(attacked):
        return "no attack has any figure, so nothing shows what leaks."
    panels = attacked.groupby("panel", sort=False)
    found = (_unmet(of, PANELS[str(panel)], judged.facts, most, refused) for panel, of in panels)
    return next(filter(None, found), "")


def _unmet(
    verdicts: pd.DataFrame, panel: str, facts: Facts, most: float, refused: Collection[Verdict]
) -> str:
    best = verdicts[verdicts["recommended"]]
    checked = best if len(best) else verdicts[verdicts["undefended"]]
    if not len(checked):
        return f"{panel}, nothing is undefended or recommended."
    (of,) = checked.head(1).to_dict("records")
    with_it = f"{panel}, with {of['label'] if len(best) else 'no defense'}"
    leak = of["leak"] if math.isnan(of["leak_upper"]) else of["leak_upper"]
    if not math.isnan(most) and not leak <= most:
        text, allowed = apart(leak, most)
        return f"{with_it}, {facts.scale} may be {text}: more than --fail_above={allowed}."
    if refused and not len(best):
        return f"{with_it}: no defense is recommended."
    if len(best) and of["verdict"] in refused:
        return f"{with_it}, the verdict is '{of['verdict']}'."
    return ""
