"""Checks the options that a config or a command line gives for a loader, and makes the JSON of them that a
prepared folder records."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from vfljax import errors
from vfljax.datasets.table_errors import quoted
from vfljax.errors import Field, UserError, unknown

P = ParamSpec("P")
T = TypeVar("T")
MOST = 1_000_000_000  # rows


def of(loader: Callable[..., Any]) -> dict[str, Any]:
    """Returns a loader's options and their defaults (``inspect.Parameter.empty`` for a needed option)."""
    parameters = inspect.signature(loader).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def complete(name: str, loader: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all options of a data set, sequences as tuples.

    Args:
      name: the data set's, for messages.
      loader: its loader.
      given: the options that are not left at their defaults.

    Raises:
      UserError: for an unknown option, or a value that is no number, text or sequence of such.
    """
    known = of(loader)
    for option in given:
        if option not in known:
            raise unknown(f"option of the data set {name}", str(option), known)
    return known | {option: _plain(option, value) for option, value in given.items()}


def recorded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options as they are read back from JSON, without those that have no value."""
    present = {k: v for k, v in values.items() if v is not inspect.Parameter.empty}
    return json.loads(json.dumps(present))


def sentence(values: Mapping[str, Any]) -> str:
    """Returns the options as text: ``a=1, b='x'``, or "no options"."""
    return ", ".join(f"{k}={v!r}" for k, v in values.items()) or "no options"


def _plain(option: str, value: Any) -> Any:
    if isinstance(value, Mapping):  # options of another library, which the loader checks
        return {str(key): _plain(option, part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    several = isinstance(value, list | tuple)
    items = [x.item() if isinstance(x, np.generic) else x for x in (value if several else [value])]
    for item in items:
        # refused: a set's order depends on the process, and NaN is not equal to itself
        plain_value = item is None or isinstance(item, bool | int | float | str)
        if not plain_value or (isinstance(item, float) and not math.isfinite(item)):
            remedy = "give a number, a text, True or False, or a list of such"
            raise UserError((Field(f"data.options.{option}"), f"={quoted(value)}"), remedy=remedy)
    return tuple(items) if several else items[0]


def limited(**limits: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Returns a decorator by which a loader checks its options first, each as ``check_option`` does.

    Args:
      **limits: of options, as of ``check_option``. Options whose default is no bool, integer, share or text are
        not checked.
    """

    def decorate(loader: Callable[P, T]) -> Callable[P, T]:
        defaults = of(loader)

        @functools.wraps(loader)
        def call(*args: P.args, **options: P.kwargs) -> T:
            for option, value in options.items():
                name = Field(f"data.options.{option}")
                check_option(name, value, type(defaults.get(option)), limits.get(option))
            return loader(*args, **options)

        return call

    return decorate


def check_option(name: Field, value: Any, kind: type, limit: Any = None) -> None:
    """Raises UserError if an option's value is not of its default's type, or not within its limit.

    Args:
      name: the option.
      value: what was given.
      kind: the type of its default. A float must be a share of rows below 1, 0 for none.
      limit: (least, most) of an integer, 0 and ``MOST`` by default, or the words that a text may be.
    """
    if kind is int and isinstance(value, float):  # 3.0 would not do as a number of rows
        raise UserError("is no integer", field=name, value=value, remedy="give an integer")
    if kind is int:
        errors.check(name, value, *(limit or (0, MOST)), whole=True)
    elif kind is float:
        errors.check(name, value, 0, np.nextafter(1, 0))
    elif kind is bool and not isinstance(value, bool | np.bool_):
        raise UserError("is no switch", field=name, value=value, remedy="give True or False")
    elif kind is str and limit and value not in limit:
        raise unknown(name, value, limit)
    elif kind is str and not isinstance(value, str):
        raise UserError("is no text", field=name, value=value, remedy="give a text")
