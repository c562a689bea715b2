"""How figures are drawn: as SVG with texts on hover, and as PNG."""

import io
import os
import re
import subprocess
import sys
import warnings
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.figure import Figure

from vfljax.report import figures

NASTY = "<img src=x onerror=alert(1)>\n]]>&amp;\"' \x07 $x$"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*texts):
    figure = Figure(figsize=(3, 2))
    ax = figure.subplots()
    ax.set_title("噪声 $x$ _y")
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


def test_a_figure_has_no_style_of_its_own_and_its_texts_stay_texts():
    with figures.style():
        texts = [figures.svg(drawn(["x"]), name) for name in ("one", "one", "two")]
    assert texts[0] == texts[1]
    for word in ("<style", "metadata", "purl.org", "xlink", "<script", "DejaVu"):
        assert word not in texts[0]
    assert ">噪声 $x$ _y</text>" in texts[0]  # in any script, and no formula
    one, _, two = (set(re.findall(r' id="(.*?)"', text)) for text in texts)
    assert one
    assert not one & two  # two figures of a page do not share clip paths
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figures.png(drawn(["x"])).startswith(b"\x89PNG")


def test_a_users_style_changes_no_figure():
    theirs = {"text.usetex": True, "savefig.bbox": "tight", "lines.linewidth": 9, "font.size": 20}

    def made():
        with figures.style():
            figure = Figure(figsize=(3, 2))
            figure.subplots().set(title="a $title$", xlim=(0, 3))
        return figures.png(figure), figures.svg(figure, "a figure"), figures.complete(figure)

    png, svg, _ = made()
    with mpl.rc_context(theirs):
        assert made()[:2] == (png, svg)
        made()[2].savefig(io.BytesIO(), format="png")  # which LaTeX would draw
        assert mpl.rcParams["font.size"] == 20


def test_a_backend_that_is_not_installed_stops_nothing():
    """A Jupyter kernel passes its backend on to the commands that it starts."""
    code = "import os, vfljax.report.figures; print(os.environ['MPLBACKEND'])"
    for name in ("module://nowhere.backend", "Nowhere"):
        run = [sys.executable, "-c", code]
        env = {**os.environ, "MPLBACKEND": name}
        out = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
        assert out.stdout.strip() == name
