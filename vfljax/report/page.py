"""``report.html``: one self-contained file from a stored sweep, and its figures as PNG.

The page opens with what leaks, to whom, what to switch on and how sure that is; then come the frontier, a
card for each defense, every table, and how all of it was computed. The HTML is in ``templates``, which escape
what users name. The page fetches nothing: its policy forbids it.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import pathlib
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from vfljax import errors, store
from vfljax.report import (
    captions,
    certain_rows,
    figures,
    findings,
    frontier,
    guarantees,
    headline,
    interactive,
    not_run,
    stored_rows,
    tables,
    threat_model,
)
from vfljax.report.assessed import Assessed, Assessment, MethodOutcome
from vfljax.report.assessment import assess
from vfljax.report.configurations import undefended, varying_knobs
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import FEDERATIONS, grouped
from vfljax.report.tables import Draw
from vfljax.report.templates import TEMPLATES, paragraphs, templates
from vfljax.report.terminal import first_lines, fitted
from vfljax.sweep import profile
from vfljax.sweep.experiment import Experiment, experiment_of

FRONTIER, CERTAINTY, PAPER = "frontier", "certainty", "paper"  # figures, one in a paper's form
POLICY = (
    "default-src 'none'; img-src data: blob:; font-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'"
)
"""The page's content security policy: nothing may come from anywhere else."""
FEW = 4  # number of notes that are shown unfolded
NOT_COMPARED = (
    "Shown is the operating point that leaks least: nothing undefended was trained to compare with."
)
TIME = "want of time"  # words in a note on what was left out to save time
TONES = {
    Verdict.PROTECTS: "good",
    Verdict.LEAKS_MUCH_LESS: "better",
    Verdict.LEAKS_LESS: "better",
    Verdict.UNCLEAR: "better",
    Verdict.LEAKS_AS_BEFORE: "bad",
    Verdict.IS_UNDEFENDED: "bad",
    MethodOutcome.NONE_KEEPS: "bad",
    MethodOutcome.DIVERGED: "bad",
}
"""The color of a card's edge; all else is gray. The verdict itself is always written."""


class _Shown(NamedTuple):
    """What a page is made from."""

    experiment: Experiment
    assessed: Assessed
    extra: tables.Extra

    @property
    def sections(self) -> list[tables.Section]:
        """Every table of the report."""
        extra = certain_rows.section(self.assessed), *self.extra.sections
        return tables.sections(self.assessed, self.experiment.data.permute_labels, extra)


def _shown(workdir: pathlib.Path, extend: tables.Extend | None) -> _Shown:
    rows = stored_rows.load(workdir)
    experiment = experiment_of(rows.sweep)
    extra = extend(rows.sweep, experiment) if extend else tables.NO_EXTRA
    return _Shown(experiment, assess(rows, experiment), extra)


def _context(shown: _Shown) -> dict[str, Any]:
    """Returns the values that the template of the page needs."""
    assessed, experiment = shown.assessed, shown.experiment
    notes, more_notes = _notes(assessed, experiment)
    attacked = bool(assessed.federations)
    compared = undefended(assessed.configurations) is not None
    folder = assessed.rows.sweep.workdir / "figures"
    drawn = drawings(assessed, shown.extra)
    images = {name: (title, _picture(draw, folder, name)) for name, (title, draw) in drawn.items()}
    return {
        "name": experiment.name,
        "policy": POLICY,
        "style": (TEMPLATES / "page.css").read_text(encoding="utf-8"),
        "glue": (TEMPLATES / "page.js").read_text(encoding="utf-8"),
        "bokeh": interactive.script() if attacked else "",
        "federations": FEDERATIONS,
        "headlines": headline.headlines(assessed),
        "warnings": guarantees.warnings(assessed),
        "notes": notes,
        "more_notes": more_notes,
        "about": _about(assessed.rows, experiment),
        "verdicts": tables.method_rows(assessed),
        "panels": interactive.panels(assessed) if attacked else [],
        "plotted": any(a.utility.count for a in assessed.attacked),
        "frontier": images.pop(FRONTIER, ("", Picture()))[1],
        "cards": cards(assessed),
        "cards_caption": captions.operating_points(assessed) if compared else NOT_COMPARED,
        "findings": findings.findings(assessed),
        "not_attacked": not_run.not_attacked(assessed),
        "sections": shown.sections,
        "pictures": dict([images.pop(CERTAINTY, ("", Picture()))]),
        "figures": [(title, name, picture) for name, (title, picture) in images.items()],
        "parties": threat_model.parties(assessed.rows, experiment),
        "threat_model": threat_model.assumptions(assessed, experiment),
        "judged": captions.strongest_attack(assessed, experiment.data.permute_labels)
        if attacked
        else "",
        "origin": _origin(assessed.rows.sweep),
    }


