"""The flags of a command, made from the signatures and docstrings of the functions that it calls.

Each argument is a flag of its name: its annotation gives the flag's type, its docstring the line of --help.
Only flags that are given become arguments, so that every default is written in a signature alone.

    bool                --name, --noname
    int, float          --name=NUMBER
    Sequence            --name=a,b or --name=a --name=b
    Mapping             --name=key=value, once for each, or --name=JSON
    str, path, Any      --name=TEXT

``--config.FIELD=VALUE`` changes a field of the file that --config names, and ``--flagfile=FILE`` reads flags
of both kinds from a file.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from absl import flags

import vfljax
from vfljax.api.arguments import PYTHON_ONLY, Argument, arguments_of, converted, is_a, types_of
from vfljax.errors import Field, Text, UserError, argument, writable

FIELD = "config.FIELD"  # the flag that collects --config.training.epochs=3 and the like
SAME: Mapping[str, str] = MappingProxyType({})


class Command(NamedTuple):
    """A command: the functions whose arguments are its flags."""

    run: Callable[..., Any]  # is called with the flags that are given; its docstring is the help
    more: tuple[Callable[..., Any], ...] = ()  # functions to which it passes ``**options``
    resumes: bool = False  # whether the same command line continues what was stopped
    names: Mapping[str, str] = SAME  # flags that are not called as their argument, by argument

    @property
    def arguments(self) -> dict[str, Argument]:
        """The arguments of its functions, by name."""
        found: dict[str, Argument] = {}
        for function in (self.run, *self.more):
            found = {**arguments_of(function), **found}
        return found

    @property
    def flags(self) -> dict[str, Argument]:
        """Its arguments by flag."""
        left = {name: of for name, of in self.arguments.items() if name not in PYTHON_ONLY}
        return {self.names.get(name, name): of for name, of in left.items()}


def taken(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Removes the arguments of a function from ``options``, and returns them."""
    return {name: options.pop(name) for name in arguments_of(function) if name in options}


def refuse_others(
    function: Callable[..., Any], options: Mapping[str, Any], what: str, remedy: Text
) -> None:
    """Refuses options of a function that a command does not call. Those that say its defaults change nothing.

    Args:
      function: the one that is not called.
      options: what the command line gives besides the arguments of the one that is.
      what: what such an option is of, for the message.
      remedy: for the message.

    Raises:
      UserError: for the first of them.
    """
    arguments = arguments_of(function)
    for name, value in options.items():
        of, field = arguments[name], argument(name)
        if converted(of.annotation, value, field) != of.default:
            raise UserError((field, f" is of {what}"), remedy=remedy)


def defined(command: Command) -> flags.FlagValues:
    """Returns the flags of a command, not parsed."""
    values = flags.FlagValues()
    for name, of in command.flags.items():
        _define(name, of, values)
    if "config" in command.flags:
        use = "change a field, for example --config.training.epochs=100"
        flags.DEFINE_multi_string(FIELD, None, use, flag_values=values)
    return values


def _define(name: str, of: Argument, values: flags.FlagValues) -> None:
    """Defines a flag without a default, whose help names the default of the argument."""
    kinds, nothing = types_of(of.annotation), (None, False, (), inspect.Parameter.empty)
    default = "" if of.default in nothing else f" (default {of.default})"
    use = of.meaning.replace("``", "").removesuffix(".") + default
    if any(is_a(kind, Sequence) for kind in kinds):
        parser, serializer = flags.ListParser(), flags.ListSerializer(",")  # pyright: ignore
        flags.DEFINE_multi(parser, serializer, name, None, use, flag_values=values)
        return
    texts = any(kind in (str, Any) or is_a(kind, os.PathLike) for kind in kinds)
    by_kind = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer, float: flags.DEFINE_float}
    define: Callable[..., Any] = flags.DEFINE_string
    for kind in kinds if not texts else ():
        if is_a(kind, Mapping):
            define = flags.DEFINE_multi_string
        define = by_kind.get(getattr(kind, "__origin__", kind), define)
    define(name, None, use, flag_values=values)


