"""What leaks against utility: a point for each configuration of a sweep, with its figures on hover."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vfljax.errors import UserError
from vfljax.report import words
from vfljax.report.figures import COLORS, LOCAL_ONLY_COLOR, MARKERS, hover, style
from vfljax.report.frames import PANELS, Facts
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import of_row
from vfljax.report.verdict_tables import AT_LEAST, leader

WIDTH = 5.0
"""The width of a panel in inches: its text can be read on a telephone."""
NO_POINT = "No figure is drawn: no configuration has both a leak and a utility."
CHOSEN = "operating point"
# the height of a line of the legend in inches, the width of a letter in points
CLOSE = 0.04  # of the height: lines that are closer have names on either side
ROW, COLUMN = 0.19, 5.4
RECOMMENDED = "recommended"
RING: dict[str, Any] = {"marker": "o", "ms": 10, "mfc": "none", "mec": "black", "mew": 0.9}
NAME: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7, "zorder": 6}
GREEN_RING: dict[str, Any] = {**RING, "mec": "#009E73", "mew": 2.2}


def looks(verdicts: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Returns color and marker of each method in every figure. Many differ in at least one of the two."""
    defended = verdicts.loc[verdicts["defenses"] != "", "method"].unique()
    colors, markers = itertools.cycle(COLORS), itertools.cycle(MARKERS)
    undefended = dict.fromkeys(verdicts["method"], ("black", "*"))
    return undefended | dict(zip(defended, zip(colors, markers)))


def plotted(judged: Judged, panel: str) -> pd.DataFrame:
    """Returns the verdicts of a panel that have both a leak and a utility, at the headline's K."""
    leading = judged.leading
    drawn = leading[leading["panel"] == panel]
    return drawn[drawn["leak"].notna() & drawn["utility"].notna()]


def panels(judged: Judged) -> list[str]:
    """Returns the panels that a frontier has."""
    return [panel for panel in PANELS if len(plotted(judged, panel))]


def frontier(judged: Judged) -> Figure:
    """Draws privacy against utility, a panel beside the other. Down and right is better.

    Bars are limits over seeds, of undefended and of operating points. A black ring marks the operating point of
    each method, a green one what is recommended. Configurations whose utility is far below that of the label
    party alone are left of the axis, and only their number is shown.

    Raises:
      UserError: if no configuration has both a leak and a utility.
    """
    names = panels(judged)
    if not names:
        raise UserError(NO_POINT)
    with style():
        entries, width = _entries(judged, names), WIDTH * len(names)
        longest = max(len(entry["label"]) for entry in entries)
        columns = max(1, min(len(entries), int(72 * width / (COLUMN * longest + 40))))
        height = 4.0 + ROW * -(-len(entries) // columns)
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, len(names), squeeze=False)[0]
        for ax, panel in zip(axes, names, strict=True):
            _draw(ax, judged, panel)
        handles = [Line2D([], [], ls="none", **entry) for entry in entries]
        at = {"loc": "outside lower center", "ncols": columns, "handletextpad": 0.3}
        figure.legend(handles=handles, **at)
    return figure


class Reach(NamedTuple):
    """The axes of a frontier, which fit what is drawn."""

    left: float  # a third of the gain below the label party alone, or below the guess
    right: float
    bottom: float
    beyond: int  # number of configurations left of it


def reach(drawn: pd.DataFrame, facts: Facts) -> Reach:
    """Returns the axes for the verdicts that are drawn."""
    best, place = max(drawn["utility"].max(), facts.guess), alone(drawn, facts)[0]
    low, high = min(place, best - 0.02), max(place, best)  # the label party alone may be best
    left = low - (high - low) / 3
    inside = drawn[drawn["utility"] >= left]
    barred = inside.loc[inside["chosen"] | inside["undefended"], "leak_lower"]
    lowest = np.nanmin([*inside["leak"], *barred, drawn["local_only"].mean(), 1.0])
    bottom = max(0.0, lowest - 0.15 * (1.02 - lowest) - 0.01)
    right = high + 0.12 * (high - left)
    return Reach(left, right, float(bottom), len(drawn) - len(inside))


def alone(drawn: pd.DataFrame, facts: Facts) -> tuple[float, str]:
    """Returns the utility of the label party alone, or of a guess where that is not known, and whose it is."""
    reached = float(drawn["alone"].iloc[0])
    known = not math.isnan(reached) and reached != facts.guess
    return (reached, "label party alone") if known else (facts.guess, "guess")


