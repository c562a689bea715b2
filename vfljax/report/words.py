"""Figures, verdicts and costs as text that headlines, cards, tables and terminals share."""

from __future__ import annotations

import math

from vfljax import defenses
from vfljax.report.assessed import Assessment, MethodOutcome
from vfljax.report.estimates import Estimate, Interval
from vfljax.report.judging import HELPS, Verdict
from vfljax.report.spread import FEWEST_SEEDS

NOT_KNOWN = "nobody who knows it attacked it"
FAINT = "attacks that know it read little of planted labels at this strength"


def verdict_text(a: Assessment) -> str:
    """Returns the verdict as text; '-' without one. If the verdict is open, the text names the attacks with too
    few figures, or the attack that leaves it open. It also says if no attack that knows the defense was run, or
    if such attacks read little."""
    if a.verdict is None:
        return "-"
    parts = [str(a.verdict)]
    if a.verdict is Verdict.CANNOT_SAY and a.missing:
        parts.append(f"{', '.join(a.missing)} on fewer than {FEWEST_SEEDS} seeds")
    elif a.verdict in (Verdict.CANNOT_SAY, Verdict.UNCLEAR) and a.blocking is not None:
        attack, seeds = a.blocking
        without = {None: "", 0: ", no number of seeds is likely to decide"}
        outlook = without.get(seeds, f", {seeds} seeds would decide")
        parts.append(f"open because of {attack}{outlook}")
    text, of = ": ".join(parts), a.configuration
    if of.defended and not a.known:
        return f"{text}; {NOT_KNOWN}"
    return f"{text}; {FAINT}" if faint(a) else text


def faint(a: Assessment) -> bool:
    """Returns whether the verdict helps, but attacks that know the defense read little at its strength."""
    members = {name: a.configuration.values_of(name)[0] for name in a.configuration.defenses}
    faintly = any(defenses.TABLE[name].faint(knobs) for name, knobs in members.items())
    return faintly and a.verdict in HELPS


def outcome(a: Assessment) -> str:
    """Returns a method's verdict in brief, or that every operating point costs too much."""
    if a.shown_as is MethodOutcome.NONE_KEEPS:
        return "costs too much"
    unknown = a.verdict is not None and not a.known
    return str(a.shown_as).partition(":")[0] + (", no knower" if unknown else "")


def share(estimate: Estimate) -> str:
    """Returns a share of a gain, such as '83 % (80 to 85)'; '-' if it is not known."""
    if math.isnan(estimate.mean):
        return "-"
    between = estimate.limits.text(lambda limit: str(round(100 * limit)))
    return f"{round(100 * estimate.mean)} %{between}"


def cost_text(a: Assessment) -> str:
    """Returns whether a configuration costs too much; '-' for undefended."""
    return str(a.kept.cost) if a.configuration.defended else "-"


def if_known(text: str, a: Assessment) -> str:
    """Returns ``text``, or "not known" if the configuration has no utility, as in a recorded exchange."""
    return text if a.utility.count else "not known"


def figure(estimate: Estimate, bound: float | None = None) -> str:
    """Returns '.97 (.95 to .98)'; without limits the mean alone.

    Args:
      estimate: the estimate to be shown.
      bound: three digits are shown if two would hide that the estimate is above it.
    """
    highest = estimate.at_most
    hidden = bound is not None and round(highest, 2) <= bound < highest
    digits = 3 if hidden else 2
    between = estimate.limits.text(lambda limit: brief(limit, digits))
    return f"{brief(estimate.mean, digits)}{between}"


def brief(value: float, digits: int = 2) -> str:
    """Returns '.97' or '1.00'; '-' for NaN.

    Args:
      value: a figure in [0, 1].
      digits: number of digits after the point.
    """
    return "-" if math.isnan(value) else f"{value:.{digits}f}".removeprefix("0")


def change(cost: Interval) -> str:
    """Returns a change of utility, such as '-0.4 points (-0.9 to +0.1)'."""
    if not cost.count:
        return "change unknown"
    return f"{points(cost.mean)} points{cost.limits.text(points)}"


def points(share: float) -> str:
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def absolute(accuracy: Interval) -> str:
    return f"{brief(accuracy.mean)}{accuracy.limits.text(brief)}"