def _about(rows: stored_rows.StoredRows, experiment: Experiment) -> str:
    """Returns a paragraph on the sweep's data and on how much was trained."""
    data, name = rows.sweep.header["data"], experiment.parties.name_of
    (text,) = paragraphs(
        "about",
        data=data,
        columns=[
            f"{name(p)} {threat_model.shape_text(shape)}"
            for p, shape in enumerate(data["party_shapes"])
        ],
        trained=len(rows.trials),
        trials=rows.sweep.header["trials"],
        seeds=experiment.seeds,
    )
    return text


def _notes(assessed: Assessed, experiment: Experiment) -> tuple[list[str], list[str]]:
    """Returns the notes that are shown, those on missing or diverged trials first, and the folded ones."""
    rows = assessed.rows
    undone, trials = rows.sweep.unfinished, len(rows.trials)
    notes = [f"Not finished: {'; '.join(undone)}."] if undone else []
    if lost := sum(c.diverged for c in assessed.configurations):
        notes.append(f"{lost} of {trials} trials diverged: their figures are left out, not zero.")
    if count := experiment.canaries:
        what = f"{count} training rows of each seed are canaries, whose labels are coins"
        notes.append(f"{what}: utility and leaks of this sweep contain them.")
    notes += sorted(experiment.notes, key=lambda note: TIME not in note)
    return notes[:FEW], [*notes[FEW:], *_attack_notes(rows)]


def _attack_notes(rows: stored_rows.StoredRows) -> list[str]:
    """Returns notes on stored attacks with other rules, renamed classes or fewer steps than published."""
    notes = stored_rows.notes(rows)
    for entry in rows.described.values():
        full = tables.steps_published(entry["attack"]) if entry["status"] == "ok" else 0
        if full and entry["steps"] < full:
            notes.append(
                f"{entry['label']}: {entry['steps']:,} optimizer steps, fewer than the {full:,} published."
            )
    return notes


class Card(NamedTuple):
    """What a card shows of a method in a federation; its text is in a template."""

    assessment: Assessment
    color: str
    tone: str
    mark: str  # such as "switch this on"; "" if the method is not recommended
    party: str  # who reads most; "" if that is the local-only baseline


def cards(assessed: Assessed) -> dict[str, list[Card]]:
    """Returns the card of every method, by federation."""
    colors = {mark.method: mark.color for mark in interactive.marks(assessed)}
    out: dict[str, list[Card]] = {}
    for federation in FEDERATIONS:
        methods = assessed.methods_on(federation)
        best = headline.recommended(methods)
        for a in methods:
            # a method that fresh seeds do not confirm is not marked as one to switch on
            helps = a.verdict is not None and a.verdict.helps and (not a.fresh or a.confirmed)
            card = Card(
                assessment=a,
                color=colors.get(a.method, "#7F7F7F"),
                tone=TONES.get(a.shown_as, "open") if a.shown_as else "open",
                mark=("switch this on" if helps else "leaks least") if a is best else "",
                party=headline.attackers(a.strongest, assessed.reference) if a.strongest else "",
            )
            out.setdefault(federation, []).append(card)
    return out


