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
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vfljax import defenses, store
from vfljax.defenses.rows import prior_of
from vfljax.report.confidence import Interval, interval
from vfljax.report.knowledge_table import known_of
from vfljax.report.summary import Point, baseline, budgets_of, marks, undefended
from vfljax.report.worst import FEDERATIONS, Run, attack_on, names_by_panel
from vfljax.store import Sweep

Table = tuple[list[str], list[list[str]]]
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


def measured_without(sweep: Sweep, points: Sequence[Point]) -> Measured:
    """The best accuracy measured of anybody who does not use a row's own label: a lower bound of M.

    It is the best of the majority guess, of staying away with any number of labels (on rows whose labels
    were not known), of the attacks that were given all training labels (on test rows), and of the undefended
    federations on test rows, for a gradient carries the joint model's prediction.
    """
    best = [Measured(baseline(sweep)["majority"], "majority guess")]
    plain = undefended(points)
    if plain is not None:
        best += [
            Measured(accuracy.mean, f"undefended federation {FEDERATIONS[kind]}, test rows")
            for kind, accuracy in plain.accuracy.items()
            if accuracy.count and kind in FEDERATIONS
        ]
    for (_, known), rows in _grouped(sweep.alone.to_pylist(), "attackers", "known"):
        figure = interval(row["success_unlabeled"] for row in rows)
        parties = "+".join(map(str, store.identity_of(rows[0]).attackers))
        best += _measured(figure, f"staying away with {known} labels and columns of {parties}")
    for (attack,), rows in _grouped(sweep.attacks.to_pylist(), "label"):
        figure = interval(row.get("all_labels_test_success") for row in rows)
        best += _measured(figure, f"{attack} with all labels, test rows")
    return max(best)


def _measured(figure: Interval, whose: str) -> list[Measured]:
    return [Measured(figure.mean, whose)] if figure.count else []


def _grouped(rows: Sequence[Mapping], *columns: str) -> Iterator[tuple[tuple, list[Mapping]]]:
    groups: dict[tuple, list[Mapping]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    yield from groups.items()


def most_accurate(sweep: Sweep) -> dict[tuple[int, str], Measured]:
    """By point and panel, the attack of the highest top-1 accuracy on rows whose labels it does not know, of
    those that an attacker with the leading budget of labels can run."""
    attacks = sweep.attacks.to_pylist()
    oracle = marks(sweep).oracle
    most = next(iter(budgets_of(sweep)))
    names = names_by_panel(attacks)
    columns = sweep.results.select(["setting", "point"]).to_pylist()
    point_of = {row["setting"]: row["point"] for row in columns}
    figures: dict[tuple[int, Run], list[float | None]] = {}
    for row in attacks:
        if row["label"] not in oracle and known_of(row) <= most:
            key = point_of[row["setting"]], Run(attack_on(row), row["point"])
            figures.setdefault(key, []).append(row["success_unlabeled"])
    out: dict[tuple[int, str], Measured] = {}
    for (point, run), values in figures.items():
        place = point, run.on.panel
        for one in _measured(interval(values), names[run]):
            out[place] = max(one, out.get(place, one))
    return out


class Line(NamedTuple):
    """A point with a guarantee: what it allows, and what was reached in one panel of the report."""

    point: Point
    defense: str
    epsilon: float
    federation: str
    allowed: float  # ``accuracy_bound`` at the measured M
    reached: Measured

    @property
    def crossed(self) -> bool:
        """Whether the figure is beyond the line."""
        return self.reached.accuracy > self.allowed + 1e-9


def lines(sweep: Sweep, points: Sequence[Point]) -> list[Line]:
    """Every guarantee of every point, with the most accurate attack of every federation."""
    kept = [
        (point, name, epsilon)
        for point in points
        for name in point.defenses
        if (epsilon := defenses.TABLE[name].remarks.epsilon(*point.values_of(name))) is not None
    ]
    if not kept:
        return []
    without, reached = measured_without(sweep, points).accuracy, most_accurate(sweep)
    return [
        Line(point, name, epsilon, federation, accuracy_bound(epsilon, without), figure)
        for point, name, epsilon in kept
        for federation in FEDERATIONS
        if (figure := reached.get((point.number, federation))) is not None
    ]


def warnings(sweep: Sweep, points: Sequence[Point]) -> list[str]:
    """A line for every figure that crosses what its guarantee allows."""
    without = measured_without(sweep, points)
    return [
        f"WARNING: {line.point.label}, {FEDERATIONS[line.federation]}: {line.reached.whose} names "
        f"{line.reached.accuracy:.3f} of the labels, more than the {line.allowed:.3f} that ε = "
        f"{line.epsilon:g} allows who reaches M = {without.accuracy:.3f} without the row's label "
        f"({without.whose}). A measured M is a lower bound: either somebody reaches more than this M, or the "
        "code of the defense or of the attack is wrong."
        for line in lines(sweep, points)
        if line.crossed
    ]


def bound_table(sweep: Sweep, points: Sequence[Point]) -> Table:
    """What defenses with a formal guarantee bound, and beside it what the attacks reached; no rows
    without one."""
    prior = prior_of(sweep.header["data"]["balance"])
    federations = list(dict.fromkeys(f for p in points for f in p.worst))
    header = [
        *("setting", "posterior odds at most (times prior odds)"),
        *("best guess from the noisy label alone", "accuracy at most", "beyond M at most"),
        *(f"most accurate attack, {FEDERATIONS[f]}" for f in federations),
        *(f"worst attack, {FEDERATIONS[f]}" for f in federations),
        "crosses the line",
    ]
    on = {(id(line.point), line.defense, line.federation): line for line in lines(sweep, points)}
    without, rows = measured_without(sweep, points).accuracy, []
    for p in points:
        for name in p.defenses:
            remarks, values = defenses.TABLE[name].remarks, p.values_of(name)
            bound, epsilon = remarks.bound(*values, prior), remarks.epsilon(*values)
            if bound is None:
                continue
            drawn = [on.get((id(p), name, f)) for f in federations]
            worst = [p.worst.get(f) for f in federations]
            crossed = [f for f, line in zip(federations, drawn) if line and line.crossed]
            rows.append(
                [
                    *(p.label, *bound),
                    NO_LINE if epsilon is None else f"{accuracy_bound(epsilon, without):.3f}",
                    NO_LINE if epsilon is None else f"{advantage_bound(epsilon):.3f}",
                    *(
                        f"{x.reached.accuracy:.3f} {x.reached.whose}" if x else NO_LINE
                        for x in drawn
                    ),
                    *(f"{w.leak} {w.name}" if w else NO_LINE for w in worst),
                    "WARNING: " + ", ".join(FEDERATIONS[f] for f in crossed) if crossed else "no",
                ]
            )
    return header, rows


def caption(sweep: Sweep, points: Sequence[Point]) -> str:
    """How the table is to be read; '' without a guarantee."""
    if not lines(sweep, points):
        return ""
    without = measured_without(sweep, points)
    return (
        "Accuracy at most: e^ε M/(1 + (e^ε - 1) M), where M is the best accuracy without the row's own label; "
        f"here M = {without.accuracy:.3f} ({without.whose}), the best that was measured. Beyond M at most: "
        "tanh(ε/4), whatever M is. Most accurate: top-1 on rows whose labels the attacker does not know. The "
        "measured M is a lower bound of the true one, so a figure that crosses the line convicts this M or "
        "the code."
    )
