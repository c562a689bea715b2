"""Config files, and the texts by which flags change their fields."""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
import os
import pathlib
import types
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from typing import Any, NamedTuple

from ml_collections import ConfigDict
from msgspec import inspect

from vfljax.config.making import DEFAULT, FIELDS, FREE, below, resolve, shape_of, unknown_field
from vfljax.config.records import AXES, plain
from vfljax.errors import UserError, packaged, raised, user_path


def ordered(values: Mapping[str, Any]) -> ConfigDict:
    """Returns a config file's values as a ConfigDict in listing order (by default it sorts names). All fields
    that the file does not name have their default, so that every field can be overridden."""
    return _ordered(_filled(DEFAULT, values, ""))


def _ordered(values: Mapping[str, Any]) -> ConfigDict:
    # any value may be assigned: ``make`` checks types
    out = ConfigDict(sort_keys=False, type_safe=False)
    for key, value in values.items():
        out[key] = _ordered(value) if isinstance(value, Mapping) else value
    return out


def _filled(default: Mapping[str, Any], values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Returns the given fields in their order, then the missing ones at their default."""
    out: dict[str, Any] = {}
    for key in [*values, *(key for key in default if key not in values)]:
        known, value = default.get(key), values.get(key, default.get(key))
        name = below(path, key)
        if isinstance(known, Mapping) and isinstance(value, Mapping) and name not in FREE:
            value = _filled(known, value, name)
        out[key] = value
    return out


class ConfigFile(NamedTuple):
    """The file of a config, and the variant that is asked of it."""

    given: pathlib.Path  # as the user names it
    path: pathlib.Path  # likewise, or the copy that comes with vfljax if no file is there
    variant: str


def located(source: str) -> ConfigFile:
    """Returns the file and the variant of FILE or FILE:VARIANT; a folder's name may have colons too.

    Raises:
      UserError: if there is no such file.
    """
    parts = source.split(":")
    for count in range(len(parts), 0, -1):
        given = pathlib.Path(os.path.expanduser(":".join(parts[:count])))
        path = packaged(given)
        if path.is_file():
            return ConfigFile(given, path, ":".join(parts[count:]))
    user_path(source, "config")
    raise UserError(f"config {parts[0]!r} is not a file: try configs/quickstart.py.")


def from_file(source: str, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a config file and change some of its fields.

    Args:
      source: the path of a Python file with ``get_config()``, which may be a config that comes with vfljax.
        PATH:VARIANT calls ``get_config("VARIANT")``.
      fields: new values as texts, by dotted path, such as {"training.epochs": "100"}.

    Returns:
      the config, with every field that the file does not name at its default.

    Raises:
      UserError: for a file that is missing or raises, and for a field that does not exist.
    """
    config = _filled(DEFAULT, returned(source), "")
    for field, text in (fields or {}).items():
        _change(config, field, text)
    return config


def returned(source: str) -> dict[str, Any]:
    """Returns what the function ``get_config`` of a config file returns, in JSON types.

    Args:
      source: as of ``from_file``.

    Raises:
      UserError: for a file that is missing or raises.
    """
    _, file, variant = located(source)
    path = str(file)
    try:
        loader = SourceFileLoader("config", path)
        module = types.ModuleType("config")
        module.__file__ = path
        loader.exec_module(module)
        get_config = getattr(module, "get_config", None)
        values = None
        if get_config is not None:
            values = get_config(variant) if variant else get_config()
    except (Exception, SystemExit) as error:  # a config file is a program: it may raise anything
        raise UserError(f"config: {raised(error, path)}") from error
    if get_config is None:
        raise UserError(f"{path} has no function get_config(): give the file of a config.")
    if not isinstance(values, (Mapping, ConfigDict)):
        raise UserError(
            f"{path}: get_config() returned {type(values).__name__}: let it return ordered({{...}})."
        )
    return plain(values)


def _change(config: dict[str, Any], field: str, text: str) -> None:
    """Sets the field at a dotted path to the value that a text stands for."""
    *groups, last = field.split(".")
    group: Any = config
    for name in groups:
        group = group.get(name) if isinstance(group, dict) else None
    if isinstance(group, dict) and last in group:
        kind = FIELDS[field].kind if field in FIELDS else type(group[last])
        group[last] = _from_text(text, kind)
    elif any(field.startswith(f"{free}.") for free in FREE):
        raise UserError(
            f"the config file has no field {last!r} for --config.{field} to change: add it to the "
            "file, or give a config that has it."
        )
    else:
        raise unknown_field(field)


def _from_text(text: str, kind: Any) -> Any:
    """Returns the value of a type that a text stands for, or the text itself, which ``make`` refuses."""
    shape = shape_of(kind)
    if isinstance(shape, (inspect.StrType, inspect.LiteralType)):
        return text
    if isinstance(shape, inspect.BoolType):
        return {"true": True, "false": False}.get(text.lower(), text)
    value: Any = text
    with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text)
    several = isinstance(shape, (inspect.VarTupleType, inspect.ListType))
    return (value,) if several and not isinstance(value, (list, tuple)) else value


def described(values: Mapping[str, Any]) -> str:
    """Returns two lines for each field of a resolved config: its value and default, and what it means."""
    lines, defaults = [], resolve({})
    for path, field in FIELDS.items():
        names = path.split(".")
        value, default = (functools.reduce(operator.getitem, names, v) for v in (values, defaults))
        origin = "the default" if value == default else f"default {default!r}"
        axis = "; a tuple trains each of its values" if path in AXES else ""
        lines += [f"{path} = {value!r} ({origin})", f"    {field.meaning}{axis}"]
    return "\n".join(lines)
