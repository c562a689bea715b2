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

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vfljax import defenses
from vfljax.defenses.rows import prior_of
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import ConfigurationSummary, attacks_of, undefended
from vfljax.report.estimates import interval
from vfljax.report.lower_limits import lower_limits
from vfljax.report.stored_rows import FEDERATIONS, Table
from vfljax.report.strongest import Run, run_names, run_of

NO_LINE = "-"


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


def _measured_without(assessed: Assessed) -> Measured:
    """Returns the best accuracy measured without a row's own label: a lower bound of M.

    It is the best of the majority guess, of the local-only baseline with any number of labels (on rows whose
    labels were not known), of the attacks that were given all training labels (on test rows), and of the
    undefended federations on test rows, because a gradient carries the joint model's prediction.
    """
    best = [Measured(assessed.reference.majority, "majority guess")]
    bare = undefended(assessed.configurations)
    if bare is not None:
        best += [
            Measured(accuracy.mean, f"undefended federation {FEDERATIONS[kind]}, test rows")
            for kind, accuracy in bare.accuracy.items()
            if accuracy.count and kind in FEDERATIONS
        ]
    reached: dict[str, list[float | None]] = {}
    for row in assessed.rows.local_only:
        owners = "+".join(map(str, row.attackers))
        whose = f"local-only with {row.known:g} labels and columns of {owners}"
        reached.setdefault(whose, []).append(row.figures["success_unlabeled"])
    for row in assessed.rows.attacks:
        whose = f"{row.identity.label} with all labels, test rows"
        reached.setdefault(whose, []).append(row.figures.get("all_labels_test_success"))
    return max(best + _means(reached.items()))


def _means(reached: Iterable[tuple[str, Sequence[float | None]]]) -> list[Measured]:
    """Returns the mean over seeds of each accuracy, without those that no seed has."""
    means = [(whose, interval(by_seed)) for whose, by_seed in reached]
    return [Measured(figure.mean, whose) for whose, figure in means if figure.count]


def _most_accurate(assessed: Assessed) -> dict[tuple[int, str], Measured]:
    """Returns the attack of the highest top-1 accuracy on rows whose labels it does not know.

    There is one for each configuration and federation, among the attacks that an attacker with the leading
    number of labels can run.
    """
    names = run_names(assessed.rows.attacks)
    reached: dict[tuple[int, str], dict[Run, list[float | None]]] = {}
    for number, rows in attacks_of(assessed.rows).items():
        for row in rows:
            if not row.oracle and row.identity.known <= assessed.reference.known:
                run = run_of(row)
                by_run = reached.setdefault((number, run.panel), {})
                by_run.setdefault(run, []).append(row.figures["success_unlabeled"])
    found = {
        place: _means((names[run].name, by_seed) for run, by_seed in by_run.items())
        for place, by_run in reached.items()
    }
    return {place: max(means) for place, means in found.items() if means}


class Line(NamedTuple):
    """A configuration with a guarantee: what it allows, and what was reached in one federation."""

    configuration: ConfigurationSummary
    defense: str
    epsilon: float
    federation: str
    allowed: float  # ``_accuracy_bound`` at the measured M
    reached: Measured

    @property
    def crossed(self) -> bool:
        """Whether the reached accuracy is above the allowed one."""
        return self.reached.accuracy > self.allowed + 1e-9


def claimed(assessed: Assessed) -> list[tuple[ConfigurationSummary, str, float]]:
    """Returns every configuration with a formal guarantee, the defense that gives it, and its epsilon."""
    return [
        (c, name, epsilon)
        for c in assessed.configurations
        for name in c.defenses
        if (epsilon := defenses.TABLE[name].remarks.epsilon(*c.values_of(name))) is not None
    ]


def lines(assessed: Assessed) -> list[Line]:
    """Returns every guarantee of every configuration, with each federation's most accurate attack."""
    kept = claimed(assessed)
    if not kept:
        return []
    without, reached = _measured_without(assessed).accuracy, _most_accurate(assessed)
    return [
        Line(c, name, epsilon, federation, _accuracy_bound(epsilon, without), figure)
        for c, name, epsilon in kept
        for federation in FEDERATIONS
        if (figure := reached.get((c.number, federation))) is not None
    ]


