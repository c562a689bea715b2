"""The report's tables: headers and rows of text, from points and what a sweep stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from vfljax import attacks as attack_table
from vfljax import store
from vfljax.report import findings, judging, published, summary, verdicts
from vfljax.report.worst import FEDERATIONS, WORDS, AttackOn, attack_on, titles
from vfljax.sweep.experiment import Experiment

Table = tuple[list[str], list[list[str]]]


class Section(NamedTuple):
    """One table of the report."""

    title: str
    caption: str
    table: Table
    leads: bool = False  # stands before the findings


def sections(
    sweep: store.Sweep, experiment: Experiment, points: Sequence[summary.Point]
) -> list[Section]:
    """Every table of the report that has rows, the worst case first."""
    base = summary.baseline(sweep)
    leading = next(iter(summary.budgets_of(sweep)))
    every = [
        Section(
            "Worst case",
            "For every setting the strongest of the attacks run by somebody who knows at most "
            f"{leading} labels, chosen on one half of the rows whose labels he does not know and scored on "
            "the other. Whoever takes no part in any federation, and fits his columns to as many labels, is "
            "a candidate too; excess: what the worst case leaks beyond him, seed by seed. Of two classes the "
            "attacker is granted which way its scores point (one bit, taken from the first half). Null band: "
            "what the same scores reach when labels are permuted, 95 times of 100. Chance: "
            f"{base['chance']:.2f}. {_alone(base)}Oracle forms know more than an attacker can; they "
            "stand beside the worst case, not in it.",
            worst_rows(points, base),
            leads=True,
        ),
        Section(
            "Verdicts",
            "Each fold chooses the strongest attack on the other seeds and scores it on one: leak is their "
            "mean, of attackers who know at most "
            f"{leading} labels and of who takes no part. Upper limits are of every attack, so that they "
            "choose none; how often limits and verdicts are right is simulated in "
            f"analysis/results/judging. {judging.COVERS}",
            verdicts.verdict_rows(sweep, points),
            leads=True,
        ),
        Section(
            "Worst case by the number of known labels",
            "Of all attacks that know at most so many, and of whoever stays away with as many; excess: "
            "beyond him.",
            budget_rows(points),
        ),
        Section(
            "Published attacks against attackers who know the defense",
            "Where the strongest attack is in no paper: it takes the defense into account, or learns from "
            "what crossed the wire (probe). Published: the strongest of those run here, or staying away. "
            + _alone(base),
            adaptive_rows(points, base),
            leads=True,
        ),
        Section(
            "Beside the published figures",
            published.caption(sweep, experiment),
            published.table(sweep, experiment),
            leads=True,
        ),
        Section(
            f"Strengths chosen on validation rows (at most {summary.TOLERANCE:.0%} accuracy), reported "
            "on test rows",
            "",
            choice_rows(points),
        ),
        Section(
            "Label DP: what epsilon bounds, what attacks reached",
            "",
            findings.bound_table(sweep, points),
        ),
        Section(
            "Attacks beside their baselines",
            "Top-1 on all training rows. An attack that does not beat the same few labels without any "
            "federation has learned nothing from taking part.",
            baseline_rows(sweep),
        ),
        Section(
            "By the number of known labels",
            "Top-1 on the rows whose labels are not known.",
            known_rows(sweep),
        ),
        Section(
            "All settings",
            "Mean over seeds. Attack columns: top-1 success on all training rows; worst: "
            f"{base['scale']}.",
            summary.table(points),
        ),
        Section("Attacks", "", attack_rows(sweep)),
    ]
    return [section for section in every if section.table[1]]


def _alone(base: dict[str, Any]) -> str:
    if math.isnan(base["alone"]):
        return ""
    return (
        f"Without any federation, logistic regression on the same known labels and the attacker's "
        f"columns: {base['alone']:.3f}. "
    )


def leak_rows(points: Sequence[summary.Point]) -> Table:
    """Every attack's figures at every setting and federation, means over seeds."""
    header = ["setting", "attack", "federation", *summary.FIGURES]
    rows = []
    for p in points:
        for key, figures in p.figures.items():
            values = [figures[name] for name in summary.FIGURES]
            rows.append([p.label, *key, *(f"{v.mean:.4f}" if v.count else "" for v in values)])
    return header, rows


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
    for label, a in store.attack_summary(sweep.workdir).items():
        if a["status"] == "skipped":
            rows.append([label, "skipped: " + a["reason"], *[""] * 7])
            continue
        published_steps = steps_published(label)
        known = ", ".join(f"{p['known']:g}" for p in a["knobs"] if "known" in p) or "0"
        known = a.get("labels") or known
        rows.append(
            [
                label,
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


def steps_published(label: str) -> int:
    """Optimizer steps of the published attack; 0 of one that trains nothing, or takes no part."""
    name = label.split("/")[0]
    return 0 if name == store.ALONE else attack_table.TABLE[name].published_steps


def baseline_rows(sweep: store.Sweep) -> Table:
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
    arms = {p.number: p.label for p in summary.points(sweep)}
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


def worst_rows(points: Sequence[summary.Point], base: dict[str, Any]) -> Table:
    """The headline: the strongest attack of every point and federation, and what it means."""
    scale = base["scale"]
    header = [
        *("setting", "federation", "worst attack", scale, "excess", "advantage over chance"),
        *("null band (95 %)", "tells more than nothing", "worst oracle form", f"its {scale}"),
    ]
    rows = []
    for p in points:
        for federation, worst in p.worst.items():
            oracle = p.oracle.get(federation)
            rows.append(
                [
                    *(p.label, FEDERATIONS[federation], worst.name),
                    *(str(worst.leak), str(worst.excess), str(worst.advantage)),
                    f"{worst.null:.3f}",
                    "yes" if worst.tells else "no",
                    *((oracle.name, str(oracle.leak)) if oracle else ("-", "-")),
                ]
            )
    return header, rows


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
            cells = [f"{w.leak} {w.name}, excess {w.excess}" if w else "-" for w in worst]
            if any(worst):
                rows.append([p.label, words, *cells])
    return header, rows


def known_rows(sweep: store.Sweep) -> Table:
    """Attack success by the number of known labels, where that is an axis."""
    point_of = {
        r["setting"]: r["point"] for r in sweep.results.select(["setting", "point"]).to_pylist()
    }
    arms = {p.number: p.label for p in summary.points(sweep)}
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


def choice_rows(points: Sequence[summary.Point]) -> Table:
    header = [
        "defense",
        "federation",
        "chosen strength",
        "test accuracy",
        "change",
        "worst attack",
        "leak",
        "excess",
        "change",
    ]
    rows = []
    for c in summary.choices(points):
        if c.point is None:
            rows.append([c.arm, FEDERATIONS[c.federation], "none keeps the accuracy", *[""] * 6])
            continue
        worst = c.point.worst[c.federation]
        rows.append(
            [
                c.arm,
                FEDERATIONS[c.federation],
                c.point.label,
                str(c.point.accuracy[c.federation]),
                str(c.accuracy_change),
                worst.name,
                str(worst.leak),
                str(worst.excess),
                str(c.leak_change),
            ]
        )
    return header, rows


def adaptive_rows(points: Sequence[summary.Point], base: dict[str, Any]) -> Table:
    """The strongest attack of the papers beside the strongest of all, where somebody who knows the
    defense does better."""
    header = [
        *("setting", "federation", "strongest published attack", base["scale"]),
        *("strongest attack", base["scale"], "excess", "beyond the published ones run here"),
    ]
    rows = []
    for p in points:
        for federation, worst in p.worst.items() if p.defended else ():
            published = p.published.get(federation)
            if published is None or published.name == worst.name:
                continue
            rows.append(
                [
                    *(p.label, FEDERATIONS[federation], published.name, str(published.leak)),
                    *(worst.name, str(worst.leak), str(worst.excess)),
                    findings.verdict(published, worst),
                ]
            )
    return header, rows