def parsed(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """Returns the arguments that a command line gives.

    Args:
      command: the command.
      words: of the command line, after the command's name.

    Raises:
      UserError: for an unknown flag, a value of another type, and a word that is no flag.
    """
    for word in words:
        if not writable(word):
            what = f"{word!r} is no text in {sys.getfilesystemencoding()}"
            raise UserError(what, remedy="set the environment variable PYTHONUTF8=1, or rename it")
    values, has_config = defined(command), "config" in command.flags
    try:
        words = values.read_flags_from_files([*words], force_gnu=True)
        surplus = values(["", *(_fields(words) if has_config else words)])[1:]
    except (flags.Error, UnicodeDecodeError) as error:  # of a text, or of a flag file
        raise UserError(str(error)) from error
    if surplus:
        what = f"unexpected argument {surplus[0]!r}: options start with --; see --help."
        raise UserError(what)
    given = {
        of.name: values[flag].value for flag, of in command.flags.items() if values[flag].present
    }
    for name, value in given.items():
        if isinstance(value, list) and value and isinstance(value[0], list):
            given[name] = [part for parts in value for part in parts if part]
    if has_config:
        _with_fields(given, values[FIELD].value or [])
    return given


def _fields(words: Iterable[str]) -> list[str]:
    """Rewrites --config.a=1 and --config.a 1 as --config.FIELD=a=1."""
    # not ``ml_collections.config_flags``: it gives a field one type, so that a number cannot become an axis of
    # several, shows an AttributeError for an unknown field, and reads ``sys.argv`` whatever words it is given
    out, left = [], iter(words)
    for word in left:
        if match := re.fullmatch(r"--?config\.([^=]+)(?:=(.*))?", word, re.DOTALL):
            value = next(left, "") if match[2] is None else match[2]
            word = f"--{FIELD}={match[1]}={value}"
        out.append(word)
    return out


def _with_fields(given: dict[str, Any], fields: Sequence[str]) -> None:
    """Puts the fields of the config file in the place of its name, changed as the command line asks."""
    if "config" not in given:
        for field in fields:
            name = field.split("=", 1)[0]
            raise UserError(f"--config.{name} is a field of no file: give --config=FILE too.")
        return
    file = vfljax.config.located(given["config"])
    if file.path != file.given:
        print(f"config: {file.given} is the copy that comes with vfljax", file=sys.stderr)
    changes = dict(field.split("=", 1) for field in fields)
    given["config"] = vfljax.config.from_file(given["config"], changes)


def spelled(command: Command) -> Callable[[Field], str]:
    """Returns a function that gives the text of a field in messages of a command: an argument is its flag.

    >>> from vfljax.errors import argument
    >>> spell = spelled(Command(lambda source, seeds: None, names={"source": "data"}))
    >>> spell(argument("source")), spell(argument("source.sep")), spell(Field("seeds"))
    ('--data', '--data=sep', 'config.seeds')
    """
    flag_of = {of.name: flag for flag, of in command.flags.items()}

    def spell(field: Field) -> str:
        kind, _, path = field.path.partition(".")
        name, _, entry = path.partition(".")
        if kind != "argument" or name not in flag_of:
            return str(field)
        return f"--{flag_of[name]}={entry}" if entry else f"--{flag_of[name]}"

    return spell


def page(command: Command, name: str, program: str) -> str:
    """Returns what --help prints: the docstring, the flags and the fields of a config.

    Args:
      command: the command.
      name: of the command, as its docstring has it: "vfljax sweep".
      program: how the user started it: "python -m launch.sweep".
    """
    text = (inspect.getdoc(command.run) or "").partition("\nArgs:\n")[0].rstrip()
    listed = defined(command).get_help(include_special_flags=False).partition(":\n")[2]
    parts = [text.replace(name, program), f"flags:\n{listed}"]
    if "config" in command.flags:
        fields = vfljax.config.described(vfljax.config.resolve({}))
        parts.append(f"fields of a config, changed by --config.FIELD=VALUE:\n{fields}")
    return "\n\n".join(parts)
