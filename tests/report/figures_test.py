"""How figures are drawn: as SVG with texts on hover, in any script, with names apart from each other."""

import pathlib
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vfljax.errors import UserError
from vfljax.report import figures
from vfljax.report.figures import FONT, Name

NASTY = "<img src=x onerror=alert(1)>\n]]>&amp;\"' \x07 $x$"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*texts):
    figure = Figure(figsize=(3, 2))
    ax = figure.subplots()
    for place, text in enumerate(texts):
        (mark,) = ax.plot([place], [place], "o")
        figures.hover(mark, text)
    return figure


def test_a_mark_has_its_text_as_a_title_and_no_identifier_is_left_that_nothing_refers_to():
    root = ElementTree.fromstring(figures.svg(drawn(["one", "two"], [NASTY]), "a figure"))
    marks = [of for of in root.iter(f"{SVG}g") if of.get("class") == "mark"]
    titles = [of[0].text for of in marks]
    assert titles == ["one\ntwo", NASTY.replace("\n", " ").replace("\x07", " ")]
    assert all(of[0].tag == f"{SVG}title" for of in marks)
    text = ElementTree.tostring(root, encoding="unicode")
    for element in root.iter():
        name = element.get("id")
        assert name is None or f"#{name}" in text
    assert root.get("aria-label") == "a figure"


def test_a_figure_has_no_style_or_metadata_of_the_page_and_is_equal_when_drawn_again():
    with figures.style():
        texts = [figures.svg(drawn(["x"]), "one") for _ in range(2)]
        other = figures.svg(drawn(["x"]), "two")
    assert texts[0] == texts[1]
    for word in ("<style", "metadata", "purl.org", "xlink", "<script"):
        assert word not in texts[0]
    names = [set(re.findall(r' id="(.*?)"', text)) for text in (texts[0], other)]
    assert names[0]
    assert not names[0] & names[1]  # two figures of a page do not share clip paths


def test_texts_stay_texts_and_dollars_are_no_formulas():
    with figures.style("噪声"):
        figure = drawn(["x"])
        figure.axes[0].set_title("噪声 $x$ _y")
        text = figures.svg(figure, "x")
    assert ">噪声 $x$ _y</text>" in text
    assert FONT not in text


def test_a_name_in_another_script_costs_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with figures.style("噪声", "ضوضاء"):
            figure = drawn(["x"])
            figure.axes[0].set_title("噪声 ضوضاء")
            assert figures.png(figure).startswith(b"\x89PNG")


def test_fonts_are_added_for_the_characters_that_the_first_one_lacks(monkeypatch):
    found = {"a.ttf": {0x566A}, "b.ttf": {0x566A, 0x58F0}, "c.ttf": {0x41}}
    entries = [
        figures.font_manager.FontEntry(fname=name, name=name[0], style="normal", weight=400)
        for name in found
    ]
    monkeypatch.setattr(figures.font_manager.fontManager, "ttflist", entries)
    monkeypatch.setattr(figures, "_characters", lambda path: frozenset(found.get(path, {0x41})))
    figures._further_fonts.cache_clear()
    try:
        assert figures._further_fonts("A噪声") == ["a", "b"]
        assert figures._further_fonts("A") == []
    finally:
        figures._further_fonts.cache_clear()


def test_a_failure_becomes_a_sentence():
    def raises(error):
        def draw():
            raise error

        return draw

    assert figures.attempted(lambda: 3) == (3, "")
    assert figures.attempted(raises(UserError("Nothing to draw."))) == (None, "Nothing to draw.")
    _, why = figures.attempted(raises(ValueError("cannot be\nlog-scaled")))
    assert why == "This figure could not be drawn (ValueError: cannot be log-scaled)."


def boxes(ax):
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    return [text.get_window_extent(renderer) for text in ax.texts]


@pytest.mark.parametrize("seed", range(5))
def test_names_lie_within_the_axes_and_apart_from_each_other_and_from_marks(seed):
    random = np.random.default_rng(seed)
    points = random.normal((0.9, 0.8), (0.02, 0.05), (30, 2))
    figure = Figure(figsize=(5, 4))
    ax = figure.subplots()
    ax.set(xlim=(0.85, 0.95), ylim=(0.6, 1.0))
    lines = [Name("chance .62", np.nan, 0.62, "gray"), Name("alone .86", 0.86, np.nan, "gray")]
    names = [*lines, *(Name(f"noise scale={n}", x, y, "red") for n, (x, y) in enumerate(points))]
    written = figures.write_names(ax, names, points)
    assert written[:2] == ["chance .62", "alone .86"]
    assert 5 < len(written) == len(ax.texts)
    found = boxes(ax)
    for place, box in enumerate(found):
        assert ax.bbox.x0 <= box.x0 < box.x1 <= ax.bbox.x1
        assert ax.bbox.y0 <= box.y0 < box.y1 <= ax.bbox.y1
        assert not any(box.overlaps(other) for other in found[:place])
        at = ax.transData.transform(points)
        assert not any(box.contains(*point) for point in at)


def test_a_name_without_room_is_left_out():
    figure = Figure(figsize=(5, 4))
    ax = figure.subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    assert figures.write_names(ax, [Name(99 * "long ", 0.5, 0.5, "red")], [(0.5, 0.5)]) == []
    assert figures.write_names(ax, [Name("left", -0.5, 0.5, "red")], [(-0.5, 0.5)]) == []


def test_no_backend_is_chosen_and_no_figure_is_left_open():
    sources = [*pathlib.Path(figures.__file__).parents[1].rglob("*.py")]
    assert pathlib.Path(figures.__file__) in sources
    assert not [p.name for p in sources if re.search(r"mpl\.use|pyplot as", p.read_text())]
