"""What a terminal shows of a sweep: the headline and the verdicts, in tables that fit its width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Sequence

from vfljax.report import headline, words
from vfljax.report.assessed import Assessed, Assessment

WIDTH = 120  # columns
LEAST = 8  # columns that a cut cell keeps at least
GAP = "  "
BRIEF = (("finetune_bottom", "tuned"), ("direct/", ""), ("_negative", "_neg"))


def first_lines(assessed: Assessed) -> str:
    """Returns the headline and the verdict on every method, the best first."""
    sentences = [
        textwrap.fill(h.sentence, WIDTH, break_on_hyphens=False)
        for h in headline.headlines(assessed)
    ]
    methods = assessed.methods
    if not methods:
        return "\n\n".join(sentences)
    # one line per method and federation: operating point, verdict, leak with limits, and cost
    columns: dict[str, Callable[[Assessment], str]] = {
        "defense": lambda a: a.label if a.strongest else a.method,
        "federation": lambda a: a.federation,
        "verdict": words.outcome,
        "leaks": lambda a: words.figure(a.leak),
        "cost": words.cost_text,
        "utility": lambda a: words.change(a.cost) if a.strongest else "-",
        "strongest attack": lambda a: _brief(a.strongest.attack.brief) if a.strongest else "-",
    }
    if len({a.federation for a in methods}) == 1:
        del columns["federation"]
    rows = [[cell(a) for cell in columns.values()] for a in methods]
    optional = ("strongest attack", "utility")
    return "\n\n".join([*sentences, fitted([*columns], rows, optional, left=len(columns))])


def _brief(text: str) -> str:
    for long, short in BRIEF:
        text = text.replace(long, short)
    return text


def fitted(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    optional: Collection[str] = (),
    width: int = WIDTH,
    left: int = 1,
) -> str:
    """Returns a table for a terminal of limited width.

    Args:
      header: the titles of its columns.
      rows: the cells of each row.
      optional: titles of columns that are left out, in this order, until the others fit. If they never do,
        the widest cells are cut.
      width: number of characters.
      left: the number of first columns that are aligned to the left.
    """
    for name in optional:
        if _total(_widths(header, rows)) <= width:
            break
        kept = [i for i, title in enumerate(header) if title != name]
        header, rows = [header[i] for i in kept], [[row[i] for i in kept] for row in rows]
    widths = _widths(header, rows)
    while _total(widths) > width and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
    cut = [[_cut(cell, w) for cell, w in zip(row, widths, strict=True)] for row in (header, *rows)]
    lines = aligned(cut[0], cut[1:], left).splitlines()
    return "\n".join(line[:width].rstrip() for line in lines)


def _widths(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _cut(cell: str, width: int) -> str:
    """Returns the cell in at most ``width`` characters. An ellipsis replaces its middle, because both
    the defense and its last knob are worth reading."""
    if len(cell) <= width:
        return cell
    tail = (width - 1) // 2
    return f"{cell[: width - 1 - tail]}…{cell[len(cell) - tail :]}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Returns a table for a terminal.

    Args:
      header: the titles of its columns.
      rows: the cells of each row.
      left: the number of first columns that are aligned to the left.
    """
    widths = _widths(header, rows)
    lines = [
        GAP.join(
            c.ljust(w) if i < left else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
