"""The frontier that answers when it is pointed at: Bokeh's, one panel a federation.

What enters: points, ``About`` them, and the cards. What leaves: a ``Panel`` a federation, as JSON for
``Bokeh.embed.embed_item``, and the legend, whose entries switch what is drawn under their names. Bokeh is
imported when a panel is drawn, and its script is read as a file. Nothing here fetches anything.
"""

from __future__ import annotations

import importlib.util
import math
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vfljax.report.cards import About, Card, attack_of, attacker, away
from vfljax.report.confidence import Interval
from vfljax.report.figures import COLORS, numbers
from vfljax.report.summary import Point
from vfljax.report.verdicts import verdicts
from vfljax.report.worst import FEDERATIONS

if TYPE_CHECKING:
    from bokeh.plotting import figure as BokehFigure

MARKERS = {
    "circle": '<circle r="5"/>',
    "square": '<rect x="-5" y="-5" width="10" height="10"/>',
    "diamond": '<path d="M0 -6L4.5 0L0 6L-4.5 0Z"/>',
    "triangle": '<path d="M0 -5.5L5.5 4.5L-5.5 4.5Z"/>',
    "inverted_triangle": '<path d="M0 5.5L5.5 -4.5L-5.5 -4.5Z"/>',
    "plus": '<path d="M-2 -6h4v4h4v4h-4v4h-4v-4h-4v-4h4z"/>',
    "hex": '<path d="M-5.5 0L-2.8 -4.8H2.8L5.5 0L2.8 4.8H-2.8Z"/>',
    "square_pin": '<path d="M-6 -6Q0 -3 6 -6Q3 0 6 6Q0 3 -6 6Q-3 0 -6 -6Z"/>',
    "star": '<path d="M0 -7L1.7 -2.3L6.7 -2.2L2.7 0.9L4.1 5.7L0 2.9L-4.1 5.7L-2.7 .9L-6.7 -2.2L-1.7 -2.3Z"/>',
}
"""Bokeh's markers, and their outlines around 0 for the legend; with the colors no two of many are alike."""
UNDEFENDED = "star"
ROOM = 0.05  # of accuracy, that intervals may widen its axis by
TOOLTIP = "font:13px/1.35 system-ui,sans-serif;color:#1a1a1a;max-width:300px;white-space:normal"


class Entry(NamedTuple):
    """One arm in the legend."""

    arm: str
    name: str  # of everything that is drawn for it: "arm3"
    color: str
    marker: str

    @property
    def symbol(self) -> str:
        """Its mark as SVG."""
        return (
            f'<svg viewBox="-8 -8 16 16" width="14" height="14" aria-hidden="true" fill="{self.color}">'
            f"{MARKERS[self.marker]}</svg>"
        )


class Panel(NamedTuple):
    """One federation's figure."""

    federation: str
    title: str
    item: dict[str, Any]  # JSON for ``Bokeh.embed.embed_item``


def script() -> str:
    """BokehJS, to stand in a page."""
    spec = importlib.util.find_spec("bokeh")
    assert spec is not None
    assert spec.origin is not None
    folder = pathlib.Path(spec.origin).parent
    return (folder / "server" / "static" / "js" / "bokeh.min.js").read_text(encoding="utf-8")


def legend(points: Sequence[Point]) -> list[Entry]:
    """An entry for every arm that has a worst case anywhere; the undefended one is a black star."""
    arms: dict[str, bool] = {}
    for point in points:
        if point.worst:
            arms.setdefault(point.arm, point.defended)
    arms = dict(sorted(arms.items(), key=lambda arm: arm[1]))  # undefended first
    markers = [name for name in MARKERS if name != UNDEFENDED]
    out, places = [], numbers(points)
    for place, (arm, defended) in enumerate(arms.items()):
        name = f"arm{place}"
        if not defended:
            out.append(Entry(arm, name, "#000000", UNDEFENDED))
            continue
        color, marker = COLORS[places[arm] % len(COLORS)], markers[places[arm] % len(markers)]
        out.append(Entry(arm, name, color, marker))
    return out


