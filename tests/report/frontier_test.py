"""The figure of what leaks against utility, and the figures of methods along their knobs."""

import math
import re

import pytest

from tests.report.made import FACTS, made
from vfljax.config import Goal
from vfljax.errors import UserError
from vfljax.report import along_knobs, figures, frontier

NAN = math.nan
BARE = {"probe/mean": 0.95}
PROTECTS = {"probe/mean": 0.6, "test_utility": 0.88}
LEAKS = {"probe/mean": 0.9, "test_utility": 0.89}


def titles(figure):
    """What is shown on hover, a list of lines each."""
    found = re.findall(r"<title>(.*?)</title>", figures.svg(figure, "x"), re.DOTALL)
    return sorted(text.splitlines() for text in found)


def lines(ax):
    return {line.get_marker(): line for line in ax.lines if line.get_gid()}


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.fixture
def judged():
    return made(BARE, PROTECTS, LEAKS, defenses=("noise", "max_norm"))


def test_every_point_says_its_name_verdict_leak_and_limits_on_hover(judged):
    of = titles(frontier.frontier(judged))
    assert [text[0] for text in of] == ["max_norm", "noise (recommended)", "undefended"]
    assert of[2][1].startswith("leaks .95 (.95 to .95), .60 without the federation")
    assert "strongest attack: probe/mean (on 5 of 5 seeds)" in of[2]
    assert of[1][1] == "protects from what was tried"
    assert "leak, change to undefended -.35 (-.35 to -.35)" in of[1]
    assert of[1][-1] == "kept"


def test_undefended_is_the_black_star_and_what_is_recommended_has_a_green_ring(judged):
    (ax,) = frontier.frontier(judged).axes
    marks = lines(ax)
    assert marks["*"].get_color() == "black"
    assert len({line.get_color() for line in marks.values()}) == 3
    rings = [
        line for line in ax.lines if line.get_markerfacecolor() == "none" and line.get_gid() is None
    ]
    edges = {(*line.get_xdata(), line.get_markeredgecolor()) for line in rings}
    assert {color for _, color in edges} == {"#009E73", "black"}
    (green,) = [x for x, color in edges if color == "#009E73"]
    assert green == pytest.approx(0.88)


def test_undefended_what_is_recommended_and_lines_are_named(judged):
    (ax,) = frontier.frontier(judged).axes
    assert {*texts(ax)} == {
        "undefended",
        "noise",
        "read without the federation .60",
        "label party alone .80",
    }
    legend = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert legend == ["undefended", "noise", "max_norm", "operating point", "recommended"]


def test_fifty_methods_are_drawn_apart():
    judged = made(BARE, *[LEAKS] * 50)
    verdicts = judged.verdicts.assign(
        method=[f"_m{n}" for n in range(len(judged.verdicts))], label=[*map(str, range(51))]
    )
    judged = judged._replace(verdicts=verdicts)
    (ax,) = frontier.frontier(judged).axes
    looks = {(line.get_marker(), line.get_color()) for line in ax.lines if line.get_gid()}
    assert len(looks) == 51
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert " _m7" in names  # a label with an underscore first is shown too


def test_points_far_below_the_label_party_alone_do_not_push_the_others_together():
    judged = made(BARE, PROTECTS, LEAKS | {"test_utility": 0.2}, defenses=("noise", "max_norm"))
    (ax,) = frontier.frontier(judged).axes
    assert 0.7 < ax.get_xlim()[0] < 0.8
    assert ax.get_title().endswith("(1 configuration further left)")
    assert len(lines(ax)) == 2


def test_without_a_utility_there_is_a_sentence_in_place_of_a_figure():
    judged = made(BARE, PROTECTS)
    judged = judged._replace(verdicts=judged.verdicts.assign(utility=NAN))
    assert frontier.panels(judged) == []
    with pytest.raises(UserError, match="no configuration has both a leak and a utility"):
        frontier.frontier(judged)


def test_names_in_another_script_are_drawn():
    judged = made(BARE, PROTECTS)
    judged = judged._replace(verdicts=judged.verdicts.replace("noise", "噪声"))
    assert ">噪声</text>" in figures.svg(frontier.frontier(judged), "x")


def curves(judged):
    return {name: of() for name, (_, of) in along_knobs.drawings(judged).items()}


def test_a_method_with_one_knob_has_curves_and_one_with_two_a_heat_map():
    points = [{"probe/mean": 0.9 - k / 10, "test_utility": 0.9 - k / 50} for k in range(4)]
    one = made(BARE, *points, knobs={"noise.scale": [NAN, 0.001, 0.01, 0.1, 1.0]})
    (figure,) = curves(one).values()
    (ax,) = figure.axes
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "scale"
    assert "$" not in figures.svg(figure, "x")  # ticks are no formulas
    assert titles(figure)[0][0] == titles(figure)[1][0] == "noise scale=.001"
    assert len(titles(figure)) == 8  # leak and utility
    two = made(
        BARE,
        *points,
        knobs={"noise.scale": [NAN, 0.1, 0.1, 1.0, 1.0], "noise.law": [NAN, "a", "b", "a", "b"]},
    )
    names = along_knobs.drawings(two)
    assert [*names] == ["heat_noise"]
    assert names["heat_noise"][0] == "noise, along scale and law"
    leak, utility = names["heat_noise"][1]().axes
    assert sorted(texts(leak)) == [".60", ".70", ".80", ".90"]
    assert [t.get_text() for t in leak.get_yticklabels()] == ["a", "b"]
    assert utility.get_title().startswith("accuracy")


def test_values_of_an_option_are_joined_by_no_line():
    points = [{"probe/mean": 0.9 - k / 10} for k in range(2)]
    judged = made(BARE, *points, knobs={"noise.law": [NAN, "gaussian", "laplace"]})
    (figure,) = curves(judged).values()
    (ax,) = figure.axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["gaussian", "laplace"]
    assert not [
        line
        for line in ax.lines
        if len(line.get_xdata()) == 2 and line.get_linestyle() == "-" and line.get_linewidth() == 1
    ]


def test_what_may_leak_at_most_is_the_goal_s():
    facts = FACTS._replace(goal=Goal(max_leak=0.5))
    assert "recommended" not in str(titles(frontier.frontier(made(BARE, PROTECTS, facts=facts))))
