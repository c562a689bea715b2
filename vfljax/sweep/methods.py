"""The methods of a grid, each a chain of defenses with the values of their knobs and options.

``vfljax.sweep.feasibility`` checks whether they can be trained on the data's classes and columns.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vfljax import defenses
from vfljax.config import DEFAULT, typed
from vfljax.errors import UserError, unknown, unknown_row
from vfljax.models.making import sizes, tuples
from vfljax.sweep.records import Model, as_axis, is_number
from vfljax.types import DefenseSpec, Federation

METHOD_MODEL = ("top", "top_hidden")  # model fields that a method may set; it cannot set bottoms


def _lists(axes: Mapping[str, Any], field: str) -> dict[str, list[Any]]:
    """Returns the values of every axis of a group. Raises UserError for an axis without values."""
    lists = {name: as_axis(values) for name, values in axes.items()}
    for name, values in lists.items():
        if not values:
            raise UserError("is empty", field=f"{field}.{name}", remedy="give at least one value")
    return lists


def combinations(axes: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """Returns all combinations of the values of ``axes``, the last axis fastest.

    Args:
      axes: by name, a value or a list of values.
      field: the config's group of these axes, for the message.

    Raises:
      UserError: if an axis has no value.
    """
    lists = _lists(axes, field).values()
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]


class Chain(NamedTuple):
    """The defenses of one configuration with one value for every knob and option, such as
    ``knobs={"kdk": {"epsilon": .3, "k": 3.}}``."""

    knobs: dict[str, dict[str, float]]
    options: dict[str, dict[str, Any]]

    @property
    def specs(self) -> tuple[DefenseSpec, ...]:
        """The static half, in listing order."""
        return tuple(
            DefenseSpec(name, tuple(sorted(self.options[name].items()))) for name in self.knobs
        )


@dataclasses.dataclass(frozen=True)
class Method:
    """One entry of ``config.grid``: a chain of defenses with its axes, and perhaps its own top model."""

    name: str
    axes: Mapping[str, Mapping[str, Any]]  # defense -> knob or option -> value or values
    top: Mapping[str, Any]  # the fields of METHOD_MODEL that it sets; others are the sweep's
    model: Model  # the sweep's model with that top

    @property
    def needs_top(self) -> bool:
        """Whether the method can be trained with model splitting only."""
        return any(defenses.TABLE[name].needs_top for name in self.axes)

    def trained(self, federations: Sequence[Federation]) -> list[Federation]:
        """Returns those of the federations that the method is trained in."""
        return [f for f in federations if f.split or not self.needs_top]

    @property
    def values(self) -> dict[str, list[Any]]:
        """The values that the config gives each knob and option, by the config's field."""
        return {
            f"grid.{self.name}.{defense}.{knob}": as_axis(axis)
            for defense, axes in self.axes.items()
            for knob, axis in axes.items()
        }

    @functools.cached_property
    def chains(self) -> tuple[Chain, ...]:
        """Every combination of the knobs and options of its defenses, the last one fastest."""
        choices = {name: _choices(name, values) for name, values in self.axes.items()}
        return tuple(
            Chain(
                knobs={name: knobs for name, (knobs, _) in chosen.items()},
                options={name: options for name, (_, options) in chosen.items()},
            )
            for chosen in combinations(choices, "grid")
        )

    def top_columns(self) -> dict[str, str]:
        """Returns the model fields that the method sets, as columns of results."""
        return {f"model.{field}": _field_text(value) for field, value in self.top.items()}


def model_name(model: Model) -> str:
    """Returns a name such as 'generator-16' for the fields of a model that methods may set."""
    return "-".join(_field_text(getattr(model, field)) for field in METHOD_MODEL)


def _field_text(value: Any) -> str:
    """Returns a model field as text for a table column or a name: 'generator', '16-8', 'none'."""
    return "-".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


def parse_methods(grid: Any, model: Model) -> tuple[Method, ...]:
    """Returns the methods of a grid.

    Args:
      grid: ``config.grid``.
      model: the sweep's.

    Raises:
      UserError: for an invalid grid.
    """
    if not grid:
        raise UserError("config.grid is empty: give at least {'undefended': {}}.")
    if not isinstance(grid, Mapping):
        raise UserError(f"config.grid={grid!r} must be {{method: {{defense: {{knob: values}}}}}}.")
    return tuple(_method(name, chain, model) for name, chain in grid.items())


def _method(name: str, entry: Any, model: Model) -> Method:
    if not isinstance(entry, Mapping):
        raise UserError(f"config.grid.{name}={entry!r} must be {{defense: {{knob: values}}}}.")
    where = f"config.grid.{name}.model"
    top = entry.get("model", {})
    if not isinstance(top, Mapping):
        raise UserError(f"{where}={top!r} must be a group of fields: {', '.join(METHOD_MODEL)}.")
    for field in top:
        if field not in METHOD_MODEL:  # attacks hold one bottom, and baselines one cut
            raise unknown(f"field of {where}", field, METHOD_MODEL)
    top = {
        field: tuples(typed(DEFAULT["model"][field], value, f"grid.{name}.model.{field}"))
        for field, value in top.items()
    }
    hidden = top.get("top_hidden", model.top_hidden)
    sizes(f"{where if 'top_hidden' in top else 'config.model'}.top_hidden", hidden)
    axes = {defense: values for defense, values in entry.items() if defense != "model"}
    for defense, values in axes.items():
        _check_values(name, defense, values)
    return Method(name, axes, top, dataclasses.replace(model, **top) if top else model)


def _check_values(method: str, name: str, values: Any) -> None:
    """Refuses an unknown defense, and invalid or missing values of its knobs and options."""
    if name not in defenses.TABLE:
        raise unknown_row("defense", name, defenses.TABLE)
    if not isinstance(values, Mapping):
        raise UserError(f"config.grid.{method}.{name}={values!r} must be {{knob: values}}.")
    row = defenses.TABLE[name]
    for knob in values:
        if knob not in row.knobs and knob not in row.options:
            raise unknown(f"knob of {name}", knob, [*row.knobs, *row.options])
    for knob, parameter in row.knobs.items():
        if knob not in values and parameter.default is inspect.Parameter.empty:
            raise UserError(f"config.grid.{method}.{name} gives no {knob}: name its value(s).")
    for knob, axis in _lists(values, f"grid.{method}.{name}").items():
        for value in axis if knob in row.knobs else ():
            _check_knob(f"config.grid.{method}.{name}.{knob}", value)


def _check_knob(name: str, value: Any) -> None:
    if not is_number(value):
        raise UserError(f"{name}={value!r} is not a number: give one, or a tuple of numbers.")
    try:
        float(value)
    except OverflowError:  # an integer of hundreds of digits
        raise UserError(f"{name} is too large: choose a smaller one.") from None


def _choices(name: str, values: Any) -> list[tuple[dict[str, float], dict[str, Any]]]:
    """Every combination of one defense's knobs and options; knobs that are not named have their default."""
    row = defenses.TABLE[name]
    # knobs at their default are columns of results too, after those that are named
    defaults = {k: p.default for k, p in row.knobs.items() if k not in values}
    pairs = map(row.knobs_and_options, combinations(values, f"grid.{name}"))
    return [
        ({k: float(v) for k, v in given.items()} | defaults, options) for given, options in pairs
    ]