def panels(points: Sequence[Point], of: About, cards: Sequence[Card]) -> list[Panel]:
    """A figure for every federation in which anything was attacked."""
    from bokeh.embed import json_item

    entries, judged = legend(points), verdicts(points)
    federations = [f for f in FEDERATIONS if any(f in p.worst for p in points)]
    reach = _reach(points, of)
    out = []
    for federation in federations:
        figure = _empty(of, *reach)
        _lines(figure, points, federation, of)
        said = {(v.point.number, v.label): v for v in judged if v.federation == federation}
        chosen = {
            (c.point.number, c.point.label)
            for c in cards
            if c.kept and c.point is not None and c.federation == federation
        }
        drawn = []
        for entry in entries:
            members = [
                p
                for p in points
                if p.arm == entry.arm and federation in p.worst and p.accuracy[federation].count
            ]
            if members:
                columns = _columns(members, federation, of, said, chosen)
                drawn.append(_arm(figure, entry, columns))
        _hover(figure, drawn, bool(members_auc(points, federation)))
        means = [p.accuracy[federation].mean for p in points if federation in p.worst]
        title = _title(means, reach[0], federation)
        out.append(Panel(federation, title, dict(json_item(figure))))
    return out


def members_auc(points: Sequence[Point], federation: str) -> bool:
    """Whether an AUC is known of any point."""
    return any(p.auc.get(federation) for p in points)


def _reach(points: Sequence[Point], of: About) -> tuple[float, float]:
    """Of the accuracy's axis at first: all means that are not far below the majority guess, for whoever
    predicts worse than that would push all others together; and intervals where they are short."""
    majority = of.base["majority"]
    ends = [(v.mean, _ends(v)) for p in points for v in p.accuracy.values() if v.count]
    low = min([majority, *(max(end["left"], mean - ROOM) for mean, end in ends)])
    high = max([majority, *(min(end["right"], mean + ROOM) for mean, end in ends)])
    low = max(low, majority - max(ROOM, (high - majority) / 2))
    room = 0.04 * (high - low) + 0.005
    return max(0.0, low - room), high + room


def _title(drawn: Sequence[float], lowest: float, federation: str) -> str:
    """The federation, and how many of these accuracies the axis does not reach down to."""
    left = len([accuracy for accuracy in drawn if accuracy < lowest])
    more = f" ({left} setting{'s' * (left != 1)} further left: far below the majority guess)"
    return FEDERATIONS[federation] + (more if left else "")


def _empty(of: About, lowest: float, highest: float) -> BokehFigure:
    from bokeh.models import Range1d
    from bokeh.plotting import figure

    drawn = figure(
        height=480,
        min_width=240,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom,reset",
        toolbar_location="above",
        x_range=Range1d(start=lowest, end=highest),
        y_range=Range1d(start=0.45 if of.base["chance"] == 0.5 else 0.0, end=1.03),
        x_axis_label="test accuracy (better →)",
        y_axis_label=f"worst attack, {of.base['scale']} (better ↓)",
        background_fill_color="#ffffff",
        outline_line_color=None,
    )
    drawn.toolbar.logo = None
    drawn.toolbar.active_drag = None  # a finger scrolls the page, and nobody zooms by chance
    drawn.toolbar.active_scroll = None
    for axis in drawn.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = "14px"
        axis.major_label_text_font_size = "13px"
    drawn.grid.grid_line_color = "#e8e8e8"
    return drawn


