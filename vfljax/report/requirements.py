"""What a pipeline requires of a sweep: how much may leak, and which verdicts are not accepted."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Collection

from vfljax.report.assessed import Assessed
from vfljax.report.assessment import assess_sweep
from vfljax.report.headline import recommended
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import FEDERATIONS

NAMES = {verdict.name.lower(): verdict for verdict in Verdict}


def unmet(workdir: pathlib.Path, most: float, refused: Collection[Verdict]) -> str:
    """Checks what is recommended in each federation, or undefended if nothing is.

    Args:
      workdir: the folder of the sweep.
      most: the highest upper limit of the strongest attack's leak that is accepted; with too few seeds for
        limits, the highest mean. NaN accepts any leak.
      refused: verdicts that are not accepted. If there are any, something must be recommended.

    Returns:
      A sentence about the first federation that does not meet the requirements; "" if all do.
    """
    if math.isnan(most) and not refused:
        return ""
    assessed = assess_sweep(workdir)
    if not assessed.federations:
        return "no attack has any figure, so nothing shows what leaks."
    found = (_unmet(assessed, federation, most, refused) for federation in assessed.federations)
    return next(filter(None, found), "")


def _unmet(assessed: Assessed, federation: str, most: float, refused: Collection[Verdict]) -> str:
    best = recommended(assessed.methods_on(federation))
    shown = best or assessed.undefended(federation)
    if shown is None:
        return f"{FEDERATIONS[federation]}, nothing is undefended or recommended."
    with_it = f"{FEDERATIONS[federation]}, with {shown.label if best else 'no defense'}"
    leak = shown.leak.at_most
    if not math.isnan(most) and not leak <= most:
        scale = assessed.reference.scale
        return f"{with_it}, {scale} may be {leak:.3f}: more than --fail_above={most:g}."
    if refused and best is None:
        return f"{with_it}: no defense is recommended."
    if best is not None and best.verdict in refused:
        return f"{with_it}, the verdict is '{best.verdict}'."
    return ""
