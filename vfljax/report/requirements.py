"""What a pipeline requires of a sweep: how much may leak, and which verdicts are not accepted.

Each panel must meet what is required. What is compared follows its answer (``FOLLOWS``).
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Collection

from vfljax.report.decision import Answer, Decided
from vfljax.report.first_screen import sentence
from vfljax.report.frames import PANELS
from vfljax.report.judged_sweep import Judged
from vfljax.report.sweep_answers import judge_sweep
from vfljax.report.verdicts import Verdict
from vfljax.report.words import apart

FOLLOWS = {
    Answer.SWITCH_ON: ("switch on X at Y", "what leaks with X at Y", "the verdict of X at Y"),
    Answer.NOTHING_TO_PROTECT: (
        "nothing to protect",
        "what leaks undefended",
        "*nothing to protect*",
    ),
    Answer.NONE_PROTECTS: (
        "no defense that was tried protects and keeps the gain",
        "what leaks undefended",
        "fails",
    ),
    Answer.NO_GAIN: ("do not federate", "fails", "fails"),
    Answer.OPEN: ("open", "fails", "fails"),
}
"""What is compared with ``--fail_above`` and ``--fail_verdict``, by the answer; "fails" ends with status 3."""
NAMES = {verdict.name.lower(): verdict for verdict in Verdict}


def unmet(workdir: pathlib.Path, most: float, refused: Collection[Verdict]) -> str:
    """Checks the answer on each panel.

    Args:
      workdir: the folder of the sweep.
      most: the highest upper limit of a leak that is accepted. NaN accepts any leak.
      refused: verdicts that are not accepted.

    Returns:
      A sentence about the first panel that does not meet the requirements; "" if all do.
    """
    if math.isnan(most) and not refused:
        return ""
    judged = judge_sweep(workdir)
    attacked = {*judged.leading.loc[judged.leading["leak"].notna(), "panel"]}
    if not attacked:
        return "no attack has any figure, so nothing shows what leaks."
    found = (
        _unmet(of, panel, judged, most, refused)
        for panel, of in judged.decisions.items()
        if panel in attacked
    )
    return next(filter(None, found), "")


def _unmet(
    of: Decided, panel: str, judged: Judged, most: float, refused: Collection[Verdict]
) -> str:
    where, facts = PANELS[panel], judged.facts
    answer = sentence(of, judged, panel)
    if of.answer in (Answer.OPEN, Answer.NO_GAIN) or of.bare is None:
        return f"{where}: {answer}"
    if refused and of.answer is Answer.NONE_PROTECTS:
        return f"{where}: {answer}"
    row = of.point or of.bare
    with_it = f"{where}, with {row['label'] if of.point else 'no defense'}"
    if not math.isnan(most) and row["incomplete"]:
        return f"{with_it}, attacks lack figures, so that more may leak than --fail_above={most:g}."
    if not math.isnan(most) and not row["leak_upper"] <= most:
        text, allowed = apart(row["leak_upper"], most)
        return f"{with_it}, {facts.scale} may be {text}: more than --fail_above={allowed}."
    verdict = Verdict(row["verdict"]) if of.point else Verdict.NOTHING_TO_PROTECT
    if verdict in refused:
        return f"{with_it}, the verdict is '{verdict}'."
    return ""
