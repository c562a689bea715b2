"""The pieces of ``report.html``, as text: every word that comes from a user is escaped here.

What enters: records and rows of text. What leaves: HTML. Where a piece stands is ``page``'s business.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax.report import cards, headline, judging
from vfljax.report.cards import Card
from vfljax.report.interactive import Entry
from vfljax.report.tables import Section
from vfljax.report.worst import FEDERATIONS

LONG = 220  # characters of a note that are shown unfolded
TONES = {
    judging.PROTECTS: "good",
    judging.REDUCES: "better",
    judging.DOES_NOTHING: "bad",
    cards.NONE_KEEPS: "bad",
    cards.DIVERGED: "bad",
}
"""What color a card's edge has; all else is gray. The verdict itself is always written."""


def text(of: object) -> str:
    """Escaped: what HTML means by its characters, it does not mean here."""
    return html.escape(str(of))


def paragraphs(of: str) -> str:
    """Those between empty lines."""
    return "".join(f"<p>{text(part)}</p>" for part in of.split("\n\n") if part)


def listed(lines: Sequence[str]) -> str:
    """A list, one item a line."""
    return "<ul>" + "".join(f"<li>{text(line)}</li>" for line in lines) + "</ul>"


def folded(title: str, inside: str, beside: str = "") -> str:
    """What is unfolded by a click on its title. ``inside`` is HTML."""
    more = f' <span class="sub">{text(beside)}</span>' if beside else ""
    return f"<details><summary>{text(title)}{more}</summary>{inside}</details>"


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A short table that nobody sorts."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in header)
    return f'<div class="scroll"><table><tr>{head}</tr>{_rows(rows)}</table></div>'


def _rows(rows: Sequence[Sequence[str]]) -> str:
    return "".join("<tr>" + "".join(f"<td>{text(c)}</td>" for c in row) + "</tr>" for row in rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that a click on a header sorts, and a field filters where it is long."""
    head = "".join(f'<th scope="col"><button>{text(name)}</button></th>' for name in header)
    field = '<input type="search" placeholder="filter rows" aria-label="filter rows">'
    return (
        f'{field}<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{_rows(rows)}</tbody></table></div>"
    )


def section(of: Section) -> str:
    """A table of the report, folded."""
    rows = len(of.table[1])
    beside = f"{rows:,} row{'s' * (rows != 1)}"
    return folded(of.title, paragraphs(of.caption) + table(*of.table), beside)


def notes(lines: Sequence[str], rest: Sequence[str]) -> str:
    """The first ones are read at once, long ones and the ``rest`` where somebody unfolds them."""
    if not lines and not rest:
        return ""
    shown = "".join(
        f"<p>{text(line)}</p>"
        if len(line) <= LONG
        else folded(f"{line[: LONG - 40].rsplit(' ', 1)[0]} …", f"<p>{text(line)}</p>")
        for line in lines
    )
    count = f"{len(rest)} {'more ' * bool(lines)}note{'s' * (len(rest) != 1)}"
    more = folded(count, listed(rest)) if rest else ""
    return f'<div class="notes">{shown}{more}</div>'


def headlines(every: Sequence[headline.Headline]) -> str:
    """The sentences, and what each answers."""
    several = len(every) > 1
    sentences = "".join(f'<p class="headline">{text(one.sentence)}</p>' for one in every)
    return f'<div class="{"several" if several else "one"}">{sentences}</div>' + "".join(
        _answers(one, several) for one in every
    )


def _answers(one: headline.Headline, several: bool) -> str:
    named = (
        ("What leaks", one.leaks),
        ("To whom", one.whom),
        ("What to switch on", one.switch_on),
        ("How sure is that", one.sure),
    )
    title = f"<h3>{text(FEDERATIONS[one.federation])}</h3>" if several else ""
    cells = "".join(f"<div><dt>{name}</dt><dd>{text(said)}</dd></div>" for name, said in named)
    return f'{title}<dl class="answers">{cells}</dl>'


def legend(entries: Sequence[Entry]) -> str:
    """A button an arm, and one for all."""
    buttons = "".join(
        f'<button value="{e.name}" aria-pressed="true">{e.symbol} {text(e.arm)}</button>'
        for e in entries
    )
    everything = '<button value="" aria-pressed="true">all</button>' if len(entries) > 2 else ""
    return f'<div id="legend" role="group" aria-label="defenses shown">{buttons}{everything}</div>'


def figure(number: int, title: str, item: Mapping[str, Any]) -> str:
    """A Bokeh figure and its data."""
    # a browser ends a script at "</script" wherever that stands
    data = json.dumps(item).replace("<", "\\u003c")
    return (
        f'<figure><figcaption>{text(title)}</figcaption><div id="panel{number}" class="panel"></div></figure>'
        f'<script type="application/json" data-figure="panel{number}">{data}</script>'
    )


def card(of: Card, first: bool, symbol: str = "") -> str:
    """What a defense does and costs; ``first`` where it is the one to switch on."""
    tone = next((name for verdict, name in TONES.items() if of.verdict.startswith(verdict)), "open")
    helps = of.verdict.startswith((judging.PROTECTS, judging.REDUCES))
    words = "switch this on" if helps else "leaks least"
    mark = f'<span class="first">{words}</span>' if first else ""
    named = "strength" if of.kept or not of.cost.count else "nearest strength"
    changed = f"; change {headline.change(of.cost)}" if of.cost.count else ""
    rows = [(named, of.strength)] if of.point else []
    if of.worst is not None:
        rows += [
            ("leaks", str(of.leak)),
            ("beyond staying away", of.excess.signed),
            *([("change to undefended", of.change.signed)] if of.cost.count else []),
            ("accuracy", f"{of.accuracy}{changed}"),
            *([("AUC", str(of.auc))] if of.auc.count else []),
            ("read most by", f"{of.attack}, {of.party}" if of.party else "staying away: no attack"),
            *([("chosen by", _chosen(of))] if of.kept else []),
        ]
    cells = "".join(f"<div><dt>{name}</dt><dd>{text(said)}</dd></div>" for name, said in rows)
    return (
        f'<article class="card {tone}"><h4>{symbol} {text(of.arm)}{mark}</h4>'
        f'<p class="verdict">{text(of.verdict)}</p><dl>{cells}</dl></article>'
    )


def _chosen(of: Card) -> str:
    """By how many folds; and what their choices leak, where that is another figure."""
    if abs(of.by_folds - of.leak.mean) < 5e-4:
        return of.chosen
    return f"{of.chosen}, whose choices leak {of.by_folds:.3f}"