def _lines(figure: BokehFigure, points: Sequence[Point], federation: str, of: About) -> None:
    """Chance, who takes no part, and the majority guess."""
    from bokeh.models import Label, Span

    his = away(points, federation)
    lines = [(True, of.base["chance"], "chance", "#666666", "dotted")]
    if not math.isnan(his):
        lines.append((True, his, "taking no part", "#B00020", "dashed"))
    lines.append((False, of.base["majority"], "majority guess", "#666666", "dotted"))
    for across, place, text, color, dash in lines:
        figure.add_layout(
            Span(
                location=place,
                dimension="width" if across else "height",
                line_color=color,
                line_dash=dash,
                line_width=1.5,
            )
        )
        figure.add_layout(
            Label(
                x=6 if across else place,
                y=place if across else 1.02,
                x_units="screen" if across else "data",
                text_align="left" if across else "right",
                text=f"{text} {place:.2f}",
                text_color=color,
                text_font_size="12px",
                angle=0 if across else math.pi / 2,
                text_baseline="bottom" if across else "top",
                background_fill_color="#ffffff",
                background_fill_alpha=0.6,
            )
        )


def _columns(
    members: Sequence[Point], federation: str, of: About, said: dict, chosen: set
) -> dict[str, list[Any]]:
    """What is drawn and said of an arm's points, by column."""
    out: dict[str, list[Any]] = {}
    for p in members:
        worst, accuracy = p.worst[federation], p.accuracy[federation]
        verdict = said.get((p.number, p.label))
        lower, upper = (float(limit) for limit in worst.leak.limits)
        row = {
            "x": accuracy.mean,
            "y": worst.leak.mean,
            **_ends(accuracy),
            "bottom": worst.leak.mean if math.isnan(lower) else lower,
            "top": worst.leak.mean if math.isnan(upper) else upper,
            "ring": 20 if (p.number, p.label) in chosen else 0,
            "setting": p.label
            + (f" ({p.diverged} of {p.settings} diverged)" if p.diverged else ""),
            "accuracy": str(accuracy),
            "auc": str(p.auc.get(federation, "-")),
            "leak": str(worst.leak),
            "excess": worst.excess.signed,
            "change": verdict.change.signed if verdict else "-",
            "verdict": verdict.text if verdict else ("-" if p.defended else "undefended"),
            "attack": attack_of(worst),
            "party": attacker(worst, of.name_of) or "nobody: staying away reads most",
        }
        for column, value in row.items():
            out.setdefault(column, []).append(value)
    return out


def _ends(of: Interval) -> dict[str, float]:
    half = 0.0 if math.isnan(of.half) else of.half
    return {"left": max(0.0, of.mean - half), "right": min(1.0, of.mean + half)}


def _arm(figure: BokehFigure, entry: Entry, columns: dict[str, list[Any]]) -> Any:
    """Draws an arm's points with their intervals; what is drawn last is what hovers."""
    from bokeh.models import ColumnDataSource

    source = ColumnDataSource(data=dict(columns))
    bars = {"source": source, "name": entry.name, "color": entry.color, "alpha": 0.45}
    figure.segment("left", "y", "right", "y", **bars)
    figure.segment("x", "bottom", "x", "top", **bars)
    figure.scatter(
        *("x", "y"),
        source=source,
        name=entry.name,
        marker="circle",
        size="ring",
        fill_color=None,
        line_color="#000000",
        line_width=1.5,
    )
    return figure.scatter(
        *("x", "y"),
        source=source,
        name=entry.name,
        marker=entry.marker,
        size=18 if entry.marker == UNDEFENDED else 10,
        color=entry.color,
        line_color="#ffffff",
        fill_alpha=0.9,
    )


def _hover(figure: BokehFigure, drawn: Sequence[Any], auc: bool) -> None:
    from bokeh.models import HoverTool

    lines = ["<b>@setting</b>", "@verdict", "leaks @leak", "over staying away @excess"]
    lines += ["change to undefended @change", "accuracy @accuracy"] + ["AUC @auc"] * auc
    lines += ["strongest attack: @attack", "by @party"]
    # Bokeh escapes what stands in the columns
    tooltip = f'<div style="{TOOLTIP}">{"<br>".join(lines)}</div>'
    figure.add_tools(
        HoverTool(renderers=list(drawn), tooltips=tooltip, limit=2, visible=False),
    )
