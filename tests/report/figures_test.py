"""The figures' marks: who is drawn as undefended."""

import pathlib
import re
import runpy

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from tests.sweeps import point
from vfljax.report import drawing, figures

BASE = {"chance": 0.1, "majority": 0.1, "scale": "balanced top-1", "classes": 10, "alone": 0.2}


@pytest.fixture
def drawn():
    """Draws points; the figure is closed after the test."""
    shown = []

    def draw(*points):
        shown.append(figures.frontier(points, BASE))
        (ax,) = shown[-1].axes
        return {bars.get_label(): bars.lines[0] for bars in ax.containers}

    yield draw
    for figure in shown:
        plt.close(figure)


@pytest.mark.parametrize("name", ["vanilla", "plain", "undefended"])
def test_the_arm_without_defenses_is_the_black_star_whatever_it_is_called(drawn, name):
    marks = drawn(point(name, 0.9, 0.8), point("noise", 0.8, 0.5, {"noise.scale": 1.0}))
    assert (marks[name].get_marker(), marks[name].get_color()) == ("*", "black")
    assert marks["noise"].get_marker() != "*"
    assert marks["noise"].get_color() != "black"


def test_an_arm_with_defenses_is_no_star_even_if_it_is_called_undefended(drawn):
    marks = drawn(point("vanilla", 0.9, 0.8), point("undefended", 0.8, 0.5, {"noise.scale": 1.0}))
    assert marks["vanilla"].get_marker() == "*"
    assert marks["undefended"].get_marker() != "*"
    assert marks["undefended"].get_color() != "black"


def test_an_option_s_values_are_names_on_an_axis():
    points = [
        point("noise", 0.9, 0.5, {"noise.scale": scale, "noise.law": law})
        for scale in (0.1, 1.0)
        for law in ("gaussian", "laplace")
    ]
    heat, curve = figures.heat_maps(points, "noise"), figures.curves(points[:2], "noise", BASE)
    for figure in (heat, curve):
        ax = figure.axes[0]
        ticks = [t.get_text() for axis in (ax.xaxis, ax.yaxis) for t in axis.get_ticklabels()]
        assert {"gaussian", "laplace"} <= set(ticks)
        plt.close(figure)
    assert curve.axes[0].lines[0].get_linestyle() == "None"


def test_a_notebook_keeps_its_backend():
    before = mpl.get_backend()
    mpl.use("svg")
    try:
        runpy.run_path(drawing.__file__)
        assert mpl.get_backend() == "svg"
    finally:
        mpl.use(before)


def test_no_other_module_chooses_a_backend():
    sources = pathlib.Path(drawing.__file__).parents[1].rglob("*.py")
    choosing = [p.name for p in sources if re.search(r"mpl\.use|import matplotlib", p.read_text())]
    assert choosing == ["drawing.py"]