def drawings(
    assessed: Assessed, extra: tables.Extra = tables.NO_EXTRA
) -> dict[str, tuple[str, Draw]]:
    """Returns the title of each figure of the report and what draws it, by the name of its file.

    Args:
      assessed: a sweep.
      extra: with the figure in a paper's form, if there is one.
    """
    out: dict[str, tuple[str, Draw]] = {}
    if assessed.federations:
        out[FRONTIER] = FRONTIER, functools.partial(frontier.frontier, assessed)
    if certain_rows.readers(assessed):
        out[CERTAINTY] = certain_rows.TITLE, functools.partial(certain_rows.figure, assessed)
    if extra.draw is not None:
        out[PAPER] = "In the paper's form", extra.draw
    for method, members in grouped(assessed.configurations, lambda c: c.method).items():
        knobs, title = varying_knobs(members), f"{method}, along its knobs"
        if len(knobs) == 2:
            out[f"heat_{method}"] = title, functools.partial(figures.heat_maps, members)
        elif len(knobs) == 1:
            draw = functools.partial(figures.curves, members, assessed.reference)
            out[f"curve_{method}"] = title, draw
    return out


def _origin(sweep: store.StoredSweep) -> dict[str, str]:
    """Returns the command, the versions and the config that made the sweep."""
    header = sweep.header
    versions = {k: header[k] for k in ("versions", "revision", "backend", "devices", "checksum")}
    versions |= {"switches": switches} if (switches := header.get("switches")) else {}
    return {
        "Command": header["command"],
        "Versions": json.dumps(versions, indent=1),
        "Config": json.dumps(sweep.config, indent=1),
    }


class Picture(NamedTuple):
    """A figure as a page shows it: as PNG, or a sentence on why it is empty."""

    png: str = ""  # in base64
    why: str = ""


def _picture(draw: Draw, folder: pathlib.Path, name: str) -> Picture:
    """Draws a figure, and writes it as PNG beside the report. An earlier one is removed if that fails."""
    content, why = figures.attempted(lambda: _png(draw()))
    path = folder / f"{name}.png"
    if content is None:
        path.unlink(missing_ok=True)
        return Picture(why=why)
    store.write_bytes(path, content)
    return Picture(base64.b64encode(content).decode())


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def excerpt(workdir: pathlib.Path, out: pathlib.Path, extend: tables.Extend | None = None) -> None:
    """Writes what a repository keeps of a sweep: ``tables.md``, every table of the report; ``leaks.csv``,
    every figure of every attack (means over seeds); and the figure of privacy against utility.

    Args:
      workdir: the folder of the sweep.
      out: the folder that is written to.
      extend: makes the sections that are added to the report's own.
    """
    shown = _shown(workdir, extend)
    header, experiment = shown.assessed.rows.sweep.header, shown.experiment
    lines = [
        f"# {experiment.name}",
        "",
        f"    {header['command']}",
        "",
        f"jax {header['versions']['jax']}, {header['devices']} {header['backend']} devices, revision "
        f"{header['revision'] or 'unknown'}; ± is a 95 % t-interval over seeds.",
    ]
    for section in shown.sections:
        lines += ["", f"## {section.title}", "", section.caption, ""]
        lines += tables.markdown(*section.table)
    out.mkdir(parents=True, exist_ok=True)
    store.write_text(out / "tables.md", "\n".join(lines) + "\n")
    store.write_text(out / "leaks.csv", tables.csv_text(*tables.leak_rows(shown.assessed)))
    if shown.assessed.federations:
        _picture(functools.partial(frontier.frontier, shown.assessed), out, FRONTIER)


@profile.span("report")
def present(workdir: pathlib.Path, extend: tables.Extend | None = None) -> str:
    """Writes ``report.html`` and ``figures/*.png`` from what is stored.

    Args:
      workdir: the folder of the sweep.
      extend: makes the sections and the figure that are added to the report's own.

    Returns:
      Headline, verdicts, added tables and warnings for a terminal, and where the report is.
    """
    shown, path = _shown(workdir, extend), workdir / "report.html"
    (workdir / "figures").mkdir(exist_ok=True)
    store.write_text(path, templates().get_template("page.html").render(_context(shown)))
    parts = [first_lines(shown.assessed)]
    for section in shown.extra.sections:
        parts.append(f"{fitted(*section.table)}\n{section.caption}")
    parts += guarantees.warnings(shown.assessed)
    return "\n\n".join([*parts, f"all tables and figures: {errors.shown(path)}"])