def _draw(ax: Axes, judged: Judged, panel: str) -> None:
    """Draws a panel. Undefended and what is recommended are named; the legend has the methods."""
    drawn, facts, look_of = plotted(judged, panel), judged.facts, looks(judged.verdicts)
    axis = reach(drawn, facts)
    title = PANELS[panel]
    if axis.beyond:
        title += f" ({words.count(axis.beyond, 'configuration')} further left)"
    ax.set(
        xlim=(axis.left, axis.right),
        ylim=(axis.bottom, 1 + 0.06 * (1 - axis.bottom)),
        title=title,
        xlabel=f"test {facts.utility} of the federation  (better →)",
        ylabel=f"strongest attack, {facts.scale}  (better ↓)",
    )
    ax.set_yticks([tick for tick in ax.get_yticks() if axis.bottom <= tick <= 1])
    _lines(ax, drawn, facts)
    for row in drawn[drawn["utility"] >= axis.left].to_dict("records"):
        color, marker = look_of[row["method"]]
        _point(ax, row, color, marker, facts)
        if row["recommended"] or row["undefended"]:
            at = row["utility"], row["leak"]
            ax.annotate(row["label"], at, (-8, -8), color=color, ha="right", va="top", **NAME)


def _lines(ax: Axes, drawn: pd.DataFrame, facts: Facts) -> None:
    """Draws the lines of chance, the local-only learners and the label party alone."""
    local_only = drawn.loc[drawn["undefended"], "local_only"].mean()
    low, high = ax.get_ylim()
    close = abs(local_only - facts.chance) < CLOSE * (high - low)
    for level, text, color, dashes in (
        (local_only, "read without the federation", LOCAL_ONLY_COLOR, "--"),
        (facts.chance, "chance", "gray", ":"),
    ):
        if level >= low and not (text != "chance" and level == facts.chance):
            ax.axhline(level, color=color, lw=0.8, ls=dashes, zorder=1)
            at = {"xycoords": ("axes fraction", "data"), "color": color, **NAME}
            below = close and level == min(local_only, facts.chance)  # so that names do not overlap
            offset, side = ((3, -2), "top") if below else ((3, 2), "bottom")
            ax.annotate(f"{text} {words.figure(level)}", (0, level), offset, va=side, **at)
    place, text = alone(drawn, facts)
    if place >= ax.get_xlim()[0]:
        ax.axvline(place, color="gray", lw=0.8, ls=":", zorder=1)
        at = {"xycoords": ("data", "axes fraction"), "color": "gray", "rotation": 90, **NAME}
        ax.annotate(
            f"{text} {words.figure(place)}", (place, 1), (-2, -3), ha="right", va="top", **at
        )


def _point(ax: Axes, row: dict[str, Any], color: str, marker: str, facts: Facts) -> None:
    """Draws a configuration with its limits, and the rings around what is chosen and recommended."""
    x, y = row["utility"], row["leak"]
    if row["chosen"] or row["undefended"]:
        bars = {"color": color, "lw": 0.7, "alpha": 0.6, "zorder": 2}
        ax.plot(of_row(row, "utility")[1:], [y, y], **bars)
        ax.plot([x, x], of_row(row, "leak")[1:], **bars)
    if row["chosen"]:
        ax.plot([x], [y], ls="none", zorder=4, **(GREEN_RING if row["recommended"] else RING))
    (mark,) = ax.plot(
        [x],
        [y],
        marker,
        ms=13 if row["undefended"] else 5.5,
        color=color,
        mec="white",
        mew=0.4,
        zorder=5 if row["undefended"] else 3,
    )
    hover(mark, hover_lines(row, facts))


def hover_lines(row: dict[str, Any], facts: Facts) -> list[str]:
    """Returns the lines of text that a configuration's mark has on hover.

    Args:
      row: its verdict.
      facts: of the sweep.
    """
    lines = [
        row["label"] + (f" ({RECOMMENDED})" if row["recommended"] else ""),
        f"leaks {AT_LEAST * row['at_least']}{words.with_limits(*of_row(row, 'leak'))}, "
        f"{words.figure(row['local_only'])} without the federation",
        f"strongest attack: {leader(row, brief=False)}",
    ]
    if not row["undefended"]:
        lines.insert(1, row["verdict"])
    if not row["undefended"] and not row["at_least"]:
        lines.append(f"leak, change to undefended {words.signed(*of_row(row, 'd'))}")
    if not math.isnan(row["utility"]):
        lines.append(f"{facts.utility} {words.with_limits(*of_row(row, 'utility'))}")
    if not row["undefended"]:
        lines.append(row["cost"])
    if row["seeds_left_out"]:
        lines.append(f"{words.count(row['seeds_left_out'], 'seed')} without figures")
    return lines


def _entries(judged: Judged, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the entries of the legend: undefended, every method that is drawn, and the rings."""
    drawn = pd.concat([plotted(judged, panel) for panel in names])
    look_of, out = looks(judged.verdicts), []
    for method, defended in dict(zip(drawn["method"], drawn["defenses"] != "")).items():
        color, marker = look_of[method]
        # a label that starts with an underscore would be left out
        label = f" {method}" if method.startswith("_") else method
        size = 5.5 if defended else 9
        out.append({"marker": marker, "color": color, "ms": size, "mec": "white", "label": label})
    recommended = drawn["recommended"]
    for ring, of in (
        ({**RING, "label": CHOSEN}, drawn["chosen"] & ~recommended),
        ({**GREEN_RING, "label": RECOMMENDED}, recommended),
    ):
        if of.any():
            out.append({**ring, "color": "none"})
    return out
