"""The figure of what leaks against utility, and the figures of methods along their knobs."""

import re

import pytest

from tests.report.made import BARE, NAN, PROTECTS, made
from vfljax.report import along_knobs, figures, frontier

LEAKS = {"probe/mean": 0.9, "test_utility": 0.89}


def titles(figure):
    """What is shown on hover, a list of lines each."""
    found = re.findall(r"<title>(.*?)</title>", figures.svg(figure, "x"), re.DOTALL)
    return sorted(text.splitlines() for text in found)


def lines(ax):
    return {line.get_marker(): line for line in ax.lines if line.get_gid()}


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_points_say_their_figures_and_undefended_and_the_recommendation_stand_out():
    figure = frontier.frontier(made(BARE, PROTECTS, LEAKS, defenses=("noise", "max_norm")))
    (ax,) = figure.axes
    of = titles(figure)
    assert [text[0] for text in of] == ["max_norm", "noise (recommended)", "undefended"]
    assert of[2][1].startswith("leaks .95 (.95 to .95), .60 without the federation")
    assert "strongest attack: probe/mean (on 5 of 5 seeds)" in of[2]
    assert of[1][1] == "protects from what was tried"
    assert "leak, change to undefended -.35 (-.35 to -.35)" in of[1]
    assert of[1][-1] == "kept"
    assert lines(ax)["*"].get_color() == "black"
    assert len({line.get_color() for line in lines(ax).values()}) == 3
    rings = [
        line for line in ax.lines if line.get_markerfacecolor() == "none" and not line.get_gid()
    ]
    edges = {(*line.get_xdata(), line.get_markeredgecolor()) for line in rings}
    assert [x for x, color in edges if color == "#009E73"] == pytest.approx([0.88])
    alone = {"read without the federation .60", "label party alone .80"}
    assert {*texts(ax)} == {"undefended", "noise", *alone}
    legend = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert legend == ["undefended", "noise", "max_norm", "operating point", "recommended"]


def test_many_methods_are_drawn_apart_and_points_of_little_use_do_not_push_them_together():
    judged = made(BARE, PROTECTS | {"test_utility": 0.2}, *[LEAKS] * 20)
    verdicts = judged.verdicts.assign(
        method=[f"_m{n}" for n in range(len(judged.verdicts))], label=[*map(str, range(22))]
    )
    (ax,) = frontier.frontier(judged._replace(verdicts=verdicts)).axes
    looks = {(line.get_marker(), line.get_color()) for line in ax.lines if line.get_gid()}
    assert len(looks) == 21
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert " _m7" in names  # a label with an underscore first is shown too
    assert 0.7 < ax.get_xlim()[0] < 0.8
    assert ax.get_title().endswith("(1 configuration further left)")


POINTS = [{"probe/mean": 0.9 - k / 10, "test_utility": 0.9 - k / 50} for k in range(4)]


def test_a_method_with_one_knob_has_curves():
    judged = made(BARE, *POINTS, knobs={"noise.scale": [NAN, 0.001, 0.01, 0.1, 1.0]})
    ((_, draw),) = along_knobs.drawings(judged).values()
    figure = draw()
    (ax,) = figure.axes
    assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "scale")
    assert "$" not in figures.svg(figure, "x")  # ticks are no formulas
    assert titles(figure)[0][0] == titles(figure)[1][0] == "noise scale=.001"
    assert len(titles(figure)) == 8  # leak and utility


def test_a_method_with_two_knobs_has_a_heat_map():
    knobs = {"noise.scale": [NAN, 0.1, 0.1, 1.0, 1.0], "noise.law": [NAN, "a", "b", "a", "b"]}
    names = along_knobs.drawings(made(BARE, *POINTS, knobs=knobs))
    assert [*names] == ["heat_noise"]
    assert names["heat_noise"][0] == "noise, along scale and law"
    leak, utility = names["heat_noise"][1]().axes
    assert sorted(texts(leak)) == [".60", ".70", ".80", ".90"]
    assert [t.get_text() for t in leak.get_yticklabels()] == ["a", "b"]
    assert utility.get_title().startswith("accuracy")


def test_values_of_an_option_are_joined_by_no_line():
    judged = made(BARE, *POINTS[:2], knobs={"noise.law": [NAN, "gaussian", "laplace"]})
    ((_, draw),) = along_knobs.drawings(judged).values()
    (ax,) = draw().axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["gaussian", "laplace"]
    joined = [line for line in ax.lines if len(line.get_xdata()) == 2]
    assert not [x for x in joined if (x.get_linestyle(), x.get_linewidth()) == ("-", 1)]
