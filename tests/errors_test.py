"""Errors as records: one line, whatever names its fields."""

import pathlib
import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.refusals import refused
from vfljax import config, errors
from vfljax.errors import (
    Field,
    UnmetError,
    UserError,
    check,
    check_choice,
    options_in,
    packaged,
    slug,
    unknown,
    written,
)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UserError("a whole sentence."), "a whole sentence."),
        (
            UserError("is empty", field="data.dir", remedy="name it"),
            "config.data.dir is empty: name it.",
        ),
        (UserError(field="seeds", value=0, remedy="give 1."), "config.seeds=0: give 1."),
        (UserError("is bad.", field="seeds"), "config.seeds is bad."),
        (UserError(("column 'a'", *options_in(" is in {drop}=."))), "column 'a' is in drop=."),
        (
            unknown(Field("data.name"), 3, ["a"], " So."),
            "unknown config.data.name 3: choose from a. So.",
        ),
    ],
)
def test_the_line_of_an_error(error, line):
    assert str(error) == line
    assert str(pickle.loads(pickle.dumps(error))) == line  # as it comes from another process


def test_a_file_of_this_folder_hides_the_copy_that_comes_with_vfljax(tmp_path, monkeypatch):
    wheel, here = tmp_path / "packaged", tmp_path / "here"
    for folder in (wheel, here):
        (folder / "configs").mkdir(parents=True)
    (wheel / "configs" / "values_of_wheel.py").write_text("SEEDS = 7\n")
    text = "from configs import values_of_wheel\ndef get_config():\n    return {'seeds': %s}\n"
    (wheel / "configs" / "c.py").write_text(text % "values_of_wheel.SEEDS")
    monkeypatch.setattr(errors, "PACKAGED", wheel)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(here)
    assert packaged("configs/c.py") == wheel / "configs" / "c.py"
    assert config.from_file("configs/c.py")["seeds"] == 7  # also where configs import each other
    (here / "configs" / "c.py").write_text(text % "8")
    assert packaged("configs/c.py") == pathlib.Path("configs/c.py")
    assert config.from_file("configs/c.py")["seeds"] == 8
    assert packaged("configs/absent.py") == pathlib.Path("configs/absent.py")  # for the message


# (value, arguments, a word of the range)
WRONG = [
    (-0.1, {"high": 1}, "from 0 to 1"),
    (float("nan"), {}, "a number"),
    (np.float32(2), {"high": 1}, "from 0 to 1"),
    (float("inf"), {}, "to 1e+30"),
    (10**400, {}, "to 1e+30"),
    (-1.0, {"infinite": True}, "of at least 0"),
    (3.5, {"whole": True}, "a whole number"),
    (2**31, {"whole": True}, "to 2,147,483,647"),
    (True, {}, "a number"),
]


@pytest.mark.parametrize(("value", "bounds", "word"), WRONG, ids=[f"{w[0]!r:.9}" for w in WRONG])
def test_a_number_out_of_range_is_refused_with_its_field_and_the_range(value, bounds, word):
    with refused("beta=", written(value), word):
        check("beta", value, **bounds)


def test_the_ends_of_a_range_pass_and_whole_numbers_of_any_type():
    for value in (0, 0.5, 1, np.float32(1)):
        check("beta", value, 0.0, 1.0)
    for value in (3, 3.0, np.int32(3)):
        check("k", value, 1, whole=True)
    check("epsilon", float("inf"), infinite=True)


def test_traced_numbers_pass():
    def traced(value):
        check("beta", value, 0.0, 1.0, whole=True)
        return value

    assert jax.jit(traced)(7.5) == 7.5
    np.testing.assert_array_equal(jax.vmap(traced)(jnp.float32([-1.0, 0.3])), np.float32([-1, 0.3]))


def test_an_option_is_one_of_its_choices():
    check_choice("anchor", "label", ("label", "teacher"))
    with refused("anchor='x'", "label, teacher"):
        check_choice("anchor", "x", ("label", "teacher"))


@pytest.mark.parametrize("name", ["a/b", "..", "\N{GRINNING FACE}" * 99, "\0"])
def test_a_slug_is_the_name_of_a_file_in_its_folder(name, tmp_path):
    (tmp_path / f"heat_{slug(name)}.png").write_text("")
    assert len([*tmp_path.iterdir()]) == 1


def test_a_goal_that_is_not_met_exits_otherwise_than_a_mistake():
    assert (UserError("a").status, UnmetError("a").status) == (2, 3)


def test_paths_are_named_where_the_current_folder_was_removed(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert errors.short_path(tmp_path / "a") == str(tmp_path / "a")
    assert errors.user_path(tmp_path / "a") == tmp_path / "a"
    with refused("path='a' is relative to the current folder, which was removed"):
        errors.user_path("a")
