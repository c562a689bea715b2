"""``report.html``: one self-contained file from a stored sweep, and its figures as PNG.

What enters: a sweep's directory. What leaves: a page that opens with what leaks, to whom, what to switch on
and how sure that is, then the frontier, a card a defense, every table, and how all of it was computed. The
words are ``headline``'s and others', the pieces ``markup``'s, the figure ``interactive``'s. The page fetches
nothing: its policy forbids it.
"""

from __future__ import annotations

import base64
import io
import json
import pathlib
from typing import NamedTuple

from matplotlib.figure import Figure

from vfljax import store
from vfljax.report import (
    assumptions,
    captions,
    cards,
    figures,
    findings,
    guarantees,
    headline,
    interactive,
    markup,
    naming,
    not_run,
    rules,
    summary,
    tables,
)
from vfljax.report.drawing import plt
from vfljax.report.terminal import first_lines, fitted, text_table
from vfljax.report.worst import FEDERATIONS
from vfljax.sweep.experiment import Experiment, experiment_of

PAPER = "paper"  # the figure in a paper's form
HERE = pathlib.Path(__file__).parent
POLICY = (
    "default-src 'none'; img-src data: blob:; font-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'"
)
"""Of the page's contents: none may come from anywhere else."""


class Shown(NamedTuple):
    """What a page is made from."""

    workdir: pathlib.Path
    sweep: store.Sweep
    experiment: Experiment
    points: list[summary.Point]
    of: cards.About
    opened: headline.Opening
    extra: tables.Extra


def _shown(workdir: pathlib.Path, extend: tables.Extend) -> Shown:
    sweep = naming.shown(workdir)
    experiment, points = experiment_of(sweep), summary.points(sweep)
    of, extra = cards.about(sweep, experiment), extend(sweep, experiment)
    return Shown(workdir, sweep, experiment, points, of, headline.opening(points, of), extra)


def write(workdir: pathlib.Path, extend: tables.Extend = tables.no_extra) -> pathlib.Path:
    """Write ``report.html`` and ``figures/*.png`` from what is stored.

    Args:
      workdir: the folder of the sweep.
      extend: makes the sections and the figure that are added to the report's own.

    Returns:
      The report's path.
    """
    return _write(_shown(workdir, extend))


def _write(shown: Shown) -> pathlib.Path:
    (shown.workdir / "figures").mkdir(exist_ok=True)
    parts = [_first_screen(shown), _frontier(shown), _cards(shown), _tables(shown), _made(shown)]
    style, glue = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    drawn = f"<script>{interactive.script()}</script>" if _attacked(shown) else ""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{markup.text(shown.experiment.name)}</title><style>{style}</style></head>"
        f"<body>{''.join(parts)}{drawn}<script>{glue}</script></body></html>"
    )
    store.write_text(shown.workdir / "report.html", page)
    return shown.workdir / "report.html"


def _attacked(shown: Shown) -> bool:
    return any(p.worst for p in shown.points)


def _first_screen(shown: Shown) -> str:
    """The headline, its answers, what must not be missed, and what the sweep was."""
    header, data = shown.sweep.header, shown.sweep.header["data"]
    name = shown.experiment.parties.name_of
    columns = ", ".join(
        f"{name(party)} {' x '.join(map(str, shape))}"
        for party, shape in enumerate(data["party_shapes"])
    )
    warned = guarantees.warnings(shown.sweep, shown.points)
    about = (
        f"{data['name']}: {data['rows']:,} rows, {data['classes']} classes; {data['train']:,} training, "
        f"{data['validation']:,} validation, {data['test']:,} test rows a seed; columns: {columns}; "
        f"{shown.sweep.results.num_rows:,} of {header['settings']:,} settings, {shown.experiment.seeds} seeds."
    )
    return "".join(
        [
            f"<header><h1>{markup.text(shown.experiment.name)}: what leaks, and what the defense costs</h1>",
            markup.headlines(shown.opened.headlines),
            *(f'<div class="warning">{markup.text(line)}</div>' for line in warned),
            markup.notes(*_shown_and_folded(shown)),
            f'<p class="sub">{markup.text(about)}</p>',
            '<nav class="screen"><a href="#frontier">frontier</a><a href="#defenses">defenses</a>'
            '<a href="#tables">tables</a><a href="#assumptions">assumptions</a></nav></header>',
        ]
    )


