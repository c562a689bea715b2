"""What is said of a point by the criterion of a decision that it does not meet, and of what it keeps."""

from __future__ import annotations

import math

from vfljax.report import verdict_tables
from vfljax.report.costs import Cost
from vfljax.report.decision import Criterion, Row, denied, failed
from vfljax.report.frames import Facts
from vfljax.report.limits import of_row
from vfljax.report.verdicts import EXCESS
from vfljax.report.words import figure, listed, points, share, signed

CRITERIA = {
    Criterion.EXCESS: f"beyond the federation's absence it leaks {{}}; to protect, less than {figure(EXCESS)}",
    Criterion.SHARE: "what it leaves, less a quarter of what undefended adds, is {}; to protect, below 0",
    Criterion.CHANGE: "against undefended the leak changes by {}; to protect, below 0",
    Criterion.COST: "{}",
    Criterion.UNDEFENDED: "its utility and leaks are undefended's",
    Criterion.KNOWN: "no attack that knows it was tried",
    Criterion.INCOMPLETE: "attacks on it lack figures",
    Criterion.SEEDS: "fewer than three seeds have figures",
}
"""What is said of a point of which a criterion is not met; {} is its figure."""

MEASURED = (Criterion.EXCESS, Criterion.SHARE, Criterion.CHANGE)


def why(criterion: Criterion, v: Row, facts: Facts) -> str:
    """Returns what is said of a point by a criterion that it does not meet, with the figure and its limits."""
    text = CRITERIA[criterion]
    if criterion is Criterion.COST:
        return f"it {keeps(v, facts)}"
    if criterion in MEASURED:
        return text.format(signed(*of_row(v, criterion.value)))
    return text


def keeps(v: Row, facts: Facts) -> str:
    """Returns what a point keeps of the gain, and whether that is as much as is asked."""
    goal, kept = facts.goal, v["share_kept"]
    if math.isnan(kept):
        text = f"changes {facts.utility} by {points(v['utility_change'])}"
    else:
        text = verdict_tables.gain_kept(kept) if kept < 0 else f"keeps {share(kept)}"
    asked = [share(goal.keep_gain)] * bool(goal.keep_gain and not math.isnan(kept))
    if goal.max_cost < 1:
        asked.append(f"at most {points(goal.max_cost).removeprefix('+')} lost")
    what = f" (asked {listed(asked)})" if asked else ""
    remarks = {Cost.KEPT: "", Cost.UNCLEAR: ", limits too wide to tell"}
    remarks |= {Cost.TOO_MUCH: ", too little", Cost.UNKNOWN: "", Cost.NO_GAIN: ", of no gain"}
    return f"{text}{what}{remarks[Cost(v['cost'])]}"


def why_not(v: Row, facts: Facts) -> str:
    """Returns the criterion that a point fails, in words; "" if it fails none."""
    goal, contradicted = facts.goal, denied(v, facts.goal)
    if contradicted is not None:
        return _DENIED[contradicted]
    criterion = failed(v, goal)
    if criterion is None:
        return "it holds on the seeds that explored, and was not chosen to be decided on"
    if v["author_says"] and criterion is Criterion.KNOWN:
        return (
            "only its author says that an attack that was run knows it: none reads more than others"
        )
    return _OPEN[criterion]


_DENIED = {
    Criterion.EXCESS: f"more than {figure(EXCESS)} leaks beyond what can be read without the federation (e)",
    Criterion.SHARE: "more than a quarter of what undefended adds is left (c)",
    Criterion.CHANGE: "more leaks than undefended (d)",
    Criterion.COST: "it costs too much on test rows",
    Criterion.UNDEFENDED: "its utility and leaks are undefended's",
}
_OPEN = {
    Criterion.EXCESS: f"limits leave open whether less than {figure(EXCESS)} leaks beyond what can be read "
    "without the federation (e)",
    Criterion.SHARE: "limits leave open whether less than a quarter of what undefended adds is left (c)",
    Criterion.CHANGE: "limits leave open whether less leaks than undefended (d)",
    Criterion.COST: "limits leave open whether it keeps enough",
    Criterion.INCOMPLETE: "not all attacks on it have figures",
    Criterion.KNOWN: "no attack that knows it was run, so it may only hide the labels from those that do not",
    Criterion.SEEDS: "too few seeds have figures",
}
