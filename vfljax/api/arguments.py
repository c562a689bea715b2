"""The arguments of the functions that users call: what their annotations allow and their docstrings say.

A function that is decorated by ``checked`` takes each argument in the form of Python or as the text of a
command line, so that there is one conversion:

    annotation          values
    bool, int, float    numbers of Python and NumPy, within the limits of ``Annotated[int, Meta(ge=0)]``
    str                 texts
    os.PathLike         paths of this machine, which become absolute
    Sequence[T]         several values, one value, or a text with commas
    Mapping             a mapping, a JSON text, or texts of the form "name=value"
    Any                 anything; the function checks it

An error names the argument, and a command shows it as its flag (``vfljax.api.flags``).
"""

from __future__ import annotations

import ast
import contextlib
import fnmatch
import functools
import inspect
import json
import operator
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeVar

import msgspec
import numpy as np

from vfljax.errors import MOST_WHOLE, Field, UserError, argument, unknown, user_path

P = ParamSpec("P")
T = TypeVar("T")
Path = str | os.PathLike[str]
Whole = Annotated[int, msgspec.Meta(ge=0, le=MOST_WHOLE)]
Options = Mapping[str, Any]
PYTHON_ONLY = ("say", "command", "partitioned_table", "goal")
"""Arguments that have no flag: functions of the caller, the command that a report names, and records, which a
command makes of flags of their own. The function checks them."""


class Argument(NamedTuple):
    """An argument of a function."""

    name: str
    annotation: Any
    default: Any  # ``inspect.Parameter.empty`` if it is needed
    meaning: str  # its text in the docstring


@functools.cache
def arguments_of(function: Callable[..., Any]) -> dict[str, Argument]:
    """Returns the arguments of a function by name, without ``**options``."""
    plain, meanings = inspect.unwrap(function), _meanings(function)
    parameters = inspect.signature(function).parameters.values()
    return {
        p.name: Argument(
            p.name,
            Any if p.name in PYTHON_ONLY else _evaluated(p.annotation, plain),
            p.default,
            meanings.get(p.name, ""),
        )
        for p in parameters
        if p.kind is not p.VAR_KEYWORD
    }


def _evaluated(annotation: Any, function: Any) -> Any:
    """Returns an annotation, which is a text in modules that import ``annotations`` of ``__future__``."""
    # one by one, because the annotation of the result may name a type that takes long to import
    return eval(annotation, function.__globals__) if isinstance(annotation, str) else annotation


