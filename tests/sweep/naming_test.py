"""Names and texts that a report could not show, and values named twice, are refused in one line."""

import pytest

from tests.sweeps import tiny
from vfljax.errors import UserError
from vfljax.sweep.experiment import parse


def refused(**changes) -> str:
    """The one line that a config with these changes is refused with; it commands no terminal."""
    with pytest.raises(UserError) as error:
        parse(tiny(**changes))
    line = str(error.value)
    assert line.isprintable()
    return line


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a/b", "'a/b' cannot be a file's name"),
        ("a\\b", "cannot be a file's name"),
        ("$x$", "'$x$' cannot be a file's name: choose printable characters without / \\ $"),
        ("", "'' cannot be a file's name"),
        (" a", "' a' cannot be a file's name"),
        ("a ", "'a ' cannot be a file's name"),
        (300 * "a", "has 300 characters (300 bytes): choose at most 60 (200 bytes)"),
        (60 * "\N{GRINNING FACE}", "has 60 characters (240 bytes)"),
        ("a\0", "holds the character '\\x00', which cannot be printed"),
        ("\ud800", "holds the character '\\ud800'"),
        ("\x1b[31mred", "holds the character '\\x1b'"),
        ("two\nlines", "holds the character '\\n'"),
        (5, "the method 5 is no text"),
        (None, "the method None is no text"),
    ],
)
def test_an_arm_s_name_must_be_a_file_s_and_a_figure_s_too(name, says):
    line = refused(grid={name: {}})
    assert line.startswith("config.grid: the method ")
    assert says in line


@pytest.mark.parametrize("name", ["ε ≤ 0.1", "kdk+noise", "60 % (β)", 60 * "a", "混合", "a.b-c_d"])
def test_letters_of_any_script_are_fine(name):
    assert [method.name for method in parse(tiny(grid={name: {}}, name=name)).methods] == [name]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "\x1b[2J"}, "config.name '\\x1b[2J' holds the character"),
        ({"name": ""}, "config.name ''"),
        ({"parties.names": ("bank", "tel\nco")}, "config.parties.names: 'tel\\nco' holds the"),
        ({"name": 201 * "a"}, "at most 200"),
        ({"notes": (5,)}, "config.notes: 5 is no text"),
        ({"notes": ("fine", "a\0b")}, "config.notes: 'a\\x00b' holds"),
        ({"grid": {"x": {5: {}}}}, "unknown defense 5: choose from kdk"),
        ({"grid": {"x": {"noise": {5: 1.0}}}}, "unknown knob of noise 5: choose from scale"),
        ({"grid": {"x": {"model": {5: 1}}}}, "unknown field of config.grid.x.model 5"),
        ({"attacks": {5: {}}}, "unknown attack 5: choose from passive"),
    ],
)
def test_other_names_and_texts_are_checked_where_they_can_be_told(changes, says):
    assert says in refused(**changes)


def test_a_note_may_have_lines():
    assert parse(tiny(notes=("one\n\ttwo",))).notes == ("one\n\ttwo",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"grid": {"x": {"noise": {"scale": (0.1, 0.2, 0.1)}}}}, "grid.x.noise.scale names 0.1"),
        ({"grid": {"x": {"noise": {"scale": (1, 1.0)}}}}, "grid.x.noise.scale names 1.0"),
        (
            {"grid": {"x": {"noise": {"scale": 1, "law": ("laplace", "laplace")}}}},
            "grid.x.noise.law names 'laplace'",
        ),
        ({"training.learning_rate": (0.1, 0.1)}, "training.learning_rate names 0.1"),
        ({"training.decay": (0, 0.0)}, "training.decay names 0.0"),
        ({"malicious.gamma": (2, 2)}, "malicious.gamma names 2"),
        (
            {"malicious.parties": ((0, 1), (1, 0)), "parties.passive": 2},
            "malicious.parties names (0, 1)",
        ),
        ({"attackers": ((0,), (0,))}, "attackers names (0,)"),
        ({"attacks": {"passive": {"known": (20, 20)}}}, "attacks.passive.known names 20"),
        ({"attacks": {"direct": {"rule": ("a", "a")}}}, "attacks.direct.rule names 'a'"),
    ],
)
def test_a_value_that_an_axis_names_twice_is_refused(changes, says):
    assert f"config.{says} twice: leave one of them out." in refused(**changes)


def test_true_is_no_number_and_equal_values_of_other_axes_are_others():
    methods = {name: {"noise": {"scale": (0.1, 0.2)}} for name in ("a", "b")}
    attacks = {"passive": {"finetune_bottom": (False, True), "known": 20, "steps": 20}}
    assert len(parse(tiny(grid=methods, attacks=attacks)).methods) == 2
