"""Figures of a method along its knobs: what leaks and what is useful, as curves or as heat maps."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vfljax.errors import slug
from vfljax.report import words
from vfljax.report.figures import LOCAL_ONLY_COLOR, Drawing, hover, logarithmic, style
from vfljax.report.frames import PANELS, Facts
from vfljax.report.frontier import WIDTH, hover_lines
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import of_row
from vfljax.report.points import points_of

LOOKS = {"leak": ("#D55E00", "o"), "utility": ("#0072B2", "s")}
WIDE = 20.0
"""From this ratio of its largest to its smallest value on, a knob has a logarithmic axis."""


def drawings(judged: Judged) -> dict[str, Drawing]:
    """Returns the figure of each method with one or two knobs that vary, by the name of its file."""
    out: dict[str, Drawing] = {}
    every = points_of(judged.trials)["knobs"]
    leading = judged.leading[judged.leading["leak"].notna() | judged.leading["utility"].notna()]
    for method, members in leading.groupby("method", sort=False):
        of = [every[c] for c in members["configuration"].unique()]
        names = dict.fromkeys(name for knobs in of for name in knobs)
        varying = [n for n in names if len({knobs.get(n) for knobs in of}) > 1]
        if len(varying) not in (1, 2) or any(name not in knobs for knobs in of for name in varying):
            continue
        columns = [[every[c][name] for c in members["configuration"]] for name in varying]
        table = members.assign(**{f"knob{n}": values for n, values in enumerate(columns)})
        kind, draw = ("curve", curves) if len(varying) == 1 else ("heat", heat_maps)
        title = f"{method}, along {words.listed([_short(name) for name in varying])}"
        drawn = functools.partial(draw, judged, table, varying)
        out[f"{kind}_{slug(method)}"] = Drawing(title, drawn)
    return out


def curves(judged: Judged, table: pd.DataFrame, names: list[str]) -> Figure:
    """Draws what leaks and the utility along one knob, a panel beside the other.

    Args:
      judged: the sweep.
      table: the verdicts of the method, with the knob's values as the column ``knob0``.
      names: the knob's.
    """
    (name,) = names
    panels = [panel for panel in PANELS if panel in {*table["panel"]}]
    facts = judged.facts
    # values of an option are names, so no line joins them
    numeric, values = all(map(_is_number, table["knob0"])), _ordered(table["knob0"])
    with style():
        figure = Figure(figsize=(WIDTH * len(panels), 3.8), layout="constrained")
        for ax, panel in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            members = table[table["panel"] == panel].sort_values(
                "knob0", key=lambda of: of.map(values.index)
            )
            x = [float(v) if numeric else values.index(v) for v in members["knob0"]]
            labels = {"leak": f"leak ({facts.scale})", "utility": facts.utility}
            for column, (color, marker) in LOOKS.items():
                y = members[column].to_numpy(float)
                if np.isfinite(y).any():
                    ax.plot(x, y, ls="-" if numeric else "none", color=color, lw=1, label="_")
                    _marks(ax, x, members, column, facts)
                    ax.plot([], [], marker, color=color, label=labels[column])
            local_only = members["local_only"].mean()
            if not math.isnan(local_only):
                ax.axhline(
                    local_only,
                    color=LOCAL_ONLY_COLOR,
                    lw=0.8,
                    ls="--",
                    label="read without the federation",
                )
            if not numeric:
                ax.set_xticks(range(len(values)), list(map(str, values)))
            elif min(x) > 0 and max(x) / min(x) > WIDE:
                ax.set_xscale("log")
                logarithmic(ax.xaxis)
            ax.set(xlabel=_short(name), ylim=(0, 1.03), title=PANELS[panel])
        handles, texts = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=len(texts))
    return figure


def _marks(ax: Axes, x: list[float], members: pd.DataFrame, column: str, facts: Facts) -> None:
    color, marker = LOOKS[column]
    for place, row in zip(x, members.to_dict("records"), strict=True):
        y = row[column]
        ax.plot([place, place], of_row(row, column)[1:], color=color, lw=0.7, alpha=0.6)
        (mark,) = ax.plot([place], [y], marker, ms=5, color=color, mec="white", mew=0.4)
        hover(mark, hover_lines(row, facts)[:3])


def heat_maps(judged: Judged, table: pd.DataFrame, names: list[str]) -> Figure:
    """Draws what leaks and the utility over two knobs; each panel has a row.

    Args:
      judged: the sweep.
      table: the verdicts of the method, with the knobs' values as the columns ``knob0`` and ``knob1``.
      names: of the knobs.
    """
    panels = [panel for panel in PANELS if panel in {*table["panel"]}]
    across, down = sorted((0, 1), key=lambda n: -table[f"knob{n}"].nunique())
    columns, lines = (_ordered(table[f"knob{n}"]) for n in (across, down))
    facts = judged.facts
    figures = [("leak", f"leak ({facts.scale})")]
    if table["utility"].notna().any():
        figures.append(("utility", facts.utility))
    with style():
        high = 0.9 + 0.3 * len(lines)
        figure = Figure(
            figsize=(4.6 * len(figures), high * len(panels) + 0.3), layout="constrained"
        )
        axes = figure.subplots(len(panels), len(figures), squeeze=False)
        for panel, of_panel in zip(panels, axes, strict=True):
            rows = table[table["panel"] == panel].to_dict("records")
            for ax, (column, title) in zip(of_panel, figures, strict=True):
                ax.set(
                    xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(lines) - 0.5), aspect="auto"
                )
                ax.spines[:].set_visible(False)
                ax.tick_params(length=0)
                for row in rows:
                    place = columns.index(row[f"knob{across}"]), lines.index(row[f"knob{down}"])
                    _cell(ax, *place, row, column, facts)
                ax.set_xticks(range(len(columns)), list(map(_tick, columns)))
                ax.set_yticks(range(len(lines)), list(map(_tick, lines)))
                ax.set(xlabel=_short(names[across]), ylabel=_short(names[down]))
                ax.set_title(f"{title}, {PANELS[panel]}")
    return figure


def _cell(ax: Axes, x: int, y: int, row: dict[str, Any], column: str, facts: Facts) -> None:
    """Draws a configuration's cell with its value written, that of an operating point in bold.

    The darker, the more leaks beyond what is read without the federation, or the less useful it is.
    """
    value = row[column]
    base = facts.chance if math.isnan(row["local_only"]) else row["local_only"]
    shade = (value - base) / max(1 - base, 1e-9) if column == "leak" else 1 - value
    shade = 0.0 if math.isnan(shade) else min(max(shade, 0.0), 1.0)
    color = [1 - shade * (1 - of) for of in to_rgb(LOOKS[column][0])]
    patch = ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fc=color, ec="#cccccc", lw=0.5))
    hover(patch, hover_lines(row, facts)[:3])
    at = {"ha": "center", "va": "center", "fontsize": 7.5}
    weight = "bold" if row["chosen"] else "normal"
    dark = "white" if shade > 0.7 else "black"
    ax.text(x, y, words.figure(value), color=dark, fontweight=weight, **at)


def _ordered(values: pd.Series) -> list[Any]:
    return sorted(values.unique(), key=None if all(map(_is_number, values)) else str)


def _tick(value: Any) -> str:
    return words.number(value) if _is_number(value) else str(value)


def _short(name: str) -> str:
    return name.split(".")[-1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
