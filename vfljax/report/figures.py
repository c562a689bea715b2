"""How figures are drawn: colors, style, SVG and PNG.

A figure is drawn once by Matplotlib, without pyplot, so that no backend is chosen. ``svg`` returns it as an
element to embed in an HTML page. A text that was given to ``hover`` shows where the mouse rests on the mark;
that needs no script.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#000000"),
    *("#882255", "#44AA99", "#999933", "#332288", "#DDCC77", "#AA4499"),
)
MARKERS = "osD^vPhX<>pd8"  # one fewer than colors, so that pairs repeat late
LOCAL_ONLY_COLOR = "#B00020"
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "figure.dpi": 110,
    "svg.fonttype": "none",  # text stays text: it can be searched, and a browser has fonts for any script
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
}
HOVER = "hover:"  # marks the identifiers that ``svg`` turns into titles
LINE = "\N{LINE SEPARATOR}"  # stands for a line break within an identifier
SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"
PNG_DPI = 150
ENLARGED = 1.6  # the most pixels that a point of an SVG may take


class Drawing(NamedTuple):
    """A figure of the report."""

    title: str
    draw: Callable[[], Figure]


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Sets the style of figures, whatever the user's matplotlibrc says; the backend stays."""
    with mpl.rc_context(), _no_glyph_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


@contextlib.contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    """Draws a character that the font lacks as a box in PNG, without a warning. In SVG it stays text."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph .*missing from")
        yield


def hover(artist: Artist, lines: Sequence[str]) -> None:
    """Shows the lines where the mouse rests on the artist in the SVG of its figure."""
    text = LINE.join(lines)
    artist.set_gid(HOVER + "".join(c if c.isprintable() or c == LINE else " " for c in text))


def logarithmic(axis: Axis) -> None:
    """Labels an axis whose scale is logarithmic. Matplotlib's own labels are formulas."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if _decades(axis) < 2 else (1.0,)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _decades(axis: Axis) -> float:
    low, high = axis.get_view_interval()
    return float(np.log10(high / low))


def svg(figure: Figure, title: str) -> str:
    """Returns a figure as an SVG element to embed in an HTML page, equal for equal figures.

    Args:
      figure: the figure.
      title: its text for readers of screens; no two figures of a page have the same.
    """
    buffer = io.BytesIO()
    # clip paths and markers have identifiers made from the salt, which differ between the figures of a page
    with style(), mpl.rc_context({"svg.hashsalt": f"vfljax {title}"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        # what is laid out stays so: Matplotlib would do it again for a PNG, which takes longer than to draw it
        figure.set_layout_engine(None)
    root = ElementTree.fromstring(buffer.getvalue())
    *_, width, _ = map(float, root.attrib["viewBox"].split())
    for name in ("width", "height"):
        root.attrib.pop(name)
    look = f"max-width:{ENLARGED * width:.0f}px;stroke-linejoin:round;stroke-linecap:butt"
    root.attrib |= {"role": "group", "aria-label": title, "style": look}
    for parent in list(root.iter()):
        for child in list(parent):
            # Matplotlib's style would apply to all elements of the page, and its metadata is not used
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _mended(element)
    ElementTree.register_namespace("", SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _mended(element: ElementTree.Element) -> None:
    """Gives an element its title, drops identifiers that nothing refers to, and shortens links and fonts."""
    if element.tag == f"{{{SVG}}}g":
        name = element.attrib.pop("id", "")
        if name.startswith(HOVER):
            element.set("class", "mark")
            title = ElementTree.Element(f"{{{SVG}}}title")
            title.text = name.removeprefix(HOVER).replace(LINE, "\n")
            element.insert(0, title)
    if HREF in element.attrib:
        element.set("href", element.attrib.pop(HREF))
    if element.tag == f"{{{SVG}}}text":
        # the families, "font: 9px 'DejaVu Sans'" or "font-family: ...", are the page's for all texts
        text = re.sub(r"font: ([\d.]+px) [^;]*", r"font-size: \1", element.get("style", ""))
        element.set("style", re.sub(r"font-family: [^;]*;? ?", "", text))


def png(figure: Figure) -> bytes:
    """Returns a figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=PNG_DPI)
    return buffer.getvalue()


def complete(figure: Figure) -> Figure:
    """Returns a figure whose ticks are made, in our style: a user's own style would otherwise apply to them."""
    with style():
        figure.draw_without_rendering()
    return figure