def _meanings(function: Callable[..., Any]) -> dict[str, str]:
    """Returns the texts of the Args section of a docstring in Google style, by argument."""
    section = re.search(r"^Args:\n((?:  .*\n?|\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    entries = re.findall(r"^  (\w+): (.*(?:\n   .*)*)", section[1] if section else "", re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


Makers = Mapping[str, tuple[str, Callable[..., Any]]]


def checked(
    function: Callable[P, T], makers: Makers = types.MappingProxyType({})
) -> Callable[P, T]:
    """Returns a function that first converts its arguments as their annotations say.

    It raises a UserError that names the argument if one is missing, unknown, or of another type.

    Args:
      function: its arguments have annotations and are in its docstring.
      makers: by argument that is a record, the name by which users call the function that makes the record, and
        a function with the same arguments. An error names it where one of these is given in its place.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        known = arguments_of(function)
        for name in kwargs:
            if name not in known:
                raise _not_taken(function.__name__, name, known, makers)
        signature = inspect.signature(function)
        try:
            given = signature.bind_partial(*args, **kwargs).arguments
        except TypeError as error:  # too many of them, or one twice
            places = [
                f"{name}={makers[name][0]}(...)" if name in makers else name
                for name, p in signature.parameters.items()
                if p.kind is p.POSITIONAL_OR_KEYWORD
            ]
            remedy = f"give {', '.join([*places, 'the others by name'])}"
            raise UserError(f"{function.__name__}: {error}", remedy=remedy) from None
        for name, of in known.items():
            if name not in given and of.default is inspect.Parameter.empty:
                meaning = of.meaning.partition(". ")[0] or "give it"
                raise UserError("is needed", field=argument(name), remedy=meaning)
            if name in given and name not in PYTHON_ONLY:
                given[name] = converted(of.annotation, given[name], argument(name))
        return function(**given)  # pyright: ignore[reportCallIssue]

    return call


def _not_taken(
    function: str, name: str, known: Mapping[str, Argument], makers: Makers
) -> UserError:
    """Returns the error for an argument that a function does not have."""
    for record, (public, maker) in makers.items():
        if name in arguments_of(maker):
            remedy = f"give {record}={public}({name}=...)"
            return UserError(f"{function} takes no {name}", remedy=remedy)
    return unknown(f"argument of {function}", name, known)


def converted(annotation: Any, value: Any, field: Field) -> Any:
    """Returns a value as its annotation has it.

    Args:
      annotation: see the table of this module.
      value: what a caller or a command line gives.
      field: the argument, for the message.

    Raises:
      UserError: for a value of another type.
    """
    value = value.item() if isinstance(value, np.generic) else value
    kinds = types_of(annotation)
    if Any in kinds or (value is None and types.NoneType in kinds):
        return value
    of_texts = len([kind for kind in kinds if kind is not types.NoneType]) == 1
    for kind in kinds:
        if is_a(kind, Mapping) and isinstance(value, Mapping):
            return dict(value)
        if is_a(kind, Mapping) and of_texts and (pairs := _pairs(value, field)) is not None:
            return pairs
    for kind in kinds:
        if is_a(kind, Sequence):
            return _sequence(kind, value, field)
    if any(is_a(kind, os.PathLike) for kind in kinds):
        if isinstance(value, str | os.PathLike):
            if not os.fspath(value):
                raise UserError("is empty", field=field, remedy="give a path")
            return user_path(value, field)
    elif scalars := [kind for kind in kinds if not is_a(kind, Mapping)]:
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(value, functools.reduce(operator.or_, scalars))
    remedy = f"give {' or '.join(map(_allowed, kinds))}"
    if isinstance(value, str | int | float | None):
        raise UserError(field=field, value=value, remedy=remedy)
    raise UserError((field, f" is of type {type(value).__name__}"), remedy=remedy)


def types_of(annotation: Any) -> tuple[Any, ...]:
    """Returns the types of a union, or the annotation alone."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def is_a(kind: Any, base: type) -> bool:
    """Returns whether a type is ``base`` or ``base[...]``."""
    return (typing.get_origin(kind) or kind) is base


def _pairs(value: Any, field: Field) -> dict[str, Any] | None:
    """Returns a mapping that is given as JSON or as texts "name=value"; None for anything else."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return None
    out: dict[str, Any] = {}
    for text in texts:
        for name, each in _read(text, field).items():
            if name in out:
                remedy = "give it once, with commas between several values"
                raise UserError((field, f"={name}=... is given twice"), remedy=remedy)
            out[name] = each
    return out


def _read(text: str, field: Field) -> dict[str, Any]:
    """Returns the entries of a JSON object, or the one of "name=value"."""
    if text.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):
            return json.loads(text)
    name, equals, rest = text.partition("=")
    if not name or not equals:
        raise UserError(field=field, value=text, remedy="give name=value, or a JSON object")
    return {name: literal(rest)}


def literal(text: str) -> Any:
    """Returns the value of a Python literal, or the text itself.

    >>> literal("0.5"), literal("gpu"), literal("['a,b']")
    (0.5, 'gpu', ['a,b'])
    """
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def _sequence(kind: Any, value: Any, field: Field) -> tuple[Any, ...]:
    """Returns several values, or one value alone, as a tuple."""
    (item,) = typing.get_args(kind)
    if isinstance(value, str):
        parts: list[Any] = [part for part in map(str.strip, value.split(",")) if part]
    elif isinstance(value, Iterable) and not isinstance(value, Mapping | bytes | os.PathLike):
        parts = list(value)
    else:
        parts = [value]
    if item is float:  # texts of a command line
        parts = [literal(part) if isinstance(part, str) else part for part in parts]
    return tuple(converted(item, part, field) for part in parts)


def _allowed(kind: Any) -> str:
    """Returns in words what values a type has."""
    from vfljax.config import expected

    words = {os.PathLike: "a path", Mapping: "a mapping", types.NoneType: "None"}
    base = typing.get_origin(kind) or kind
    return words[base] if base in words else expected(kind)


# --- arguments in errors ---


@contextlib.contextmanager
def naming_arguments(fields: Mapping[str, str]) -> Iterator[None]:
    """Lets errors of the block name arguments in place of the config fields that are made from them.

    Args:
      fields: the argument of each config field, "" for one that no argument sets. In "attacks.*.known" the star
        stands for any name, and the first entry that fits counts. A star in the argument is the field's last
        name: {"data.options.*": "option.*"}.
    """

    def renamed(field: Field) -> Field | str:
        for pattern, given in fields.items():
            if fnmatch.fnmatchcase(field.path, pattern):
                name = field.path.rpartition(".")[2]
                return argument(given.replace("*", name)) if given else ""
        return field

    try:
        yield
    except UserError as error:
        raise error.renamed(renamed) from error
