"""What formal guarantees allow an attacker, and whether a figure crosses that line.

    accuracy <= e^ε M / (1 + (e^ε - 1) M)          accuracy - M <= tanh(ε/4)

M is the best accuracy that anybody reaches from everything but the row's own label. Under ε-label-DP the
posterior odds of a row's likeliest class against the rest are at most e^ε times what they are without its
label. The first bound is that statement for a probability. It is concave in M, so it holds for means over
rows. The second bound is the largest distance of the first to M, which is at M = 1/(1 + e^(ε/2)). For
M = 1/C the first is the rate at which randomized response keeps labels, e^ε/(e^ε + C - 1).

The bounds are ours; the additive one sharpens 1 - 2/(1 + e^ε) of arXiv 2202.12968.

M is measured, so it is a lower bound of the true one, and the line drawn with it may be too low. A figure
that crosses it shows that the measured M is too low or the code is wrong. The guarantee still holds.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from vfljax import defenses
from vfljax.defenses.rows import prior_of
from vfljax.report.judged import Judged, knobs_of, members_of, values_of
from vfljax.report.lower_limits import lower_limits
from vfljax.report.rows import PANELS
from vfljax.report.words import NONE, apart, figure


def _accuracy_bound(epsilon: float, without: float) -> float:
    """Returns the most accuracy that ε-label-DP allows if ``without`` (M) is reached without the row's label.

    For epsilon = 0 that is M. For infinite epsilon, or M = 1, it is 1.
    """
    if not (epsilon >= 0 and 0 < without <= 1):
        raise ValueError(
            f"epsilon={epsilon}, without={without}: epsilon is at least 0, and M in (0, 1]"
        )
    return without / (without + (1 - without) * math.exp(-epsilon))


class Measured(NamedTuple):
    """A mean accuracy over seeds, and a text on who reaches it."""

    accuracy: float
    whose: str


class Guarantee(NamedTuple):
    """A formal guarantee of a configuration: what it bounds, and the epsilon that it claims."""

    configuration: int
    label: str
    defense: str
    odds: str  # the factor by which the posterior odds of two labels may exceed the prior odds
    guess: str  # how often the best guess from the noisy label alone is right
    epsilon: float  # NaN if it is no label differential privacy


class Line(NamedTuple):
    """A guarantee in one panel: what it allows, and what was reached."""

    guarantee: Guarantee
    panel: str
    allowed: float  # ``_accuracy_bound`` at the measured M
    reached: Measured

    @property
    def crossed(self) -> bool:
        """Whether the reached accuracy is above the allowed one."""
        return self.reached.accuracy > self.allowed + 1e-9


def guarantees(judged: Judged) -> list[Guarantee]:
    """Returns the guarantees of every configuration."""
    knobs, prior = knobs_of(judged.trials), prior_of(judged.sweep.header["data"]["balance"])
    found = []
    for of in judged.verdicts.drop_duplicates("configuration").to_dict("records"):
        for name in members_of(of["defenses"]):
            remarks, values = (
                defenses.TABLE[name].remarks,
                values_of(name, knobs[of["configuration"]]),
            )
            bound, epsilon = remarks.bound(*values, prior), remarks.epsilon(*values)
            if bound is not None or epsilon is not None:
                claim = math.nan if epsilon is None else epsilon
                place = of["configuration"], of["label"], name
                found.append(Guarantee(*place, *(bound or (NONE, NONE)), claim))
    return found


def _measured_without(judged: Judged) -> Measured:
    """Returns the best accuracy measured without a row's own label: a lower bound of M.

    It is the best of the majority guess, of the local-only baseline with any number of labels (on rows whose
    labels were not known), of the attacks that were given all training labels (on test rows), and of the
    undefended federations on test rows, because a gradient carries the joint model's prediction.
    """
    balance, trials, rows = judged.sweep.header["data"]["balance"], judged.trials, judged.rows
    best = [Measured(max(balance) / sum(balance), "majority guess")]
    accuracy = "test_oriented_accuracy" if "test_oriented_accuracy" in trials else "test_accuracy"
    bare = trials[(trials["defenses"] == "") & (trials["federation"] == trials["panel"])]
    first = bare[bare["configuration"] == bare["configuration"].min()]
    best += [
        Measured(mean, f"undefended federation {PANELS[str(panel)]}, test rows")
        for panel, mean in first.groupby("panel")[accuracy].mean().items()
    ]
    learners = rows[rows["role"] == "learner"]
    names = learners["label"] + " with " + learners["known"].astype(str) + " labels"
    whose = names + " and columns of " + learners["attackers"] + " without the federation"
    best += _means(learners, "success_unlabeled", whose)
    best += _means(rows, "all_labels_test_success", rows["label"] + " with all labels, test rows")
    return max(of for of in best if not math.isnan(of.accuracy))


def _means(rows: pd.DataFrame, figure: str, whose: pd.Series) -> Iterable[Measured]:
    """Returns the mean of a stored figure of each text ``whose`` [rows] that has one."""
    if figure not in rows or not len(rows):
        return []
    means = rows[figure].groupby(whose).mean().dropna()
    return [Measured(mean, str(text)) for text, mean in means.items()]


def _most_accurate(judged: Judged) -> dict[tuple[int, str], Measured]:
    """Returns the attack of the highest top-1 accuracy on rows whose labels it does not know.

    There is one for each configuration and panel, among the attacks that know at most as many labels as the
    report leads with.
    """
    rows = judged.rows
    fair = rows[(rows["role"] == "attack") & (rows["known"] <= judged.facts.known)]
    if "success_unlabeled" not in fair:
        return {}
    means = fair.groupby(["configuration", "panel", "label"])["success_unlabeled"].mean().dropna()
    first = means.reset_index().sort_values("success_unlabeled", ascending=False, kind="stable")
    return {
        (of.configuration, of.panel): Measured(of.success_unlabeled, of.label)
        for of in first.drop_duplicates(["configuration", "panel"]).itertuples()
    }


def lines(judged: Judged) -> list[Line]:
    """Returns every claimed epsilon, with each panel's most accurate attack."""
    kept = [of for of in guarantees(judged) if not math.isnan(of.epsilon)]
    if not kept:
        return []
    without, reached = _measured_without(judged).accuracy, _most_accurate(judged)
    return [
        Line(of, panel, _accuracy_bound(of.epsilon, without), measured)
        for of in kept
        for panel in PANELS
        if (measured := reached.get((of.configuration, panel))) is not None
    ]


