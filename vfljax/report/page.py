"""``report.html``: one self-contained file from a stored sweep, and its figures as PNG beside it.

The page opens with the answers; then come the verdicts, the frontier, every table, the assumptions, and how all
of it was computed. The HTML is in ``templates``, which escape what users name. The page fetches nothing: its
policy forbids it. Without its script all of it is there; the script only sorts and filters tables.
"""

from __future__ import annotations

import html
import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from vfljax import store
from vfljax.errors import UserError, short_path
from vfljax.report import (
    along_knobs,
    beside,
    figures,
    frontier,
    guarantees,
    not_run,
    roc,
    tables,
    threat_model,
    verdict_tables,
)
from vfljax.report.figures import Drawing
from vfljax.report.first_screen import Screen, answers
from vfljax.report.judged_sweep import Judged
from vfljax.report.sweep_answers import judge_stored
from vfljax.report.templates import TEMPLATES, paragraphs, templates
from vfljax.report.terminal import first_lines, fitted
from vfljax.report.words import count, listed, share
from vfljax.sweep import profile
from vfljax.sweep.grid import experiment_of

UNUSED = {  # of ``datasets.splits.Unused``
    "shares": "the shares of the parts ask for fewer",
    "groups": "groups, such as equal rows, stay together, and parts have one size on all seeds",
    "tested": "their groups are in the published test part",
    "published": "the test part is a share of the published one",
}
FRONTIER, CERTAINTY, PAPER = "frontier", "certainty", "paper"  # figures, one in a paper's form
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The page's content security policy: nothing may come from anywhere else."""
FEW = 4  # number of notes that are shown unfolded
BLANK = "\N{NO-BREAK SPACE}"


class Picture(NamedTuple):
    """A figure as the page has it: SVG, or a sentence on why there is none."""

    title: str
    svg: str = ""
    why: str = ""


def drawings(judged: Judged, extra: tables.Extra = tables.NO_EXTRA) -> dict[str, Drawing]:
    """Returns what draws each figure of the report, by the name of its file.

    Args:
      judged: the sweep.
      extra: with the figure in a paper's form, if there is one.
    """
    out: dict[str, Drawing] = {}
    if judged.leading["leak"].notna().any():
        out[FRONTIER] = Drawing(FRONTIER, lambda: frontier.frontier(judged))
    if roc.readers(judged):
        out[CERTAINTY] = Drawing(roc.TITLE, lambda: roc.figure(judged))
    if extra.draw is not None:
        out[PAPER] = Drawing("In the paper's form", extra.draw)
    return out | along_knobs.drawings(judged)


def picture(drawing: Drawing, file: pathlib.Path) -> Picture:
    """Draws a figure for the page, and writes it as PNG. If that fails, the picture says why, and an earlier
    file stays.

    A report is written after hours of training, and no figure in it may cost the others. A figure without
    anything to show raises a UserError whose text says so; an earlier file is then removed.

    Args:
      drawing: the figure.
      file: where the PNG is written.
    """
    try:
        figure = drawing.draw()
        svg = figures.svg(figure, drawing.title)
        store.write_bytes(file, figures.png(figure))
        return Picture(drawing.title, svg)
    except UserError as error:
        why = str(error)
        file.unlink(missing_ok=True)
    except Exception as error:  # drawing libraries raise nearly every type
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        why = f"This figure could not be drawn ({reason})."
        why += f" {file.name} is of an earlier report." * file.exists()
    return Picture(drawing.title, why=why)


def sections(judged: Judged, extra: tables.Extra) -> list[tables.Section]:
    """Returns every table of the report."""
    return tables.sections(judged, (roc.section(judged), *extra.sections))


def _read(workdir: pathlib.Path, extend: tables.Extend | None) -> tuple[Judged, tables.Extra]:
    sweep = store.load(workdir)
    experiment = experiment_of(sweep)
    extra = extend(sweep, experiment) if extend else tables.NO_EXTRA
    return judge_stored(sweep, experiment), extra


