"""The figures' marks: who is drawn as undefended."""

import dataclasses
import pathlib
import re

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tests.sweeps import REFERENCE, assessed, assessment
from vfljax.report import figures, frontier

TEN = REFERENCE._replace(classes=10, chance=0.1, majority=0.1)


@pytest.fixture
def drawn():
    """Draws assessments; the marks by their labels."""

    def draw(*found):
        (ax,) = frontier.frontier(assessed(*found, reference=TEN)).axes
        return {bars.get_label(): bars[0] for bars in ax.containers}

    return draw


@pytest.mark.parametrize("name", ["vanilla", "plain", "undefended"])
def test_the_method_without_defenses_is_the_black_star_whatever_it_is_called(drawn, name):
    other = "noise" if name == "undefended" else "undefended"
    marks = drawn(assessment(name, 0.9, 0.8), assessment(other, 0.8, 0.5, {"noise.scale": 1.0}))
    assert (marks[name].get_marker(), marks[name].get_color()) == ("*", "black")
    assert {marks[other].get_marker(), marks[other].get_color()}.isdisjoint({"*", "black"})
    assert [0.5, 0.5] in [list(line.get_ydata()) for line in marks[name].axes.lines]  # local-only


def test_the_chosen_operating_point_is_named_before_its_neighbors(drawn):
    weak, strong = (assessment("noise", 0.9, 0.7 - k / 50, {"noise.scale": k}) for k in (1.0, 2.0))
    found = dataclasses.replace(weak, chosen=True), strong, assessment("undefended", 0.9, 0.9)
    texts = {text.get_text() for text in drawn(*found)["noise"].axes.texts}
    assert texts & {"1", "2"} == {"1"}


def test_names_of_operating_points_lie_within_the_axes(drawn):
    at = [(u, {"noise.scale": 1.23456 * u}) for u in (0.77, 0.84, 0.9)]
    found = [assessment("noise", u, u, knobs, alone=0.8) for u, knobs in at]
    axes = drawn(*found, assessment("undefended", 0.92, 0.97, alone=0.8))["noise"].axes
    renderer = FigureCanvasAgg(axes.figure).get_renderer()
    boxes = [t.get_window_extent(renderer) for t in axes.texts if t.get_text()[:2] in (".9", "1.")]
    assert len(boxes) == 3
    assert all(axes.bbox.x0 <= box.x0 <= box.x1 <= axes.bbox.x1 for box in boxes)


def test_an_option_s_values_are_names_on_an_axis():
    every = [
        assessment("noise", 0.9, 0.5, {"noise.scale": scale, "noise.law": law}).configuration
        for scale in (0.1, 1.0)
        for law in ("gaussian", "laplace")
    ]
    heat, curve = figures.heat_maps(every), figures.curves(every[:2], TEN)
    for figure in (heat, curve):
        ax = figure.axes[0]
        ticks = [t.get_text() for axis in (ax.xaxis, ax.yaxis) for t in axis.get_ticklabels()]
        assert {"gaussian", "laplace"} <= set(ticks)
    assert curve.axes[0].lines[0].get_linestyle() == "None"


def test_no_backend_is_chosen_and_no_figure_is_left_open():
    sources = [*pathlib.Path(figures.__file__).parents[1].rglob("*.py")]
    assert pathlib.Path(figures.__file__) in sources
    assert not [p.name for p in sources if re.search(r"mpl\.use|pyplot as", p.read_text())]
