"""The report's tables: headers and rows of text, from points and what a sweep stored."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from vfljax import attacks as attack_table
from vfljax import store
from vfljax.report import (
    captions,
    choosing,
    findings,
    guarantees,
    rules,
    strengths,
    summary,
    times,
    verdicts,
)
from vfljax.report.worst import FEDERATIONS, WORDS, AttackOn, attack_on, titles
from vfljax.sweep.experiment import Experiment

Table = tuple[list[str], list[list[str]]]


class Section(NamedTuple):
    """One table of the report."""

    title: str
    caption: str  # paragraphs, an empty line between them
    table: Table
    leads: bool = False  # stands before the findings


class Extra(NamedTuple):
    """What the caller of a report adds to it, such as a paper's table and figure (``vfljax.papers``)."""

    sections: tuple[Section, ...] = ()
    draw: Callable[[], Figure | None] = lambda: None


Extend = Callable[[store.Sweep, Experiment], Extra]


def no_extra(sweep: store.Sweep, experiment: Experiment) -> Extra:
    """Returns an ``Extra`` that adds nothing."""
    del sweep, experiment
    return Extra()


def sections(
    sweep: store.Sweep,
    experiment: Experiment,
    points: Sequence[summary.Point],
    extra: Sequence[Section] = (),
) -> list[Section]:
    """Every table of the report that has rows, the worst case first; ``extra`` are the caller's."""
    base = summary.baseline(sweep)
    leading = next(iter(summary.budgets_of(sweep)))
    every = [
        Section(
            "Worst case",
            captions.worst_case(points, base, leading, experiment.data.permute_labels),
            verdicts.verdict_rows(points),
            leads=True,
        ),
        Section(
            "Strengths that keep the accuracy",
            captions.strengths(experiment.goal.max_cost),
            choice_rows(points, base["majority"], experiment.goal.max_cost),
            leads=True,
        ),
        Section(
            "Worst case by the number of known labels",
            "The strongest of all attacks that know at most so many labels, and of staying away with as "
            "many; excess: over staying away. Of more candidates a fold may pick a worse one, so that a "
            "figure may fall with more labels where the strongest attack cannot.",
            budget_rows(points),
        ),
        Section(
            "Published attacks against attackers who know the defense",
            captions.adaptive(),
            adaptive_rows(points),
            leads=True,
        ),
        *extra,
        Section(
            "Label DP: what epsilon bounds, what attacks reached",
            guarantees.caption(sweep, points),
            guarantees.bound_table(sweep, points),
        ),
        Section(
            "Attacks beside their baselines",
            "Top-1 on all training rows. An attack that does not beat the same few labels without any "
            "federation has learned nothing from taking part.",
            baseline_rows(sweep, points),
        ),
        Section(
            "By the number of known labels",
            "Top-1 on the rows whose labels are not known.",
            known_rows(sweep, points),
        ),
        Section(
            "All settings",
            "Mean over seeds. Attack columns: top-1 success on all training rows; worst: "
            f"{base['scale']}.",
            summary.table(points),
        ),
        Section("Attacks", "", attack_rows(sweep)),
        Section("Seconds of training and of each attack", times.CAPTION, times.table(sweep)),
    ]
    return [section for section in every if section.table[1]]


def leak_rows(points: Sequence[summary.Point]) -> Table:
    """Every attack's figures at every setting and federation, means over seeds."""
    header = ["setting", "attack", "federation", *summary.FIGURES]
    rows = []
    for p in points:
        for key, figures in p.figures.items():
            values = [figures[name] for name in summary.FIGURES]
            rows.append([p.label, *key, *(f"{v.mean:.4f}" if v.count else "" for v in values)])
    return header, rows


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The text of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [
        "| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |"
        for row in (header, ["---"] * len(header), *rows)
    ]


def attack_rows(sweep: store.Sweep) -> Table:
    """Each attack form: what it was given, what it cost, and how much less than published."""
    header = [
        "attack",
        "federation",
        "known labels",
        "oracle or diagnostic",
        "optimizer steps",
        "published steps",
        "seconds",
        "compiles / shapes of view",
        "settings",
    ]
    rows, trained = [], summary.kinds_trained(sweep)
    for a in store.attack_summary(sweep.workdir).values():
        if a["status"] == "skipped":
            rows.append([a["label"], "skipped: " + a["reason"], *[""] * 7])
            continue
        published_steps = steps_published(a["attack"])
        known = ", ".join(f"{p['known']:g}" for p in a["knobs"] if "known" in p) or "0"
        known = a.get("labels") or known
        rows.append(
            [
                rules.title(a),
                ", ".join(WORDS[k] for k in summary.kinds_of(a) if k in trained) or "none",
                known,
                "yes" if a.get("oracle") else "no",
                f"{a['steps']:,}",
                f"{published_steps:,}" if published_steps else "0",
                f"{a['seconds']:.1f}",
                f"{a['compiles']} / {a['views']}",
                str(a["settings"]),
            ]
        )
    return header, rows


