"""What formal guarantees allow an attacker, and whether a figure crosses that line.

    accuracy <= e^ε M / (1 + (e^ε - 1) M)          accuracy - M <= tanh(ε/4)

M is the best accuracy that anybody reaches from everything but the row's own label. Under ε-label-DP the
posterior odds of a row's likeliest class against the rest are at most e^ε times what they are without its
label. The first bound is that statement for a probability. It is concave in M, so it holds for means over
rows. The second bound is the largest distance of the first to M, which is at M = 1/(1 + e^(ε/2)). For
M = 1/C the first is the rate at which randomized response keeps labels, e^ε/(e^ε + C - 1).

The bounds are ours; the additive one sharpens 1 - 2/(1 + e^ε) of arXiv 2202.12968.

M is measured, so it is a lower bound of the true one, and the line drawn with it may be too low. A figure
that crosses it shows that the measured M is too low or the code is wrong. The guarantee still holds. M is exact
only where all labels were permuted, which leaves nothing to predict them by but the classes' shares: there a
crossed line convicts the code, and only there it is an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from vfljax import defenses
from vfljax.defenses.rows import prior_of
from vfljax.report.epsilon_lower_bounds import Guesses, epsilon_lower_bounds
from vfljax.report.frames import PANELS
from vfljax.report.judged_sweep import Judged
from vfljax.report.points import members, points_of
from vfljax.report.words import NONE, apart, figure

PLACE = ["configuration", "defense"]
OF_NUMBERS = (
    "Labels are numbers, of which no canaries and no best guess are defined. ε bounds by how much what an "
    "attacker sees changes the odds of two numbers within the bounds that were given. It sets no limit to a "
    "concordance, because columns may predict numbers. Strongest attack: its concordance."
)
CROSSING = 0.001
"""The probability below which an accuracy is said to be above what a guarantee allows."""


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
    exact: bool = False  # whether it is M, and not a lower bound of it


def guarantees(judged: Judged) -> pd.DataFrame:
    """Returns a row for each formal guarantee of a configuration. The columns:

    configuration, label, defense
    odds     the factor by which the posterior odds of two labels may exceed the prior odds, as text
    guess    how often the best guess from the noisy label alone is right, as text
    epsilon  that is claimed; NaN if it is no label differential privacy
    """
    prior, found = prior_of(judged.sweep.header["data"]["balance"]), []
    for of in members(points_of(judged.trials).sort_index()):
        remarks = defenses.TABLE[of.defense].remarks(of.knobs, of.options)
        if remarks.bound is not None or remarks.epsilon is not None:
            claim = math.nan if remarks.epsilon is None else remarks.epsilon
            place = of.configuration, of.label, of.defense
            texts = (NONE, NONE) if remarks.bound is None else remarks.bound(prior)
            found.append((*place, *texts, claim))
    names = ["configuration", "label", "defense", "odds", "guess", "epsilon"]
    return pd.DataFrame(found, columns=names)


def _measured_without(judged: Judged) -> Measured | None:
    """Returns the best accuracy measured without a row's own label: a lower bound of M; None of labels that are
    numbers, which no attack names exactly.

    It is the best of the majority guess, of the local-only baseline with any number of labels (on rows whose
    labels were not known), of the attacks that were given all training labels (on test rows), and of the
    undefended federations on test rows, because a gradient carries the joint model's prediction.
    """
    if judged.facts.classes == 1:
        return None
    balance, trials, rows = judged.sweep.header["data"]["balance"], judged.trials, judged.rows
    data = judged.experiment.data
    if data.permute_labels == 1 and not data.permute_groups:
        return Measured(max(balance) / sum(balance), "permuted labels", exact=True)
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


def _most_accurate(judged: Judged) -> pd.DataFrame:
    """Returns the attack of the highest top-1 accuracy on rows whose labels it does not know.

    There is one for each configuration and panel, among the attacks that know at most as many labels as the
    report leads with. The columns are ``configuration, panel, whose, reached``, and their number, ``attacks``.
    """
    rows, place = judged.rows, ["configuration", "panel"]
    fair = rows[(rows["role"] == "attack") & (rows["known"] <= judged.facts.known)]
    if "success_unlabeled" not in fair:
        return pd.DataFrame(columns=[*place, "whose", "reached", "attacks"])
    means = fair.groupby([*place, "label"])["success_unlabeled"].mean().dropna()
    first = means.sort_values(ascending=False, kind="stable").reset_index().drop_duplicates(place)
    first = first.join(means.groupby(place).size().rename("attacks"), on=place)
    return first.rename(columns={"label": "whose", "success_unlabeled": "reached"})


def lines(judged: Judged) -> pd.DataFrame:
    """Returns a row for each claimed epsilon and panel with a figure.

    To the columns of ``guarantees`` it adds ``panel``, the accuracy that is ``allowed``, the one that is
    ``reached``, ``whose`` it is, of how many ``attacks``, and whether the line is ``crossed``. It is if so many
    labels would be named right with a probability below ``CROSSING``, divided by the number of attacks on all
    these configurations, were each named right with a probability of ``allowed``.
    """
    claimed = guarantees(judged).dropna(subset="epsilon")
    without = _measured_without(judged) if len(claimed) else None
    most = without.accuracy if without else 1.0
    allowed = [_accuracy_bound(epsilon, most) for epsilon in claimed["epsilon"]]
    found = claimed.assign(allowed=allowed).merge(_most_accurate(judged), on="configuration")
    order = found["panel"].map([*PANELS].index)
    found = found.iloc[np.lexsort((order, found["configuration"]))]
    rows = attacked_rows(judged)
    right = np.round(found["reached"].to_numpy(float) * rows)
    chance = stats.binom.sf(right - 1, rows, found["allowed"].to_numpy(float))
    # the most accurate attack is the first of all on the configuration and panel
    level = CROSSING / np.maximum(found["attacks"].to_numpy(float) * len(found), 1)
    return found.assign(crossed=chance < level)


def attacked_rows(judged: Judged) -> int:
    """Returns the number of different rows whose labels an attack names in one run and draw of known labels.
    Other seeds and draws name the labels of the same rows again."""
    data = judged.sweep.header["data"]
    rows = data.get("distinct", data.get("recorded", data["train"]))
    return max(1, int(rows) - judged.facts.known)


def warnings(judged: Judged) -> list[str]:
    """Returns a warning for every lower bound of epsilon that is above what a defense claims, and for every
    accuracy that is above what a guarantee allows if M is exact."""
    claimed, found = guarantees(judged).dropna(subset="epsilon"), lines(judged)
    if not len(claimed):
        return []
    crossed = found[found["crossed"].astype(bool)].to_dict("records")
    lower, without = epsilon_lower_bounds(judged), _measured_without(judged)
    return [_crossed(line, without) for line in crossed if without and without.exact] + [
        _refuted(of.label, of.defense, of.epsilon, guesses)
        for of in claimed.itertuples()
        if (guesses := lower.get(of.configuration)) and guesses.epsilon() > of.epsilon
    ]


def _refuted(label: str, defense: str, epsilon: float, guesses: Guesses) -> str:
    """Returns the warning that a lower bound is above the epsilon that a defense claims."""
    condition = f"if {guesses.assumed}, " if guesses.assumed else ""
    return (
        f"WARNING: {label}: {condition}with a confidence of 95 % ε is at least {guesses.epsilon():.2f}, more "
        f"than the {epsilon:g} that {defense} claims ({guesses.label}: {guesses.right} of {guesses.guessed}, "
        "canaries guessed). Do not rely on its guarantee before the code of the defense is checked."
    )


def _crossed(line: dict[str, Any], without: Measured) -> str:
    """Returns a warning with as many digits as it takes to see that the figure is above the bound."""
    reached, allowed = apart(line["reached"], line["allowed"])
    return (
        f"WARNING: {line['label']}, {PANELS[line['panel']]}: {line['whose']} names {reached} of the "
        f"labels, more than the {allowed} that ε = {line['epsilon']:g} allows where labels are permuted, so "
        f"that nothing but a row's label tells more than M = {figure(without.accuracy, 3)}. The code of the "
        "defense or of the attack is wrong: do not rely on the guarantee before it is checked."
    )


def bound_table(judged: Judged) -> pd.DataFrame:
    """Returns what formal guarantees bound and what attacks reached; without a guarantee there are no rows."""
    found = guarantees(judged)
    found = found[found["odds"] != NONE]
    if not len(found):
        return pd.DataFrame()
    measured, lower, drawn = _measured_without(judged), epsilon_lower_bounds(judged), lines(judged)
    guesses = found["configuration"].map(lower).where(found["epsilon"].notna())
    text = "posterior odds at most (times prior odds)"
    table = pd.DataFrame(
        {
            "configuration": found["label"],
            text: found["odds"],
            "best guess from the noisy label alone": found["guess"],
            "ε claimed": [f"{x:g}" if x == x else NONE for x in found["epsilon"]],
            "ε at least (95 %), from canaries": [
                f"{of.epsilon():.2f} ({of.text})" if isinstance(of, Guesses) else NONE
                for of in guesses
            ],
        }
    )
    if measured:
        table["accuracy at most"] = [
            figure(_accuracy_bound(x, measured.accuracy), 3) if x == x else NONE
            for x in found["epsilon"]
        ]
        table["beyond M at most"] = [figure(math.tanh(x / 4), 3) for x in found["epsilon"]]
    if judged.facts.classes == 1:
        table = table.iloc[:, [0, 1, 3]]
    table.index = pd.MultiIndex.from_frame(found[PLACE])
    panels = [panel for panel in PANELS if panel in {*judged.leading["panel"]}]
    for panel in panels if measured else ():
        of = drawn[drawn["panel"] == panel].set_index(PLACE)
        table[f"most accurate attack, {PANELS[panel]}"] = pd.Series(
            [f"{figure(x, 3)} {who}" for x, who in zip(of["reached"], of["whose"])],
            of.index,
            object,
        )
    for panel in panels:
        of = judged.leading[(judged.leading["panel"] == panel) & (judged.leading["leader"] != "")]
        texts = [f"{figure(x)} {leader}" for x, leader in zip(of["leak"], of["leader"])]
        texts = pd.Series(texts, of["configuration"], object).reindex(found["configuration"])
        table[f"strongest attack, {PANELS[panel]}"] = texts.to_numpy()
    if measured is None:
        return table.fillna(NONE).reset_index(drop=True)
    crossed = drawn[drawn["crossed"].astype(bool)]
    where = crossed["panel"].map(PANELS).groupby([crossed[key] for key in PLACE]).agg(", ".join)
    warned = where.map(("WARNING: {}" if measured.exact else "above the line of this M: {}").format)
    table["crosses the line"] = warned.reindex(table.index, fill_value="no")
    return table.fillna(NONE).reset_index(drop=True)


def caption(judged: Judged) -> str:
    """Returns how to read the table; "" if no configuration with a guarantee was attacked."""
    without = _measured_without(judged) if len(lines(judged)) else None
    if judged.facts.classes == 1 and len(guarantees(judged)):
        return OF_NUMBERS
    if without is None:
        return ""
    return (
        "Accuracy at most: e^ε M/(1 + (e^ε - 1) M), where M is the best accuracy without the row's own label; "
        f"here M = {figure(without.accuracy, 3)} ({without.whose}), the best that was measured. Beyond M at "
        "most: tanh(ε/4), whatever M is. Most accurate: the share of rows that an attack names right, of those "
        "whose labels it does not know. The measured M is a lower bound of the true one, so a figure that "
        "crosses the line convicts this M or the code. ε at least: from rows whose labels were coins, in runs "
        "of their own; the strongest attack, chosen on half of them, guesses so many of the others (Steinke, "
        "Nasr, Jagielski 2023). Where a cell says what columns alone are assumed to tell, labels were no "
        "coins: attacks told them from labels that a proxy drew, and the limit rests on that assumption."
    )