FEW = 4  # notes that are read without unfolding any
TIME = "want of time"  # in a note that says what was left out for it


def _shown_and_folded(shown: Shown) -> tuple[list[str], list[str]]:
    """The notes, what is missing first; beyond a few the rest is folded, with those on the attacks."""
    notes = sorted(shown.experiment.notes, key=lambda note: TIME not in note)
    notes = [*_missing(shown), *notes]
    return notes[:FEW], [*notes[FEW:], *_notes(shown)]


def _missing(shown: Shown) -> list[str]:
    """What is not done yet, and what diverged."""
    undone = shown.sweep.unfinished
    out = [f"Not finished: {'; '.join(undone)}."] if undone else []
    lost, settings = (
        sum(getattr(p, name) for p in shown.points) for name in ("diverged", "settings")
    )
    if lost:
        out.append(f"{lost} of {settings} settings diverged: their figures are left out, not zero.")
    return out


def _notes(shown: Shown) -> list[str]:
    """What the stored attacks' rules, names and steps differ in from the published ones."""
    attacks = store.attack_summary(shown.workdir)
    notes = [*rules.notes(attacks), *naming.notes(shown.sweep)]
    for a in attacks.values():
        full = tables.steps_published(a["attack"]) if a["status"] == "ok" else 0
        if full and a["steps"] < full:
            notes.append(
                f"{a['label']}: {a['steps']:,} optimizer steps, fewer than the {full:,} published."
            )
    return notes


def _frontier(shown: Shown) -> str:
    """Accuracy against what leaks: to be pointed at, and as PNG for paper."""
    if not _attacked(shown):
        return ""
    points, of = shown.points, shown.of
    drawn = [
        markup.figure(number, panel.title, panel.item)
        for number, panel in enumerate(interactive.panels(points, of, shown.opened.cards))
    ]
    still = figures.frontier(points, dict(of.base), of.goal.max_cost)
    return (
        '<h2 id="frontier">Accuracy against what leaks</h2>'
        '<p class="sub">Further down and further right is better. Bars: limits of what the strongest attack '
        "leaks, and 95 % intervals of accuracy over seeds. A ring: the strength that was chosen. Settings "
        "below chance are inverted or collapsed, not private."
        '<span class="screen"> Point at a mark for its figures; a button hides a defense.</span></p>'
        f"{markup.legend(interactive.legend(points))}"
        f'<div class="panels">{"".join(drawn)}</div>'
        f'<div class="png">{_save(still, shown.workdir / "figures", "frontier")}</div>'
    )


def _cards(shown: Shown) -> str:
    """A card a defense, by federation."""
    every = shown.opened.cards
    if not every:
        return ""
    compared = summary.undefended(shown.points) is not None
    symbols = {entry.arm: entry.symbol for entry in interactive.legend(shown.points)}
    federations = dict.fromkeys(card.federation for card in every)
    parts = ['<h2 id="defenses">Every defense, at the strength that was chosen</h2>']
    parts.append(f'<p class="sub">{markup.text(captions.chosen(shown.of.goal, compared))}</p>')
    for federation in federations:
        members = [card for card in every if card.federation == federation]
        best = headline.recommended(members)
        if len(federations) > 1:
            parts.append(f"<h3>{markup.text(FEDERATIONS[federation])}</h3>")
        drawn = (markup.card(c, c is best, symbols.get(c.arm, "")) for c in members)
        parts.append(f'<div class="cards">{"".join(drawn)}</div>')
    return "".join(parts)


def _tables(shown: Shown) -> str:
    """Everything in sentences and tables, and the other figures, folded."""
    sweep, points = shown.sweep, shown.points
    said = findings.findings(sweep, points)
    parts = ['<h2 id="tables">All figures</h2>']
    parts.append(markup.folded("What this means", markup.listed(said), f"{len(said)} sentences"))
    missing = not_run.not_attacked(sweep, points)
    if missing:
        parts.append(
            markup.folded("Not attacked", markup.listed(missing), f"{len(missing)} reasons")
        )
    sections = tables.sections(sweep, shown.experiment, points, shown.extra.sections)
    parts += map(markup.section, sections)
    return "".join([*parts, *_other_figures(shown)])