def steps_published(name: str) -> int:
    """Optimizer steps of the published attack; 0 of one that trains nothing, or takes no part."""
    return 0 if name == store.ALONE else attack_table.TABLE[name].published_steps


def baseline_rows(sweep: store.Sweep, points: Sequence[summary.Point]) -> Table:
    """Passive figures beside what the same labels give without the federation, and with all."""
    header = [
        "attack",
        "setting",
        "success",
        "success, test rows",
        "untrained bottom",
        "logistic regression, same labels",
        "same attack, all labels (upper bound)",
    ]
    arms = {p.number: p.label for p in points}
    point_of = {
        r["setting"]: r["point"] for r in sweep.results.select(["setting", "point"]).to_pylist()
    }
    grouped: dict[tuple[AttackOn, int], list[dict]] = {}
    for row in sweep.attacks.to_pylist():
        if row.get("logistic_success") is not None and row["point"] == 0:
            grouped.setdefault((attack_on(row), point_of[row["setting"]]), []).append(row)
    names = titles(key for key, _ in grouped)
    fields = (
        "success",
        "test_success",
        "untrained_success",
        "logistic_success",
        "all_labels_success",
    )
    return header, [
        [names[key], arms[point], *(str(summary.interval(r[f] for r in rows)) for f in fields)]
        for (key, point), rows in grouped.items()
    ]


def budget_rows(points: Sequence[summary.Point]) -> Table:
    """The worst case with every number of known labels, where there are several."""
    counts = sorted({known for p in points for known in p.by_budget})
    header = ["setting", "federation", *(f"{known} labels" for known in counts)]
    if len(counts) < 2:
        return header, []
    rows = []
    for p in points:
        for federation, words in FEDERATIONS.items():
            worst = [p.by_budget.get(known, {}).get(federation) for known in counts]
            cells = [f"{w.leak} {w.name}, excess {w.excess.signed}" if w else "-" for w in worst]
            if any(worst):
                rows.append([p.label, words, *cells])
    return header, rows


def known_rows(sweep: store.Sweep, points: Sequence[summary.Point]) -> Table:
    """Attack success by the number of known labels, where that is an axis."""
    point_of = {
        r["setting"]: r["point"] for r in sweep.results.select(["setting", "point"]).to_pylist()
    }
    arms = {p.number: p.label for p in points}
    grouped: dict[tuple[AttackOn, int], dict[float, list[dict]]] = {}
    for row in sweep.attacks.to_pylist():
        known = row.get("attack.known")
        if known is not None:
            key = (attack_on(row), point_of[row["setting"]])
            grouped.setdefault(key, {}).setdefault(known, []).append(row)
    grouped = {key: by_count for key, by_count in grouped.items() if len(by_count) > 1}
    names = titles(key for key, _ in grouped)
    counts = sorted({known for by_count in grouped.values() for known in by_count})
    header = ["attack", "setting", *(f"{known:g} labels" for known in counts)]
    return header, [
        [
            *(names[key], arms[point]),
            *(
                str(summary.interval(r["success_unlabeled"] for r in by_count.get(known, [])))
                for known in counts
            ),
        ]
        for (key, point), by_count in grouped.items()
    ]


def choice_rows(
    points: Sequence[summary.Point], majority: float, max_cost: float = choosing.MEAN_LOSS
) -> Table:
    """Of every defense and federation, the strength that keeps the accuracy and leaks least."""
    header = [
        *("defense", "federation", "strength", "chosen by", "test accuracy", "change"),
        *("leak", "excess over staying away", "change to undefended", "verdict on this strength"),
    ]
    rows, judged = [], {(id(v.point), v.federation): v for v in verdicts.verdicts(points)}
    for choice in strengths.choices(points, majority, max_cost):
        place = [choice.arm, FEDERATIONS[choice.federation]]
        if choice.point is None:
            rows.append([*place, "none keeps the accuracy", *[""] * (len(header) - 3)])
            continue
        rows.append(
            [
                *(*place, choice.point.label, choice.chosen),
                *(str(choice.point.accuracy[choice.federation]), str(choice.accuracy_change)),
                *map(_figure, (choice.leak, choice.excess, choice.change), ("", "+", "+")),
                judged[id(choice.point), choice.federation].text,
            ]
        )
    return header, rows


def _figure(value: float, sign: str) -> str:
    return "-" if math.isnan(value) else f"{value:{sign}.3f}"


def adaptive_rows(points: Sequence[summary.Point]) -> Table:
    """The strongest attack of the papers beside the strongest of all, where these differ."""
    header = [
        *("setting", "federation", "strongest published attack", "leaks (at least to at most)"),
        *("strongest attack", "leaks (at least to at most)", "reads more by", "which is"),
    ]
    rows = []
    for p in points:
        for federation, worst in p.worst.items() if p.defended else ():
            published = p.published.get(federation)
            if published is None or published.name == worst.name:
                continue
            more = findings.beyond(published, worst)
            rows.append(
                [
                    *(p.label, FEDERATIONS[federation], published.name, str(published.leak)),
                    *(worst.name, str(worst.leak), more.signed, findings.more_in_words(more)),
                ]
            )
    return header, rows
