"""How figures are drawn: colors, fonts for any script, names that keep clear of each other, SVG and PNG.

A figure is drawn once by Matplotlib, without pyplot, so that no backend is chosen. ``svg`` returns it as an
element that stands in an HTML page. A text that was given to ``hover`` shows where the mouse rests on the mark;
that needs no script.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from vfljax.errors import UserError

COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#000000"),
    *("#882255", "#44AA99", "#999933", "#332288", "#DDCC77", "#AA4499"),
)
MARKERS = "osD^vPhX<>pd8"  # one fewer than colors, so that pairs repeat late
LOCAL_ONLY_COLOR = "#B00020"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "figure.dpi": 110,
    "svg.fonttype": "none",  # text stays text: it can be searched, and a browser has fonts for any script
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
}
FONT = "DejaVu Sans"  # comes with Matplotlib
LAST = "Last Resort"  # the first words of the names of fonts that have a box for every character
HOVER = "hover:"  # marks the identifiers that ``svg`` turns into titles
LINE = "\N{LINE SEPARATOR}"  # stands for a line break within an identifier
SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"
PNG_DPI = 150
ENLARGED = 1.6  # the most pixels that a point of an SVG may take

T = TypeVar("T")


def attempted(draw: Callable[[], T]) -> tuple[T | None, str]:
    """Returns what ``draw`` returns and "", or None and a sentence on why there is no figure.

    A report is written after hours of training, and no figure in it may cost the others. A figure without
    anything to show raises a UserError whose text is that sentence.
    """
    try:
        return draw(), ""
    except UserError as error:
        return None, str(error)
    except Exception as error:  # drawing libraries raise nearly every type
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return None, f"This figure could not be drawn ({reason})."


def look(number: int) -> tuple[str, str]:
    """Returns color and marker of the method of that number; many differ in at least one of the two."""
    return COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]


@contextlib.contextmanager
def style(*names: str) -> Iterator[None]:
    """Sets the style of figures, with fonts for the names that will be written.

    A character that no installed font has is drawn as a box in PNG, without a warning for each.
    """
    fonts = [FONT, *_further_fonts("".join(sorted(set("".join(names)))))]
    with mpl.rc_context({**STYLE, "font.family": fonts}), _no_glyph_warnings():
        yield


@contextlib.contextmanager
def _no_glyph_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph .*missing from")
        yield


@functools.cache
def _further_fonts(text: str) -> list[str]:
    """Returns the families of installed fonts that have the characters which ``FONT`` lacks."""
    lacking = {ord(c) for c in text if c.isprintable()} - _characters(
        font_manager.findfont(FONT, fallback_to_default=True)
    )
    families: list[str] = []
    plain = (f for f in font_manager.fontManager.ttflist if f.style == "normal")
    # fonts of normal weight first, then by name: figures do not depend on the order of files
    for font in sorted(plain, key=lambda f: (str(f.weight) not in ("400", "normal"), f.name)):
        if not lacking:
            break
        found = lacking & _characters(font.fname) if not font.name.startswith(LAST) else set()
        if found:
            families.append(font.name)
            lacking -= found
    return families


@functools.cache
def _characters(path: str) -> frozenset[int]:
    try:
        return frozenset(font_manager.get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a font file that cannot be read has none
        return frozenset()


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
    """Returns a figure as an SVG element that stands in an HTML page, equal for equal figures.

    Args:
      figure: the figure.
      title: its text for readers of screens; no two figures of a page have the same.
    """
    buffer = io.BytesIO()
    # clip paths and markers have identifiers made from the salt, which differ between the figures of a page
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"vfljax {title}"}), _no_glyph_warnings():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())
    *_, width, _ = map(float, root.attrib["viewBox"].split())
    for name in ("width", "height"):
        root.attrib.pop(name)
    look = f"max-width:{ENLARGED * width:.0f}px;stroke-linejoin:round;stroke-linecap:butt"
    root.attrib |= {"role": "group", "aria-label": title, "style": look}
    for parent in list(root.iter()):
        for child in list(parent):
            # Matplotlib's style is for all elements of a page, its metadata for nobody
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
    with _no_glyph_warnings():
        figure.savefig(buffer, format="png", dpi=PNG_DPI)
    return buffer.getvalue()


class Name(NamedTuple):
    """A text beside a point, or beside a line across the axes."""

    text: str
    x: float  # NaN: the line is horizontal
    y: float  # NaN: the line is vertical
    color: str


Box = tuple[float, float, float, float]  # left, bottom, right, top in pixels
ROUND = tuple((x, y) for x in (1, -1, 0) for y in (-1, 1, 0) if x or y)  # right and below first
DISTANCES = (6.0, 14.0, 26.0, 44.0)  # in points; from the second on a line leads to the point
ALONG = tuple(np.linspace(0, 1, 11))  # the places along a line
BEHIND: Any = {"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.5}  # lines do not cross a name
MARK = 5.0  # half the width of a mark, in points


def write_names(ax: Axes, names: Sequence[Name], marks: Sequence[tuple[float, float]]) -> list[str]:
    """Writes names into axes whose limits and place in the figure are final.

    No name overlaps another, a mark or the edge of the axes. A name for which there is no room is left out.

    Args:
      ax: the axes.
      names: the most important first.
      marks: the points that are drawn, in the units of the data.

    Returns:
      The names that are written.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    renderer = FigureCanvasAgg(figure).get_renderer()
    scale = figure.dpi / 72
    at = np.array(marks, float).reshape(-1, 2)
    places = ax.transData.transform(at[np.isfinite(at).all(axis=1)])
    half = MARK * scale
    taken = [(x - half, y - half, x + half, y + half) for x, y in places]
    out = []
    for name in names:
        text = ax.text(0, 0, name.text, fontsize=7, color=name.color, zorder=6, parse_math=False)
        box = text.get_window_extent(renderer)
        text.remove()
        fits = (
            c for c in _candidates(ax, name, box.width, box.height, scale) if _free(c[0], ax, taken)
        )
        found = next(fits, None)
        if found is None:
            continue
        (left, bottom, right, top), line = found
        x, y = ax.transAxes.inverted().transform((left, bottom))
        at_corner = {"transform": ax.transAxes, "va": "bottom", "ha": "left", "zorder": 6}
        upright = np.isnan(name.y)
        at_corner |= {"rotation": 90 * upright, "bbox": BEHIND}
        written = ax.text(
            x, y, name.text, fontsize=7, color=name.color, parse_math=False, **at_corner
        )
        written.set_in_layout(False)
        if line:
            ends = [line, (min(max(line[0], left), right), min(max(line[1], bottom), top))]
            ax.plot(
                *ax.transAxes.inverted().transform(ends).T,
                transform=ax.transAxes,
                color=name.color,
                lw=0.5,
                alpha=0.7,
                zorder=1,
            )
        taken.append((left, bottom, right, top))
        out.append(name.text)
    return out


