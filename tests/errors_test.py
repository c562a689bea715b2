"""Errors as records: one line, whatever names its fields."""

import pathlib
import pickle
import sys

import pytest

from vfljax import config, errors
from vfljax.auditing.request import argument_of, flag_of
from vfljax.datasets import options
from vfljax.errors import Field, UserError, options_in, packaged, unknown


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


def test_a_message_quotes_another():
    inner = UserError("is missing", field="data.dir", value="x", remedy="correct it")
    outer = UserError(("weights.npz: ", *inner.parts))
    assert str(outer) == "weights.npz: config.data.dir='x' is missing: correct it."
    assert outer.line(options.flag_of) == "weights.npz: --data_dir='x' is missing: correct it."


def test_entry_points_spell_fields_their_own_way():
    error = UserError(
        "is read", field="data.dir", value="t.csv", remedy=options_in("name {label}= or {drop}=")
    )
    assert error.line(options.flag_of) == (
        "--data_dir='t.csv' is read: name --option=label= or --option=drop=."
    )
    assert error.line(flag_of) == "--data='t.csv' is read: name --label= or --option=drop=."
    assert error.line(argument_of) == "table='t.csv' is read: name label= or drop=."


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
