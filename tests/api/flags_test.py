"""Flags made from signatures: of each annotation, of every command, and in messages."""

import functools
import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pytest
from msgspec import Meta

from analysis.benchmark import command as benchmark
from analysis.leakbench import command as leakbench
from analysis.reproduction import command as reproduction
from tests.refusals import refused
from vfljax.api import flags
from vfljax.api.arguments import Path, checked, converted, naming_arguments
from vfljax.api.commands import COMMANDS
from vfljax.api.flags import Command
from vfljax.errors import Field, UserError, argument

EVERY = {
    **COMMANDS,
    "launch.benchmark": benchmark.COMMAND,
    "launch.leakbench": leakbench.COMMAND,
    "launch.reproduce": reproduction.COMMAND,
}


def file_of(path: str, sep: str = ",") -> str:
    """Makes the argument ``table`` of ``example``."""
    return path + sep


@functools.partial(checked, makers={"table": ("its.file", file_of)})
def example(
    table: Path,
    *,
    yes: bool = False,
    count: Annotated[int, Meta(ge=0)] = 3,
    share: float | None = None,
    budget: float | str = "10m",
    names: Sequence[str] = (),
    numbers: Sequence[float] = (),
    options: Mapping[str, Any] | None = None,
    attacks: Sequence[str] | Mapping[str, Any] = (),
    anything: Any = None,
    command: str = "",
    say: Any = print,
) -> dict[str, Any]:
    """Returns its arguments.

    Text of the page.

    Args:
      table: a file, whose text
        has two lines.
      yes: whether.
    """
    return dict(locals())


COMMAND = Command(example, names={"table": "data"})


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--noyes"], "yes", False),
        (["--count=5"], "count", 5),
        (["--share=0.5"], "share", 0.5),
        (["--budget=90s"], "budget", "90s"),
        (["--names=a, b", '--names="c,d"'], "names", ("a", "b", "c,d")),
        (["--names="], "names", ()),
        (["--numbers=1,.5"], "numbers", (1.0, 0.5)),
        (["--options=a=['x,y']", "--options=b=x=y"], "options", {"a": ["x,y"], "b": "x=y"}),
        (['--options={"sep": ";", "header": null}'], "options", {"sep": ";", "header": None}),
        (["--attacks=a,b"], "attacks", ("a", "b")),
        ([], "count", 3),
    ],
)
def test_each_annotation_decides_what_a_flag_is(words, name, value):
    given = example(**flags.parsed(COMMAND, ["--data=t", *words]))
    assert given[name] == value
    assert str(given["table"]) == os.path.abspath("t")


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"count": np.int64(5)}, "count", 5),
        ({"yes": np.bool_(True)}, "yes", True),
        ({"names": np.array(["a", "b"])}, "names", ("a", "b")),
        ({"attacks": {"a": {}}}, "attacks", {"a": {}}),
        ({"anything": max}, "anything", max),
    ],
)
def test_python_s_values_are_accepted_too(given, name, value):
    found = example("t", **given)[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"yes": 1}, "yes=1: give True or False"),
        ({"count": 1.5}, "count=1.5: give a whole number of at least 0"),
        ({"count": -1}, "count=-1"),
        ({"share": "x"}, "share='x': give a number or None"),
        ({"names": ["a", 1]}, "names=1: give a text"),
        ({"numbers": "a,b"}, "numbers='a'"),
        ({"options": ["drop"]}, "options='drop': give name=value"),
        ({"options": ["a=1", "a=2"]}, "options=a=... is given twice"),
        ({"share": [0.5]}, "share is of type list: give a number or None"),
        ({"table": ""}, "table is empty"),
        ({"table": "s3://x"}, "table='s3://x' is a URI and no path"),
        ({"conut": 3}, "unknown argument of example 'conut': did you mean 'count'"),
        ({"sep": ";"}, "example takes no sep: give table=its.file(sep=...)"),
    ],
)
def test_a_wrong_type_is_one_line_that_names_the_argument(given, words):
    with refused(words):
        example(**{"table": "t", **given})


def test_an_argument_that_is_missing_is_named_with_its_meaning():
    with refused("table is needed: a file, whose text has two lines"):
        example()


def test_arguments_that_have_no_place_are_to_be_given_by_name():
    with refused("example: too many", "give table=its.file(...), the others by name"):
        example("t", True)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--cuont=3"], "cuont"),
        (["--count=x"], "count=x"),
        (["surplus"], "unexpected argument 'surplus'"),
        (["--command=x"], "command"),
        (["--flagfile=absent.txt"], "absent.txt"),
        (["--data=caf\udce9"], "PYTHONUTF8=1"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_refused(words, line):
    with refused(line):
        flags.parsed(COMMAND, words)


def test_a_flag_file_may_change_fields_of_the_config(tmp_path):
    file, config = tmp_path / "flags.txt", tmp_path / "mine.py"
    file.write_text("# a comment\n--config.training.epochs=3\n\n--config.seeds=4\n--dry_run\n")
    config.write_text("def get_config():\n    return {'seeds': 9}\n")
    words = [f"--config={config}", f"--flagfile={file}", "--config.name", "other"]
    given = flags.parsed(COMMANDS["sweep"], words)
    fields = given["config"]
    assert given["dry_run"]
    assert (fields["training"]["epochs"], fields["seeds"], fields["name"]) == (3, 4, "other")
    with refused("--config.training.epochs is a field of no file"):
        flags.parsed(COMMANDS["sweep"], words[1:])


def test_errors_name_arguments_which_commands_show_as_flags():
    fields = {"data.dir": "table", "data.options.*": "options.*", "seeds": ""}
    parts = Field("data.dir"), ", ", Field("data.options.drop"), ", ", Field("seeds"), " differ"
    with pytest.raises(UserError) as error, naming_arguments(fields):
        raise UserError(parts, remedy=("give ", argument("count")))
    assert str(error.value) == "table, drop,  differ: give count."
    line = error.value.line(flags.spelled(COMMAND))
    assert line == "--data, --options=drop,  differ: give --count."


@pytest.mark.parametrize("name", EVERY)
def test_every_flag_of_a_command_has_a_meaning_and_a_default_of_its_annotation(name):
    assert {*EVERY[name].flags} <= {*flags.defined(EVERY[name])}
    for flag, of in EVERY[name].flags.items():
        assert of.meaning, flag
        if of.default is not inspect.Parameter.empty:
            converted(of.annotation, of.default, argument(of.name))
