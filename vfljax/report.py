"""``report.html``: one self-contained file from a stored sweep, and its figures as PNG."""

from __future__ import annotations

import base64
import html
import io
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from vfljax import attacks as attack_table
from vfljax import figures, findings, judging, published, store
from vfljax.findings import FEDERATIONS

CSS = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:2rem auto;padding:0 1rem;color:#1a1a1a}
h1{font-size:1.6rem;margin-bottom:.2rem} h2{font-size:1.15rem;margin-top:2.2rem;
border-bottom:1px solid #ddd} .sub{color:#666} img{max-width:100%;height:auto}
li{margin:.45rem 0} .scroll{overflow-x:auto} table{border-collapse:collapse;font-size:12.5px}
th,td{padding:.25rem .55rem;text-align:right;border-bottom:1px solid #eee;white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:#fff}
th{background:#f6f6f6} tr:hover td{background:#f3f7fb} pre{background:#f6f6f6;padding:.8rem;
overflow-x:auto;font-size:12.5px} .note{background:#fff8e6;padding:.6rem 1rem;border-left:3px solid #e6a700}
"""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(h)}</th>" for h in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _save(figure: Figure, folder: pathlib.Path, name: str) -> str:
    """The figure as PNG beside the report; returns it as an <img> with the data inside."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    plt.close(figure)
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    temporary.write_bytes(buffer.getvalue())
    os.replace(temporary, folder / f"{name}.png")
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'


WIDE = 8  # attacks; beyond, the terminal's table has the worst ones only


def text_table(points: Sequence[judging.Point]) -> str:
    """The summary for a terminal: means over seeds, one line a point."""
    header, rows = judging.table(points)
    attacks = {name for p in points for name in p.attacks}
    if len(attacks) > WIDE:  # the report has them all
        keep = [i for i, name in enumerate(header) if name not in attacks]
        header, rows = [header[i] for i in keep], [[row[i] for i in keep] for row in rows]
    names = {
        "accuracy split": "acc split",
        "accuracy malicious": "acc malic",
        "accuracy no_split": "acc nosplit",
        "AUC malicious": "AUC malic",
        "AUC no_split": "AUC nosplit",
    }
    short = [names.get(h, h) for h in header]
    short = [
        h.replace("finetune_bottom", "tuned").replace("direct/", "").replace("_negative", "_neg")
        for h in short
    ]
    return _aligned(short, [[row[0], *(_mean_only(c) for c in row[1:])] for row in rows])


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal, the first column to the left."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(
            c.ljust(w) if not i else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _mean_only(cell: str) -> str:
    value, _, rest = cell.partition(" ± ")
    attack = rest.partition(" ")[2]
    for long, brief in (("finetune_bottom", "tuned"), ("direct/", ""), ("_negative", "_neg")):
        attack = attack.replace(long, brief)
    return f"{value} {attack}".strip()


def _attack_rows(sweep: store.Sweep) -> tuple[list[str], list[list[str]]]:
    """Each attack form: what it was given, what it cost, and how much less than published."""
    header = [
        "attack",
        "federation",
        "known labels",
        "oracle or diagnostic",
        "optimizer steps",
        "published steps",
        "seconds",
        "settings",
    ]
    rows = []
    for label, a in judging.attack_summary(sweep).items():
        if a["status"] == "skipped":
            rows.append([label, "skipped: " + a["reason"], *[""] * 6])
            continue
        name = label.split("/")[0]
        full = _published_steps(name)
        known = ", ".join(f"{p['known']:g}" for p in a["knobs"] if "known" in p) or "0"
        known = "all" if a.get("oracle") else known
        rows.append(
            [
                label,
                a["structure"],
                known,
                "yes" if a.get("oracle") else "no",
                f"{a['steps']:,}",
                f"{full:,}" if full else "0",
                f"{a['seconds']:.1f}",
                str(a["settings"]),
            ]
        )
    return header, rows


PUBLISHED = ("passive", "active", "two_stage")  # model completion; a probe's steps are our own


def _published_steps(name: str) -> int:
    import inspect

    steps = inspect.signature(attack_table.TABLE[name]).parameters.get("steps")
    return int(steps.default) if steps is not None and name in PUBLISHED else 0


def _baseline_rows(sweep: store.Sweep) -> tuple[list[str], list[list[str]]]:
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
    arms = {p.number: p.label for p in judging.points(sweep)}
    point_of = {
        r["setting"]: r["point"] for r in sweep.results.select(["setting", "point"]).to_pylist()
    }
    grouped: dict[tuple[str, int], list[dict]] = {}
    for row in sweep.attacks.to_pylist():
        if row.get("logistic_success") is not None and row["point"] == 0:
            grouped.setdefault((row["attack"], point_of[row["setting"]]), []).append(row)
    fields = (
        "success",
        "test_success",
        "untrained_success",
        "logistic_success",
        "all_labels_success",
    )
    return header, [
        [attack, arms[point], *(str(judging.interval(r[f] for r in own)) for f in fields)]
        for (attack, point), own in grouped.items()
    ]


def _worst_rows(
    points: Sequence[judging.Point], base: dict[str, Any]
) -> tuple[list[str], list[list[str]]]:
    """The headline: the strongest attack of every point and federation, and what it means."""
    scale = base["scale"]
    header = [
        *("setting", "federation", "worst attack", scale, "advantage over chance"),
        *("null band (95 %)", "tells more than nothing", "worst oracle form", f"its {scale}"),
    ]
    rows = []
    for p in points:
        for federation, worst in p.worst.items():
            oracle = p.oracle.get(federation)
            rows.append(
                [
                    *(p.label, FEDERATIONS[federation], worst.attack),
                    *(str(worst.leak), str(worst.advantage), f"{worst.null:.3f}"),
                    "yes" if worst.tells else "no",
                    *((oracle.attack, str(oracle.leak)) if oracle else ("-", "-")),
                ]
            )
    return header, rows


def _not_attacked(sweep: store.Sweep, points: Sequence[judging.Point]) -> list[str]:
    """What was not attacked, and why."""
    out = [
        f"{label}: {a['reason']}."
        for label, a in judging.attack_summary(sweep).items()
        if a["status"] == "skipped"
    ]
    for p in points:
        if p.diverged:
            out.append(f"{p.label}: {p.diverged} of {p.settings} settings diverged.")
        missing = [FEDERATIONS[f] for f in _federations(points) if f not in p.worst]
        if missing and p.diverged < p.settings:
            out.append(f"{p.label}: no attack on it {' or '.join(missing).lower()}.")
    return out


def _federations(points: Sequence[judging.Point]) -> list[str]:
    return list(dict.fromkeys(f for p in points for f in p.worst))


def _known_rows(sweep: store.Sweep) -> tuple[list[str], list[list[str]]]:
    """Attack success by the number of known labels, where that is an axis."""
    point_of = {
        r["setting"]: r["point"] for r in sweep.results.select(["setting", "point"]).to_pylist()
    }
    arms = {p.number: p.label for p in judging.points(sweep)}
    grouped: dict[tuple[str, int], dict[float, list[dict]]] = {}
    for row in sweep.attacks.to_pylist():
        known = row.get("attack.known")
        if known is not None:
            key = (row["attack"], point_of[row["setting"]])
            grouped.setdefault(key, {}).setdefault(known, []).append(row)
    grouped = {key: own for key, own in grouped.items() if len(own) > 1}
    counts = sorted({known for own in grouped.values() for known in own})
    header = ["attack", "setting", *(f"{known:g} labels" for known in counts)]
    return header, [
        [
            *(attack, arms[point]),
            *(
                str(judging.interval(r["success_unlabeled"] for r in own.get(known, [])))
                for known in counts
            ),
        ]
        for (attack, point), own in grouped.items()
    ]


def _choice_rows(points: Sequence[judging.Point]) -> tuple[list[str], list[list[str]]]:
    header = [
        "defense",
        "federation",
        "chosen strength",
        "test accuracy",
        "change",
        "worst attack",
        "leak",
        "change",
    ]
    rows = []
    for c in judging.choices(points):
        if c.point is None:
            rows.append([c.arm, FEDERATIONS[c.federation], "none keeps the accuracy", *[""] * 5])
            continue
        worst = c.point.worst[c.federation]
        rows.append(
            [
                c.arm,
                FEDERATIONS[c.federation],
                c.point.label,
                str(c.point.accuracy[c.federation]),
                str(c.accuracy_change),
                worst.attack,
                str(worst.leak),
                str(c.leak_change),
            ]
        )
    return header, rows


def write(workdir: pathlib.Path) -> pathlib.Path:
    """Write ``report.html`` and ``figures/*.png`` from what is stored; returns the report's path."""
    sweep = store.load(workdir)
    points = judging.points(sweep)
    base = judging.baseline(sweep)
    folder = workdir / "figures"
    folder.mkdir(exist_ok=True)
    header, data = sweep.header, sweep.header["data"]
    done, planned = sweep.results.num_rows, header["settings"]
    seeds = sweep.config["seeds"]
    parts = [
        f"<h1>{html.escape(sweep.config['name'])}: what leaks, and what the defense costs</h1>",
        f'<p class="sub">{html.escape(data["name"])}: {data["rows"]:,} rows, {data["classes"]} classes; '
        f"{data['train']:,} training, {data['validation']:,} validation, {data['test']:,} test rows a "
        f"seed; columns a party {data['party_shapes']}; {done:,} of {planned:,} settings, {seeds} "
        f"seeds; intervals are 95 % t-intervals over seeds.</p>",
    ]
    notes = list(sweep.config["notes"])
    for label, a in judging.attack_summary(sweep).items():
        full = _published_steps(label.split("/")[0]) if a["status"] == "ok" else 0
        if full and a["steps"] < full:
            notes.append(
                f"{label}: {a['steps']:,} optimizer steps, fewer than the {full:,} published."
            )
    if notes:
        parts.append('<div class="note">' + "<br>".join(map(html.escape, notes)) + "</div>")
    if any(p.worst for p in points):
        parts.append(
            "<h2>Worst case</h2><p>For every setting the strongest attack of the suite, chosen on one "
            "half of the rows whose labels the attacker does not know and scored on the other; 95 % "
            "t-intervals over seeds. Null band: what the same scores reach when labels are permuted, "
            f"95 times of 100. Chance: {base['chance']:.2f}. Oracle forms know more than an attacker "
            "can; they stand beside the worst case, not in it.</p>"
            + _table(*_worst_rows(points, base))
        )
        missing = _not_attacked(sweep, points)
        if missing:
            items = "".join(f"<li>{html.escape(line)}</li>" for line in missing)
            parts.append(f"<p>Not attacked:</p><ul>{items}</ul>")
    parts.append("<h2>What this means</h2><ul>")
    parts += [f"<li>{html.escape(sentence)}</li>" for sentence in findings.findings(sweep, points)]
    parts.append("</ul>")
    beside = published.table(sweep)
    if beside[1]:
        caption = html.escape(published.caption(sweep))
        parts.append(f"<h2>Beside the published figures</h2><p>{caption}</p>" + _table(*beside))
    parts.append("<h2>Privacy against utility</h2>")
    if any(p.worst for p in points):
        parts.append(_save(figures.frontier(points, base), folder, "frontier"))
    parts.append(
        "<p>Worst attack: chosen on one half of the rows whose labels the attacker does not know, "
        "scored on the other. Settings below chance are inverted or collapsed, not private.</p>"
    )
    choice = _choice_rows(points)
    if choice[1]:
        parts.append(
            f"<h2>Strengths chosen on validation rows (at most {judging.TOLERANCE:.0%} accuracy), "
            "reported on test rows</h2>" + _table(*choice)
        )
    for arm in dict.fromkeys(p.arm for p in points):
        for kind, figure in (
            ("heat", figures.heat_maps(points, arm)),
            ("curve", figures.curves(points, arm, base)),
        ):
            if figure is not None:
                parts.append(
                    f"<h2>{html.escape(arm)}</h2>" + _save(figure, folder, f"{kind}_{arm}")
                )
    bounds = findings.label_dp_table(sweep, points)
    if bounds[1]:
        parts.append(
            "<h2>Label DP: what epsilon bounds, what attacks reached</h2>" + _table(*bounds)
        )
    rows = _baseline_rows(sweep)
    if rows[1]:
        parts.append(
            "<h2>Model completion beside its baselines</h2><p>Top-1 on all training rows. An attack "
            "that does not beat the same few labels without any federation has learned nothing from "
            "taking part.</p>" + _table(*rows)
        )
    counts = _known_rows(sweep)
    if counts[1]:
        parts.append(
            "<h2>By the number of known labels</h2><p>Top-1 on the rows whose labels are not known.</p>"
            + _table(*counts)
        )
    parts.append(
        "<h2>All settings</h2><p>Mean over seeds. Attack columns: top-1 success on all "
        f"training rows; worst: {base['scale']}.</p>" + _table(*judging.table(points))
    )
    parts.append("<h2>Attacks</h2>" + _table(*_attack_rows(sweep)))
    made = {k: header[k] for k in ("versions", "revision", "backend", "devices", "checksum")}
    parts.append(
        f"<h2>How this was made</h2><pre>{html.escape(header['command'])}</pre>"
        f"<pre>{html.escape(json.dumps(made, indent=1))}</pre>"
        f"<details><summary>config</summary><pre>"
        f"{html.escape(json.dumps(sweep.config, indent=1))}</pre></details>"
    )
    title = html.escape(sweep.config["name"])
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{CSS}</style></head><body>{''.join(parts)}</body></html>"
    )
    store.write_text(workdir / "report.html", page)
    return workdir / "report.html"


def present(workdir: pathlib.Path) -> str:
    """Write the report; returns the table and findings for a terminal, and where the report is."""
    sweep = store.load(workdir)
    points = judging.points(sweep)
    found = "\n".join(f"- {sentence}" for sentence in findings.findings(sweep, points))
    parts = [text_table(points)]
    beside = published.table(sweep)
    if beside[1]:
        parts.append(f"{_aligned(*beside)}\n{published.caption(sweep)}")
    return "\n\n".join([*parts, found, f"report: {write(workdir)}"])
