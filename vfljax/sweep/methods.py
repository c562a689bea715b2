"""The methods of a grid: chains of defenses with their axes, parsed into chains.

What enters: ``config.grid`` as it was given. What leaves: one ``Method`` an entry, with every combination of
its values. Whether the data's classes and columns can serve them is checked by ``vfljax.sweep.grid``.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

from vfljax import defenses
from vfljax.config import DEFAULT, typed
from vfljax.errors import UserError, unknown, unknown_row
from vfljax.models.making import sizes
from vfljax.sweep.records import Model, as_axis, tuples
from vfljax.types import DefenseSpec

METHOD_MODEL = ("top", "top_hidden")  # a method's own; every bottom is the whole sweep's


def combinations(axes: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """Returns all combinations of the values of ``axes``, the last axis fastest.

    Args:
      axes: by name, a value or a list of values.
      field: the config's group of these axes, for the message.

    Raises:
      UserError: if an axis has no value.
    """
    lists = [as_axis(values) for values in axes.values()]
    for name, values in zip(axes, lists, strict=True):
        if not values:
            raise UserError("is empty", field=f"{field}.{name}", remedy="give at least one value")
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
    chains: tuple[Chain, ...]
    top: Mapping[str, Any]  # those of METHOD_MODEL that it names; the sweep's where absent
    model: Model  # with that top

    @property
    def needs_top(self) -> bool:
        """Whether it is trained with model splitting only."""
        return any(defenses.TABLE[name].needs_top for name in self.axes)

    @property
    def model_name(self) -> str:
        """'generator-16' where its model is not the sweep's, else ''. Methods of one name share one model."""
        return "-".join(field_text(getattr(self.model, field)) for field in METHOD_MODEL)

    def top_columns(self) -> dict[str, str]:
        """Its own model fields as columns of results."""
        return {f"model.{field}": field_text(value) for field, value in self.top.items()}


def field_text(value: Any) -> str:
    """'generator', '16-8', 'none': a model field as a table column or a part of a name."""
    return "-".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


def parse_methods(grid: Any, model: Model) -> tuple[Method, ...]:
    """The methods of ``config.grid``; raises UserError with one line for anything it cannot mean."""
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
        if field not in METHOD_MODEL:  # an attack holds one bottom, and baselines one cut
            raise unknown(f"field of {where}", field, METHOD_MODEL)
    top = {
        field: tuples(typed(DEFAULT["model"][field], value, f"grid.{name}.model.{field}"))
        for field, value in top.items()
    }
    hidden = top.get("top_hidden", model.top_hidden)
    sizes(f"{where if 'top_hidden' in top else 'config.model'}.top_hidden", hidden)
    axes = {defense: values for defense, values in entry.items() if defense != "model"}
    return Method(
        name=name,
        axes=axes,
        chains=_chains(name, axes),
        top=top,
        model=dataclasses.replace(model, **top),
    )


def _chains(method: str, entry: Mapping[str, Any]) -> tuple[Chain, ...]:
    """Every combination of the knobs and options of a method's defenses, the last one fastest."""
    choices = [_choices(method, name, values) for name, values in entry.items()]
    return tuple(
        Chain(
            knobs={name: knobs for name, (knobs, _) in zip(entry, chosen, strict=True)},
            options={name: options for name, (_, options) in zip(entry, chosen, strict=True)},
        )
        for chosen in itertools.product(*choices)
    )


def _choices(method: str, name: str, values: Any) -> list[tuple[dict[str, float], dict[str, Any]]]:
    """Every combination of one defense's knobs and options; knobs that are not named have their default."""
    if name not in defenses.TABLE:
        raise unknown_row("defense", name, defenses.TABLE)
    if not isinstance(values, Mapping):
        raise UserError(f"config.grid.{method}.{name}={values!r} must be {{knob: values}}.")
    row = defenses.TABLE[name]
    for knob in values:
        if knob not in row.knobs and knob not in row.options:
            raise unknown(f"knob of {name}", knob, [*row.knobs, *row.options])
    defaults = {knob: parameter.default for knob, parameter in row.knobs.items()}
    for knob, default in defaults.items():
        if knob not in values and default is inspect.Parameter.empty:
            raise UserError(f"config.grid.{method}.{name} gives no {knob}: name its value(s).")
    choices = []
    for combination in combinations(values, f"grid.{method}.{name}"):
        knobs = {k: _knob(f"{name}.{k}", v) for k, v in combination.items() if k in row.knobs}
        options = {k: v for k, v in combination.items() if k not in row.knobs}
        # knobs at their default are columns of results too, after those that are named
        choices.append((knobs | {k: v for k, v in defaults.items() if k not in knobs}, options))
    return choices


def _knob(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{name}={value!r} is not a number.")
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        raise UserError(f"{name} is too large: choose a smaller one.") from None
