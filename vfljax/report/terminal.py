"""What a terminal shows of a sweep: the answers and the verdicts, within its width."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from vfljax.report import verdict_tables
from vfljax.report.first_screen import Screen
from vfljax.report.judged_sweep import Judged

LEAST = 8  # columns that a cut cell keeps at least
GAP = "  "
OPTIONAL = ("remark", "strongest attack", "change", "gain kept", "accuracy", "AUC", "R²")
"""Columns of the verdicts that are left out, in this order, until the others fit."""


def first_lines(judged: Judged, screens: Iterable[Screen], verbose: bool = False) -> str:
    """Returns the answer on each panel, and the verdict on each method.

    Args:
      judged: the sweep.
      screens: its ``answers``.
      verbose: whether what the answers rest on is added.
    """
    parts, verdicts = [], verdict_tables.methods(judged)
    for of in screens:
        lines = [filled(f"{of.title}: {of.answer}" if of.title else of.answer)]
        lines += [filled(text, f"  {name:7}", " " * 9) for name, text in of.rows]
        lines += [f"         {each.command}" for each in of.settle]
        parts.append("\n".join(lines))
        if verbose:
            parts += [filled(f"{name}: {text}") for name, text in of.details]
    if len(verdicts):
        parts += [filled(text)] if (text := verdict_tables.explored(judged)) else []
        parts.append(fitted(verdicts, OPTIONAL, left=len(verdicts.columns)))
    return "\n\n".join(filter(None, parts))


def width() -> int:
    """Returns the number of columns of the terminal, 120 if the output goes elsewhere."""
    return shutil.get_terminal_size((120, 24)).columns


def filled(text: str, first: str = "", rest: str = "") -> str:
    """Returns a paragraph in lines of at most the terminal's width.

    Args:
      text: the paragraph.
      first: begins its first line.
      rest: begins every other line.
    """
    of = {"break_on_hyphens": False, "break_long_words": False}
    return textwrap.fill(text, width(), initial_indent=first, subsequent_indent=rest, **of)


def fitted(table: pd.DataFrame, optional: Collection[str] = (), left: int = 1) -> str:
    """Returns a table of at most the terminal's width.

    Args:
      table: of texts.
      optional: titles of columns that are left out, in this order, until the others fit. If they never do,
        the widest cells are cut.
      left: the number of first columns that are aligned to the left.
    """
    most = width()
    for name in optional:
        if _total(_widths(_lines(table))) <= most:
            break
        table = table.drop(columns=name, errors="ignore")
    lines = _lines(table)
    widths = _widths(lines)
    while _total(widths) > most and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
    header, *rows = ([_cut(cell, w) for cell, w in zip(row, widths, strict=True)] for row in lines)
    aligned_lines = aligned(header, rows, left).splitlines()
    return "\n".join(line[:most].rstrip() for line in aligned_lines)


def _lines(table: pd.DataFrame) -> list[list[str]]:
    return [[*map(str, table.columns)], *([*map(str, row)] for row in table.to_numpy())]


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


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
    widths = _widths([header, *rows])
    lines = [
        GAP.join(
            c.ljust(w) if i < left else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