def _candidates(
    ax: Axes, name: Name, width: float, height: float, scale: float
) -> Iterator[tuple[Box, tuple[float, float] | None]]:
    """Yields the boxes in which a name may stand, the best first, and the point to which a line then leads."""
    frame = ax.bbox
    if np.isnan(name.x) or np.isnan(name.y):
        across = np.isnan(name.x)
        x, y = ax.transData.transform((0 if across else name.x, name.y if across else 0))
        wide, high = (width, height) if across else (height, width)
        # above or left of the line, or on the other side; at last with room for marks between
        for share, apart, side in itertools.product(ALONG, (2.0, (MARK + 2) * scale), (1, -1)):
            if across:
                left = frame.x0 + 3 + share * (frame.width - wide - 6)
                bottom = y + apart if side > 0 else y - apart - high
            else:
                left = x - apart - wide if side > 0 else x + apart
                bottom = frame.y1 - 3 - high - share * (frame.height - high - 6)
            yield (left, bottom, left + wide, bottom + high), None
        return
    x, y = ax.transData.transform((name.x, name.y))
    if not frame.x0 <= x <= frame.x1:
        return
    for distance in DISTANCES:
        for right, up in ROUND:
            away = distance * scale * (1 if not (right and up) else 0.8)
            left = x + away * right - width * (1 - right) / 2
            bottom = y + away * up - height * (1 - up) / 2
            far = distance > DISTANCES[0]
            yield (left, bottom, left + width, bottom + height), (x, y) if far else None


def _free(box: Box, ax: Axes, taken: Sequence[Box]) -> bool:
    """Returns whether a box lies within the axes and apart from the taken ones."""
    left, bottom, right, top = box
    frame, apart = ax.bbox, 1.5
    if left < frame.x0 + 2 or right > frame.x1 or bottom < frame.y0 + 2 or top > frame.y1:
        return False
    others = np.array(taken, float).reshape(-1, 4)
    beside = (
        (others[:, 2] + apart <= left)
        | (others[:, 0] - apart >= right)
        | (others[:, 3] + apart <= bottom)
        | (others[:, 1] - apart >= top)
    )
    return bool(beside.all())
