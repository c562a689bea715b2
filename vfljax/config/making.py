"""Makes the record of a config from the values of a file, of Python, or of a stored sweep."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import Struct, inspect

from vfljax.config.records import Config, Reproduces, plain, wrong
from vfljax.errors import Field, UserError, bounds, nearest, unknown

# groups whose keys are names of methods, defenses, attacks or options
FREE = ("grid", "attacks", "reproduces", "data.options", "model.options", "teacher.options")


class ConfigField(NamedTuple):
    """A field of a config, for its page, ``--print_config`` and flags."""

    kind: Any  # its type
    default: Any
    meaning: str


_hints = functools.cache(functools.partial(get_type_hints, include_extras=True))


def _fields(group: Struct, path: str = "") -> dict[str, ConfigField]:
    """Returns the fields of a group and of the groups within, by dotted path."""
    out: dict[str, ConfigField] = {}
    hints = _hints(type(group))
    for name in group.__struct_fields__:
        value, place = getattr(group, name), below(path, name)
        if isinstance(value, Struct):
            out |= _fields(value, place)
        elif place != "beyond_limits":
            texts = [part for part in get_args(hints[name])[1:] if isinstance(part, str)]
            default = {} if value is None else value
            out[place] = ConfigField(hints[name], default, *texts)
    return out


def _grouped(fields: Mapping[str, ConfigField]) -> dict[str, Any]:
    """Returns the defaults of fields, which are given by dotted path, as nested groups."""
    out: dict[str, Any] = {}
    for path, field in fields.items():
        *groups, name = path.split(".")
        group = functools.reduce(lambda group, key: group.setdefault(key, {}), groups, out)
        group[name] = field.default
    return out


def below(path: str, name: Any) -> str:
    """The dotted path of a field in the group ``path``, which is "" for the whole config."""
    return f"{path}.{name}" if path else str(name)


FIELDS = _fields(Config())
DEFAULT = _grouped(FIELDS)


def make(values: Mapping[str, Any], *, beyond_limits: bool = False) -> Config:
    """Returns the record of a config; fields that the mapping lacks have their defaults.

    Args:
      values: of a config file, of Python, or stored.
      beyond_limits: whether the limits of a sweep's size are lifted, as for sweeps that are stored.

    Raises:
      UserError: in one line, for a field that does not exist, of another type or out of range, and for
        fields that contradict each other.
    """
    made = _made(Config, plain(values), "")
    return msgspec.structs.replace(made, beyond_limits=beyond_limits)


def _made(kind: Any, values: Any, path: str) -> Any:
    """Returns the record of a group of fields."""
    known = [name for name in kind.__struct_fields__ if name != "beyond_limits"]
    if not isinstance(values, Mapping):
        remedy = f"give some of {', '.join(known)}"
        raise wrong(path, values, "must be a group of fields", remedy)
    fields = {}
    for name, value in values.items():
        if name not in known:
            raise unknown_field(below(path, name))
        fields[name] = convert(kind, name, value, path)
    if kind is Reproduces and "table" not in fields:
        raise wrong(path, values, "names no table", "give one, for example {'table': 'gafm/2'}")
    return kind(**fields)


def convert(kind: type[Struct], name: str, value: Any, path: str) -> Any:
    """Returns the value of one field of a group as its type has it.

    Args:
      kind: the group.
      name: the field.
      value: what a config gives it.
      path: dotted path of the place where the config gives it, for the message.
    """
    hints = _hints(kind)
    return _value(hints[name], plain(value), below(path, name))


def _value(kind: Any, value: Any, path: str) -> Any:
    """Returns a field's value as its type has it."""
    if path == "reproduces":
        return _made(Reproduces, value, path) if value else None
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _made(kind, value, path)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        pass
    shape = shape_of(kind)
    if isinstance(shape, inspect.LiteralType):
        raise unknown(Field(path), value, [str(choice) for choice in shape.values])
    given = tuple(value) if isinstance(value, list) else value
    raise UserError(field=path, value=given, remedy=f"give {expected(kind)}")


def expected(kind: Any) -> str:
    """Returns in words what values a type has."""
    return _expected(shape_of(kind))


def shape_of(kind: Any) -> inspect.Type:
    """Returns the description of a type, without its texts."""
    shape = inspect.type_info(kind)
    return shape.type if isinstance(shape, inspect.Metadata) else shape


def _expected(shape: inspect.Type) -> str:
    match shape:
        case inspect.IntType(ge=low, le=high):
            return bounds(*_limits(low, high), whole=True)
        case inspect.FloatType(gt=0.0, le=high):
            return f"a number above 0, at most {high:g}"
        case inspect.FloatType(ge=low, le=high):
            return bounds(*_limits(low, high))
        case inspect.BoolType():
            return "True or False (of type bool)"
        case inspect.StrType():
            return "a text"
        case inspect.LiteralType(values=names):
            return f"one of {', '.join(map(str, names))}"
        case inspect.VarTupleType(item_type=item):
            return f"a tuple, each entry {_expected(item)}"
        case inspect.UnionType(types=kinds):
            return " or ".join(map(_expected, kinds))
    return "a group of fields"


def _limits(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high


def unknown_field(path: str) -> UserError:
    """Returns the error for an unknown field. It suggests a similar field of the same group, else of any."""
    group, _, name = path.rpartition(".")
    known = [field for field in FIELDS if group and field.startswith(f"{group}.")] or list(DEFAULT)
    if group == "reproduces":
        known = [f"reproduces.{name}" for name in Reproduces.__struct_fields__]
    last = {field: field.rpartition(".")[2] for field in (*known, *FIELDS)}
    found = nearest(name, last.values())
    near = [field for field in last if last[field] in found]
    return unknown("config field", path, known, near=[f for f in near if f in known] or near)


def resolve(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config with every default filled in, in JSON types. A sweep stores this form.

    Raises:
      UserError: as ``make`` does.
    """
    return make(config).stored


def changed(config: Config, fields: Mapping[str, Any]) -> Config:
    """Returns a config with some fields changed.

    Args:
      config: stays as it is.
      fields: new values, by dotted path.
    """
    values = config.stored
    for path, value in fields.items():
        *groups, last = path.split(".")
        functools.reduce(operator.getitem, groups, values)[last] = value
    return make(values, beyond_limits=config.beyond_limits)
