"""The values of fields that may have several, each of which is trained: the axes of a grid."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax.errors import UserError


def as_axis(value: Any) -> list[Any]:
    """Returns a field's values as a list: the entries of a tuple or list, or the single value."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def combinations(axes: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """Returns all combinations of the values of ``axes``, the last axis fastest.

    Args:
      axes: by name, a value or a list of values.
      field: the config's group of these axes, for the message.

    Raises:
      UserError: if an axis has no value, or names one twice.
    """
    lists = {name: as_axis(values) for name, values in axes.items()}
    for name, values in lists.items():
        if not values:
            raise UserError("is empty", field=f"{field}.{name}", remedy="give at least one value")
        check_distinct(f"{field}.{name}", values)
    return [dict(zip(axes, each, strict=True)) for each in itertools.product(*lists.values())]


def check_distinct(field: str, values: Sequence[Any]) -> None:
    """Refuses an axis that names a value twice: its trials would be trained, and counted, twice.

    1 and 1.0 are the same value; True is a different value.

    Args:
      field: of the config.
      values: of the axis.

    >>> check_distinct("training.momentum", (0, 0.9))
    >>> check_distinct("training.momentum", (0, 0.0))
    Traceback (most recent call last):
    vfljax.errors.UserError: config.training.momentum names 0.0 twice: leave one of them out.
    """
    seen = set()
    for value in values:
        key = _key(value)
        if key in seen:
            raise UserError(f"config.{field} names {value!r} twice: leave one of them out.")
        seen.add(key)


def _key(value: Any) -> Any:
    """A hashable value that is equal for equal values of an axis."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in value.items())
    return isinstance(value, bool), value