def warnings(assessed: Assessed) -> list[str]:
    """Returns a warning for every accuracy or lower limit of epsilon that is above what a guarantee allows."""
    kept = claimed(assessed)
    if not kept:
        return []
    without, lower = _measured_without(assessed), lower_limits(assessed)
    crossed = [
        f"WARNING: {line.configuration.label}, {FEDERATIONS[line.federation]}: {line.reached.whose} names "
        f"{line.reached.accuracy:.3f} of the labels, more than the {line.allowed:.3f} that ε = "
        f"{line.epsilon:g} allows who reaches M = {without.accuracy:.3f} without the row's label "
        f"({without.whose}). A measured M is a lower bound: either somebody reaches more than this M, or the "
        "code of the defense or of the attack is wrong."
        for line in lines(assessed)
        if line.crossed
    ]
    return crossed + [
        f"WARNING: {c.label}: with a confidence of 95 % ε is at least {found.epsilon():.2f}, more than the "
        f"{epsilon:g} that {name} claims ({found.text} coins of canaries guessed)."
        for c, name, epsilon in kept
        if (found := lower.get(c.number)) and found.epsilon() > epsilon
    ]


def bound_table(assessed: Assessed) -> Table:
    """Returns what formal guarantees bound and what attacks reached; without a guarantee there are no rows."""
    federations = assessed.federations
    header = [
        *("configuration", "posterior odds at most (times prior odds)"),
        *("best guess from the noisy label alone", "ε claimed", "ε at least (95 %), from canaries"),
        *("accuracy at most", "beyond M at most"),
        *(f"most accurate attack, {FEDERATIONS[f]}" for f in federations),
        *(f"strongest attack, {FEDERATIONS[f]}" for f in federations),
        "crosses the line",
    ]
    prior, without = prior_of(assessed.rows.balance), _measured_without(assessed).accuracy
    lower = lower_limits(assessed)
    drawn = {(x.configuration.number, x.defense, x.federation): x for x in lines(assessed)}
    strongest = {(a.configuration.number, a.federation): a.strongest for a in assessed.attacked}
    rows = []
    for c in assessed.configurations:
        for name in c.defenses:
            remarks, values = defenses.TABLE[name].remarks, c.values_of(name)
            bound, epsilon = remarks.bound(*values, prior), remarks.epsilon(*values)
            if bound is None:
                continue
            on = {f: drawn.get((c.number, name, f)) for f in federations}
            worst = [strongest.get((c.number, f)) for f in federations]
            crossed = [FEDERATIONS[f] for f, line in on.items() if line and line.crossed]
            found = lower.get(c.number) if epsilon is not None else None
            rows.append(
                [
                    *(c.label, *bound, NO_LINE if epsilon is None else f"{epsilon:g}"),
                    f"{found.epsilon():.2f} ({found.text})" if found else NO_LINE,
                    NO_LINE if epsilon is None else f"{_accuracy_bound(epsilon, without):.3f}",
                    NO_LINE if epsilon is None else f"{math.tanh(epsilon / 4):.3f}",
                    *(
                        f"{x.reached.accuracy:.3f} {x.reached.whose}" if x else NO_LINE
                        for x in on.values()
                    ),
                    *(f"{w.leak} {w.name}" if w else NO_LINE for w in worst),
                    "WARNING: " + ", ".join(crossed) if crossed else "no",
                ]
            )
    return header, rows


def caption(assessed: Assessed) -> str:
    """Returns how to read the table; '' if no configuration with a guarantee was attacked."""
    if not lines(assessed):
        return ""
    without = _measured_without(assessed)
    return (
        "Accuracy at most: e^ε M/(1 + (e^ε - 1) M), where M is the best accuracy without the row's own label; "
        f"here M = {without.accuracy:.3f} ({without.whose}), the best that was measured. Beyond M at most: "
        "tanh(ε/4), whatever M is. Most accurate: top-1 on rows whose labels the attacker does not know. The "
        "measured M is a lower bound of the true one, so a figure that crosses the line convicts this M or "
        "the code. ε at least: from rows whose labels were coins, in runs of their own; the strongest attack, "
        "chosen on half of them, guesses so many of the others (Steinke, Nasr, Jagielski 2023)."
    )
