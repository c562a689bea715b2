"""The arms of a grid: chains of defenses with their axes, parsed into points.

What enters: ``config.grid`` as it was given. What leaves: one ``Arm`` an entry, with every combination of
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

ARM_MODEL = ("top", "top_hidden")  # an arm's own; every bottom is the whole sweep's


def combinations(axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All combinations of axes, the last axis fastest."""
    lists = [as_axis(values) for values in axes.values()]
    if any(not values for values in lists):
        empty = [name for name, values in axes.items() if not as_axis(values)]
        raise UserError(f"the axis {empty[0]} is empty: give at least one value.")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]


class ChainPoint(NamedTuple):
    """One value for every knob and option of an arm's chain; defense -> name -> value."""

    knobs: dict[str, dict[str, float]]
    options: dict[str, dict[str, Any]]

    @property
    def chain(self) -> tuple[DefenseSpec, ...]:
        """The static half, in listing order."""
        return tuple(
            DefenseSpec(name, tuple(sorted(self.options[name].items()))) for name in self.knobs
        )


@dataclasses.dataclass(frozen=True)
class Arm:
    """One entry of ``config.grid``: a chain of defenses with its axes, and perhaps its own top model."""

    name: str
    axes: Mapping[str, Mapping[str, Any]]  # defense -> knob or option -> value or values
    points: tuple[ChainPoint, ...]
    top: Mapping[str, Any]  # those of ARM_MODEL that it names; the sweep's where absent
    model: Model  # with that top

    @property
    def needs_top(self) -> bool:
        """Whether it is trained with model splitting only."""
        return any(defenses.TABLE[name].needs_top for name in self.axes)

    @property
    def model_name(self) -> str:
        """'generator-16' where its model is not the sweep's, else ''. Arms of one name share one model."""
        return "-".join(field_text(getattr(self.model, field)) for field in ARM_MODEL)

    def top_columns(self) -> dict[str, str]:
        """Its own model fields as columns of results."""
        return {f"model.{field}": field_text(value) for field, value in self.top.items()}


def field_text(value: Any) -> str:
    """'generator', '16-8', 'none': a model field as a table column or a part of a name."""
    return "-".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


def parse_arms(grid: Any, model: Model) -> tuple[Arm, ...]:
    """The arms of ``config.grid``; raises UserError with one line for anything it cannot mean."""
    if not grid:
        raise UserError("config.grid is empty: give at least {'undefended': {}}.")
    if not isinstance(grid, Mapping):
        raise UserError(f"config.grid={grid!r} must be {{arm: {{defense: {{knob: values}}}}}}.")
    return tuple(_arm(name, chain, model) for name, chain in grid.items())


def _arm(name: str, entry: Any, model: Model) -> Arm:
    if not isinstance(entry, Mapping):
        raise UserError(f"config.grid.{name}={entry!r} must be {{defense: {{knob: values}}}}.")
    where = f"config.grid.{name}.model"
    top = entry.get("model", {})
    if not isinstance(top, Mapping):
        raise UserError(f"{where}={top!r} must be a group of fields: {', '.join(ARM_MODEL)}.")
    for field in top:
        if field not in ARM_MODEL:  # an attack holds one bottom, and baselines one cut
            raise unknown(f"field of {where}", field, ARM_MODEL)
    top = {
        field: tuples(typed(DEFAULT["model"][field], value, f"grid.{name}.model.{field}"))
        for field, value in top.items()
    }
    hidden = top.get("top_hidden", model.top_hidden)
    sizes(f"{where if 'top_hidden' in top else 'config.model'}.top_hidden", hidden)
    axes = {defense: values for defense, values in entry.items() if defense != "model"}
    points = tuple(_points(name, axes))
    return Arm(name, axes, points, top, dataclasses.replace(model, **top))


def _points(arm: str, chain: Mapping[str, Any]) -> list[ChainPoint]:
    """Every combination of an arm's knobs and options, knobs that it does not name at their default."""
    axes: dict[str, Any] = {}
    for name, values in chain.items():
        if name not in defenses.TABLE:
            raise unknown_row("defense", name, defenses.TABLE)
        if not isinstance(values, Mapping):
            raise UserError(f"config.grid.{arm}.{name}={values!r} must be {{knob: values}}.")
        row = defenses.TABLE[name]
        for knob in values:
            if knob not in row.knobs and knob not in row.options:
                raise unknown(f"knob of {name}", knob, [*row.knobs, *row.options])
        for knob, parameter in row.knobs.items():
            if knob not in values and parameter.default is inspect.Parameter.empty:
                raise UserError(f"config.grid.{arm}.{name} gives no {knob}: name its value(s).")
        axes.update({f"{name} {knob}": value for knob, value in values.items()})
    points = []
    for combination in combinations(axes):
        point = ChainPoint({name: {} for name in chain}, {name: {} for name in chain})
        for key, value in combination.items():
            name, knob = key.split(" ")
            if knob in defenses.TABLE[name].knobs:
                point.knobs[name][knob] = _knob(f"{name}.{knob}", value)
            else:
                point.options[name][knob] = value
        for name in chain:  # defaulted knobs are columns too
            for knob, parameter in defenses.TABLE[name].knobs.items():
                point.knobs[name].setdefault(knob, parameter.default)
        points.append(point)
    return points


def _knob(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{name}={value!r} is not a number.")
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        raise UserError(f"{name} is too large: choose a smaller one.") from None
