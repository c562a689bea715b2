"""The interactive frontier: a Bokeh figure with tooltips for each federation.

Bokeh's own legend hides and shows methods. Bokeh is imported when a panel is drawn, its script is read as a
file, and nothing is fetched.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vfljax.report import headline, words
from vfljax.report.assessed import Assessed, Assessment
from vfljax.report.configurations import Reference
from vfljax.report.figures import COLORS, attempted, numbers
from vfljax.report.frontier import Reach, alone, reach
from vfljax.report.stored_rows import FEDERATIONS
from vfljax.report.templates import templates

if TYPE_CHECKING:
    from bokeh.plotting import figure as BokehFigure

UNDEFENDED = "star"
MARKERS = (
    *("circle", "square", "diamond", "triangle", "inverted_triangle", "plus", "hex", "square_pin"),
)
"""Markers of the defended methods. Pairs with a color repeat only after many methods."""


class Mark(NamedTuple):
    """How a method is drawn."""

    method: str
    color: str
    marker: str


class Panel(NamedTuple):
    """The figure of one federation."""

    federation: str
    title: str
    item: dict[str, Any]  # JSON for ``Bokeh.embed.embed_item``
    why: str = ""  # a sentence on why there is no figure; the item is then empty


def script() -> str:
    """Returns the source of BokehJS, to be embedded in a page."""
    file = importlib.resources.files("bokeh") / "server" / "static" / "js" / "bokeh.min.js"
    return file.read_text(encoding="utf-8")


def marks(assessed: Assessed) -> list[Mark]:
    """Returns how every attacked method is drawn. Undefended is a black star and comes first."""
    methods = {a.method: a.configuration.defended for a in assessed.attacked}
    bare = [Mark(name, "#000000", UNDEFENDED) for name in methods if not methods[name]]
    return bare + [
        Mark(name, COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)])
        for name, place in numbers(assessed.configurations).items()
        if methods.get(name)
    ]


def panels(assessed: Assessed) -> list[Panel]:
    """Returns a figure for every federation in which anything was attacked."""
    out = []
    for federation in assessed.federations:
        panel, why = attempted(functools.partial(_panel, assessed, federation))
        out.append(panel or Panel(federation, FEDERATIONS[federation], {}, why))
    return out


def _panel(assessed: Assessed, federation: str) -> Panel:
    from bokeh.core.properties import value
    from bokeh.embed import json_item
    from bokeh.models import HoverTool, Legend, LegendItem

    axis = reach(assessed, federation)
    figure = _empty(assessed.reference, axis)
    _lines(figure, assessed, federation)
    members, drawn = assessed.attacked_on(federation), []
    for mark in marks(assessed):
        of_method = [a for a in members if a.method == mark.method and a.utility.count]
        if of_method:
            drawn.append((mark, _draw(figure, mark, of_method, assessed.reference)))
    auc = any(a.auc.count for a in members)
    tooltip = templates().get_template("tooltip.html").render(auc=auc)
    points = [parts[-1] for _, parts in drawn]
    figure.add_tools(HoverTool(renderers=points, tooltips=tooltip, limit=2, visible=False))
    # a click on a method hides or shows everything that is drawn for it
    items = [LegendItem(label=value(mark.method), renderers=parts) for mark, parts in drawn]
    legend = Legend(
        items=items,
        click_policy="hide",
        orientation="horizontal",
        ncols=min(3, max(1, len(items))),
        border_line_color=None,
        label_text_font_size="13px",
    )
    figure.add_layout(legend, "below")
    title = FEDERATIONS[federation]
    if axis.beyond:
        title += f" ({axis.beyond} configuration{'s' * (axis.beyond != 1)} further left)"
    return Panel(federation, title, dict(json_item(figure)))


def _empty(reference: Reference, shown: Reach) -> BokehFigure:
    from bokeh.models import Range1d
    from bokeh.plotting import figure

    drawn = figure(
        height=480,
        min_width=240,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom,reset",
        toolbar_location="above",
        x_range=Range1d(start=shown.left, end=shown.right),
        y_range=Range1d(start=shown.bottom, end=1.02),
        x_axis_label=f"test {reference.utility} (better →)",
        y_axis_label=f"strongest attack, {reference.scale} (better ↓)",
        background_fill_color="#ffffff",
        outline_line_color=None,
    )
    drawn.toolbar.logo = None
    drawn.toolbar.active_drag = None  # a touch scrolls the page and does not zoom by accident
    drawn.toolbar.active_scroll = None
    for axis in drawn.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = "14px"
        axis.major_label_text_font_size = "13px"
    drawn.grid.grid_line_color = "#e8e8e8"
    return drawn


def _lines(figure: BokehFigure, assessed: Assessed, federation: str) -> None:
    """Draws the lines of chance, the local-only baseline and the label party alone."""
    from bokeh.models import Label, Span

    reference, local_only = assessed.reference, assessed.local_only(federation)
    lines = [(True, reference.chance, "chance", "#666666", "dotted")]
    if not math.isnan(local_only):
        lines.append((True, local_only, "local-only", "#B00020", "dashed"))
    lines.append((False, *alone(assessed, federation), "#666666", "dotted"))
    for across, place, text, color, dash in lines:
        dimension, look = "height", {"line_color": color, "line_dash": dash, "line_width": 1.5}
        at = {"x": place, "y": 1.02, "text_align": "right", "text_baseline": "top"}
        if across:
            dimension = "width"
            at = {"x": 6, "y": place, "text_align": "left", "text_baseline": "bottom"}
        figure.add_layout(Span(location=place, dimension=dimension, **look))
        figure.add_layout(
            Label(
                **at,
                x_units="screen" if across else "data",
                angle=0 if across else math.pi / 2,
                text=f"{text} {place:.2f}",
                text_color=color,
                text_font_size="12px",
                background_fill_color="#ffffff",
                background_fill_alpha=0.6,
            )
        )


def _row(a: Assessment, reference: Reference) -> dict[str, Any]:
    """Returns what is drawn of a configuration, and what its tooltip shows."""
    strongest, configuration = a.strongest, a.configuration
    assert strongest is not None
    (left, right), (bottom, top) = (
        [x.mean if math.isnan(limit) else float(limit) for limit in x.limits]
        for x in (a.utility, a.leak)
    )
    lost = f" ({configuration.diverged} of {configuration.trials} diverged)"
    return {
        "x": a.utility.mean,
        "y": a.leak.mean,
        "left": max(0.0, left),
        "right": min(1.0, right),
        "bottom": bottom,
        "top": top,
        "ring": 20 if a.chosen else 0,
        "configuration": a.label + (lost if configuration.diverged else ""),
        "accuracy": str(a.accuracy),
        "auc": str(a.auc),
        "leak": str(a.leak),
        "excess": a.excess.signed,
        "change": a.change.signed,
        "verdict": words.verdict_text(a) if configuration.defended else "undefended",
        "attack": strongest.attack.brief,
        "party": headline.attackers(strongest, reference) or "nobody: local-only reads most",
    }


def _draw(
    figure: BokehFigure, mark: Mark, members: Sequence[Assessment], reference: Reference
) -> list[Any]:
    """Draws a method's points with their intervals; returns the renderers, the points' last."""
    from bokeh.models import ColumnDataSource

    rows = [_row(a, reference) for a in members]
    source = ColumnDataSource(data={name: [row[name] for row in rows] for name in rows[0]})
    bars = {"color": mark.color, "alpha": 0.45}
    ring = {"marker": "circle", "fill_color": None, "line_color": "#000000", "line_width": 1.5}
    return [
        figure.segment("left", "y", "right", "y", source=source, **bars),
        figure.segment("x", "bottom", "x", "top", source=source, **bars),
        figure.scatter("x", "y", source=source, size="ring", **ring),
        figure.scatter(
            *("x", "y"),
            source=source,
            marker=mark.marker,
            size=18 if mark.marker == UNDEFENDED else 10,
            color=mark.color,
            line_color="#ffffff",
            fill_alpha=0.9,
        ),
    ]
