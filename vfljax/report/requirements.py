"""What a pipeline asks of a sweep: how much may leak, and which verdicts are not accepted."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Collection

from vfljax.errors import UnmetError, unknown
from vfljax.report.assessed import Assessed, Assessment
from vfljax.report.assessment import assess_sweep
from vfljax.report.headline import methods_on, recommended
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import FEDERATIONS

NAMES = {verdict.name.lower(): verdict for verdict in Verdict}


def verdicts(names: Collection[str]) -> frozenset[Verdict]:
    """Returns the verdicts of these names, such as "cannot_say"; UserError for one that does not exist."""
    for name in names:
        if name not in NAMES:
            raise unknown("verdict of --fail_verdict", name, list(NAMES))
    return frozenset(NAMES[name] for name in names)


def check(workdir: pathlib.Path, most: float, refused: Collection[Verdict]) -> None:
    """Asks of each federation what is recommended, or of undefended where nothing is.

    Args:
      workdir: the folder of the sweep.
      most: the upper limit of the strongest attack's leak may not be above it; its mean, where there are too
        few seeds for limits. NaN asks nothing.
      refused: verdicts on what is recommended. With any, something must be recommended.

    Raises:
      UnmetError: for the first federation that does not meet it, or where nothing was attacked.
    """
    if math.isnan(most) and not refused:
        return
    assessed = assess_sweep(workdir)
    if not assessed.federations:
        raise UnmetError("no attack has any figure, so nothing shows what leaks.")
    for federation in assessed.federations:
        _check(assessed, federation, most, refused)


def _check(assessed: Assessed, federation: str, most: float, refused: Collection[Verdict]) -> None:
    best: Assessment | None = recommended(methods_on(assessed, federation))
    shown = best or assessed.undefended(federation)
    if shown is None:
        raise UnmetError(f"{FEDERATIONS[federation]}, nothing is undefended or recommended.")
    with_it = f"{FEDERATIONS[federation]}, with {shown.label if best else 'no defense'}"
    leak = shown.leak.mean if math.isnan(shown.leak.limits[1]) else shown.leak.limits[1]
    if not math.isnan(most) and not leak <= most:
        scale = assessed.reference.scale
        raise UnmetError(f"{with_it}, {scale} may be {leak:.3f}: more than --fail_above={most:g}.")
    if refused and best is None:
        raise UnmetError(f"{with_it}: no defense is recommended.")
    if best is not None and best.verdict in refused:
        raise UnmetError(f"{with_it}, the verdict is '{best.verdict}'.")