def rendered(
    judged: Judged, screens: Sequence[Screen], extra: tables.Extra = tables.NO_EXTRA
) -> str:
    """Returns the page as HTML, and writes its figures as PNG into the sweep's folder.

    Args:
      judged: the sweep.
      screens: its ``answers``.
      extra: sections and a figure that are added to the report's own.
    """
    (judged.sweep.workdir / "figures").mkdir(exist_ok=True)
    return templates().get_template("page.html").render(_context(judged, screens, extra))


def _context(judged: Judged, screens: Sequence[Screen], extra: tables.Extra) -> dict[str, Any]:
    """Returns the values that the template of the page needs."""
    folder = judged.sweep.workdir / "figures"
    drawn = {
        name: picture(drawing, folder / f"{name}.png")
        for name, drawing in drawings(judged, extra).items()
    }
    main, certainty = drawn.pop(FRONTIER, None), drawn.pop(CERTAINTY, Picture(roc.TITLE))
    notes = _notes(judged)
    remarks = not_run.remarks(judged)
    return {
        "name": judged.experiment.name,
        "policy": POLICY,
        "style": (TEMPLATES / "page.css").read_text(encoding="utf-8"),
        "script": (TEMPLATES / "page.js").read_text(encoding="utf-8"),
        "answers": screens,
        "warnings": guarantees.warnings(judged),
        "notes": notes[:FEW],
        "more_notes": notes[FEW:],
        "about": _about(judged),
        "explored": verdict_tables.explored(judged),
        "verdicts": verdict_tables.methods(judged),
        "frontier": main,
        "sections": sections(judged, extra),
        "html": _html,
        "pictures": {certainty.title: certainty},
        "figures": [*drawn.values()],
        "remarks": remarks,
        "not_attacked": not_run.not_attacked(judged),
        "parties": threat_model.parties(judged),
        "threat_model": threat_model.assumptions(judged),
        "origin": _origin(judged.sweep),
    }


def _html(frame: pd.DataFrame) -> str:
    """Returns a table as HTML, escaped, in which a figure stays on one line with its limits."""
    shortened = {}
    if "remark" in frame:  # which stays whole where the mouse rests on it
        short = verdict_tables.shortened(frame)["remark"]
        shortened = {
            html.escape(s): html.escape(of) for s, of in zip(short, frame["remark"]) if s != of
        }
        frame = frame.assign(remark=short)
    with pd.option_context("display.max_colwidth", None):
        text = frame.to_html(index=False, border=0, na_rep="")
    for short, of in shortened.items():
        text = text.replace(f"<td>{short}</td>", f'<td title="{of}">{short}</td>')
    text = re.sub(r"(?<=\d) (%|points)(?=[ <])", f"{BLANK}\\1", text)
    limits = f"\\1{BLANK}(\\2{BLANK}to{BLANK}\\3)"
    return re.sub(r"(\d|%|points) \((\S+) to (\S+)\)", limits, text)


def _about(judged: Judged) -> str:
    """Returns a paragraph on the sweep's data and on how much was trained."""
    data, facts = judged.sweep.header["data"], judged.facts
    shares = [of / sum(data["balance"]) for of in data["balance"]]
    named = [f"{name} {share(of)}" for name, of in zip(facts.class_names, shares)]
    unnamed = facts.class_names == tuple(map(str, range(facts.classes)))
    rarest = f"the rarest {share(min(shares))}" if unnamed else ", ".join(named)
    parties = judged.experiment.parties
    columns = [
        f"{parties.name_of(party)} {threat_model.shape_text(shape)}"
        for party, shape in enumerate(data["party_shapes"])
    ]
    (text,) = paragraphs(
        "about",
        data=data,
        # trees that an audit grew are stored as recordings are, a file for each seed
        name=judged.experiment.name if judged.grown else data["name"],
        grown=judged.grown,
        recorded=judged.experiment.data.name == "wire",
        labels="labels are numbers"
        if facts.classes == 1
        else f"{facts.classes} classes ({rarest})",
        columns=columns,
        unused=[(UNUSED[why], number) for why, number in data.get("unused", {}).items() if number],
        trained=len(judged.trials),
        trials=judged.sweep.header["trials"],
        seeds=judged.experiment.seeds,
    )
    return text