def warnings(judged: Judged) -> list[str]:
    """Returns a warning for every accuracy or lower limit of epsilon that is above what a guarantee allows."""
    claimed = [of for of in guarantees(judged) if not math.isnan(of.epsilon)]
    if not claimed:
        return []
    without, lower = _measured_without(judged), lower_limits(judged)
    crossed = [line for line in lines(judged) if line.crossed]
    return [_crossed(line, without) for line in crossed] + [
        f"WARNING: {of.label}: with a confidence of 95 % ε is at least {found.epsilon():.2f}, more than the "
        f"{of.epsilon:g} that {of.defense} claims ({found.text} coins of canaries guessed). Do not rely on "
        "its guarantee before the code of the defense is checked."
        for of in claimed
        if (found := lower.get(of.configuration)) and found.epsilon() > of.epsilon
    ]


def _crossed(line: Line, without: Measured) -> str:
    """Returns a warning with as many digits as it takes to see that the figure is above the bound."""
    reached, allowed = apart(line.reached.accuracy, line.allowed)
    return (
        f"WARNING: {line.guarantee.label}, {PANELS[line.panel]}: {line.reached.whose} names {reached} of the "
        f"labels, more than the {allowed} that ε = {line.guarantee.epsilon:g} allows who reaches M = "
        f"{figure(without.accuracy, 3)} without the row's label ({without.whose}). The M that was measured is "
        "a lower bound: either somebody reaches more than this M, or the code of the defense or of the attack "
        "is wrong. Do not rely on the guarantee before you know which: run more attacks with all labels "
        "(their baseline all_labels), or check the code."
    )


def bound_table(judged: Judged) -> pd.DataFrame:
    """Returns what formal guarantees bound and what attacks reached; without a guarantee there are no rows."""
    found = [of for of in guarantees(judged) if of.odds != NONE]
    if not found:
        return pd.DataFrame()
    without, lower = _measured_without(judged).accuracy, lower_limits(judged)
    drawn = {(*line.guarantee[:3], line.panel): line for line in lines(judged)}
    leading = judged.leading.set_index(["configuration", "panel"])
    panels = [panel for panel in PANELS if panel in {*judged.leading["panel"]}]
    return pd.DataFrame([_row(of, without, lower, drawn, leading, panels) for of in found])


def _row(
    of: Guarantee, without: float, lower: Any, drawn: Any, leading: pd.DataFrame, panels: list[str]
) -> dict[str, str]:
    claims = not math.isnan(of.epsilon)
    guesses = lower.get(of.configuration) if claims else None
    lines_of = {panel: drawn.get((*of[:3], panel)) for panel in panels}
    allowed = figure(_accuracy_bound(of.epsilon, without), 3) if claims else NONE
    row = {
        "configuration": of.label,
        "posterior odds at most (times prior odds)": of.odds,
        "best guess from the noisy label alone": of.guess,
        "ε claimed": f"{of.epsilon:g}" if claims else NONE,
        "ε at least (95 %), from canaries": f"{guesses.epsilon():.2f} ({guesses.text})"
        if guesses
        else NONE,
        "accuracy at most": allowed,
        "beyond M at most": figure(math.tanh(of.epsilon / 4), 3) if claims else NONE,
    }
    for panel, line in lines_of.items():
        row[f"most accurate attack, {PANELS[panel]}"] = (
            f"{figure(line.reached.accuracy, 3)} {line.reached.whose}" if line else NONE
        )
    for panel in panels:
        place = of.configuration, panel
        best = leading.loc[place] if place in leading.index else None
        row[f"strongest attack, {PANELS[panel]}"] = (
            NONE
            if best is None or not best["leader"]
            else f"{figure(best['leak'])} {best['leader']}"
        )
    crossed = [PANELS[panel] for panel, line in lines_of.items() if line and line.crossed]
    return row | {"crosses the line": "WARNING: " + ", ".join(crossed) if crossed else "no"}


def caption(judged: Judged) -> str:
    """Returns how to read the table; "" if no configuration with a guarantee was attacked."""
    if not lines(judged):
        return ""
    without = _measured_without(judged)
    return (
        "Accuracy at most: e^ε M/(1 + (e^ε - 1) M), where M is the best accuracy without the row's own label; "
        f"here M = {figure(without.accuracy, 3)} ({without.whose}), the best that was measured. Beyond M at "
        "most: tanh(ε/4), whatever M is. Most accurate: the share of rows that an attack names right, of those "
        "whose labels it does not know. The measured M is a lower bound of the true one, so a figure that "
        "crosses the line convicts this M or the code. ε at least: from rows whose labels were coins, in runs "
        "of their own; the strongest attack, chosen on half of them, guesses so many of the others (Steinke, "
        "Nasr, Jagielski 2023)."
    )
