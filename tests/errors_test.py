"""Errors as records: one line, whatever names its fields."""

import pickle

import pytest

from vfljax.auditing.request import argument_of, flag_of
from vfljax.datasets import options
from vfljax.errors import Field, UserError, options_in, unknown


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