def _notes(judged: Judged) -> list[str]:
    """Returns the notes on a sweep, those on missing or diverged trials first."""
    undone, trials = judged.sweep.unfinished, len(judged.trials)
    notes = [f"Not finished: {listed(undone, FEW)}."] if undone else []
    if diverged := int(judged.trials["diverged"].sum()):
        notes.append(
            f"{diverged} of {trials} trials diverged: their figures are left out, not zero."
        )
    if canaries := judged.experiment.canaries:
        rows = f"{count(canaries, 'training row')} of each seed are canaries"
        notes.append(
            f"{rows}, whose labels are coins: utility and leaks of this sweep contain them."
            if judged.experiment.canary_labels == "coins"
            else f"{rows}: attacks tell their labels from those that a proxy draws. No attacker knows them."
        )
    return [*notes, *judged.experiment.notes]


def _origin(sweep: store.StoredSweep) -> dict[str, str]:
    """Returns the command, the versions and the config that made the sweep."""
    header = sweep.header
    versions = {k: header[k] for k in ("versions", "revision", "backend", "devices", "checksum")}
    return {
        "Command": header["command"],
        "Versions": json.dumps(versions, indent=1),
        "Config": json.dumps(sweep.config, indent=1),
    }


def excerpt(workdir: pathlib.Path, out: pathlib.Path, extend: tables.Extend | None = None) -> None:
    """Writes what a repository keeps of a sweep: the tables of the report in ``tables/``, and their captions in
    ``tables.md``; ``leaks.csv``, every figure of every attack (means over seeds); and the figure of privacy
    against utility.

    Args:
      workdir: the folder of the sweep.
      out: the folder that is written to.
      extend: makes the sections that are added to the report's own.
    """
    judged, extra = _read(workdir, extend)
    header = judged.sweep.header
    lines = [
        f"# {judged.experiment.name}",
        "",
        f"    {header['command']}",
        "",
        f"jax {header['versions']['jax']}, {header['devices']} {header['backend']} devices, revision "
        f"{header['revision'] or 'unknown'}; brackets hold the limits of means over seeds.",
    ]
    (out / "tables").mkdir(parents=True, exist_ok=True)
    for section in sections(judged, extra):
        words = re.findall(r"[a-z0-9]+", section.title.lower())
        path = f"tables/{'_'.join(words)}.csv"
        rows = f"[{path}]({path}), {len(section.frame):,} rows"
        lines += ["", f"## {section.title}", "", section.caption, "", rows]
        store.write_text(out / path, tables.csv_text(section.frame))
    store.write_text(out / "tables.md", "\n".join(lines) + "\n")
    store.write_text(out / "leaks.csv", tables.csv_text(tables.leaks(judged)))
    picture(Drawing(FRONTIER, lambda: frontier.frontier(judged)), out / f"{FRONTIER}.png")


@profile.span("report")
def present(
    workdir: pathlib.Path, extend: tables.Extend | None = None, verbose: bool = False
) -> str:
    """Writes ``report.html`` and ``figures/*.png`` from what is stored.

    Args:
      workdir: the folder of the sweep.
      extend: makes the sections and the figure that are added to the report's own.
      verbose: whether what the answers rest on is returned too.

    Returns:
      The answers, verdicts, added tables and warnings for a terminal, and where the report is.
    """
    judged, extra = _read(workdir, extend)
    screens = answers(judged)
    beside.write(judged, {of.title: of.answer for of in screens})
    path = workdir / "report.html"
    store.write_text(path, rendered(judged, screens, extra))
    parts = [first_lines(judged, screens, verbose)]
    for section in extra.sections:
        parts.append(f"{fitted(section.frame)}\n{section.caption}")
    parts += guarantees.warnings(judged)
    return "\n\n".join([*parts, f"all tables and figures: {short_path(path)}"])
