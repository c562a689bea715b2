"""What formal guarantees allow an attacker, and whether a figure crosses that line.

    accuracy <= e^ε M / (1 + (e^ε - 1) M)          accuracy - M <= tanh(ε/4)

M is the best accuracy that anybody reaches from everything but the row's own label. Under ε-label-DP the
posterior odds of a row's likeliest class against the rest are at most e^ε times what they are without its
label. The first bound is that statement for a probability; it is concave in M, so it holds for means
over rows. Its largest distance to M, at M = 1/(1 + e^(ε/2)), is the second. For M = 1/C the first is
the rate at which randomized response keeps labels, e^ε/(e^ε + C - 1).

The bounds are ours; the additive one sharpens 1 - 2/(1 + e^ε) of arXiv 2202.12968.

M is measured, so it is a lower bound of the true one, and the line drawn with it may be too low. A figure
that crosses it therefore convicts the measured M or the code, never the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeVar

from vfljax import defenses
from vfljax.defenses.rows import prior_of
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import ConfigurationSummary, attacks_of, undefended
from vfljax.report.estimates import Interval, interval
from vfljax.report.stored_rows import FEDERATIONS, Table
from vfljax.report.strongest import run_names, run_of

NO_LINE = "-"


def accuracy_bound(epsilon: float, without: float) -> float:
    """The most accuracy that ε-label-DP allows who reaches ``without`` (M) not knowing the row's label.

    epsilon = 0 allows M, and infinity 1; so does M = 1.
    """
    if not (epsilon >= 0 and 0 < without <= 1):
        raise ValueError(
            f"epsilon={epsilon}, without={without}: epsilon is at least 0, and M in (0, 1]"
        )
    return without / (without + (1 - without) * math.exp(-epsilon))


def advantage_bound(epsilon: float) -> float:
    """The most that ε-label-DP allows beyond M, in accuracy, whatever M is: tanh(ε/4)."""
    if not epsilon >= 0:
        raise ValueError(f"epsilon={epsilon}: it is at least 0")
    return math.tanh(epsilon / 4)


class Measured(NamedTuple):
    """An accuracy, as the mean over seeds, and whose it is."""

    accuracy: float
    whose: str


def measured_without(assessed: Assessed) -> Measured:
    """Returns the best accuracy measured of anybody who does not use a row's own label: a lower bound of M.

    It is the best of the majority guess, of the local-only baseline with any number of labels (on rows whose
    labels were not known), of the attacks that were given all training labels (on test rows), and of the
    undefended federations on test rows, for a gradient carries the joint model's prediction.
    """
    best = [Measured(assessed.reference.majority, "majority guess")]
    plain = undefended(assessed.configurations)
    if plain is not None:
        best += [
            Measured(accuracy.mean, f"undefended federation {FEDERATIONS[kind]}, test rows")
            for kind, accuracy in plain.accuracy.items()
            if accuracy.count and kind in FEDERATIONS
        ]
    if assessed.rows is None:
        return max(best)
    local = (((r.attackers, r.known), r) for r in assessed.rows.local_only)
    for (attackers, known), rows in _grouped(local).items():
        figure = interval(row.figures["success_unlabeled"] for row in rows)
        parties = "+".join(map(str, attackers))
        best += _measured(figure, f"local-only with {known:g} labels and columns of {parties}")
    attacks = ((row.identity.label, row) for row in assessed.rows.attacks)
    for label, rows in _grouped(attacks).items():
        figure = interval(row.figures.get("all_labels_test_success") for row in rows)
        best += _measured(figure, f"{label} with all labels, test rows")
    return max(best)


def _measured(figure: Interval, whose: str) -> list[Measured]:
    return [Measured(figure.mean, whose)] if figure.count else []


Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")


def _grouped(pairs: Iterable[tuple[Key, Row]]) -> dict[Key, list[Row]]:
    groups: dict[Key, list[Row]] = {}
    for key, row in pairs:
        groups.setdefault(key, []).append(row)
    return groups


def most_accurate(assessed: Assessed) -> dict[tuple[int, str], Measured]:
    """Returns the attack of the highest top-1 accuracy on rows whose labels it does not know.

    It is by configuration and federation, of the attacks that an attacker with the leading number of labels
    can run.
    """
    if assessed.rows is None:
        return {}
    names = run_names(assessed.rows.attacks)
    figures = (
        ((number, run_of(row)), row.figures["success_unlabeled"])
        for number, rows in attacks_of(assessed.rows).items()
        for row in rows
        if not row.oracle and row.identity.known <= assessed.reference.known
    )
    out: dict[tuple[int, str], Measured] = {}
    for (number, run), values in _grouped(figures).items():
        place = number, run.panel
        for measured in _measured(interval(values), names[run].name):
            out[place] = max(measured, out.get(place, measured))
    return out


class Line(NamedTuple):
    """A configuration with a guarantee: what it allows, and what was reached in one federation."""

    configuration: ConfigurationSummary
    defense: str
    epsilon: float
    federation: str
    allowed: float  # ``accuracy_bound`` at the measured M
    reached: Measured

    @property
    def crossed(self) -> bool:
        """Whether the figure is beyond the line."""
        return self.reached.accuracy > self.allowed + 1e-9


def lines(assessed: Assessed) -> list[Line]:
    """Every guarantee of every configuration, with the most accurate attack of every federation."""
    kept = [
        (c, name, epsilon)
        for c in assessed.configurations
        for name in c.defenses
        if (epsilon := defenses.TABLE[name].remarks.epsilon(*c.values_of(name))) is not None
    ]
    if not kept:
        return []
    without, reached = measured_without(assessed).accuracy, most_accurate(assessed)
    return [
        Line(
            configuration=c,
            defense=name,
            epsilon=epsilon,
            federation=federation,
            allowed=accuracy_bound(epsilon, without),
            reached=figure,
        )
        for c, name, epsilon in kept
        for federation in FEDERATIONS
        if (figure := reached.get((c.number, federation))) is not None
    ]


def warnings(assessed: Assessed) -> list[str]:
    """A line for every figure that crosses what its guarantee allows."""
    crossed = [line for line in lines(assessed) if line.crossed]
    without = measured_without(assessed) if crossed else None
    return [
        f"WARNING: {line.configuration.label}, {FEDERATIONS[line.federation]}: {line.reached.whose} names "
        f"{line.reached.accuracy:.3f} of the labels, more than the {line.allowed:.3f} that ε = "
        f"{line.epsilon:g} allows who reaches M = {without.accuracy:.3f} without the row's label "
        f"({without.whose}). A measured M is a lower bound: either somebody reaches more than this M, or the "
        "code of the defense or of the attack is wrong."
        for line in crossed
        if without is not None
    ]


def bound_table(assessed: Assessed) -> Table:
    """What defenses with a formal guarantee bound, and what the attacks reached; no rows without one."""
    federations = assessed.federations
    header = [
        *("configuration", "posterior odds at most (times prior odds)"),
        *("best guess from the noisy label alone", "accuracy at most", "beyond M at most"),
        *(f"most accurate attack, {FEDERATIONS[f]}" for f in federations),
        *(f"strongest attack, {FEDERATIONS[f]}" for f in federations),
        "crosses the line",
    ]
    if assessed.rows is None:
        return header, []
    prior, without = prior_of(assessed.rows.balance), measured_without(assessed).accuracy
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
            rows.append(
                [
                    *(c.label, *bound),
                    NO_LINE if epsilon is None else f"{accuracy_bound(epsilon, without):.3f}",
                    NO_LINE if epsilon is None else f"{advantage_bound(epsilon):.3f}",
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
    """How the table is to be read; '' without a guarantee."""
    if not lines(assessed):
        return ""
    without = measured_without(assessed)
    return (
        "Accuracy at most: e^ε M/(1 + (e^ε - 1) M), where M is the best accuracy without the row's own label; "
        f"here M = {without.accuracy:.3f} ({without.whose}), the best that was measured. Beyond M at most: "
        "tanh(ε/4), whatever M is. Most accurate: top-1 on rows whose labels the attacker does not know. The "
        "measured M is a lower bound of the true one, so a figure that crosses the line convicts this M or "
        "the code."
    )
