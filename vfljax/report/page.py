"""``report.html``: one self-contained file from a stored sweep, and its figures as PNG."""

from __future__ import annotations

import base64
import html
import io
import json
import pathlib
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from vfljax import store
from vfljax.report import (
    captions,
    cards,
    figures,
    findings,
    gaps,
    headline,
    naming,
    paper_figures,
    reproduction,
    rules,
    summary,
    tables,
)
from vfljax.report.terminal import first_lines, fitted, text_table
from vfljax.sweep.experiment import experiment_of

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


def _section(section: tables.Section) -> str:
    paragraphs = [part for part in section.caption.split("\n\n") if part]
    caption = "".join(f"<p>{html.escape(part)}</p>" for part in paragraphs)
    return f"<h2>{html.escape(section.title)}</h2>{caption}{_table(*section.table)}"


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def _save(figure: Figure, folder: pathlib.Path, name: str) -> str:
    """The figure as PNG beside the report; returns it as an <img> with the data inside."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    plt.close(figure)
    store.write_bytes(folder / f"{name}.png", buffer.getvalue())
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'


PAPER = "paper"  # the figure in a paper's form


def write(workdir: pathlib.Path) -> pathlib.Path:
    """Write ``report.html`` and ``figures/*.png`` from what is stored; returns the report's path."""
    sweep = naming.shown(workdir)
    experiment, points = experiment_of(sweep), summary.points(sweep)
    base = summary.baseline(sweep)
    folder = workdir / "figures"
    folder.mkdir(exist_ok=True)
    header, data = sweep.header, sweep.header["data"]
    done, planned = sweep.results.num_rows, header["settings"]
    seeds = experiment.seeds
    parts = [
        f"<h1>{html.escape(experiment.name)}: what leaks, and what the defense costs</h1>",
        f'<p class="sub">{html.escape(data["name"])}: {data["rows"]:,} rows, {data["classes"]} classes; '
        f"{data['train']:,} training, {data['validation']:,} validation, {data['test']:,} test rows a "
        f"seed; columns a party {data['party_shapes']}; {done:,} of {planned:,} settings, {seeds} "
        f"seeds; ± is a 95 % t-interval over seeds.</p>",
    ]
    notes = [*experiment.notes, *rules.notes(store.attack_summary(workdir)), *naming.notes(sweep)]
    for label, a in store.attack_summary(workdir).items():
        full = tables.steps_published(label) if a["status"] == "ok" else 0
        if full and a["steps"] < full:
            notes.append(
                f"{label}: {a['steps']:,} optimizer steps, fewer than the {full:,} published."
            )
    if notes:
        parts.append('<div class="note">' + "<br>".join(map(html.escape, notes)) + "</div>")
    sections = tables.sections(sweep, experiment, points)
    parts += [_section(one) for one in sections if one.leads]
    missing = gaps.not_attacked(sweep, points)
    if missing:
        parts.append(f"<p>Not attacked:</p>{_list(missing)}")
    parts.append(f"<h2>What this means</h2>{_list(findings.findings(sweep, points))}")
    parts.append("<h2>Privacy against utility</h2>")
    if any(p.worst for p in points):
        parts.append(
            _save(figures.frontier(points, base, experiment.goal.max_cost), folder, "frontier")
        )
    parts.append(
        f"<p>Worst attack. {html.escape(captions.how_chosen(points))} Bars are limits of what the strongest "
        "attack leaks, and 95 % intervals of accuracy over seeds; rings are strengths that keep the accuracy "
        "and leak least. Settings below chance are inverted or collapsed, not private.</p>"
    )
    if experiment.reproduces is not None:
        drawn = paper_figures.draw(sweep, experiment.reproduces)
        if drawn is not None:
            parts.append("<h2>In the paper's form</h2>" + _save(drawn, folder, PAPER))
    for arm in dict.fromkeys(p.arm for p in points):
        for plot, figure in (
            ("heat", figures.heat_maps(points, arm)),
            ("curve", figures.curves(points, arm, base)),
        ):
            if figure is not None:
                parts.append(
                    f"<h2>{html.escape(arm)}</h2>" + _save(figure, folder, f"{plot}_{arm}")
                )
    parts += [_section(one) for one in sections if not one.leads]
    origin = {k: header[k] for k in ("versions", "revision", "backend", "devices", "checksum")}
    parts.append(
        f"<h2>How this was made</h2><pre>{html.escape(header['command'])}</pre>"
        f"<pre>{html.escape(json.dumps(origin, indent=1))}</pre>"
        f"<details><summary>config</summary><pre>"
        f"{html.escape(json.dumps(sweep.config, indent=1))}</pre></details>"
    )
    title = html.escape(experiment.name)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{CSS}</style></head><body>{''.join(parts)}</body></html>"
    )
    store.write_text(workdir / "report.html", page)
    return workdir / "report.html"


def excerpt(workdir: pathlib.Path, out: pathlib.Path) -> None:
    """What a repository keeps of a sweep: ``tables.md``, every table of the report; ``leaks.csv``, every
    figure of every attack (means over seeds); and the figure of privacy against utility."""
    sweep = naming.shown(workdir)
    experiment, points = experiment_of(sweep), summary.points(sweep)
    header = sweep.header
    lines = [
        f"# {experiment.name}",
        "",
        f"    {header['command']}",
        "",
        f"jax {header['versions']['jax']}, {header['devices']} {header['backend']} devices, revision "
        f"{header['revision'] or 'unknown'}; ± is a 95 % t-interval over seeds.",
    ]
    for section in tables.sections(sweep, experiment, points):
        lines += ["", f"## {section.title}", "", section.caption, ""]
        lines += tables.markdown(*section.table)
    out.mkdir(parents=True, exist_ok=True)
    store.write_text(out / "tables.md", "\n".join(lines) + "\n")
    store.write_text(out / "leaks.csv", reproduction.csv_text(*tables.leak_rows(points)))
    if any(p.worst for p in points):
        base, max_cost = summary.baseline(sweep), experiment.goal.max_cost
        _save(figures.frontier(points, base, max_cost), out, "frontier")


def present(workdir: pathlib.Path) -> str:
    """Write the report; returns headline, verdicts, table and findings for a terminal, and where the
    report is."""
    sweep = naming.shown(workdir)
    experiment, points = experiment_of(sweep), summary.points(sweep)
    opened = headline.opening(points, cards.about(sweep, experiment))
    sentences = "\n".join(f"- {sentence}" for sentence in findings.findings(sweep, points))
    parts = [first_lines(opened), text_table(points)]
    caption, beside = tables.beside(sweep, experiment)
    if beside[1]:
        parts.append(f"{fitted(*beside)}\n{caption}")
    return "\n\n".join([*parts, sentences, f"report: {write(workdir)}"])