def _other_figures(shown: Shown) -> list[str]:
    """In the paper's form, and along the knobs of every arm."""
    points, folder, parts = shown.points, shown.workdir / "figures", []
    drawn = shown.extra.draw()
    if drawn is not None:
        parts.append(markup.folded("In the paper's form", _save(drawn, folder, PAPER)))
    for arm in dict.fromkeys(p.arm for p in points):
        for plot, figure in (
            ("heat", figures.heat_maps(points, arm)),
            ("curve", figures.curves(points, arm, dict(shown.of.base))),
        ):
            if figure is not None:
                inside = _save(figure, folder, f"{plot}_{arm}")
                parts.append(markup.folded(f"{arm}, along its knobs", inside))
    return parts


def _made(shown: Shown) -> str:
    """Threat model, assumptions, how it was computed, and by what."""
    sweep, experiment, of = shown.sweep, shown.experiment, shown.of
    header = sweep.header
    origin = {k: header[k] for k in ("versions", "revision", "backend", "devices", "checksum")}
    model = assumptions.threat_model(experiment, shown.points, of)
    judged = (
        captions.worst_case(shown.points, dict(of.base), of.known, experiment.data.permute_labels)
        if _attacked(shown)
        else ""
    )
    return "".join(
        [
            '<h2 id="assumptions">Assumptions, and how this was made</h2>',
            markup.folded(
                "Threat model",
                markup.plain_table(*assumptions.parties(sweep, experiment)) + markup.listed(model),
            ),
            markup.folded("How it was judged", markup.paragraphs(judged)) if judged else "",
            markup.folded("Command", f"<pre>{markup.text(header['command'])}</pre>"),
            markup.folded("Versions", f"<pre>{markup.text(json.dumps(origin, indent=1))}</pre>"),
            markup.folded(
                "Config", f"<pre>{markup.text(json.dumps(sweep.config, indent=1))}</pre>"
            ),
        ]
    )


def _save(figure: Figure, folder: pathlib.Path, name: str) -> str:
    """The figure as PNG beside the report; returns it as an <img> with the data inside."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    plt.close(figure)
    store.write_bytes(folder / f"{name}.png", buffer.getvalue())
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{markup.text(name)}" src="data:image/png;base64,{data}">'


def excerpt(
    workdir: pathlib.Path, out: pathlib.Path, extend: tables.Extend = tables.no_extra
) -> None:
    """Write what a repository keeps of a sweep: ``tables.md``, every table of the report; ``leaks.csv``,
    every figure of every attack (means over seeds); and the figure of privacy against utility.

    Args:
      workdir: the folder of the sweep.
      out: the folder that is written to.
      extend: makes the sections that are added to the report's own.
    """
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
    extra = extend(sweep, experiment)
    for section in tables.sections(sweep, experiment, points, extra.sections):
        lines += ["", f"## {section.title}", "", section.caption, ""]
        lines += tables.markdown(*section.table)
    out.mkdir(parents=True, exist_ok=True)
    store.write_text(out / "tables.md", "\n".join(lines) + "\n")
    store.write_text(out / "leaks.csv", tables.csv_text(*tables.leak_rows(points)))
    if any(p.worst for p in points):
        base, max_cost = summary.baseline(sweep), experiment.goal.max_cost
        _save(figures.frontier(points, base, max_cost), out, "frontier")


def present(workdir: pathlib.Path, extend: tables.Extend = tables.no_extra) -> str:
    """Write the report.

    Args:
      workdir: the folder of the sweep.
      extend: makes the sections and the figure that are added to the report's own.

    Returns:
      Headline, verdicts, tables and findings for a terminal, and where the report is.
    """
    shown = _shown(workdir, extend)
    said = "\n".join(f"- {line}" for line in findings.findings(shown.sweep, shown.points))
    parts = [first_lines(shown.opened), text_table(shown.points)]
    for section in shown.extra.sections:
        parts.append(f"{fitted(*section.table)}\n{section.caption}")
    return "\n\n".join([*parts, said, f"report: {_write(shown)}"])
