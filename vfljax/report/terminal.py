"""What a terminal gets of a sweep: the headline, the verdicts, and a table that fits its width.

What enters: points, and what a report opens with. What leaves: text of at most ``WIDTH`` columns where it is
made here. The report has all figures; here they are means, and the worst of many attacks stands for them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence

from vfljax.report import headline, summary, worst
from vfljax.report.cards import NONE_KEEPS, Card

WIDTH = 120  # columns
MANY = 8  # attacks; beyond, the table has the worst ones only
LEAST = 8  # columns that a cut cell keeps
GAP = "  "
SPREAD = re.compile(r" ± [.\d]+| \([-+.\d]+ to [-+.\d]+\)")
"""What follows a mean in a cell: half a t-interval, or limits."""
BRIEF = {
    "accuracy split": "acc split",
    "accuracy malicious": "acc malic",
    "accuracy no_split": "acc nosplit",
    "AUC malicious": "AUC malic",
    "AUC no_split": "AUC nosplit",
}
BRIEF_ATTACKS = (("finetune_bottom", "tuned"), ("direct/", ""), ("_negative", "_neg"))


def first_lines(opened: headline.Opening) -> str:
    """The headline and what is said of every defense, the best first."""
    sentences = [
        textwrap.fill(one.sentence, WIDTH, break_on_hyphens=False) for one in opened.headlines
    ]
    return "\n\n".join([*sentences, *([verdict_table(opened.cards)] if opened.cards else [])])


def verdict_table(cards: Sequence[Card]) -> str:
    """A line a defense and federation: verdict, strength, leak with limits, and cost."""
    header = ["defense", "federation", "verdict", "leaks", "accuracy", "strongest attack"]
    rows = [
        [
            *(card.strength or card.arm, card.federation, _brief(card.verdict)),
            *(headline.figure(card.leak), headline.change(card.cost) if card.point else "-"),
            _short(card.attack) or "-",
        ]
        for card in cards
    ]
    kept = [i for i, name in enumerate(header) if name != "federation" or _several(cards)]
    return fitted(
        [header[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        optional=("strongest attack", "accuracy"),
        left=len(header),
    )


def _brief(verdict: str) -> str:
    return "costs too much" if verdict == NONE_KEEPS else verdict.partition(":")[0]


def _several(cards: Sequence[Card]) -> bool:
    return len({card.federation for card in cards}) > 1


def text_table(points: Sequence[summary.Point]) -> str:
    """The summary for a terminal: means over seeds, one line a point."""
    header, rows = summary.table(points)
    names = set(worst.titles(key for p in points for key in p.attacks).values())
    if len(names) > MANY:
        keep = [i for i, name in enumerate(header) if name not in names]
        header, rows = [header[i] for i in keep], [[row[i] for i in keep] for row in rows]
    attacks = [_short(name) for name in names]
    short = [_short(BRIEF.get(name, name)) for name in header]
    # what is given up first where the width does not suffice: single attacks, then AUC, then what
    # malicious parties cost
    optional = [
        *(name for name in reversed(short) if name in attacks),
        *(name for name in reversed(short) if name.startswith("AUC")),
        *("acc malic", "excess (no split)", "excess (split)"),
    ]
    return fitted(short, [[row[0], *(mean_only(c) for c in row[1:])] for row in rows], optional)


def mean_only(cell: str) -> str:
    """A cell without its limits: the mean, and the attack's name in brief."""
    value, _, attack = SPREAD.sub("", cell).partition(" ")
    return f"{value} {_short(attack)}".strip()


def _short(attack: str) -> str:
    for long, brief in BRIEF_ATTACKS:
        attack = attack.replace(long, brief)
    return attack


def fitted(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    optional: Collection[str] = (),
    width: int = WIDTH,
    left: int = 1,
) -> str:
    """``aligned``, in at most so many columns: without the ``optional`` columns that do not fit, the first
    named first, and then with the widest cells cut."""
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
    """The cell in so many columns: what is left out of its middle is an ellipsis, for both a setting's
    defense and its last knob are worth reading."""
    if len(cell) <= width:
        return cell
    tail = (width - 1) // 2
    return f"{cell[: width - 1 - tail]}…{cell[len(cell) - tail :]}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table for a terminal, its first columns to the left."""
    widths = _widths(header, rows)
    lines = [
        GAP.join(
            c.ljust(w) if i < left else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
